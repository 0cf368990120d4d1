"""An arm that measured its provider's billing: what is said of it, by what its labels mean.

A pilot's agent has four labels and six lines that assign them; four of the lines write ``crashed``, two of
these because the model gave no answer. One arm then runs with an empty balance. Then the conflations that
recur: a crash of the agent and one of the way to the model, a used-up horizon and a clock, a solved task
and a verifier that never looked.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from pytest_crashlab import Outcome, Vocabulary
from pytest_crashlab.cli import main
from pytest_crashlab.compare import compare_runs, run_numbers
from pytest_crashlab.compare.anomalies import anomalies
from pytest_crashlab.compare.vocabulary import vocabulary_findings
from pytest_crashlab.records.comparison import Word
from pytest_crashlab.records.outcome import Kind
from pytest_crashlab.records.vocabulary_lint import Declared
from pytest_crashlab.store import Store
from tests.stories import START, record, row

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

AGENT = """
import json
from pathlib import Path

class Model:
    def __init__(self, task):
        self.task = task

    def ask(self, turn):
        if Path("balance.txt").read_text() == "0":
            return None
        if self.task % 4 == 0 and turn < 2:
            return "{not json"
        return json.dumps({"answer": self.task * 2} if self.task != 7 else [])

def solve(task, target, said):
    model = Model(task)
    reply = model.ask(0)
    if reply is None:
        return said(NO_ANSWER)  # site: first
    for target.t in range(1, 4):
        try:
            call = json.loads(reply)
        except ValueError:
            reply = model.ask(target.t)
            if reply is None:
                return said(NO_ANSWER)  # site: repair
            continue
        if not isinstance(call, dict):
            return said("crashed")  # site: unparsed
        if "answer" not in call:
            return said("crashed")  # site: fallback
        return call["answer"]
    return said("timed_out")  # site: horizon
"""

TESTS = """
import pytest
from pytest_crashlab import Outcome, Vocabulary
from agent import solve

pytestmark = pytest.mark.outcomes(Vocabulary(
    Outcome.passed("passed", "The sum is right."),
    Outcome.failed("failed_assertion", "The sum is wrong."),
    Outcome.failed("timed_out", "The agent used all of its turns.", completed=False),
    Outcome.crashed("crashed", "CRASHED"),
    MORE
))

@pytest.mark.parametrize("task", range(1, 13))
def test_sum(trial, task):
    with trial.run(horizon=4, unit="turns") as target:
        target.output = solve(task, target, trial.outcome)
    if target.output not in (None, 2 * task):
        trial.outcome("failed_assertion")
"""

NAIVE = {
    "NO_ANSWER": '"crashed"',
    "CRASHED": "The model gave no answer or it was no tool call.",
    "MORE": "",
}
RIGHT = {
    "NO_ANSWER": '"api_error"',
    "CRASHED": "The agent wrote what is no tool call.",
    "MORE": 'Outcome.instrument("api_error", "The model gave no answer.")',
}


def told(text: str, words: dict[str, str]) -> str:
    for name, value in words.items():
        text = text.replace(name, value)
    return text


def line_of(site: str) -> str:
    """Where the agent assigns a label."""
    lines = AGENT.strip().splitlines()
    return f"agent.py:{next(n for n, line in enumerate(lines, 1) if f'# site: {site}' in line)}"


def arms(suite: Suite, words: dict[str, str]) -> pytest.RunResult:
    """A sound run and then the one with an empty balance; the result of the second session."""
    suite.files(agent=told(AGENT, words), test_pilot=told(TESTS, words))
    suite.pytester.makeini("[pytest]\npythonpath = .\n")
    balance = suite.root / "balance.txt"
    balance.write_text("12")
    suite.run("--trials=2", "--crashlab-run-name=sound")
    balance.write_text("0")
    return suite.run("--trials=2", f"--baseline={suite.runs()[0].id}")


def test_a_dead_arm_in_a_label_of_the_agent_looks_like_a_finding_and_is_warned_of(
    single: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing can know that the label lies: it is Regressed, and three places say what to look at."""
    result = arms(single, NAIVE)
    assert result.ret == 1
    said = " ".join(result.stdout.str().split())
    assert 'defines crashed with "or"' in said
    assert "All 24 trials of 12 cases ended as crashed: look whether something other than the cases" in said
    assert "Regressed" in said
    capsys.readouterr()
    sound, dead = (run.id for run in reversed(single.runs()))
    assert main(["diff", sound, dead, "--json", "--store", str(single.store.root)]) == 0
    found = {
        (line["label"], line["site"]): (line["before"], line["trials"])
        for line in json.loads(capsys.readouterr().out)["assignments"]
    }
    assert found["crashed", line_of("first")] == (0, 24)
    assert found["crashed", line_of("unparsed")] == (2, 0)


