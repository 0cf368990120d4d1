"""What asks for a look at the instrument, just inside and just outside of it."""

from __future__ import annotations

import pytest

from pytest_crashlab.compare.anomalies import anomalies
from pytest_crashlab.records.check import CheckRow
from pytest_crashlab.records.outcome import Kind
from tests.stories import START, record, row


def found(run):
    return {note.code: note.text for note in anomalies(run)}


def test_a_healthy_run_has_none(store):
    letters = ["FPPPP", "PFPPP", "PPFPP", "PPPFP", "PPPPF"]
    run = record(store, {f"t{i}": letters[i % 5] for i in range(10)}, trial_order="rounds")
    assert found(run) == {}


def test_a_run_of_nothing_has_none(store):
    assert found(record(store, {})) == {}
    assert found(record(store, {"t": "...", "s": "SSS"}, run_id="b")) == {}


def test_failures_that_come_together(store):
    """An outage of a minute over cases that pass otherwise."""
    rows, k, n = [], 5, 20
    for trial in range(1, k + 1):
        for case in range(n):
            slot = (trial - 1) * n + case
            letter = "F" if 40 <= slot < 50 else "P"
            rows.append(row(f"t{case}", trial, letter, start=START + 6 * slot, duration=5.0))
    run = record(store, {f"t{i}": "." * k for i in range(n)}, rows=rows, trial_order="rounds")
    assert found(run) == {
        "clustered_failures": "Failures cluster in time: from 06:37:00 to 06:37:59 UTC, 10 of 10 trials "
        "failed, over 10 cases that have nothing in common."
    }


@pytest.mark.parametrize(("order", "told"), [("cases", True), (None, True), ("rounds", False)])
def test_an_order_in_which_it_cannot_be_told(store, order, told):
    run = record(store, {"a": "PPF", "b": "FPP"}, trial_order=order)
    assert ("clusters_untestable" in found(run)) == told


@pytest.mark.parametrize("cases", [{"a": "PPF", "b": "PPP"}, {"a": "P", "b": "F", "c": "F"}])
def test_where_there_is_no_cluster_to_look_for_nothing_is_said(store, cases):
    assert "clusters_untestable" not in found(record(store, cases, trial_order="cases"))


def test_replayed_answers(store):
    assert set(found(record(store, {"t": "PPP"}, replayed=True))) == {"replayed"}


def test_answers_out_of_a_cache(store):
    rows = [row("t", trial, "P", answers=a, cached=False) for trial, a in enumerate("aab", 1)]
    assert found(record(store, {"t": "..."}, rows=rows)) == {
        "cached": "1 trial had answers of the provider out of a cache: they repeat others. Turn off the "
        "cache between test and provider (a gateway, a proxy or an HTTP client)."
    }
    rows = [row("t", trial, "P", answers=a, cached=False) for trial, a in enumerate("abc", 1)]
    assert found(record(store, {"t": "..."}, rows=rows, run_id="b")) == {}


@pytest.mark.parametrize(
    ("label", "t", "horizon", "told"),
    [
        ("horizon_exhausted", 9.0, 20.0, True),
        ("horizon_exhausted", 10.0, 20.0, False),
        ("timed_out", 1.0, 20.0, True),
        ("agent timeout", 1.0, 20.0, True),
        ("wrong_amount", 1.0, 20.0, False),
        ("timed_out", 1.0, None, False),
        ("timed_out", None, 20.0, False),
        ("timed_out", 0.0, 0.0, False),
    ],
)
def test_a_limit_that_comes_before_the_horizon(store, label, t, horizon, told):
    early = row("t", 2, "T", outcome=label, t=t, horizon=horizon, t_unit="turns")
    texts = found(record(store, {"t": "P."}, rows=[early]))
    assert ("limit_below_horizon" in texts) == told
    if label == "timed_out" and told:
        assert texts["limit_below_horizon"] == (
            "1 trial ended as timed_out far below the horizon, at 1 of 20 turns in t: another limit came "
            "first."
        )


def test_two_units_in_one_case(store):
    rows = [row("t", n, "P", t_unit=unit) for n, unit in ((1, "steps"), (2, "tokens"))]
    assert found(record(store, {"t": "..", "u": "P"}, rows=rows)) == {
        "t_units": "The trials of 1 case say in different units how far the target got (t: steps, tokens), "
        "so they cannot be compared."
    }


def test_a_wall_clock_far_below_the_horizon(store):
    stopped = row("t", 2, "E", outcome="wall_clock", t=2.0, horizon=50.0)
    assert "at 2 of 50 units in t" in found(record(store, {"t": "P."}, rows=[stopped]))["limit_below_horizon"]


@pytest.mark.parametrize(
    ("cases", "told"),
    [
        ({"a": "FFFFF", "b": "FFFFF"}, True),
        ({"a": "EEEEE", "b": "EEEEE"}, True),
        ({"a": "FFFFF", "b": "FFFF"}, False),
        ({"a": "FFFFFFFFFF"}, False),
        ({"a": "FFFFF", "b": "FFFFT"}, False),
        ({"a": "PPPPP", "b": "PPPPP"}, False),
    ],
)
def test_everything_in_one_label(store, cases, told):
    assert ("one_label" in found(record(store, cases))) == told


def test_everything_in_one_label_names_it(store):
    assert found(record(store, {"a": "FFFFF", "b": "FFFFF", "s": "SS"}))["one_label"] == (
        "All 10 trials of 2 cases ended as failed: look whether something other than the cases fails."
    )


def judged(*judges):
    return [
        (
            row("t", trial, "P"),
            [CheckRow(name="tone", required=True, ok=True, judge=judge)],
        )
        for trial, judge in enumerate(judges, 1)
    ]


@pytest.mark.parametrize(
    ("judges", "text"),
    [
        (("m@1", "m@2"), "Check tone was judged by m@1, m@2: its rate mixes them."),
        ((None, "m@2"), "Check tone was judged by m@2, the test itself: its rate mixes them."),
        (("m@1", "m@1"), None),
        ((None, None), None),
    ],
)
def test_two_judges_in_one_check(store, judges, text):
    run = record(store, {"t": ".."}, checks=judged(*judges))
    assert found(run).get("several_judges") == text


@pytest.mark.parametrize(
    ("cost", "tokens", "told"), [(0.0, 5, True), (0.0, 0, False), (0.0, None, False), (0.1, 5, False)]
)
def test_a_cost_of_nothing_beside_tokens(store, cost, tokens, told):
    paid = row("t", 1, "P", cost_usd=cost, cost_basis="billed", tokens_out=tokens)
    assert ("zero_cost" in found(record(store, {"t": "."}, rows=[paid]))) == told


def test_every_kind_of_anomaly_is_about_planned_labels_only(store):
    """An excluded trial is no outcome of the target and makes no label common."""
    skipped = [row("s", n, "S", kind=Kind.EXCLUDED) for n in (1, 2)]
    run = record(store, {"a": "FFFFF", "b": "FFFF", "s": ".."}, rows=skipped)
    assert "one_label" not in found(run)
