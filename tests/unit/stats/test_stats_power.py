"""Detectable drops and plans: what they promise is what a simulation finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats as oracle
from stats_oracles import paired_counts

from pytest_crashlab import stats
from pytest_crashlab.stats.simulate import lower_p_values, simulated_power
from pytest_crashlab.stats.suite import assumed_suite, fit_suite


@settings(max_examples=40, deadline=None)
@given(paired_counts(most_cases=6, most_trials=6))
def test_many_runs_at_once_give_the_p_value_of_one(counts):
    x, m, y, k = (np.array(c) for c in counts)
    found = float(lower_p_values(x[None], m, y[None], k)[0])
    expected = stats.paired_verdict(*counts).p_value
    assert min(1.0, 2 * min(found, 1 - found)) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(
    ("rate", "strength", "cases", "k", "drop"),
    [
        (20 / 21, 21, 50, 3, 0.088),
        (20 / 21, 21, 50, 10, 0.043),
        (0.5, 1, 50, 10, 0.062),
        (0.5, 1e6, 50, 3, 0.158),
    ],
)
def test_iterated_formula_in_known_suites(rate, strength, cases, k, drop):
    assert stats.planned_drop(cases, k, rate=rate, strength=strength) == pytest.approx(drop, abs=6e-4)


@pytest.mark.parametrize(("a", "b"), [(20, 1), (0.5, 0.5), (500, 500)])
@pytest.mark.parametrize(
    ("cases", "k"),
    [(10, 5), *(pytest.param(*design, marks=pytest.mark.slow) for design in [(20, 3), (50, 3)])],
)
def test_four_of_five_tries_show_the_drop(a, b, cases, k):
    drop = stats.planned_drop(cases, k, rate=a / (a + b), strength=a + b)
    rng = np.random.default_rng(13)
    p = rng.beta(a, b, (400, cases))
    logits = oracle.logistic.ppf(
        np.clip(oracle.beta.ppf((np.arange(2000) + 0.5) / 2000, a, b), 1e-9, 1 - 1e-9)
    )
    low, high = -12.0, 0.0
    for _ in range(60):
        middle = (low + high) / 2
        fallen = a / (a + b) - oracle.logistic.cdf(logits + middle).mean()
        low, high = (middle, high) if fallen > drop else (low, middle)
    q = oracle.logistic.cdf(oracle.logistic.ppf(np.clip(p, 1e-9, 1 - 1e-9)) + low)
    x, y = rng.binomial(k, p), rng.binomial(k, q)
    n = [k] * cases
    shown = 0
    for i in range(400):
        verdict = stats.paired_verdict(x[i], n, y[i], n)
        shown += verdict.significant and verdict.delta < 0
    assert 0.8 - 0.1 <= shown / 400 <= 0.8 + 0.1


def test_more_trials_show_smaller_drops():
    drops = [stats.planned_drop(20, k) for k in (3, 5, 10, 20)]
    assert drops == sorted(drops, reverse=True)
    against_green = [stats.detectable_drop([k] * 30, [k] * 30, [k] * 30) for k in (1, 2, 3, 5, 10)]
    assert against_green == sorted(against_green, reverse=True)


def test_what_cannot_be_shown_has_no_drop():
    assert stats.detectable_drop([3], [3], [3]) is None  # 3/3 -> 0/3 proves nothing
    assert stats.detectable_drop([4], [4], [4]) is not None  # 4/4 -> 0/4 does
    assert stats.detectable_drop([0, 0], [5, 5], [5, 5]) is None  # nothing to fall from
    assert stats.detectable_drop([], [], []) is None
    assert stats.detectable_drop([5], [5], [0]) is None


def test_the_same_question_has_the_same_answer():
    counts = [3, 3, 2, 3, 1], [3] * 5, [3] * 5
    assert stats.detectable_drop(*counts) == stats.detectable_drop(*counts)


def test_an_outright_formula_promises_too_much_near_a_hundred_percent():
    rng = np.random.default_rng(21)
    x = rng.binomial(3, rng.beta(20, 1, 50))
    naive = stats.minimal_drop(50, 3, 3, stats.within_variance(x, [3] * 50))
    assert stats.detectable_drop(x, [3] * 50, [3] * 50) > naive


def test_within_variance():
    assert stats.within_variance([3, 2, 0, 1], [3] * 4) == pytest.approx(1 / 6)
    assert stats.within_variance([1, 0, 1, 1], [1] * 4) == pytest.approx(0.75 * 0.25)
    assert stats.within_variance([], []) is None
    assert stats.within_variance([0], [0]) is None


def test_a_suite_is_shifted_by_what_is_asked():
    suite = assumed_suite(20, 0.9, 5)
    assert suite.rate == pytest.approx(0.9, abs=0.01)
    fallen = suite.shifted(0.2)
    assert fallen.rate == pytest.approx(suite.rate - 0.2, abs=1e-6)
    assert (fallen.p < suite.p).all()


def test_an_all_green_run_is_not_taken_for_one_that_cannot_fail():
    suite = fit_suite(np.full(20, 3), np.full(20, 3))
    assert suite.rate == pytest.approx(60.5 / 61, abs=1e-4)
    assert suite.variance > 0


def test_simulated_power_rises_with_the_drop():
    suite = assumed_suite(10, 0.9, 10)
    n = np.full(10, 5)
    power = simulated_power(suite, n, n)
    values = [power(d) for d in (0.0, 0.1, 0.2, 0.4, 0.8)]
    assert values == sorted(values)
    assert values[0] <= 0.05
    assert values[-1] >= 0.99


# Planning


def test_planned_trials_are_the_fewest_that_do():
    k = stats.planned_trials(30, 0.1)
    assert stats.planned_drop(30, k) <= 0.1 < stats.planned_drop(30, k - 1)
    assert stats.planned_trials(5, 0.01, most=20) is None


def test_trials_to_show_a_drop_from_a_measured_baseline():
    x, n = [10] * 30, [10] * 30
    k = stats.trials_to_show(x, n, 0.05)
    assert stats.detectable_drop(x, n, [k] * 30) <= 0.05
    assert stats.detectable_drop(x, n, [k - 1] * 30) > 0.05
    assert stats.trials_to_show([1] * 5, [1] * 5, 0.05) is None
    assert stats.trials_to_show([], [], 0.05) is None


def test_more_rounds_bring_the_interval_inside():
    n = [3] * 20
    rounds = stats.more_rounds(n, n, n, n, margin=0.05, both=True)
    assert rounds == 1
    for k, inside in ((3, False), (4, True)):
        verdict = stats.paired_verdict([k] * 20, [k] * 20, [k] * 20, [k] * 20)
        assert (max(-verdict.low, verdict.high) <= 0.05) is inside
    assert stats.more_rounds(n, n, n, n, margin=0.2) == 0

    half = [2] * 20, [4] * 20
    rounds = stats.more_rounds(*half, *half, margin=0.15, both=True)
    for k, inside in ((4 + rounds, True), (4 + rounds - 2, False)):
        again = [k // 2] * 20, [k] * 20
        verdict = stats.paired_verdict(*again, *again)
        assert (max(-verdict.low, verdict.high) <= 0.15 + 0.004) is inside


def test_rounds_that_cannot_help():
    n = [3] * 20
    assert stats.more_rounds(n, n, [2] * 20, n, margin=0.1) is None  # the difference itself is outside
    assert stats.more_rounds(n, n, n, n, margin=0.05) is None  # the baseline's own trials are too few
    assert stats.more_rounds([], [], [], [], margin=0.1) is None