def test_a_dead_arm_in_a_label_of_its_own_gives_no_verdict(single: Suite) -> None:
    """All of it is the instrument's: no rate, no regression, exit code 10."""
    result = arms(single, RIGHT)
    assert result.ret == 10
    run = single.last()
    numbers = run_numbers(run)
    assert [(o.label, o.kind, o.count) for o in numbers.outcomes] == [("api_error", Kind.INSTRUMENT, 24)]
    assert numbers.pass_rate_these.value is None
    said = " ".join(result.stdout.str().split())
    assert "No verdict" in said
    assert "Regressed" not in said
    assert "24 undecided" in said
    assert not any("mixes" in w or '"or"' in w for w in run.manifest.warnings)


CASES, TRIALS, DEAD = 80, 5, 4
WORDS = {
    "passed": Outcome.passed("passed", "The sum is right."),
    "failed_assertion": Outcome.failed("failed_assertion", "The sum is wrong."),
    "timed_out": Outcome.failed("timed_out", "The agent used all of its turns.", completed=False),
    "crashed": Outcome.crashed("crashed", "The agent ended without an answer."),
    "api_error": Outcome.instrument("api_error", "The model gave no answer."),
}


def one_percent(store: Store, label: str, run_id: str, *, dead: bool):
    """400 trials in random rounds; of 100 one is the agent's own crash, and ``dead`` ones lie together."""
    vocabulary = Vocabulary(*(o for o in WORDS.values() if o.label in {label, *list(WORDS)[:4]}))
    rows = []
    draw = random.Random(20261130)
    order = [(number, trial) for trial in range(1, TRIALS + 1) for number in draw.sample(range(CASES), CASES)]
    for place, (number, trial) in enumerate(order):
        name, site = "passed", "test_pilot.py:15"
        if place % 100 == 49:
            name, site = "crashed", line_of("unparsed")
        if dead and 140 <= place < 140 + DEAD:
            name, site = label, line_of("first" if place % 2 else "repair")
        outcome = WORDS[name]
        infra = outcome.kind is not Kind.INSTRUMENT
        rows.append(
            row(
                f"test_pilot.py::test_sum[{number}]",
                trial,
                "P",
                outcome=name,
                kind=outcome.kind,
                infra_healthy=infra,
                target_completed=outcome.completed,
                site=site,
                start=START + place,
            )
        )
    cases = {f"test_pilot.py::test_sum[{n}]": "." * TRIALS for n in range(CASES)}
    return record(
        store,
        cases,
        run_id=run_id,
        rows=rows,
        plans={case: {"vocabulary": "0"} for case in cases},
        trial_order="rounds",
        vocabularies=[Declared.of(vocabulary, key="0", where="test_pilot.py::test_sum").to_mapping()],
    )


@pytest.fixture
def store(tmp_path) -> Store:
    return Store.open(tmp_path / ".crashlab", create=True)


def test_one_percent_in_a_label_of_the_agent_is_warned_of(store: Store) -> None:
    """Invisible in the rate: the places that share the label are named, and that its failures cluster."""
    sound = one_percent(store, "crashed", "20261129T063300Z-aaaaaa", dead=False)
    ill = one_percent(store, "crashed", "20261130T063300Z-bbbbbb", dead=True)
    (mixed,) = [f for f in vocabulary_findings(ill) if f.key == "mixed_causes:crashed"]
    for site in ("first", "repair", "unparsed"):
        assert line_of(site) in mixed.text
    comparison = compare_runs(sound, ill)
    assert "clustered_failures" in {note.code for note in anomalies(ill)}
    assert comparison.word is Word.NO_VERDICT
    assert [reason.code for reason in comparison.reasons] == ["clustered_failures_b"]


