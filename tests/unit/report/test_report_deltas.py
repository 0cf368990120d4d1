"""What lies beside the verdict, drawn and as JSON."""

from __future__ import annotations

import json

from pytest_crashlab.compare import CompareOptions, compare_runs, judge
from pytest_crashlab.report.difference import diff_view
from pytest_crashlab.report.json import diff_json, dumps
from pytest_crashlab.report.listing import render_diff
from tests.stories import record, row


def story(store, **b_fields):
    """10 cases x 5 trials of one second each; 15 trials of 5 cases fail now; no tokens, a cost of 0.01."""

    def measured(run_id, failing, **fields):
        rows = [
            row(
                f"t{case}",
                trial,
                "F" if case < failing and trial > 2 else "P",
                run_duration=1.0 + case / 10,
                cost_usd=0.01,
                cost_basis="billed" if failing else "estimated",
            )
            for case in range(10)
            for trial in range(1, 6)
        ]
        names = {f"t{case}": "....." for case in range(10)}
        return record(store, names, run_id=run_id, rows=rows, seed=7, **fields)

    a = measured("a", 0, target_digest="x")
    b = measured("b", 5, target_digest="y", seed_source="baseline", **b_fields)
    comparison = compare_runs(a, b, CompareOptions(outcomes=("failed",), aa_factor=1.25))
    _, gate = judge(b, comparison)
    return diff_view(a, b, comparison, gate, show="worse")


def lines(view, width=400):
    return [
        line.strip() for line in render_diff(view, view.candidate.id, width=width, color=False).splitlines()
    ]


def test_a_diff_shows_everything_beside_the_verdict(store):
    drawn = lines(story(store))
    assert "Both runs share their seeds: 50 pairs of trials compared, one by one." in drawn
    assert "What changed: the target's source." in drawn
    assert "Interleaved: no. Noise between equal runs (A/A factor): 1.25." in drawn
    assert any(
        line.startswith("end-to-end success: 100.0 % -> 70.0 % (-30.0 points, -4") for line in drawn
    ), drawn
    assert any(
        line.startswith("outcome failed: 0.0 % -> 30.0 % (+30.0 points, ")
        and line.endswith("proven higher, exploratory; 50 and 50 trials that reported")
        for line in drawn
    )
    assert "tokens in, tokens out: - (not known in either run)" in drawn
    assert (
        "cost: 0.01 USD -> 0.01 USD; 50 and 50 trials that ran (estimated in the baseline, billed in this "
        "run: not comparable)"
    ) in drawn


def test_a_declared_outcome_is_not_exploratory(store):
    drawn = lines(story(store, declared_outcomes=["failed"]))
    (line,) = (line for line in drawn if line.startswith("outcome failed"))
    assert "exploratory" not in line


def test_json_has_the_same(store):
    card = json.loads(dumps(diff_json(story(store))))["verdict"]
    assert (card["claim"], card["trial_pairs"], card["aa_factor"]) == ("change", 50, 1.25)
    assert card["claim_text"] == "What changed: the target's source."
    by_name = {d["name"]: d for d in card["deltas"]}
    assert by_name["end-to-end success"]["b"] == 0.7
    assert by_name["tokens out"]["why"] == "not known in either run"
    assert by_name["cost"]["delta"] is None
    assert by_name["failed"]["exploratory"] is True
    assert by_name["latency p50"]["unit"] == "s"


def test_a_session_shows_only_what_is_proven_or_was_asked_for(tell):
    same = tell({"t": "PPPPP"}, {"t": "PPPPF"})
    assert {d.group for d in same.verdict.deltas} == {"rate", "measure"}
    from pytest_crashlab.report.terminal import render_text

    assert "Beside the verdict" not in render_text(same, width=80, color=False)
