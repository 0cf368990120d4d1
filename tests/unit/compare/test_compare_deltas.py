"""What differs beside the pass rate, and what a comparison may claim."""

from __future__ import annotations

import pytest

from pytest_crashlab.compare import CompareOptions, compare_runs, decide
from pytest_crashlab.compare.calibration import aa_factor
from pytest_crashlab.records.check import CheckRow
from pytest_crashlab.records.comparison import ClaimKind, Policy, Word
from tests.stories import record, row


def delta(comparison, name):
    return next(d for d in comparison.deltas if d.name == name)


def cases(count, letters="PPPPP"):
    return {f"t{i}": letters for i in range(count)}


def with_rows(store, run_id, rows, trials=5, checks=(), **fields):
    """A run of the rows alone, over the cases they name."""
    names = dict.fromkeys(r.case for r in rows)
    return record(
        store, dict.fromkeys(names, "." * trials), run_id=run_id, rows=rows, checks=checks, **fields
    )


@pytest.mark.parametrize(
    ("a", "b", "kind", "said"),
    [
        (
            {"target_digest": "x"},
            {"target_digest": "y"},
            ClaimKind.CHANGE,
            "What changed: the target's source.",
        ),
        (
            {"target_digest": "x", "run_config": {"t": "0", "k": "1"}, "config_digest": "d1"},
            {"target_digest": "x", "run_config": {"t": "1", "k": "1"}, "config_digest": "d2"},
            ClaimKind.CHANGE,
            "What changed: the declared configuration (t).",
        ),
        ({"prompt": "p@1"}, {"prompt": "p@2"}, ClaimKind.CHANGE, "What changed: the prompt."),
        (
            {"target_digest": "x", "model": "m1"},
            {"target_digest": "x", "model": "m2"},
            ClaimKind.CHANGE,
            "What changed: the model.",
        ),
        (
            {"target_digest": "x"},
            {"target_digest": "x"},
            ClaimKind.SAME_SOURCE,
            "Same-source control: target, settings, prompt and model are the same: no change is measured.",
        ),
        (
            {"target_digest": "x"},
            {},
            ClaimKind.UNKNOWN,
            "What changed between the runs is not known: name it with crashlab_target.",
        ),
    ],
)
def test_what_a_comparison_is_about(store, a, b, kind, said):
    runs = record(store, cases(2), run_id="a", **a), record(store, cases(2), run_id="b", **b)
    claim = compare_runs(*runs).claim
    assert (claim.kind, claim.text) == (kind, said)


def test_only_runs_that_say_so_are_interleaved(store):
    a, b, c = (
        record(store, cases(2), run_id=i, **f)
        for i, f in (("a", {"interleaved": "x"}), ("b", {"interleaved": "x"}), ("c", {}))
    )
    assert compare_runs(a, b).interleaved
    assert not compare_runs(a, c).interleaved
    assert not compare_runs(c, c).interleaved


SAME = {"target_digest": "t", "evaluation_digest": "e"}


def noisy_store(store):
    """Two runs of one version, half of whose 20 cases swapped: 10 pass only then, 10 only now."""
    up, down = {f"t{i}": "PPPPP" for i in range(10)}, {f"t{i}": "FFFFF" for i in range(10)}
    other = {f"t{i}": "FFFFF" for i in range(10, 20)}, {f"t{i}": "PPPPP" for i in range(10, 20)}
    record(store, {**up, **other[0]}, run_id="n1", **SAME)
    record(store, {**down, **other[1]}, run_id="n2", **SAME)


def test_equal_runs_in_the_store_calibrate(store):
    """Every case moved by 1, with 5 of 10 passed: d^2 = 1 and v = 5 * 5 / (9 * 5 * 5) = 1/9, so phi = 9."""
    noisy_store(store)
    candidate = record(store, cases(20), run_id="z", **{**SAME, "target_digest": "other"})
    assert aa_factor(store, candidate.manifest) == pytest.approx(9.0)


def test_a_run_out_of_a_cache_calibrates_nothing(store):
    noisy_store(store)
    candidate = record(store, cases(20), run_id="z", **{**SAME, "target_digest": "other"})
    store.set_fields("n2", cached=0)
    assert aa_factor(store, candidate.manifest) is not None
    store.set_fields("n2", cached=1)
    assert aa_factor(store, candidate.manifest) is None


def test_without_digests_or_equal_runs_nothing_is_calibrated(store):
    record(store, cases(20), run_id="n1", **SAME)
    candidate = record(store, cases(20), run_id="z", **SAME)
    assert aa_factor(store, candidate.manifest) is None, "one earlier run is no pair"
    record(store, cases(20), run_id="n2", **SAME, replayed=True)
    assert aa_factor(store, candidate.manifest) is None, "a replayed run is no measurement"
    plain = record(store, cases(20), run_id="y")
    assert aa_factor(store, plain.manifest) is None


