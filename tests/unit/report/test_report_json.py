"""Views for programs."""

from __future__ import annotations

import json

import pytest

from pytest_crashlab.compare import compare_runs, decide
from pytest_crashlab.records.comparison import Policy
from pytest_crashlab.report.build import LEFT_OUT_WORDS
from pytest_crashlab.report.difference import SHOWN, diff_view
from pytest_crashlab.report.json import diff_json, dumps, runs_json, session_json
from pytest_crashlab.report.lines import baseline_line, run_line
from tests.stories import record, row


def test_a_session_is_one_versioned_object(tell):
    view = tell({"t": "PPPPP", "gone": "P"}, {"t": "PPFPE", "new": "P"}, min_pass_rate=0.5)
    data = json.loads(dumps(session_json(view)))
    assert (data["schema"], data["version"]) == ("crashlab.session", 1)
    assert data["run"]["id"] == "20261130T063300Z-bbbbbb"
    assert data["cases"][0] == {
        "case": "t",
        "outcome": "Incomplete",
        "gated": True,
        "passes": 3,
        "decided": 4,
        "undecided": 1,
        "missing": 0,
        "excluded": 0,
        "planned": 5,
    }
    assert data["cases_total"] == 2
    assert [o["label"] for o in data["outcomes"]] == ["passed", "failed", "provider_error"]
    assert data["outcomes"][0]["sites"] == [{"site": "test_agent.py:10", "count": 4}]
    assert data["verdict"]["left_out"] == [
        {"reason": "new_in_b", "words": "new in this run", "cases": ["new"]},
        {"reason": "gone_in_b", "words": "no longer there", "cases": ["gone"]},
    ]
    assert data["gate"]["exit_code"] == 10
    assert data["thresholds"][0]["met"] is True


def test_unknown_numbers_are_null(tell):
    data = json.loads(dumps(session_json(tell(None, {"t": "EE"}))))
    assert data["pass_rate"]["value"] is None
    assert data["repeats"]["flips"] is None
    assert data["repeats"]["disagreement"] is None
    assert data["verdict"] is None
    assert data["gate"] is None
    behavioural = next(r for r in data["rates"] if r["name"] == "behavioural success")
    assert (behavioural["value"], behavioural["denominator"]) == (None, 0)


def test_the_simple_rule_on_one_case_has_no_nan(tell):
    from pytest_crashlab.compare import CompareOptions

    view = tell({"t": "P"}, {"t": "F"}, options=CompareOptions(method="normal"))
    assert "NaN" not in dumps(session_json(view))


def test_many_cases_are_cut_with_those_that_matter_first(tell):
    cases = {f"t{i}": "P" for i in range(299)} | {"t299": "F"}
    before = {f"t{i}": "P" for i in range(300)}
    view = tell(before, cases)
    data = session_json(view)
    assert (len(data["cases"]), data["cases_total"]) == (200, 300)
    assert data["cases"][0]["case"] == "t299"
    assert data["verdict"]["cases"][0]["case"] == "t299"
    assert len(data["verdict"]["cases"]) == 200
    whole = session_json(view, most_cases=None)
    assert len(whole["cases"]) == len(whole["verdict"]["cases"]) == 300


@pytest.mark.parametrize(
    ("show", "cases"),
    [
        ("worse", ["down", "dead"]),
        ("better", ["up"]),
        ("moved", ["dead", "up", "down"]),
        ("same", ["same", "flip", "never", "short"]),
        ("flip", ["up", "down", "flip"]),
        ("never", ["dead", "never"]),
        ("all", ["same", "down", "dead", "up", "flip", "never", "short"]),
    ],
)
def test_which_cases_a_diff_shows(store, show, cases):
    a = {
        "same": "PPP",
        "down": "PPP",
        "dead": "PPP",
        "up": "PFF",
        "flip": "PPF",
        "never": "FFF",
        "short": "PF",
    }
    b = {
        "same": "PPP",
        "down": "PPF",
        "dead": "FFF",
        "up": "PPP",
        "flip": "FPP",
        "never": "FFF",
        "short": "PF",
    }
    baseline, candidate = record(store, a, run_id="a"), record(store, b, run_id="b")
    comparison = compare_runs(baseline, candidate)
    gate = decide(Policy.REGRESSIONS, comparison)
    runs = (baseline, candidate, comparison, gate)
    view = diff_view(*runs, show=show)
    assert {c.case for c in view.cases} == set(cases)
    assert view.total == len(cases)
    cut = diff_view(*runs, show=show, limit=1)
    assert (len(cut.cases), cut.total) == (1, len(cases))
    assert set(SHOWN) == {"worse", "better", "moved", "same", "flip", "never", "all"}
    data = json.loads(dumps(diff_json(view)))
    assert (data["schema"], data["version"]) == ("crashlab.diff", 1)
    assert {c["case"] for c in data["cases"]} == set(cases)


