"""The bundled suite for code that a model wrote: each ending is told, and whose doing it was."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_crashlab.sandbox.bubblewrap import Bubblewrap

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sandboxes need Linux")
HERE = Path(__file__).parents[2] / "examples" / "generated_code"
ENDS = {
    "right": "solved",
    "wrong": "wrong_sum",
    "unfinished": "broken",
    "endless": "too_slow",
    "hungry": "too_large",
    "secretive": "wrong_sum",
    "cheating": "broken",
}


@pytest.fixture
def answers(single: Suite) -> Suite:
    for path in HERE.iterdir():
        if path.is_file():
            shutil.copy(path, single.root)
    return single


def by_case(suite: Suite, column: str) -> dict[str, object]:
    rows = suite.last().trials.select("case", column).iter_rows()
    return {case.partition("[")[2][:-1]: value for case, value in rows}


def failed_checks(suite: Suite) -> set[tuple[str, str]]:
    checks = suite.last().checks
    rows = checks.filter(~checks["ok"]).select("case", "name").iter_rows()
    return {(case.partition("[")[2][:-1], name) for case, name in rows}


def test_each_ending_is_told_and_nothing_gets_out(answers: Suite) -> None:
    backend = Bubblewrap()
    reason = backend.unavailable()
    backend.close()
    if reason is not None:
        pytest.skip(f"bubblewrap: {reason}")
    answers.run("--trials=1", "-c", "pytest.ini", "--crashlab-sandbox=bubblewrap")
    assert by_case(answers, "outcome") == ENDS
    assert failed_checks(answers) == {(case, "sums") for case in ENDS if case != "right"}


def test_a_sandbox_that_isolates_nothing_is_found_out(answers: Suite) -> None:
    answers.run("--trials=1", "-c", "pytest.ini", "--crashlab-sandbox=local", "-k", "secretive or cheating")
    assert {("secretive", "secret"), ("cheating", "outside")} <= failed_checks(answers)


def test_a_machine_that_cannot_run_code_tells_nothing_of_it(
    answers: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERPRETER", "no-such-python")
    answers.run("--trials=1", "-c", "pytest.ini", "--crashlab-sandbox=local", "-k", "right")
    assert (by_case(answers, "outcome"), by_case(answers, "decision")) == (
        {"right": "sandbox_error"},
        {"right": "inconclusive"},
    )
