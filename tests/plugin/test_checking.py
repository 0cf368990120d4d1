"""What a check comes to: answers, numbers with bounds, soft ones, blocks of assertions, failure classes."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pytest_crashlab import Check, InstrumentFailure
from pytest_crashlab.plugin.checking import Given, evaluated

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite


def come_to(ok, *, declared=None, **given):
    return evaluated("score", ok, Given(site="test_a.py:3", **given), declared)


def bound(**bounds):
    return Check("score", must="is good", **bounds)


@pytest.mark.parametrize(
    ("value", "bounds", "held"),
    [
        (0.5, {"at_least": 0.5}, True),
        (0.49, {"at_least": 0.5}, False),
        (3, {"at_most": 3}, True),
        (3.01, {"at_most": 3}, False),
        (0, {"at_least": 0, "at_most": 0}, True),
        (5, {"at_least": 1, "at_most": 4}, False),
        (float("inf"), {"at_most": 4}, False),
        (float("nan"), {"at_least": 0}, None),
        (None, {"at_least": 0}, None),
    ],
)
def test_bounds_are_included_and_declared_or_given(value, bounds, held):
    for row in (come_to(value, **bounds), come_to(value, declared=bound(**bounds))):
        assert row.ok is held
        assert (row.at_least, row.at_most) == (bounds.get("at_least"), bounds.get("at_most"))
        assert row.value == (value if held is not None else None)


@pytest.mark.parametrize(
    ("ok", "given", "declared", "kind"),
    [
        (True, {}, None, "code"),
        (0.9, {"at_least": 0.5}, None, "metric"),
        (True, {"judge": "gpt-5"}, None, "judge"),
        (0.9, {"judge": "gpt-5", "at_least": 0.5}, None, "judge"),
        (True, {"judge": "gpt-5"}, bound(kind="code"), "code"),
        (0.9, {}, bound(kind="metric", required=False), "metric"),
    ],
)
def test_kind_is_as_declared_or_as_it_is_evaluated(ok, given, declared, kind):
    assert come_to(ok, declared=declared, **given).kind == kind


class OfOne:
    """As a tensor of one number answers."""

    def __float__(self):
        return 0.3


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.float32(0.25), 0.25),
        (np.float64(0.3), 0.3),
        (np.int64(3), 3.0),
        (np.asarray(0.3), 0.3),
        (Decimal("0.3"), 0.3),
        (Fraction(1, 4), 0.25),
        (OfOne(), 0.3),
        (10**400, math.inf),
    ],
)
def test_numbers_of_any_library_are_held_against_bounds(value, said):
    """A number that is none to isinstance() is true to bool(): it must not pass by that."""
    assert (come_to(value, at_least=1e9).ok, come_to(value, at_most=-1).ok) == (said == math.inf, False)
    assert come_to(value, at_least=0).value == pytest.approx(said)
    with pytest.raises(InstrumentFailure, match="compare it with a threshold first"):
        come_to(value)


@pytest.mark.parametrize("value", [True, np.bool_(True), "0.9", [0.9], np.asarray([0.1, 0.9]), 1j])
def test_what_is_no_number_is_not_held_against_bounds(value):
    with pytest.raises(InstrumentFailure, match="measures a number and got"):
        come_to(value, at_least=0.5)


def test_answers_of_any_library():
    assert [come_to(ok).ok for ok in (np.bool_(True), np.int64(0), np.float32("nan"), Decimal("NaN"))] == [
        True,
        False,
        None,
        None,
    ]


def test_a_soft_number_needs_no_bound_and_a_required_one_does():
    soft = come_to(0.9, declared=bound(kind="metric", required=False))
    assert (soft.ok, soft.value, soft.required) == (None, 0.9, False)
    with pytest.raises(InstrumentFailure, match="is required and has no bound"):
        come_to(0.9, declared=bound(kind="metric"))


@pytest.mark.parametrize(
    ("ok", "given", "declared", "said"),
    [
        (0.7, {}, None, "got the number 0.7; compare it with a threshold"),
        (0.7, {"at_least": 0.4}, bound(at_least=0.5), "has other bounds than its declaration"),
        (0.7, {"at_least": "high"}, None, "at_least='high' is no number"),
        (0.7, {"at_least": 2, "at_most": 1}, None, "no number is at least 2 and at most 1"),
        (True, {"failure_class": 5}, None, "failure_class of check 'score' at test_a.py:3 is 5"),
        (True, {"judge": "a\nb"}, None, "judge of check 'score' at test_a.py:3 is 'a\\\\nb'"),
    ],
)
def test_what_cannot_be_an_answer_is_an_error_of_the_test(ok, given, declared, said):
    with pytest.raises(InstrumentFailure, match=said) as failure:
        come_to(ok, declared=declared, **given)
    assert failure.value.label == "misdeclared"
    assert "test_a.py:3" in str(failure.value)


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        ({"kind": "human"}, "the kind is one of code, judge, metric"),
        ({"at_least": float("nan")}, "at_least=nan is no number"),
        ({"at_least": 2, "at_most": 1}, "no number is at least 2"),
        ({"name": " "}, "needs a name"),
        ({"must": " "}, "needs must=: what has to be true, in words"),
        ({"must": None}, "needs must=: what has to be true, in words"),
        ({"name": "a\nb"}, "needs a name"),
    ],
)
def test_a_declaration_that_nothing_can_keep_is_refused(declare, said):
    with pytest.raises(ValueError, match=said):
        Check(**{"name": "score", "must": "is good", **declare})


def test_why_says_how_far_off_a_number_was():
    assert come_to(0.3, at_least=0.5, at_most=1).why == "0.3 is not at least 0.5 and at most 1"
    assert come_to(0.3, at_least=0.5, why="too short").why == "too short"
    assert come_to(0.7, at_least=0.5).why is None


CHECKED = """
from fractions import Fraction
import pytest
from pytest_crashlab import Check

