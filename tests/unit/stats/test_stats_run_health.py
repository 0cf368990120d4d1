"""Drift between equal versions, failures that cluster in time, looks before the end."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate
from scipy import stats as oracle

from pytest_crashlab import stats

# Drift


def drawn(rng, cases, k, sd, drop=0.0):
    base = oracle.logistic.ppf(rng.beta(20, 1, cases))
    first = oracle.logistic.cdf(base + rng.normal(0, sd, cases))
    second = oracle.logistic.cdf(base + rng.normal(0, sd, cases)) - drop
    n = np.full(cases, k)
    return rng.binomial(n, first), n, rng.binomial(n, np.clip(second, 0, 1)), n


def test_noise_factor_by_hand():
    # d = -1/2 and 1/4; t(N-t)/((N-1) m l) = 4*4/(7*16) and 7*1/(7*16)
    pair = [3, 3], [4, 4], [1, 4], [4, 4]
    expected = (1 / 4 + 1 / 16) / (16 / 112 + 7 / 112)
    assert stats.noise_factor([pair]) == pytest.approx(expected, rel=1e-12)
    assert stats.noise_factor([pair, pair]) == pytest.approx(expected, rel=1e-12)


def test_noise_factor_is_at_least_one_and_unknown_without_data():
    assert stats.noise_factor([([2, 2], [4, 4], [2, 2], [4, 4])]) == 1
    assert stats.noise_factor([]) is None
    assert stats.noise_factor([([4], [4], [4], [4])]) is None
    assert stats.noise_factor([([], [], [], [])]) is None


def test_the_variance_is_that_of_the_hypergeometric():
    x, m, y, k = 3, 5, 1, 4
    law = oracle.hypergeom(m + k, x + y, k)
    variance = law.var() * (1 / k + 1 / m) ** 2
    guard = stats.drift_guard([x], [m], [y], [k], factor=2.0)
    assert guard.limit == pytest.approx(oracle.norm.ppf(0.975) * math.sqrt(2 * variance), rel=1e-9)
    assert guard.exceeded == (abs(y / k - x / m) > guard.limit)


def test_the_guard_silences_drift_and_lets_a_break_through():
    rng = np.random.default_rng(31)
    bare = guarded = found = 0
    runs = 200
    for _ in range(runs):
        factor = stats.noise_factor([drawn(rng, 50, 10, 1.0)])
        pair = drawn(rng, 50, 10, 1.0)
        significant = stats.paired_verdict(*pair).significant
        bare += significant
        guarded += significant and stats.drift_guard(*pair, factor=factor).exceeded
        worse = drawn(rng, 50, 10, 1.0, drop=0.2)
        found += (
            stats.paired_verdict(*worse).significant and stats.drift_guard(*worse, factor=factor).exceeded
        )
    assert bare / runs > 0.1  # what drift alone does to the unguarded test
    assert guarded / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)
    assert found / runs > 0.9


def test_nothing_exceeds_nothing():
    guard = stats.drift_guard([], [], [], [], factor=1.0)
    assert not guard.exceeded
    assert math.isnan(guard.limit)


# Clusters


def run_in_rounds(rng, p, k):
    case = np.concatenate([rng.permutation(p.size) for _ in range(k)])
    return case, rng.random(case.size) > p[case]


@pytest.mark.parametrize(("cases", "k"), [(20, 5), (50, 5)])
def test_an_outage_is_found_and_placed(cases, k):
    rng = np.random.default_rng(17)
    found = placed = 0
    runs = 40
    for _ in range(runs):
        case, failed = run_in_rounds(rng, rng.beta(20, 1, cases), k)
        width = max(4, round(0.05 * case.size))
        start = int(rng.integers(0, case.size - width + 1))
        failed[start : start + width] = True
        cluster = stats.failure_clusters(case, failed)
        found += cluster.found
        placed += cluster.first <= start + width and cluster.last >= start
        assert failed[cluster.first]
        assert failed[cluster.last]
        assert cluster.failures == failed[cluster.first : cluster.last + 1].sum()
    assert found / runs >= 0.85
    assert placed / runs >= 0.9


@pytest.mark.parametrize("suite", [(20, 1), (0.5, 0.5), (500, 500)])
def test_a_clean_run_is_left_alone(suite):
    rng = np.random.default_rng(18)
    runs = 200
    alarms = 0
    for _ in range(runs):
        cluster = stats.failure_clusters(*run_in_rounds(rng, rng.beta(*suite, 30), 5))
        alarms += cluster is not None and cluster.found
    assert alarms / runs <= 0.01 + 3 * math.sqrt(0.01 * 0.99 / runs)


def test_one_case_that_broke_half_way_is_no_outage():
    case = np.tile(np.arange(10), 10)
    failed = (case == 3) & (np.arange(100) >= 50)
    assert not stats.failure_clusters(case, failed).found


def test_cases_that_only_pass_or_only_fail_have_no_order():
    assert stats.failure_clusters([], []) is None
    assert stats.failure_clusters([0, 1, 0, 1], [True, False, True, False]) is None
    assert stats.failure_clusters([0, 1, 2], [True, False, True]) is None


def test_labels_of_cases_do_not_matter_and_the_answer_is_repeatable():
    rng = np.random.default_rng(19)
    case, failed = run_in_rounds(rng, np.full(20, 0.8), 5)
    one = stats.failure_clusters(case, failed)
    assert stats.failure_clusters(case * 7 + 3, failed) == one
    assert stats.failure_clusters(case.tolist(), [int(f) for f in failed]) == one


# Looks


def test_boundaries_spend_what_is_allowed():
    looks = np.array([0.25, 0.5, 1.0])
    bounds = stats.obf_boundaries(looks)
    rng = np.random.default_rng(8)
    steps = rng.normal(size=(400_000, 3)) * np.sqrt(np.diff(looks, prepend=0))
    z = steps.cumsum(axis=1) / np.sqrt(looks)
    crossed = np.maximum.accumulate(z > bounds, axis=1).mean(axis=0)
    spent = [stats.obf_spending(t) for t in looks]
    assert crossed[1] == pytest.approx(spent[1], abs=4e-4)
    assert crossed[2] == pytest.approx(spent[2], abs=1e-3)
    assert stats.obf_boundaries([1.0])[0] == pytest.approx(oracle.norm.ppf(0.975), abs=1e-9)


@given(st.integers(0, 40), st.integers(0, 40))
def test_e_value_is_the_mixture_it_says(losses, wins):
    n = losses + wins
    expected, _ = integrate.quad(lambda p: 2 * (2 * p) ** losses * (2 * (1 - p)) ** wins, 0.5, 1, epsabs=0)
    assert stats.win_loss_e_value(losses, wins) == pytest.approx(expected, rel=1e-7)
    assert n or expected == pytest.approx(1)


def test_e_value_may_be_looked_at_any_time():
    rng = np.random.default_rng(6)
    runs, alarms = 400, 0
    for _ in range(runs):
        loss = rng.random(60) < 0.5
        losses = loss.cumsum()
        alarms += any(stats.win_loss_e_value(int(a), i + 1 - int(a)) >= 40 for i, a in enumerate(losses))
    assert alarms / runs <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / runs)
