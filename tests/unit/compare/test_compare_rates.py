"""The numbers of one run."""

from __future__ import annotations

import json
import math

import pytest
from scipy import stats as oracle

from pytest_crashlab.compare import run_numbers, summary_fields
from pytest_crashlab.compare.rates import ratio
from pytest_crashlab.records.check import CheckRow
from pytest_crashlab.records.outcome import Kind
from tests.stories import record, row


def rates(numbers):
    return {r.name: r for r in numbers.ratios}


def fractions(numbers):
    return {r.name: (r.numerator, r.denominator) for r in numbers.ratios}


def test_an_outage_is_out_of_the_behavioural_rate_and_in_the_end_to_end_rate(store):
    """inspect_ai#3707: 100 cases once each: 80 passed, 10 failed, 10 without an instrument."""
    numbers = run_numbers(record(store, {f"t{i}": "P" * (i < 80) or "FE"[i >= 90] for i in range(100)}))
    assert fractions(numbers) == {
        "end-to-end success": (80, 100),
        "behavioural success": (80, 90),
        "infrastructure availability": (90, 100),
        "target completion": (90, 100),
    }
    assert rates(numbers)["behavioural success"].value == 80 / 90
    assert numbers.pass_rate_these.value == 80 / 90
    assert (numbers.counts.undecided, numbers.counts.missing) == (10, 0)


def test_a_fail_and_two_verifier_timeouts_are_none_of_one(store):
    """stella#3264: one decided trial, two without a decision."""
    numbers = run_numbers(record(store, {"t": "FVV"}))
    assert (numbers.counts.passes, numbers.counts.decided, numbers.counts.undecided) == (0, 1, 2)
    assert numbers.pass_rate_these.value == 0
    assert numbers.flips.incomplete == 1
    assert numbers.flips.eligible == 0


def test_rate_limits_show_and_stay_out_of_the_rate(store):
    """evalscope#1608: neither scored as 0 nor read as skipped."""
    limited = [row(f"t{i}", 1, "E", outcome="provider_rate_limit", site="client.py:7") for i in range(6)]
    cases = {**{f"t{i}": "." for i in range(6)}, **{f"u{i}": "P" for i in range(34)}}
    numbers = run_numbers(record(store, cases, rows=limited))
    assert numbers.pass_rate_these.value == 1
    line = numbers.outcomes[1]
    assert (line.label, line.kind, line.count, line.share) == (
        "provider_rate_limit",
        Kind.INSTRUMENT,
        6,
        6 / 40,
    )
    assert numbers.counts.excluded == 0


def test_a_case_that_raises_stays_in_the_table(store):
    """langsmith-sdk PR 1774: two cases, one raises: 1 of 2."""
    numbers = run_numbers(record(store, {"good": "P", "raises": "C"}))
    assert fractions(numbers)["end-to-end success"] == (1, 2)
    assert numbers.pass_rate_these.value == 0.5
    assert numbers.pass_rate_these.cases == 2


def test_a_case_that_never_passes_is_named_beside_a_good_mean(store):
    """promptfoo PR 9066: ten cases x 10, nine 10/10, one 0/10."""
    cases = {f"t{i}": "P" * 10 for i in range(9)} | {"broken": "F" * 10}
    numbers = run_numbers(record(store, cases))
    assert numbers.pass_rate_these.value == pytest.approx(0.9)
    assert numbers.never == ("broken",)
    assert numbers.pass_hat[-1].value == pytest.approx(0.9)


def test_nothing_decided_is_not_a_rate_of_0(store):
    numbers = run_numbers(record(store, {"t": "EE", "u": ".."}))
    rate = numbers.pass_rate_these
    assert (rate.value, rate.low, rate.high) == (None, None, None)
    assert numbers.pass_rate_new.value is None
    behavioural = rates(numbers)["behavioural success"]
    assert (behavioural.denominator, behavioural.value, behavioural.low) == (0, None, None)
    assert rates(numbers)["end-to-end success"].value == 0  # four were scheduled: that is measured
    assert numbers.never == ()
    assert numbers.disagreement is None


def test_a_run_of_skips_only_has_no_rate_at_all(store):
    numbers = run_numbers(record(store, {"t": "SS"}))
    assert {r.value for r in numbers.ratios} == {None}
    assert numbers.skipped == ("t",)


def test_three_of_three_is_no_certainty(store):
    numbers = run_numbers(record(store, {"t": "PPP"}))
    assert numbers.pass_rate_these.value == 1
    assert numbers.pass_rate_these.low < 0.5
    alone = rates(numbers)["end-to-end success"]
    assert (alone.value, alone.low, alone.high, alone.cases) == (1, None, None, 1)


def test_three_of_three_in_two_cases_is_no_certainty_for_new_ones(store):
    numbers = run_numbers(record(store, {"t": "PPP", "u": "PPP"}))
    assert rates(numbers)["end-to-end success"].low < 0.5


