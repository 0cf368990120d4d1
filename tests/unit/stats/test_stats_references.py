"""Reference values, each from a source that is not this package (named in the comment)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as oracle

from pytest_crashlab import stats
from pytest_crashlab.stats.mover import clustered_size, conditional_mover


def suite(cases, k, *broken):
    """``cases`` cases that pass all ``k`` trials in A; in B the first ones pass ``broken`` of them."""
    n = [k] * cases
    return [k] * cases, n, [*broken, *[k] * (cases - len(broken))], n


UNEQUAL = ([5, 4, 3, 2, 5], [5, 5, 4, 5, 5], [3, 1, 2, 0, 2], [5, 3, 4, 4, 3])
EIGHT = ([4, 3, 4, 2, 1, 4, 0, 3], [4] * 8, [2, 1, 3, 2, 1, 1, 0, 0], [4] * 8)
SINGLE = ([1] * 9 + [0] * 2 + [1] * 9, [1] * 20, [0] * 9 + [1] * 2 + [1] * 9, [1] * 20)


@pytest.mark.parametrize(
    ("counts", "exact", "mid_p"),
    [
        (suite(10, 5, 0), 1 / 126, 1 / 252),  # fractions; Fisher's exact test of the one case
        (suite(10, 4, 0), 1 / 35, 1 / 70),
        (suite(10, 3, 0), 1 / 10, 1 / 20),
        (suite(20, 3, *[2] * 6), 2 * 2**-6, 2**-6),  # six coins
        (suite(20, 3, *[2] * 5), 1 / 16, 1 / 32),
        (SINGLE, 67 / 1024, 0.03857421875),  # McNemar
        (UNEQUAL, 8933 / 508032, 0.00962340954900479),
        (EIGHT, 915469 / 188238400, 0.0027495691633588),
    ],
    ids=["R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8"],
)
def test_p_values(counts, exact, mid_p):
    assert stats.paired_verdict(*counts, variant="exact").p_value == pytest.approx(exact, rel=1e-9)
    assert stats.paired_verdict(*counts).p_value == pytest.approx(mid_p, rel=1e-9)


def test_r1_is_fishers_exact_test_of_the_case_that_broke():
    fisher = oracle.fisher_exact([[5, 0], [0, 5]]).pvalue
    assert stats.paired_verdict(*suite(10, 5, 0), variant="exact").p_value == pytest.approx(fisher, rel=1e-9)


def test_r3_a_tie_proves_nothing_in_p_and_interval_alike():
    verdict = stats.paired_verdict(*suite(10, 3, 0))
    assert not verdict.significant
    assert verdict.high == 0.0
    assert abs(verdict.delta) <= verdict.half_width


def test_r6_agrees_with_statsmodels_mcnemar():
    contingency = pytest.importorskip("statsmodels.stats.contingency_tables")
    expected = contingency.mcnemar([[9, 9], [2, 0]], exact=True).pvalue
    assert stats.paired_verdict(*SINGLE, variant="exact").p_value == pytest.approx(expected, rel=1e-9)


def test_r7_mean_difference_and_direction():
    verdict = stats.paired_verdict(*UNEQUAL)
    assert verdict.delta == pytest.approx(-0.37, rel=1e-12)
    assert not verdict.contradictory
    assert verdict.cases == 5


@pytest.mark.parametrize(
    ("counts", "chi2", "p"),
    [(UNEQUAL, 7.037882479673755, 0.00798033283837396), (EIGHT, 9.10752688172043, 0.0025455981249989)],
    ids=["R7", "R8"],
)
def test_the_statistic_is_that_of_cochran_mantel_haenszel(counts, chi2, p):
    contingency = pytest.importorskip("statsmodels.stats.contingency_tables")
    tables = [
        np.array([[x, m - x], [y, k - y]]) for x, m, y, k in zip(*counts, strict=True) if 0 < x + y < m + k
    ]
    cmh = contingency.StratifiedTable(tables).test_null_odds(correction=False)
    assert (cmh.statistic, cmh.pvalue) == pytest.approx((chi2, p), rel=1e-9)
    # The exact test sums the same surplus: its standardised square is the CMH statistic.
    from pytest_crashlab.stats.stratified import StratifiedTest

    x, m, y, k = (np.array(c) for c in counts)
    test = StratifiedTest(m, k, x + y, seen=int(y.sum()), observed=0.5)
    variance = sum(
        oracle.hypergeom(m_ + k_, t, k_).var()
        for m_, k_, t in zip(m, k, x + y, strict=True)
        if 0 < t < m_ + k_
    )
    assert (test.seen - test.expected) ** 2 / variance == pytest.approx(chi2, rel=1e-9)


def test_r9_intervals_of_eight_cases():
    verdict = stats.paired_verdict(*EIGHT)
    assert verdict[:3][1:] == pytest.approx((-0.52040, -0.12281), abs=1e-4)
    assert verdict.delta == -0.34375
    assert conditional_mover(*(np.array(c) for c in EIGHT)) == pytest.approx((-0.520404, -0.124380), abs=1e-6)
    new = stats.new_cases(*EIGHT)
    assert (new.low, new.high) == pytest.approx((-0.536450, -0.068373), abs=1e-6)


def test_r10_tests_over_cases():
    new = stats.new_cases(*EIGHT)
    a, b = np.array(EIGHT[0]) / 4, np.array(EIGHT[2]) / 4
    expected = oracle.ttest_rel(b, a)
    assert new.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    assert new.p_value == pytest.approx(0.0203431953, rel=1e-8)
    paired = stats.paired_t(b - a)
    assert (paired.t, paired.df) == (pytest.approx(-2.9859319271685, rel=1e-12), 7)
    assert stats.normal_rule(*EIGHT).p_value == pytest.approx(0.0028271557, rel=1e-7)
    assert stats.sign_flip_p(*EIGHT) == pytest.approx(1 / 16, rel=1e-12)
    assert not new.shown  # eight cases are fewer than ten


def test_r11_swapping_the_arms_mirrors_everything():
    a_pass, a_n, b_pass, b_n = EIGHT
    one, other = stats.paired_verdict(*EIGHT), stats.paired_verdict(b_pass, b_n, a_pass, a_n)
    assert other.p_value == pytest.approx(one.p_value, rel=1e-9)
    assert (other.low, other.high) == pytest.approx((-one.high, -one.low), abs=1e-9)


def test_r12_all_green_has_a_width():
    verdict = stats.paired_verdict(*suite(20, 3))
    assert verdict.p_value == 1
    assert (verdict.low, verdict.high) == pytest.approx((-0.06017, 0.06017), abs=1e-4)
    assert verdict.half_width == pytest.approx(0.06017, abs=1e-4)


@pytest.mark.parametrize(
    ("passes", "n", "low", "high"),
    [
        (20, 20, 0.8388748419, 1),
        (60, 60, 0.9398281479, 1),
        (19, 20, 0.7638688066, 0.9911185512),
        (57, 60, 0.8629948352, 0.9828504978),
    ],
)
def test_r13_wilson(passes, n, low, high):
    assert stats.wilson(passes / n, n) == pytest.approx((low, high), rel=1e-9)


def test_r14_r15_newcombe():
    # B minus A: the published pair is 56/70 against 48/80.
    assert stats.newcombe(48, 80, 56, 70) == pytest.approx((0.0524315, 0.3338727), abs=5e-8)
    assert stats.newcombe(60, 60, 54, 60) == pytest.approx((-0.2014946, -0.0195784), abs=5e-8)


def test_r16_r17_pass_hat_and_pass_at():
    assert stats.pass_hat([7], [10], [10])[2].value == pytest.approx(7 / 24, rel=1e-12)
    assert stats.pass_hat([4], [5], [5])[1].value == pytest.approx(3 / 5, rel=1e-12)
    assert stats.pass_at([7], [10], [10])[2].value == pytest.approx(119 / 120, rel=1e-12)
    assert stats.pass_at([1], [5], [5])[2].value == pytest.approx(3 / 5, rel=1e-12)


def test_r18_disagreement():
    assert stats.disagreement([3, 2, 0, 1], [3] * 4) == pytest.approx(1 / 3, rel=1e-12)


def test_r19_clustered_wilson():
    passes, n = [5, 5, 4, 5, 3, 5, 5, 0, 5, 5], [5] * 10
    rate = stats.rate_new_cases(passes, n)
    assert rate.value == pytest.approx(0.84, rel=1e-12)
    assert (rate.low, rate.high) == pytest.approx((0.5243976364, 0.9615352150), rel=1e-9)
    assert (rate.cases, rate.trials, rate.method) == (10, 50, "clustered Wilson")
    assert clustered_size(np.array(passes) / 5, 50) == pytest.approx(756 / 59, rel=1e-9)
    simple = stats.normal_rate(passes, n)
    assert simple.low == pytest.approx(0.6393, abs=5e-5)
    assert simple.high == 1
    assert (0.84 - simple.low) / 1.96 == pytest.approx(0.1024152766, rel=1e-8)


def test_r20_all_green_rate():
    new = stats.rate_new_cases([3] * 20, [3] * 20)
    these = stats.rate_these_cases([3] * 20, [3] * 20)
    assert (new.value, new.high, these.high) == (1, 1, 1)
    assert new.low == pytest.approx(0.8203193196, rel=1e-9)
    assert these.low == pytest.approx(0.9398281479, rel=1e-9)


def test_r21_cases_needed():
    infinite = stats.cases_needed(
        0.03, within_a=1 / 6, within_b=1 / 6, between=1 / 9, trials_a=math.inf, trials_b=math.inf
    )
    assert infinite == pytest.approx(968.9975, abs=1e-4)
    single = stats.cases_needed(0.03, within_a=1 / 6, within_b=1 / 6, between=1 / 9, trials_a=1, trials_b=1)
    assert single == pytest.approx(3875.990, abs=1e-3)


def test_r22_minimal_drop():
    assert stats.minimal_drop(30, 5, 5, 0.16) == pytest.approx(0.1293996784, rel=1e-9)
    assert stats.minimal_drop(50, 3, 3, 0.25) == pytest.approx(0.1617495980, rel=1e-9)
    assert stats.minimal_drop(30, 10, 3, 0.16) == pytest.approx(0.1346834554, rel=1e-9)


def test_r23_spending_and_boundaries():
    looks = [0.2, 0.4, 0.6, 0.8, 1.0]
    spent = [stats.obf_spending(t) for t in looks]
    assert spent == pytest.approx([5.4e-7, 0.000394, 0.003808, 0.012212, 0.025], rel=3e-3)
    assert stats.obf_boundaries(looks) == pytest.approx([4.8769, 3.3570, 2.6803, 2.2901, 2.0314], abs=0.002)


@pytest.mark.parametrize(
    ("losses", "wins", "evidence"),
    [(8, 0, 2 * 2**8 * (1 - 0.5**9) / 9), (7, 0, 31.875), (6, 0, 18.1428571), (10, 1, 30.9318182)],
)
def test_r24_e_value(losses, wins, evidence):
    assert stats.win_loss_e_value(losses, wins) == pytest.approx(evidence, rel=1e-8)


def test_r25_corrections():
    p = [0.001, 0.008, 0.039, 0.041, 0.042, 0.060, 0.074, 0.205]
    assert stats.benjamini_hochberg(p).tolist() == [True, True] + [False] * 6
    assert stats.holm(p).tolist() == [True] + [False] * 7


def test_r26_imbalance_of_instrument_failures():
    assert stats.fisher_imbalance(12, 250, 0, 250) == pytest.approx(0.000426568, abs=5e-10)
    assert stats.fisher_imbalance(6, 250, 0, 250) == pytest.approx(0.030316288, abs=5e-10)
    assert stats.fisher_imbalance(5, 250, 0, 250) == pytest.approx(0.061251275, abs=5e-10)


def test_r27_false_alarms_add_up():
    assert stats.any_false_alarm(20) == pytest.approx(0.3973123, abs=5e-8)


def test_r28_single_cases():
    tests = stats.case_tests([10, 5], [10, 5], [5, 1], [10, 5])
    assert tests.p == pytest.approx([0.0325077399, 0.0476190476], abs=5e-11)