def test_a_line_of_the_list_knows_what_the_manifest_knows(store):
    record(store, {"t": "PPE."}, run_id="a", summarise=True, gate={"word": "No change"})
    line = run_line(*store.heads(), ["main"], stale=False)
    assert (line.pass_rate, line.undecided, line.missing, line.word, line.names) == (
        1.0,
        1,
        1,
        "No change",
        ("main",),
    )
    record(store, {"t": "P"}, run_id="b")
    (bare,) = (run_line(head) for head in store.heads() if head.id == "b")
    assert (bare.pass_rate, bare.undecided, bare.missing, bare.word) == (None, None, None, None)
    data = json.loads(dumps(runs_json([line, bare], ["run c is damaged"])))
    assert [r["id"] for r in data["runs"]] == ["a", "b"]
    assert data["problems"] == ["run c is damaged"]


def test_the_drift_of_a_name(store):
    record(store, {"t": "PPPP"}, run_id="old", summarise=True)
    record(store, {"t": "PPPF"}, run_id="new", summarise=True)
    old, new = store.manifest("old"), store.manifest("new")
    line = baseline_line("main", "new", new, earlier=old, back=3)
    assert (line.drift, line.drift_over) == (-0.25, 3)
    assert baseline_line("main", "new", new).drift is None
    gone = baseline_line("main", "lost", None, earlier=old, back=3)
    assert (gone.status, gone.pass_rate, gone.drift) == (None, None, None)


def test_every_left_out_reason_has_words():
    assert set(LEFT_OUT_WORDS) == {
        "new_in_b",
        "gone_in_b",
        "unsampled",
        "no_outcome_a",
        "no_outcome_b",
        "undecided_a",
        "undecided_b",
        "skipped_a",
        "skipped_b",
        "content_changed",
        "pass_rule_changed",
        "no_trial_pair",
    }


def test_usage_and_anomalies_of_a_session(tell):
    paid = [
        row("t", 1, "P", run_duration=2.0, tokens_in=100, tokens_out=10, cost_usd=0.5, cost_basis="billed"),
        row("t", 2, "P", run_duration=4.0, tokens_in=300, cost_usd=0.0, cost_basis="billed"),
        row("u", 1, "P", run_duration=3.0, tokens_in=50),
    ]
    data = json.loads(dumps(session_json(tell(None, {"t": "..", "u": "."}, rows=paid))))
    usage = {line["name"]: line for line in data["usage"]}
    assert list(usage) == ["latency p50", "latency p95", "tokens in", "tokens out", "cost"]
    assert (usage["latency p50"]["value"], usage["latency p50"]["unit"]) == (3.0, "s")
    assert (usage["tokens in"]["value"], usage["tokens in"]["total"]) == (125.0, 450.0)
    assert usage["tokens in"]["low"] < 125 < usage["tokens in"]["high"]
    assert (usage["tokens out"]["trials"], usage["tokens out"]["of"]) == (1, 3)
    cost = usage["cost"]
    assert (cost["value"], cost["total"], cost["trials"], cost["basis"]) == (0.5, 0.5, 1, "billed")
    assert (cost["low"], cost["high"]) == (None, None)
    assert [a["code"] for a in data["anomalies"]] == ["zero_cost"]