def test_noise_between_equal_runs_withholds_a_word(store):
    a = record(store, cases(20), run_id="a")
    b = record(store, {**cases(17), **{f"t{i}": "PPFFF" for i in range(17, 20)}}, run_id="b")
    assert compare_runs(a, b).word is Word.REGRESSED
    held = compare_runs(a, b, CompareOptions(aa_factor=9.0))
    assert held.word is Word.NO_CHANGE
    assert held.these.low < 0 <= held.these.high
    assert held.half_width > abs(held.delta)
    assert held.these.method == "exact over trials, mid-p, widened by the A/A factor 9.00"
    assert "aa_noise" in {n.code for n in held.notes}
    normal = compare_runs(a, b, CompareOptions(aa_factor=9.0, method="normal"))
    assert normal.half_width == compare_runs(a, b, CompareOptions(method="normal")).half_width


SHARED = {"seed": 7, "seed_source": "baseline"}


def test_trials_of_one_seed_are_pairs(store):
    """10 trials won by A, 2 by B, 88 the same: McNemar mid-p of (10, 2) is 158/4096 - 66/4096."""
    a = {f"t{i}": "PPPPP" for i in range(20)} | {"t0": "FFPPP"}
    b = {f"t{i}": "FPPPP" if i < 11 else "PPPPP" for i in range(20)} | {"t0": "PPPPP"}
    runs = record(store, a, run_id="a", seed=7), record(store, b, run_id="b", **SHARED)
    comparison = compare_runs(*runs)
    assert comparison.trial_pairs == 100
    assert comparison.p == pytest.approx(2 * (1 + 12 + 66 / 2) / 4096)
    assert comparison.these.method == "exact over pairs of trials, mid-p"
    assert comparison.delta == pytest.approx(-0.08)


def test_other_seeds_are_no_pairs(store):
    a = record(store, cases(5), run_id="a", seed=7)
    for i, fields in enumerate(({"seed": 8, "seed_source": "baseline"}, {"seed": 7, "seed_source": "given"})):
        assert compare_runs(a, record(store, cases(5), run_id=f"b{i}", **fields)).trial_pairs is None


def test_a_case_without_a_pair_of_trials_is_left_out(store):
    a = record(store, {**cases(5, "PPPPPPPPPP"), "x": "PPPPPEEEEE"}, run_id="a", seed=7)
    b = record(store, {**cases(5, "PPPPPPPPPP"), "x": "EEEEEPPPPP"}, run_id="b", **SHARED)
    comparison = compare_runs(a, b)
    assert ("x", "no_trial_pair") in [(c.case, c.reason) for c in comparison.left_out]
    assert len(comparison.cases) == 5


def test_the_rates_of_both_runs(store):
    a = record(store, cases(4, "PPPP"), run_id="a")
    b = record(store, {**cases(3, "PPPP"), "t3": "PPET"}, run_id="b")
    comparison = compare_runs(a, b)
    end = delta(comparison, "end-to-end success")
    assert (end.a, end.b, end.a_n, end.b_n, end.cases) == (1.0, 0.875, 16, 16, 4)
    assert end.delta == -0.125
    assert end.low < -0.125 < end.high
    assert delta(comparison, "infrastructure availability").b == pytest.approx(15 / 16)
    assert delta(comparison, "target completion").b == pytest.approx(14 / 16)
    assert delta(comparison, "behavioural success").b == 1.0


def checked(store, run_id, held, judge=None, **fields):
    """10 cases x 5 trials with checks ``held`` (name -> whether it held)."""
    rows = [row(f"t{c}", t, "P") for c in range(10) for t in range(1, 6)]
    checks = [
        (r, [CheckRow(name=n, required=True, ok=ok(r), judge=judge) for n, ok in held.items()]) for r in rows
    ]
    return record(store, cases(10, "....."), run_id=run_id, checks=checks, **fields)


def test_checks_are_compared_with_a_correction(store):
    a = checked(store, "a", {"amount": lambda r: True, "tone": lambda r: True})
    b = checked(
        store, "b", {"amount": lambda r: r.trial > 2, "tone": lambda r: r.case != "t0" or r.trial > 1}
    )
    comparison = compare_runs(a, b)
    amount, tone = delta(comparison, "amount"), delta(comparison, "tone")
    assert (amount.a, amount.b, amount.proven) == (1.0, pytest.approx(0.6), -1)
    assert (tone.delta, tone.proven) == (pytest.approx(-0.02), 0)
    assert (tone.a_n, tone.b_n, tone.of) == (50, 50, "trials in which it could be evaluated")