def test_one_percent_in_a_label_of_its_own_changes_nothing(store: Store) -> None:
    """As few as these are told apart, leave the rate as it was, and are no regression of any case."""
    sound = one_percent(store, "api_error", "20261129T063300Z-aaaaaa", dead=False)
    ill = one_percent(store, "api_error", "20261130T063300Z-bbbbbb", dead=True)
    assert [f for f in vocabulary_findings(ill) if f.code == "mixed_causes"] == []
    assert anomalies(ill) == ()
    comparison = compare_runs(sound, ill)
    assert comparison.word is Word.NO_CHANGE
    assert [c for c in comparison.cases if c.proven] == []
    healthy = next(r for r in run_numbers(ill).ratios if r.name == "infrastructure availability")
    assert (healthy.numerator, healthy.denominator) == (CASES * TRIALS - DEAD, CASES * TRIALS)


CONFLATED = """
import time
import pytest
from pytest_crashlab import Outcome, Vocabulary

SOLVED = Outcome.passed("solved", "The sum is right.")
LATE = Outcome.failed("timed_out", "The agent used all of its turns.", completed=False)
pytestmark = pytest.mark.outcomes(Vocabulary(SOLVED, LATE))

def turns(target, most):
    for target.t in range(1, most + 1):
        pass

@pytest.mark.parametrize("slow", [False, True])
def test_clock_in_a_label_of_the_agent(trial, slow):
    with trial.run(horizon=20, unit="turns") as target:
        turns(target, 3 if slow else 20)
        if slow:  # the sandbox's clock
            trial.outcome("timed_out")
    if target.exhausted:
        trial.outcome("timed_out")

def test_clock_of_its_own(trial):
    with trial.run(horizon=20, unit="turns", timeout=0.01) as target:
        turns(target, 3)
        time.sleep(5)
    trial.outcome("timed_out")

def test_horizon_of_its_own(trial):
    with trial.run(horizon=20, unit="turns", timeout=60) as target:
        turns(target, 20)
    trial.outcome("timed_out" if target.exhausted else "solved")

def broken_verifier():
    return {}["total"] == 30

@pytest.mark.parametrize("broken", [False, True])
def test_verifier_that_defaults_to_pass(trial, broken):
    with trial.run():
        pass
    try:
        if broken:
            broken_verifier()
        trial.outcome("solved")
    except Exception:
        trial.outcome("solved")

def test_verifier_that_may_fail(trial):
    with trial.run():
        pass
    trial.check("total", broken_verifier())
    trial.outcome("solved")

def test_verifier_that_says_it_could_not(trial):
    with trial.run():
        pass
    trial.check("total", None, why="the order is gone")
    trial.outcome("solved")
"""


def test_a_clock_and_a_verifier_that_never_looked(single: Suite) -> None:
    """Each beside its repair: what shares the label is warned of, what has its own gives no decision."""
    single.files(test_conflated=CONFLATED)
    single.run("--trials=1", "--crashlab-run-name=x", "-p", "no:randomly")
    outcomes = {case.partition("::test_")[2]: labels[0] for case, labels in single.outcomes().items()}
    assert outcomes == {
        "clock_in_a_label_of_the_agent[False]": "timed_out",
        "clock_in_a_label_of_the_agent[True]": "timed_out",
        "clock_of_its_own": "wall_clock",
        "horizon_of_its_own": "timed_out",
        "verifier_that_defaults_to_pass[False]": "solved",
        "verifier_that_defaults_to_pass[True]": "solved",
        "verifier_that_may_fail": "verifier_error",
        "verifier_that_says_it_could_not": "not_verified",
    }
    run = single.last()
    decisions = dict(run.trials.select("outcome", "decision").iter_rows())
    assert (
        decisions["wall_clock"] == decisions["verifier_error"] == decisions["not_verified"] == "inconclusive"
    )
    warned = " ".join(run.manifest.warnings)
    assert "timed_out names 2 trials that used up the declared horizon and 1 that had not" in warned
    assert (
        "solved is assigned at 2 places in test_conflated.py::test_verifier_that_defaults_to_pass" in warned
    )
    early = next(note.text for note in anomalies(run) if note.code == "limit_below_horizon")
    assert early.startswith("2 trials ended as timed_out, wall_clock far below the horizon, at 3 of")
