"""What a check comes to: answers, numbers with bounds, soft ones, blocks of assertions, failure classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

def test_a_block_twice(trial):
    for _ in range(2):
        with trial.verify("amount"):
            assert True
"""


def test_checks_of_trials(served: Suite) -> None:
    """One session in which tests use checks in each way; the run keeps what each came to."""
    served.files(test_checked=CHECKED)
    served.run("--trials=1", "--crashlab-run-name=x")
    run = served.last()
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
        "a_block_twice": ("misdeclared", None),
    }
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
    assert slow["why"] == "9.5 is not at most 2"
    lines = CHECKED.strip().splitlines()
    here = lines.index("    note(trial, True)  # here") + 1
    assert rows["through_a_helper", "order"]["site"] == f"test_checked.py:{here}"
    block = rows["every_block_tells", "amount"]
    assert (block["ok"], block["kind"], block["why"]) == (False, "code", "wrong total")
    line = (
        CHECKED.strip().splitlines().index('    with trial.verify("amount", failure_class="fabrication"):')
        + 1
    )
    assert block["site"] == f"test_checked.py:{line}"
    assert rows["every_block_tells", "order"]["ok"] is True
    assert ("a_verifier_that_breaks_is_no_failed_check", "amount") not in rows