def test_excluded_trials_are_outside_every_denominator(store):
    numbers = run_numbers(record(store, {"t": "PSF", "u": "SSS"}))
    assert fractions(numbers)["end-to-end success"] == (1, 2)
    assert numbers.pass_hat[-1].j == 2


def test_a_ratio_is_the_sum_over_the_sum_and_its_interval_is_clustered():
    parts = [(3, 5), (5, 5), (1, 2), (0, 0), (4, 4), (2, 5)]
    result = ratio("r", "w", "o", parts)
    assert (result.numerator, result.denominator) == (15, 21)
    assert result.value == 15 / 21
    # ratio estimator by hand: residuals x - p m, variance over cases with a denominator
    kept = [(x, m) for x, m in parts if m]
    p, n = 15 / 21, len(kept)
    residuals = [x - p * m for x, m in kept]
    squared = n / (n - 1) * sum(r * r for r in residuals) / 21**2
    size = min(max(p * (1 - p) / squared, 1), 21)
    t = oracle.t.ppf(0.975, n - 1)
    centre = (p + t * t / (2 * size)) / (1 + t * t / size)
    half = t / (1 + t * t / size) * math.sqrt(p * (1 - p) / size + t * t / (4 * size**2))
    assert result.low == pytest.approx(centre - half, rel=1e-9)
    assert result.high == pytest.approx(min(1, centre + half), rel=1e-9)


def test_with_equal_trials_a_ratio_has_the_interval_of_the_case_mean(store):
    numbers = run_numbers(
        record(store, {f"t{i}": "P" * x + "F" * (5 - x) for i, x in enumerate([5, 4, 0, 2])})
    )
    end_to_end = rates(numbers)["end-to-end success"]
    assert end_to_end.low == pytest.approx(numbers.pass_rate_new.low, rel=1e-12)
    assert end_to_end.high == pytest.approx(numbers.pass_rate_new.high, rel=1e-12)


def test_a_criterion_counts_the_trials_in_which_it_could_be_evaluated(store):
    def check(ok):
        return [CheckRow(name="amount", required=True, ok=ok)]

    rows = [(row("t", n, "P"), check(ok)) for n, ok in enumerate([True, False, None], 1)]
    stale = (row("t", 4, "E"), check(False))
    retried = (row("t", 4, "P", attempt=2), check(True))
    stranger = (row("u", 1, "P"), check(False))
    numbers = run_numbers(record(store, {"t": "...."}, checks=[*rows, stale, retried, stranger]))
    assert fractions(numbers)["check amount"] == (2, 3)


def test_a_check_that_was_never_evaluated_has_no_rate(store):
    checks = [(row("t", 1, "P"), [CheckRow(name="tone", required=False, ok=None)])]
    numbers = run_numbers(record(store, {"t": "."}, checks=checks))
    assert rates(numbers)["check tone"].value is None


def test_the_distribution_has_label_kind_count_share_and_sites(store):
    elsewhere = [row("t", 4, "F", site="agent.py:99"), row("t", 5, "F", site=None)]
    numbers = run_numbers(record(store, {"t": "PFF..", "u": "PPPP."}, rows=elsewhere))
    passed, failed, missing = numbers.outcomes
    assert (passed.label, passed.kind, passed.count, passed.share) == ("passed", Kind.PASS, 5, 0.5)
    assert (failed.label, failed.kind, failed.count, failed.share) == ("failed", Kind.FAIL, 4, 0.4)
    assert [(s.site, s.count) for s in failed.sites] == [
        ("test_agent.py:11", 2),
        (None, 1),
        ("agent.py:99", 1),
    ]
    assert (missing.label, missing.kind, missing.count, missing.share) == (None, None, 1, 0.1)


def test_one_label_used_for_two_kinds_is_two_lines(store):
    odd = row("t", 2, "E", outcome="passed")
    numbers = run_numbers(record(store, {"t": "P."}, rows=[odd]))
    assert {(o.label, o.kind) for o in numbers.outcomes} == {
        ("passed", Kind.PASS),
        ("passed", Kind.INSTRUMENT),
    }


def test_the_summary_is_plain_json_with_null_for_what_is_not_known(store):
    known = summary_fields(run_numbers(record(store, {"t": "PPF", "u": "PE."})))
    assert json.loads(json.dumps(known, allow_nan=False)) == known
    assert known["pass_rate"] == pytest.approx((2 / 3 + 1) / 2)
    assert (known["passes"], known["decided"], known["undecided"], known["missing"]) == (3, 4, 1, 1)
    unknown = summary_fields(run_numbers(record(store, {"t": "E"}, run_id="b")))
    assert unknown["pass_rate"] is None
    assert unknown["pass_hat_k"] is None
    assert unknown["flips"] is None
