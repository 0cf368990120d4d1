"""What a type checker sees of the public names. Read by ``mypy --strict``, never run."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import pytest_crashlab
from pytest_crashlab import (
    Check,
    InstrumentFailure,
    Judge,
    Outcome,
    Provider,
    Sandbox,
    Store,
    Trial,
    Vocabulary,
    hookimpl,
    load_run,
)

assert_type(pytest_crashlab.__version__, str)

solved = Outcome.passed("solved", "The answer is right.")
assert_type(solved, Outcome)
assert_type(Outcome.failed("wrong", "The answer is wrong.", completed=False), Outcome)
assert_type(Outcome.instrument("shop_down", "The shop did not answer."), Outcome)
assert_type(solved.label, str)
assert_type(solved.completed, bool)

vocabulary = Vocabulary(solved)
assert_type(vocabulary["solved"], Outcome)
assert_type([outcome.label for outcome in vocabulary], list[str])
assert_type(vocabulary.default_pass, Outcome)
Vocabulary("solved")  # type: ignore[arg-type]

check = Check("amount", must="the refund equals the order total")
assert_type(check.required, bool)
Check("amount", "must is given by name")  # type: ignore[call-arg]
check.required = False  # type: ignore[misc]


def test_with_a_trial(trial: Trial) -> None:
    """What a typed test sees of its trial."""
    assert_type(trial.seed, int)
    assert_type(trial.case, str)
    with trial.run(horizon=20, unit="turns") as target:
        assert_type(target.t, float | None)
        target.t, target.output = 3, "done"
    assert_type(target.exhausted, bool)
    assert_type(trial.check("amount", target.output == "done", expected="done", observed=target.output), bool)
    trial.outcome("wrong", failure_class="arithmetic")
    trial.run(20)  # type: ignore[call-arg]
    trial.outcome(solved)  # type: ignore[arg-type]


def test_with_fixtures(trial: Trial, sandbox: Sandbox, provider: Provider, judge: Judge) -> None:
    """What a typed test sees of the other fixtures, and of its checks."""
    sandbox.write("order.json", "{}")
    assert_type(provider.ask("Refund order 42.").text, str)
    trial.check("latency", 1.5, at_most=2, failure_class="slow")
    with trial.verify("amount"):
        assert judge("It is polite.", letter="...").ok


async def test_with_an_async_trial(trial: Trial) -> None:
    """The same for an async test."""
    async with trial.run() as target:
        target.t = 1.5


@hookimpl
def pytest_crashlab_classify_exception(exception: BaseException, phase: str) -> str | None:
    """A hook keeps its own type under the decorator."""
    return "network_error" if phase == "run" and isinstance(exception, OSError) else None


assert_type(pytest_crashlab_classify_exception(OSError(), "run"), str | None)
assert_type(InstrumentFailure("network_error").label, str)
assert_type([manifest.id for manifest in Store.open(Path(".crashlab")).manifests()], list[str])
assert_type(load_run("main").manifest.id, str)
assert_type(load_run(Path("main.crashrun"), store=Path(".crashlab")).trials.height, int)