def test_a_required_check_judged_differently(store):
    ok = {"tone": lambda r: True}
    a, b = checked(store, "a", ok, "judge-1"), checked(store, "b", ok, "judge-2")
    comparison = compare_runs(a, b)
    assert comparison.word is Word.NO_VERDICT
    assert [(r.code, r.text) for r in comparison.reasons] == [
        (
            "judged_differently",
            (
                "A required check was judged by a different judge in each run: tone (judge-1 in the "
                "baseline, judge-2 in this run)."
            ),
        )
    ]
    same = compare_runs(a, checked(store, "c", ok, "judge-1"))
    assert same.reasons == ()


def test_judge_details_that_are_gone_are_a_note(store):
    ok = {"tone": lambda r: True}
    comparison = compare_runs(checked(store, "a", ok, "judge-1"), checked(store, "b", ok))
    assert comparison.reasons == ()
    assert "The judge details of one run are gone: tone." in [n.text for n in comparison.notes]


def used(run_duration, **fields):
    return [
        row(f"t{c}", t, "P", run_duration=run_duration + c / 10, **fields)
        for c in range(10)
        for t in range(1, 6)
    ]


def test_time_tokens_and_cost(store):
    a = with_rows(store, "a", used(1.0, tokens_in=100, cost_usd=0.01, cost_basis="billed"))
    b = with_rows(store, "b", used(2.0, tokens_in=130, cost_usd=0.02, cost_basis="billed"))
    comparison = compare_runs(a, b)
    p50 = delta(comparison, "latency p50")
    assert (p50.a, p50.b, p50.delta) == (pytest.approx(1.45), pytest.approx(2.45), pytest.approx(1.0))
    assert p50.low < 1.0 < p50.high
    tokens = delta(comparison, "tokens in")
    assert (tokens.a, tokens.b, tokens.delta, tokens.a_n) == (100, 130, 30, 50)
    assert tokens.low is None, "differences that are all the same give no interval of width 0"
    out = delta(comparison, "tokens out")
    assert (out.a, out.delta, out.why) == (None, None, "not known in either run")
    assert delta(comparison, "cost").basis == "billed"


def test_costs_of_different_bases_are_not_compared(store):
    a = with_rows(store, "a", used(1.0, cost_usd=0.01, cost_basis="billed"))
    b = with_rows(store, "b", used(1.0, cost_usd=0.01, cost_basis="estimated"))
    cost = delta(compare_runs(a, b), "cost")
    assert (cost.delta, cost.why) == (None, "billed in the baseline, estimated in this run: not comparable")


def test_a_cost_in_one_run_only_is_a_dash(store):
    a = with_rows(store, "a", used(1.0))
    b = with_rows(store, "b", used(1.0, cost_usd=0.0, tokens_in=5, cost_basis="billed"))
    assert delta(compare_runs(a, b), "cost").why == "not known in either run", "0 beside tokens is no cost"


def test_an_outcome_named_after_the_run_is_exploratory(store):
    a = record(store, cases(20), run_id="a")
    b = {f"t{i}": "PPPPT" if i < 9 else "PPPPP" for i in range(20)}
    declared = record(store, b, run_id="b", declared_outcomes=["horizon_exhausted"])
    undeclared = record(store, b, run_id="c")
    first = compare_runs(a, declared)
    found = delta(first, "horizon_exhausted")
    assert (found.a, found.b, found.proven, found.exploratory) == (0.0, pytest.approx(0.09), 1, False)
    later = compare_runs(a, undeclared, CompareOptions(outcomes=("horizon_exhausted",)))
    found = delta(later, "horizon_exhausted")
    assert (found.proven, found.exploratory) == (1, True)
    assert decide(Policy.STRICT, first) == decide(Policy.STRICT, later), "no outcome changes the gate"


def test_any_outcome_can_be_compared(store):
    a = record(store, cases(20), run_id="a")
    b = record(
        store,
        {f"t{i}": "PPPPE" if i < 5 else "PPPPP" for i in range(20)},
        run_id="b",
        declared_outcomes=["provider_error", "nonsense"],
    )
    comparison = compare_runs(a, b)
    assert delta(comparison, "provider_error").b == pytest.approx(0.05)
    assert delta(comparison, "nonsense").why == "assigned in neither run"
    assert decide(Policy.REGRESSIONS, comparison).exit_code == 0


def test_other_models_and_evaluations_are_notes(store):
    a = record(store, cases(5), run_id="a", model="m1", evaluation_digest="x")
    b = record(store, cases(5), run_id="b", model="m2", evaluation_digest="y")
    notes = {n.code: n.text for n in compare_runs(a, b).notes}
    assert notes["model"] == "The two runs declare different models: m1 in the baseline, m2 in this run."
    assert notes["evaluation"] == "What evaluates changed between the two runs (crashlab_evaluation)."


def test_runs_that_share_nothing_have_no_deltas(store):
    a, b = record(store, {"x": "P"}, run_id="a"), record(store, {"y": "P"}, run_id="b")
    assert compare_runs(a, b).deltas == ()
