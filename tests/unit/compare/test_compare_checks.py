"""The checks of a run, each for itself."""

from __future__ import annotations

import pytest
from scipy import stats as oracle

from pytest_crashlab.compare import compare_runs, run_numbers
from pytest_crashlab.compare.checks import check_summaries
from pytest_crashlab.records.check import CheckRow
from pytest_crashlab.report.build import session_summary
from pytest_crashlab.report.markdown import session_markdown
from pytest_crashlab.report.terminal import render_text
from pytest_crashlab.store.amendments import amend
from tests.stories import record, row


def checked(case, trial, *checks, letter="P", **fields):
    return row(case, trial, letter, **fields), [CheckRow(**{"required": True, **check}) for check in checks]


def score(value, **fields):
    return {"name": "score", "ok": value >= 0.5, "value": value, "at_least": 0.5, "kind": "metric", **fields}


def summaries(run):
    return {c.name: c for c in check_summaries(run, run_numbers(run).counts)}


def test_evaluated_failed_and_missing_are_told_apart(store):
    """Two cases, five scheduled trials: two hold, one does not, one cannot be told, one never came to it."""
    tone = {"name": "tone", "kind": "code"}
    checks = [
        checked("a", 1, {**tone, "ok": True}),
        checked("a", 2, {**tone, "ok": False}, letter="F"),
        checked("a", 3, {**tone, "ok": None}, letter="V"),
        checked("b", 1, {**tone, "ok": True}),
    ]
    run = record(store, {"a": "...", "b": ".E", "without": "PP"}, checks=checks)
    found = summaries(run)["tone"]
    assert (found.evaluated, found.failed, found.missing, found.cases) == (3, 1, 2, 2)
    assert found.rate == pytest.approx(2 / 3)
    assert 0 < found.rate_low < 2 / 3 < found.rate_high <= 1
    assert (found.mean, found.measured) == (None, 0)
    assert (found.kinds, found.required, found.judges) == (("code",), True, ("the test itself",))


def test_a_measured_number_has_a_mean_over_cases_with_students_interval(store):
    values = {"a": (0.2, 0.6), "b": (0.9,), "c": (0.7, 0.8)}
    checks = [checked(case, i, score(v)) for case, vs in values.items() for i, v in enumerate(vs, 1)]
    found = summaries(record(store, {case: "." * len(vs) for case, vs in values.items()}, checks=checks))[
        "score"
    ]
    means = [0.4, 0.9, 0.75]
    low, high = oracle.t.interval(0.95, 2, loc=sum(means) / 3, scale=oracle.sem(means))
    assert (found.mean, found.mean_low, found.mean_high) == pytest.approx((sum(means) / 3, low, high))
    assert (found.evaluated, found.failed, found.measured, found.kinds) == (5, 1, 5, ("metric",))


def test_a_number_without_bounds_has_a_mean_and_no_rate(store):
    free = {"ok": None, "at_least": None, "required": False}
    run = record(store, {"a": ".", "b": "."}, checks=[checked(c, 1, score(0.4, **free)) for c in "ab"])
    found = summaries(run)["score"]
    assert (found.rate, found.rate_low, found.evaluated, found.failed, found.missing) == (None, None, 2, 0, 0)
    assert (found.mean, found.mean_low, found.required) == (pytest.approx(0.4), None, False)


def test_a_check_of_excluded_trials_is_in_no_number(store):
    checks = [checked("a", 1, score(0.9)), checked("a", 2, score(0.1), letter="F", site="agent.py:41")]
    run = record(store, {"a": ".."}, checks=checks)
    amend(store, run.manifest.id, ["agent.py:41"], "the account was empty")
    amended = store.load(run.manifest.id)
    found = summaries(amended)["score"]
    assert (found.evaluated, found.failed, found.missing, found.rate) == (1, 0, 0, 1)
    rates = {r.name: (r.numerator, r.denominator) for r in run_numbers(amended).ratios}
    assert rates["check score"] == (1, 1)
    other = record(store, {"a": ".."}, run_id="20261201T063300Z-bbbbbb", checks=[checked("a", 1, score(0.9))])
    delta = next(d for d in compare_runs(amended, other).deltas if d.group == "check")
    assert (delta.a, delta.a_n) == (1, 1)


def test_reports_show_each_check_and_who_judged_it(store):
    tone = {"name": "tone", "kind": "judge", "required": False}
    checks = [
        checked("a", 1, {**tone, "ok": True, "judge": "gpt-4.1"}, score(0.9)),
        checked("a", 2, {**tone, "ok": False, "judge": "gpt-5"}, score(0.3), letter="F"),
    ]
    run = record(store, {"a": "..E"}, checks=checks)
    view = session_summary(run, run_numbers(run))
    drawn = render_text(view, width=120, color=False, full=True)
    block = drawn.split("\nChecks\n")[1].split("\n\n")[0]
    assert [line.split() for line in block.splitlines()[1:]] == [
        ["2", "1", "1", "50.0", "%", "-", "score", "(metric)"],
        ["2", "mean", "0.6", "-"],
        ["2", "1", "1", "50.0", "%", "-", "tone", "(judge,", "soft,", "by", "gpt-4.1", "and", "gpt-5)"],
    ]
    assert "Check tone was judged by gpt-4.1, gpt-5: its rate mixes them." in drawn
    assert "| check score, mean | 0.6 | - | 2 of 3 trials, 1 case |" in session_markdown(view)


def test_numbers_are_whole_in_a_narrow_terminal(store):
    free = {"name": "n" * 60, "ok": True, "kind": "metric", "value": 123456.0}
    checks = [checked(case, 1, {**free, "value": v}) for case, v in (("a", 123456.0), ("b", 234567.0))]
    run = record(store, {"a": ".", "b": "."}, checks=checks)
    drawn = render_text(session_summary(run, run_numbers(run)), width=80, color=False, full=True)
    block = drawn.split("\nChecks\n")[1].split("\n\n")[0]
    for whole in ("missing", "mean 179,012", "95 %, new cases", "100.0 %"):
        assert whole in block


def test_a_run_without_checks_shows_none(store):
    run = record(store, {"a": "PP"})
    assert "\nChecks\n" not in render_text(
        session_summary(run, run_numbers(run)), width=80, color=False, full=True
    )
