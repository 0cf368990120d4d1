"""The exact test and its interval, against enumeration and against their own promises."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from stats_oracles import (
    case_weighted_p,
    inverted_bound,
    paired_counts,
    sign_flip_p,
    stratified_p,
    sum_pmf,
)

from pytest_crashlab import stats
from pytest_crashlab.stats.stratified import StratifiedTest

HALF = Fraction(1, 2)


@settings(max_examples=150, deadline=None)
@given(paired_counts(most_cases=6, most_trials=6))
def test_p_values_equal_those_of_fractions(counts):
    mid_p = float(stratified_p(*counts, HALF))
    exact = float(stratified_p(*counts, Fraction(1)))
    assert stats.paired_verdict(*counts).p_value == pytest.approx(mid_p, rel=1e-9)
    assert stats.paired_verdict(*counts, variant="exact").p_value == pytest.approx(exact, rel=1e-9)


def test_a_p_value_far_out_keeps_its_digits():
    counts = [5] * 100, [5] * 100, [2] * 100, [5] * 100
    expected = float(stratified_p(*counts, HALF))
    assert expected == pytest.approx(1.2e-108, rel=0.05)
    assert stats.paired_verdict(*counts).p_value == pytest.approx(expected, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(paired_counts(most_cases=5, most_trials=5), st.sampled_from(["mid-p", "exact"]))
def test_the_near_bound_is_the_inverted_test(counts, variant):
    verdict = stats.paired_verdict(*counts, variant=variant)
    a_pass, a_n, b_pass, b_n = counts
    side = -1 if verdict.delta > 0 else 1
    ends = (
        sum(max(0, x + y - m) for x, m, y in zip(a_pass, a_n, b_pass, strict=True)),
        sum(min(k, x + y) for x, y, k in zip(a_pass, b_pass, b_n, strict=True)),
    )
    # At the end of the support on its own side the bound is infinite.
    assume(not verdict.contradictory and verdict.delta != 0 and sum(b_pass) != ends[side > 0])
    expected = inverted_bound(*counts, side=side, weight=0.5 if variant == "mid-p" else 1.0)
    near = verdict.low if side < 0 else verdict.high
    if abs(verdict.p_value - 0.05) > 1e-8:
        assert near == pytest.approx(side * max(side * expected, side * verdict.delta), abs=1e-7)


@settings(max_examples=150, deadline=None)
@given(paired_counts(most_cases=12, most_trials=6))
def test_what_every_verdict_promises(counts):
    verdict = stats.paired_verdict(*counts)
    assert 0 < verdict.p_value <= 1
    assert -1 <= verdict.low <= verdict.delta <= verdict.high <= 1
    assert verdict.low < verdict.high
    if not verdict.contradictory:
        excludes_zero = verdict.low > 0 or verdict.high < 0
        assert excludes_zero == verdict.significant
        assert (abs(verdict.delta) > verdict.half_width + 1e-12) == verdict.significant


@settings(max_examples=60, deadline=None)
@given(paired_counts(), st.randoms(use_true_random=False))
def test_order_swap_and_silent_cases_change_nothing(counts, random):
    verdict = stats.paired_verdict(*counts)
    a_pass, a_n, b_pass, b_n = counts
    swapped = stats.paired_verdict(b_pass, b_n, a_pass, a_n)
    assert swapped.p_value == pytest.approx(verdict.p_value, rel=1e-9)
    assert (swapped.low, swapped.high) == pytest.approx((-verdict.high, -verdict.low), abs=1e-9)

    rows = list(zip(*counts, strict=True))
    random.shuffle(rows)
    assert stats.paired_verdict(*zip(*rows, strict=True)) == pytest.approx(verdict, rel=1e-9, abs=1e-9)

    silent = [*rows, (3, 3, 5, 5), (0, 4, 0, 2)]
    more = stats.paired_verdict(*zip(*silent, strict=True))
    assert more.p_value == pytest.approx(verdict.p_value, rel=1e-9)
    assert more.cases == verdict.cases + 2

    undecided = [*rows, (0, 0, 5, 5), (4, 4, 0, 0)]
    assert stats.paired_verdict(*zip(*undecided, strict=True)) == pytest.approx(verdict, rel=1e-9, abs=1e-9)


@settings(max_examples=50, deadline=None)
@given(paired_counts(equal=True))
def test_equal_trials_never_contradict_the_mean(counts):
    verdict = stats.paired_verdict(*counts)
    a_pass, a_n, b_pass, _ = counts
    expected = Fraction(sum(b_pass) - sum(a_pass), a_n[0] * len(a_n))
    assert verdict.delta == pytest.approx(float(expected), abs=1e-12)
    assert not verdict.contradictory


def test_a_test_and_a_mean_that_disagree_are_told():
    # The big case rose by a little in the weights of the test, the small ones fell in the mean.
    verdict = stats.paired_verdict([50, 1], [100, 1], [70, 0], [100, 1])
    assert verdict.delta < 0
    assert verdict.contradictory
    assert verdict.low < verdict.delta < verdict.high


@settings(max_examples=50, deadline=None)
@given(paired_counts(most_cases=6, most_trials=4))
def test_case_weighted_and_sign_flip_equal_enumeration(counts):
    for variant, weight in (("mid-p", HALF), ("exact", Fraction(1))):
        weighted = stats.case_weighted_p(*counts, variant=variant)
        assert weighted == pytest.approx(float(case_weighted_p(*counts, weight)), rel=1e-9)
        flipped = stats.sign_flip_p(*counts, variant=variant)
        assert flipped == pytest.approx(float(sign_flip_p(*counts, weight)), rel=1e-9)


def test_sums_beyond_reason_are_refused_rather_than_rounded():
    n = list(range(1, 41))
    assert stats.case_weighted_p([1] * 40, n, [0] * 40, n) is None
    assert stats.sign_flip_p([1] * 40, n, [0] * 40, n) is None
    assert stats.sign_flip_p([], [], [], []) is None


def test_kept_digits_do_not_depend_on_what_was_cut_off():
    rng = np.random.default_rng(11)
    n = np.full(150, 5)
    x, y = rng.binomial(n, 0.7), rng.binomial(n, 0.55)
    test = StratifiedTest(n, n, x + y, seen=int(y.sum()), observed=0.5)
    pmf = sum_pmf(x.tolist(), n.tolist(), y.tolist(), n.tolist())
    seen = int(y.sum())
    lower = float(sum(p for s, p in pmf.items() if s < seen) + pmf[seen] / 2)
    assert test.tail().low == pytest.approx(lower, rel=1e-10)
    assert test.tail().high == pytest.approx(1 - lower, rel=1e-10)


@pytest.mark.parametrize("k", [1, 4, 20])
@pytest.mark.parametrize("cases", [1, 30])
def test_all_pass_all_fail_and_all_turned(cases, k):
    n = [k] * cases
    up, down = [k] * cases, [0] * cases
    for same in (up, down):
        verdict = stats.paired_verdict(same, n, same, n)
        assert (verdict.p_value, verdict.delta) == (1, 0)
        assert verdict.low == pytest.approx(-verdict.high)
        assert verdict.half_width > 0
    turned = stats.paired_verdict(up, n, down, n)
    assert (turned.delta, turned.low) == (-1, -1)
    assert turned.p_value == pytest.approx(1 / math.comb(2 * k, k) ** cases, rel=1e-9)


def test_huge_counts_underflow_to_zero_and_keep_an_interval():
    n = [20] * 2000
    verdict = stats.paired_verdict(n, n, [0] * 2000, n)
    assert verdict.p_value == 0
    assert -1 <= verdict.low < verdict.high < -0.99
    assert verdict.significant


def test_one_case_of_very_many_trials_is_a_difference_of_two_proportions():
    verdict = stats.paired_verdict([50_000], [100_000], [49_500], [100_000])
    pooled = 99_500 / 200_000
    z = 0.005 / math.sqrt(pooled * (1 - pooled) * 2e-5)
    assert verdict.p_value == pytest.approx(math.erfc(z / math.sqrt(2)), rel=1e-3)
    error = math.sqrt(2e-5 * pooled * (1 - pooled))
    assert (verdict.low, verdict.high) == pytest.approx(
        (-0.005 - 1.96 * error, -0.005 + 1.96 * error), abs=1e-6
    )


def test_no_case_is_no_verdict():
    for counts in (([], [], [], []), ([0], [0], [3], [3])):
        verdict = stats.paired_verdict(*counts)
        assert verdict.cases == 0
        assert math.isnan(verdict.p_value)
        assert math.isnan(verdict.low)
        assert math.isnan(verdict.half_width)
        assert not verdict.significant


def test_a_single_case_needs_four_trials():
    assert not stats.paired_verdict([3], [3], [0], [3]).significant
    assert stats.paired_verdict([4], [4], [0], [4]).significant
    assert stats.paired_verdict([5], [5], [1], [5]).significant
    assert stats.paired_verdict([10], [10], [6], [10]).significant
    assert not stats.paired_verdict([10], [10], [6], [10], variant="exact").significant
    assert stats.paired_verdict([10], [10], [5], [10], variant="exact").significant


@pytest.mark.parametrize(
    ("failures", "mid_p", "exact"), [(4, False, False), (5, True, False), (6, True, True)]
)
def test_failing_trials_that_prove_a_drop_from_all_green(failures, mid_p, exact):
    n = [5] * 20
    b_pass = [4] * failures + [5] * (20 - failures)
    assert stats.paired_verdict(n, n, b_pass, n).significant is mid_p
    assert stats.paired_verdict(n, n, b_pass, n, variant="exact").significant is exact


def test_the_tuple_starts_as_promised():
    p, low, high, *_ = stats.paired_verdict([4], [4], [0], [4])
    assert p == pytest.approx(1 / 70)
    assert low == -1
    assert high < 0


@pytest.mark.parametrize("suite", ["beta20_1", "bimodal", "all50"])
@pytest.mark.parametrize(("cases", "a_n", "b_n"), [(5, 5, 5), (20, 3, 3), (30, 10, 3)])
def test_equal_versions_rarely_differ(suite, cases, a_n, b_n):
    rng = np.random.default_rng(20240601)
    runs = 200
    shape = (runs, cases)
    p = {
        "beta20_1": rng.beta(20, 1, shape),
        "bimodal": rng.beta(0.5, 0.5, shape),
        "all50": np.full(shape, 0.5),
    }[suite]
    x, y = rng.binomial(a_n, p), rng.binomial(b_n, p)
    m, k = [a_n] * cases, [b_n] * cases
    alarms = sum(stats.paired_verdict(x[r], m, y[r], k).significant for r in range(runs))
    assert alarms / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_two_thousand_cases_of_twenty_trials_take_no_time():
    rng = np.random.default_rng(5)
    n = np.full(2000, 20)
    p = rng.beta(2, 1, 2000)
    x, y = rng.binomial(n, p), rng.binomial(n, p)
    took = []
    for _ in range(3):
        start = time.perf_counter()
        stats.paired_verdict(x, n, y, n)
        took.append(time.perf_counter() - start)
    assert min(took) <= 0.2


# Pairs of trials that share a seed


def mcnemar(only_a, only_b, weight):
    """Two-sided binomial p-value of the discordant pairs, as a fraction."""
    total = only_a + only_b
    pmf = [Fraction(math.comb(total, i), 2**total) for i in range(total + 1)]
    low = sum(pmf[:only_b]) + weight * pmf[only_b]
    high = sum(pmf[only_b + 1 :]) + weight * pmf[only_b]
    return min(Fraction(1), 2 * min(low, high))


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 4)] * 4), min_size=1, max_size=8))
def test_trial_pairs_are_mcnemar(rows):
    verdict = stats.paired_trials_verdict(*zip(*rows, strict=True))
    live = [row for row in rows if sum(row)]
    assert verdict.cases == len(live)
    if not live:
        return
    only_a, only_b = sum(r[1] for r in live), sum(r[2] for r in live)
    assert verdict.p_value == pytest.approx(float(mcnemar(only_a, only_b, HALF)), rel=1e-9)
    delta = sum(Fraction(b - a, both + a + b + none) for both, a, b, none in live) / len(live)
    assert verdict.delta == pytest.approx(float(delta), abs=1e-12)
    assert verdict.low <= verdict.delta <= verdict.high


def test_shared_seeds_show_what_independent_trials_do_not():
    # Seven of forty trials turned, all in the same direction, in a suite at 50 %.
    pairs = [3, 2, 2, 3, 2, 2, 3, 2], [1, 1, 1, 0, 1, 1, 1, 1], [0] * 8, [1, 2, 2, 2, 2, 2, 1, 2]
    n = [sum(row) for row in zip(*pairs, strict=True)]
    a_pass = [both + a for both, a in zip(*pairs[:2], strict=True)]
    assert n == [5] * 8
    assert stats.paired_trials_verdict(*pairs).significant
    assert not stats.paired_verdict(a_pass, n, pairs[0], n).significant


def test_trial_pairs_check_their_input():
    with pytest.raises(stats.BadInput, match=r"only_b has 1 entries and both_pass has 2"):
        stats.paired_trials_verdict([1, 1], [0, 0], [0], [0, 0])
    with pytest.raises(stats.BadInput, match=r"only_a\[1\] = -1 is negative"):
        stats.paired_trials_verdict([1, 1], [0, -1], [0, 0], [0, 0])
    assert math.isnan(stats.paired_trials_verdict([], [], [], []).p_value)


def test_equal_runs_keep_their_word_in_at_least_95_of_100_pairs():
    """dotnet/skills#952: 200 pairs of equal runs; Binomial(200, .05) exceeds 19 once in 400."""
    rng = np.random.default_rng(952)
    n = np.full(20, 5)
    moved = 0
    for _ in range(200):
        p = rng.beta(4, 1, 20)
        moved += stats.paired_verdict(rng.binomial(n, p), n, rng.binomial(n, p), n).significant
    assert 0 < moved <= 19
