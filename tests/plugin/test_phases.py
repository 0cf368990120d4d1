"""The four phases of a trial: what each took, what failed in it, and the clocks that end a run."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_crashlab.report.messages import trial_lines
from pytest_crashlab.report.phases import phase_times

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="no interval timer to interrupt by")

HEAD = """
import time, pytest
from pytest_crashlab import Check, Outcome, Vocabulary
pytestmark = pytest.mark.outcomes(Vocabulary(
    Outcome.passed("done", "It is done."),
    Outcome.failed("wrong", "It is not."),
    Outcome.failed("too_slow", "It took longer than it may.", completed=False),
))
"""


def rows(suite: Suite) -> dict[str, dict[str, object]]:
    table = suite.last().trials.sort("case", "trial")
    return {row["case"].partition("::test_")[2]: row for row in table.iter_rows(named=True)}


def test_each_phase_has_its_time(single: Suite) -> None:
    """Set-up and what precedes the run are prepare; tear-down is record; a plain body is run."""
    single.files(
        test_it=f"""{HEAD}
@pytest.fixture
def slow():
    time.sleep(0.02)
    yield
    time.sleep(0.03)

def test_eval(trial, slow):
    with trial.run():
        time.sleep(0.04)
    time.sleep(0.05)

def test_plain(slow):
    time.sleep(0.04)

def test_broken(nothing_of_the_kind): pass
"""
    )
    single.run("--trials=1", "--crashlab-run-name=x")
    found = rows(single)
    eval_ = found["eval"]
    assert eval_["prepare_s"] >= 0.02
    assert eval_["run_duration"] >= 0.04
    assert eval_["verify_s"] >= 0.05
    assert eval_["record_s"] >= 0.03
    times = phase_times(eval_)
    assert [phase for phase, _, _ in times] == ["prepare", "run", "verify", "record"]
    assert times[2][1] == pytest.approx(eval_["prepare_s"] + eval_["run_duration"])
    assert sum(seconds for _, _, seconds in times) == pytest.approx(eval_["duration"], abs=0.005)
    plain = found["plain"]
    assert plain["verify_s"] is None
    assert [phase for phase, _, _ in phase_times(plain)] == ["prepare", "run", "record"]
    assert phase_times(found["broken"]) == ()


def test_a_wrong_result_reads_differently_from_a_verifier_that_never_ran(single: Suite) -> None:
    """Each end names the phase that failed and what is known of the target's result."""
    single.files(
        test_it=f"""{HEAD}
@pytest.fixture
def leaks():
    yield
    raise OSError("still mounted")

def test_wrong(trial):
    with trial.run(): pass
    trial.check("state", False, expected="paid", observed="open")

def test_crashed(trial):
    with trial.run():
        raise ValueError("no such tool")

def test_provider(trial):
    with trial.run():
        raise ConnectionResetError("gone")

def test_verifier(trial):
    with trial.run(): pass
    raise KeyError("amount")

@pytest.mark.checks(Check("amount", must="be right"))
def test_unchecked(trial):
    with trial.run(): pass

def test_prepare(trial):
    open("/nowhere/orders.json")
    with trial.run(): pass

def test_leaks(leaks): pass
"""
    )
    single.run("--trials=1", "--crashlab-run-name=x")
    run = single.last()
    said = {case.partition("::test_")[2]: list(trial_lines(run, case)) for case in run.manifest.case_ids}
    assert {name: lines[1].strip() for name, lines in said.items() if name != "leaks"} == {
        "wrong": "The verifier ran, and the target's result is wrong.",
        "crashed": "The target ended by an error of its own: the verifier never ran.",
        "provider": "The instrument failed while the target ran: the verifier never ran.",
        "verifier": "The verifier failed itself: nothing is known of the target's result.",
        "unchecked": "A required check was never evaluated: nothing is known of the target's result.",
        "prepare": "Prepare failed: the target never ran.",
    }
    assert said["leaks"][1].strip() == (
        "Tear-down failed, and the outcome stands: teardown_error: OSError: still mounted"
    )
    assert re.search(r"\(prepare [\d.]+ m?s, run ", said["wrong"][0])


