"""Which cases are compared, and under which reason the others are left out."""

from __future__ import annotations

import pytest

from pytest_crashlab.compare import compare_runs
from pytest_crashlab.compare.pairing import decided_identities
from tests.stories import record

ANCHOR = {"anchor": "PPPP"}


def left_out(store, a, b, *, a_plans=None, b_plans=None, **b_fields):
    baseline = record(store, {**ANCHOR, **a}, run_id="a", plans=a_plans)
    candidate = record(store, {**ANCHOR, **b}, run_id="b", plans=b_plans, **b_fields)
    comparison = compare_runs(baseline, candidate)
    assert [c.case for c in comparison.cases if c.case == "anchor"] == ["anchor"]
    compared = {c.case for c in comparison.cases}
    apart = {c.case: c.reason for c in comparison.left_out}
    assert not compared & set(apart), "a case is compared or left out, never both"
    assert compared | set(apart) == {*ANCHOR, *a, *b}, "no case vanishes"
    return apart


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (None, "PP", "new_in_b"),
        ("PP", None, "gone_in_b"),
        ("PP", "..", "unsampled"),
        ("..", "PP", "unsampled"),
        ("NN", "PP", "no_outcome_a"),
        ("PP", "N.", "no_outcome_b"),
        ("EE", "PP", "undecided_a"),
        ("PP", "EN", "undecided_b"),
        ("PP", "SE", "undecided_b"),
        ("SS", "PP", "skipped_a"),
        ("PP", "SS", "skipped_b"),
        ("SS", "SS", "skipped_a"),
    ],
)
def test_reason(store, a, b, reason):
    arms = [{} if letters is None else {"t": letters} for letters in (a, b)]
    assert left_out(store, *arms) == {"t": reason}


def test_a_partly_decided_case_is_compared_by_what_was_decided(store):
    assert left_out(store, {"t": "PE."}, {"t": "SPF"}) == {}


def test_a_selection_leaves_cases_unsampled_not_gone(store):
    assert left_out(store, {"t": "PP"}, {}, partial=True) == {"t": "unsampled"}


def test_a_partial_baseline_makes_no_case_new(store):
    baseline = record(store, {**ANCHOR}, run_id="a", partial=True)
    candidate = record(store, {**ANCHOR, "t": "PP"}, run_id="b")
    (one,) = compare_runs(baseline, candidate).left_out
    assert (one.case, one.reason) == ("t", "unsampled")


def test_another_question_is_another_case(store):
    plans = {"t": {"content": "old"}}, {"t": {"content": "new"}}
    arms = {"t": "PP"}, {"t": "PP"}
    assert left_out(store, *arms, a_plans=plans[0], b_plans=plans[1]) == {"t": "content_changed"}


@pytest.mark.parametrize(("old", "new"), [("r1", "r2"), (None, "r2"), ("r1", None)])
def test_another_rule_is_no_comparison(store, old, new):
    plans = {"t": {"pass_rule": old}}, {"t": {"pass_rule": new}}
    arms = {"t": "PP"}, {"t": "FF"}
    assert left_out(store, *arms, a_plans=plans[0], b_plans=plans[1]) == {"t": "pass_rule_changed"}


def test_a_rule_known_in_neither_run_is_compared_and_noted(store):
    plans = {"t": {"pass_rule": None}}
    baseline = record(store, {"t": "PP"}, run_id="a", plans=plans)
    candidate = record(store, {"t": "PP"}, run_id="b", plans=plans)
    comparison = compare_runs(baseline, candidate)
    assert len(comparison.cases) == 1
    assert [n.code for n in comparison.notes] == ["pass_rule_unknown"]


def test_a_moved_line_is_no_change_of_content(store):
    plans = {"t": {"line": 4, "file": "a.py"}}, {"t": {"line": 9, "file": "a.py"}}
    assert left_out(store, {"t": "PP"}, {"t": "PP"}, a_plans=plans[0], b_plans=plans[1]) == {}


def test_identities_are_those_the_baseline_decided(store):
    plans = {"t": {"content": "c"}, "u": {"pass_rule": None}}
    run = record(store, {"t": "PE", "u": "F", "v": "EE", "w": "SS", "x": ".."}, plans=plans)
    assert decided_identities(run) == {"t": ["c", "rule"], "u": ["", None]}