DECLARED = [
    Check("amount", must="equals the total"),
    Check("latency", must="is short", kind="metric", at_most=2, required=False),
]
pytestmark = pytest.mark.checks(*DECLARED)

def test_soft_checks_fail_nothing(trial):
    trial.check("amount", True)
    assert trial.check("latency", 9.5, failure_class="slow") is False
    assert trial.check("politeness", False, required=False) is False

def test_every_block_tells(trial):
    with trial.verify("amount", failure_class="fabrication"):
        assert 29 == 30, "wrong total"
    with trial.verify("receipt", why="sent after the refund"):
        pytest.fail("no receipt")
    with trial.verify("order"):
        assert True

def test_blocks_that_hold(trial):
    with trial.verify("amount"):
        assert True
    with trial.verify("tone", required=False):
        assert False

def test_a_verifier_that_breaks_is_no_failed_check(trial):
    with trial.run():
        pass
    with trial.verify("amount"):
        {}["order"]

def test_first_class_counts(trial):
    trial.check("receipt", False)
    trial.check("amount", False, failure_class="fabrication")

def test_class_of_the_outcome(trial):
    trial.check("amount", False, failure_class="fabrication")
    trial.outcome("failed", failure_class="injection")

def test_a_class_of_a_check_that_holds_says_nothing(trial):
    trial.check("amount", True, failure_class="fabrication")

def test_endless_number(trial):
    trial.check("amount", True)
    trial.check("latency", float("inf"))

def note(trial, ok):
    __tracebackhide__ = True
    trial.check("order", ok)
    trial.outcome("failed")

def test_through_a_helper(trial):
    trial.check("amount", True)
    note(trial, True)  # here

@pytest.mark.parametrize("name", ["", 5, None, "a\\x1b[2J"])
def test_a_name_that_is_none(trial, name):
    trial.check("amount", True)
    trial.check(name, True)

def test_words_of_an_outcome(trial):
    trial.outcome(["failed"])

def test_progress_of_a_library(trial):
    with trial.run(horizon=Fraction(20), unit="turns") as target:
        target.t = Fraction(5, 2)
    trial.check("amount", True)

def test_progress_that_is_none_and_an_error(trial):
    with trial.run(horizon=20, unit="turns") as target:
        target.t = "three"
        raise ValueError("no")

def test_why_of_any_kind(trial):
    trial.check("amount", False, why=("no", "refund"))

def test_screen(trial):
    trial.check("amount", False, why="\\x1b[2J" + "x" * 10_000)

