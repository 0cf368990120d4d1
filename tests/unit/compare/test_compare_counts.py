"""What the trials of a case come to."""

from __future__ import annotations

from dataclasses import replace

from pytest_crashlab.compare.counts import count_cases
from tests.stories import record, row


def only(run):
    (case,) = count_cases(run)
    return case


def test_each_kind_of_trial_is_counted_once_and_apart(store):
    case = only(record(store, {"t": "PPFTCEVSN."}))
    assert (case.planned, case.excluded, case.scheduled) == (10, 1, 9)
    assert (case.passes, case.fails, case.decided) == (2, 3, 5)
    assert (case.undecided, case.missing, case.no_outcome, case.open) == (2, 2, 1, 4)


def test_a_crash_and_a_used_up_horizon_are_healthy_but_not_completed(store):
    case = only(record(store, {"t": "PFTCEV"}))
    assert case.healthy == 4
    assert case.completed == 3  # P, F and V: the verifier failed after the target was done
    assert (case.behaved, case.behaved_passes) == (2, 1)


def test_health_and_completion_follow_from_the_kind_where_the_row_does_not_say(store):
    unsaid = {"infra_healthy": None, "target_completed": None}
    rows = [row("t", n, letter, **unsaid) for n, letter in enumerate("PFCE", 1)]
    case = only(record(store, {"t": "...."}, rows=rows))
    assert (case.healthy, case.completed, case.behaved, case.behaved_passes) == (3, 2, 2, 1)


def test_the_first_attempt_with_a_decision_decides(store):
    again = [
        row("t", 1, "P", attempt=2),
        row("t", 1, "F", attempt=3),
        row("t", 2, "E", attempt=2),
    ]
    case = only(record(store, {"t": "EP"}, rows=again))
    assert (case.passes, case.decided, case.undecided) == (2, 2, 0)


def test_an_instrument_failure_that_also_has_a_score_is_no_decision(store):
    """inspect_ai#4412: P, and E that carries a failing score: 1 of 1 decided, 1 of 2 scheduled."""
    scored = row("t", 2, "E", failure_class="score 0")
    case = only(record(store, {"t": "P."}, rows=[scored]))
    assert (case.passes, case.decided) == (1, 1)
    assert case.scheduled == 2


def test_rows_outside_the_plan_count_for_nothing(store):
    case = only(record(store, {"t": "P"}, rows=[row("t", 2, "F"), row("stranger", 1, "F")]))
    assert (case.passes, case.decided, case.missing) == (1, 1, 0)


def test_cases_keep_the_order_of_the_plan_and_one_without_a_row_is_missing(store):
    counts = count_cases(record(store, {"z": "PP", "a": "..", "m": "S"}))
    assert [c.case for c in counts] == ["z", "a", "m"]
    assert counts.by_id()["a"].missing == 2
    assert (counts.scheduled, counts.passes, counts.missing, counts.excluded) == (4, 2, 2, 1)


def test_a_run_without_a_case(store):
    counts = count_cases(record(store, {}))
    assert len(counts) == 0
    assert counts.scheduled == 0


def test_a_trial_that_is_there_twice_counts_once(store):
    run = record(store, {"t": "PF"})
    twice = replace(run, trials=run.trials.vstack(run.trials))
    assert only(twice).decided == 2


def test_units_of_the_horizon(store):
    assert only(record(store, {"t": "PE"}, t_unit="turns")).units == {"turns"}