@needs_signals
def test_a_time_limit_is_the_machines_unless_it_is_declared_the_targets(suite: Suite) -> None:
    """Interrupted at once where that can be; a clock says nothing of the target, a declared time does."""
    suite.files(
        test_it=f"""{HEAD}
import asyncio, threading

def test_machine(trial):
    with trial.run(horizon=20, unit="turns", timeout=0.05) as target:
        target.t = 3
        try:
            time.sleep(10)
        except Exception:
            pass
    trial.outcome("wrong")

def test_target(trial):
    with trial.run(timeout=0.05, timeout_is="target") as target:
        time.sleep(10)
    assert target.timed_out

def test_named(trial):
    with trial.run(timeout=0.05, timeout_is="target") as target:
        time.sleep(10)
    trial.outcome("too_slow" if target.timed_out else "wrong")

def test_passes_late(trial):
    with trial.run(timeout=0.05, timeout_is="target"):
        time.sleep(10)
    trial.outcome("done")

def test_async_machine(trial):
    async def body():
        async with trial.run(timeout=0.05):
            await asyncio.sleep(10)
    asyncio.run(body())

def test_async_target(trial):
    async def body():
        async with trial.run(timeout=0.05, timeout_is="target"):
            await asyncio.sleep(10)
        trial.outcome("too_slow")
    asyncio.run(body())

def test_plain_with_in_a_loop(trial):
    async def body():
        with trial.run(timeout=0.05):
            await asyncio.sleep(0.06)
    asyncio.run(body())

def test_in_time(trial):
    with trial.run(timeout=30):
        pass
    with pytest.raises(ZeroDivisionError):
        1 / 0

def test_own_error(trial):
    with trial.run(timeout=30):
        raise ValueError("own")
"""
    )
    suite.run("--trials=1", "--crashlab-run-name=x")
    found = rows(suite)
    assert {name: (row["outcome"], row["phase"], row["target_completed"]) for name, row in found.items()} == {
        "machine": ("wall_clock", "run", False),
        "target": ("failed", "verify", False),
        "named": ("too_slow", "verify", False),
        "passes_late": ("misdeclared", "verify", False),
        "async_machine": ("wall_clock", "run", False),
        "async_target": ("too_slow", "verify", False),
        "plain_with_in_a_loop": ("wall_clock", "run", False),
        "in_time": ("done", "verify", True),
        "own_error": ("crashed", "run", False),
    }
    assert "trial.run(timeout=0.05) was up after 0." in found["machine"]["message"]
    assert found["plain_with_in_a_loop"]["message"].endswith("; it could not be interrupted")
    assert found["target"]["message"] == "the target used up its 0.05 s"
    assert found["machine"]["run_duration"] < 5
    assert (found["machine"]["t"], found["machine"]["horizon"]) == (3, 20)


@needs_signals
def test_an_earlier_alarm_of_somebody_else_stays(single: Suite) -> None:
    """Another limit of the process is neither lost nor late: pytest-timeout's, say."""
    single.files(
        test_it=f"""{HEAD}
import signal

class Rang(Exception): pass

@pytest.fixture(params=[0.05, 0.2])
def other(request):
    def ring(*_): raise Rang
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, request.param)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)

def test_it(trial, other):
    with pytest.raises(Rang):
        with trial.run(timeout=0.1, timeout_is="target"):
            time.sleep(5)
        time.sleep(5)
"""
    )
    result = single.run("--trials=off")
    result.assert_outcomes(passed=1, failed=1)  # the later one: its target was late, and the alarm still rang
    result.stdout.fnmatch_lines(["test_it.py:*: failed: the target used up its 0.1 s"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("timeout=0", "trial.run(timeout=0): give a number of seconds above 0"),
        ("timeout=float('inf')", "trial.run(timeout=inf): give a number of seconds"),
        ("timeout=1, timeout_is='mine'", "trial.run(timeout_is='mine'): write"),
    ],
)
def test_limits_that_cannot_be(single: Suite, arguments: str, words: str) -> None:
    """The test is misdeclared, in words that name the argument."""
    single.files(test_it=f"def test_it(trial):\n    with trial.run({arguments}): pass\n")
    single.run("--trials=2")
    row = single.last().trials.row(0, named=True)
    assert row["outcome"] == "misdeclared"
    assert words in row["message"]