@pytest.fixture
def judged_late(trial):
    yield
    trial.check("order", False)

@pytest.fixture
def named_late(trial):
    yield
    trial.outcome("failed")

def test_check_in_tear_down(trial, judged_late):
    trial.check("amount", True)

def test_outcome_in_tear_down(trial, named_late):
    trial.check("amount", True)

def test_skipped_by_name(trial):
    trial.check("amount", False)
    trial.outcome("skipped")

def test_a_block_twice(trial):
    for _ in range(2):
        with trial.verify("amount"):
            assert True
"""


def test_checks_of_trials(served: Suite) -> None:
    """One session in which tests use checks in each way; the run keeps what each came to."""
    served.files(test_checked=CHECKED)
    result = served.run("--trials=1", "--crashlab-run-name=x")
    run = served.last()
    assert "\x1b" not in result.stdout.str()
    assert max(map(len, result.stdout.lines)) < 3000
    found = {
        row["case"].partition("::test_")[2]: (row["outcome"], row["failure_class"], row["message"])
        for row in run.trials.iter_rows(named=True)
    }
    assert {case: said[:2] for case, said in found.items()} == {
        "soft_checks_fail_nothing": ("passed", None),
        "every_block_tells": ("failed", "fabrication"),
        "blocks_that_hold": ("passed", None),
        "a_verifier_that_breaks_is_no_failed_check": ("verifier_error", None),
        "first_class_counts": ("failed", "fabrication"),
        "class_of_the_outcome": ("failed", "injection"),
        "a_class_of_a_check_that_holds_says_nothing": ("passed", None),
        "endless_number": ("passed", None),
        "through_a_helper": ("failed", None),
        **{f"a_name_that_is_none[{name}]": ("misdeclared", None) for name in ("", "5", "None")},
        "a_name_that_is_none[a\\x1b[2J]": ("misdeclared", None),
        "words_of_an_outcome": ("misdeclared", None),
        "progress_of_a_library": ("passed", None),
        "progress_that_is_none_and_an_error": ("crashed", None),
        "why_of_any_kind": ("failed", None),
        "screen": ("failed", None),
        "check_in_tear_down": ("passed", None),
        "outcome_in_tear_down": ("passed", None),
        "skipped_by_name": ("misdeclared", None),
        "a_block_twice": ("misdeclared", None),
    }
    late = {
        case.partition("::test_")[2]: error
        for case, error in run.trials.select("case", "record_error").iter_rows()
        if error is not None
    }
    assert set(late) == {"check_in_tear_down", "outcome_in_tear_down"}
    assert "check 'order' at test_checked.py:" in late["check_in_tear_down"]
    assert all("comes after the trial was decided" in error for error in late.values())
    progress = dict(run.trials.select("case", "t").iter_rows())
    assert progress["test_checked.py::test_progress_of_a_library"] == 2.5
    assert progress["test_checked.py::test_progress_that_is_none_and_an_error"] is None
    assert "'amount' is evaluated a second time at test_checked.py:" in found["a_block_twice"][2]
    assert "check 'receipt': sent after the refund: no receipt" in found["every_block_tells"][2]
    rows = {
        (row["case"].partition("::test_")[2], row["name"]): row for row in run.checks.iter_rows(named=True)
    }
    slow = rows["soft_checks_fail_nothing", "latency"]
    assert (slow["ok"], slow["value"], slow["at_most"], slow["kind"], slow["failure_class"]) == (
        False,
        9.5,
        2,
        "metric",
        "slow",
    )
    assert (slow["why"], slow["must"]) == ("9.5 is not at most 2", "is short")
    lines = CHECKED.strip().splitlines()
    here = lines.index("    note(trial, True)  # here") + 1
    assert rows["through_a_helper", "order"]["site"] == f"test_checked.py:{here}"
    block = rows["every_block_tells", "amount"]
    assert (block["ok"], block["kind"], block["why"]) == (False, "code", "wrong total")
    line = lines.index('    with trial.verify("amount", failure_class="fabrication"):') + 1
    assert block["site"] == f"test_checked.py:{line}"
    assert rows["every_block_tells", "order"]["ok"] is True
    assert ("a_verifier_that_breaks_is_no_failed_check", "amount") not in rows
