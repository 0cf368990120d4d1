"""Intervals against statsmodels, scipy and coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as oracle
from stats_oracles import paired_counts

from pytest_crashlab import stats
from pytest_crashlab.stats.mover import (
    between_case_gain,
    clustered_mover,
    clustered_wilson,
    conditional_mover,
    stratified_wilson,
)

proportion = pytest.importorskip("statsmodels.stats.proportion")


@pytest.mark.parametrize("n", [1, 3, 20, 1000])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
def test_one_proportion(n, share):
    passes = round(share * n)
    assert stats.wilson(passes / n, n) == pytest.approx(
        proportion.proportion_confint(passes, n, method="wilson"), abs=1e-12
    )
    assert stats.clopper_pearson(passes, n) == pytest.approx(
        proportion.proportion_confint(passes, n, method="beta"), abs=1e-12
    )
    low, high = stats.jeffreys(passes, n)
    law = oracle.beta(passes + 0.5, n - passes + 0.5)
    assert low == pytest.approx(0 if passes == 0 else law.ppf(0.025), abs=1e-12)
    assert high == pytest.approx(1 if passes == n else law.ppf(0.975), abs=1e-12)
    for bounds in (stats.wilson(passes / n, n), stats.clopper_pearson(passes, n), (low, high)):
        assert 0 <= bounds[0] <= passes / n <= bounds[1] <= 1
        assert bounds[0] < bounds[1]


def test_other_confidence():
    expected = proportion.proportion_confint(7, 20, alpha=0.1, method="beta")
    assert stats.clopper_pearson(7, 20, 0.9) == pytest.approx(expected, abs=1e-12)


def test_no_trial_says_nothing():
    assert stats.wilson(0.5, 0) == (0, 1)
    assert stats.clopper_pearson(0, 0) == (0, 1)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_newcombe(m, n, data):
    x, y = data.draw(st.integers(0, m)), data.draw(st.integers(0, n))
    expected = proportion.confint_proportions_2indep(y, n, x, m, method="newcomb", compare="diff")
    assert stats.newcombe(x, m, y, n) == pytest.approx(expected, abs=1e-9)


def written_gain(passes, n):
    """The gain as its definition reads, one step after the other."""
    rate = (sum(passes) + 0.5) / (sum(n) + 1)
    shares = [x / m for x, m in zip(passes, n, strict=True)]
    noise = np.mean([1 / m for m in n])
    if len(n) < 2 or noise >= 1:
        return 1.0
    rho = (np.var(shares, ddof=1) / (rate * (1 - rate)) - noise) / (1 - noise)
    if rho <= 1e-6:
        return 1.0
    s = min(max((1 - rho) / rho, 0.5), 1e6)
    left = []
    for x, m in zip(passes, n, strict=True):
        a, b = s * rate + x, s * (1 - rate) + m - x
        left.append(oracle.beta(a, b).mean() - oracle.beta(a, b).moment(2))
    return max(1.0, rate * (1 - rate) / np.mean(left))


@settings(max_examples=40, deadline=None)
@given(paired_counts(most_cases=8, most_trials=6))
def test_intervals_of_these_cases(counts):
    x, m, y, k = (np.array(c) for c in counts)
    gain = written_gain((x + y).tolist(), (m + k).tolist())
    assert between_case_gain(x + y, m + k) == pytest.approx(gain, rel=1e-9)
    p_a, p_b = (x / m).mean(), (y / k).mean()
    n_a, n_b = gain / np.mean(1 / m) * len(m), gain / np.mean(1 / k) * len(k)
    l_a, u_a = proportion.proportion_confint(p_a * n_a, n_a, method="wilson")
    l_b, u_b = proportion.proportion_confint(p_b * n_b, n_b, method="wilson")
    low = p_b - p_a - math.hypot(p_b - l_b, u_a - p_a)
    high = p_b - p_a + math.hypot(u_b - p_b, p_a - l_a)
    expected = max(-1, low), min(1, high)
    assert conditional_mover(x, m, y, k) == pytest.approx(expected, abs=1e-6)

    alone = written_gain(x.tolist(), m.tolist()) * len(m) / np.mean(1 / m)
    expected = proportion.proportion_confint(p_a * alone, alone, method="wilson")
    assert stratified_wilson(x, m) == pytest.approx(expected, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(paired_counts(most_cases=8, most_trials=6))
def test_intervals_of_new_cases(counts):
    x, m, y, k = (np.array(c) for c in counts)
    n = len(m)
    low, high = clustered_mover(x, m, y, k)
    if n == 1:
        assert (low, high) == (-1, 1)
        return
    t = oracle.t.ppf(0.975, n - 1)
    arms = []
    for passes, trials in ((x, m), (y, k)):
        f = passes / trials
        squared = f.var(ddof=1) / n
        size = n if squared < 1e-15 else np.clip(f.mean() * (1 - f.mean()) / squared, 1, trials.sum())
        z2 = t * t / size
        centre = (f.mean() + z2 / 2) / (1 + z2)
        half = math.sqrt(z2 * f.mean() * (1 - f.mean()) + z2 * z2 / 4) / (1 + z2)
        arms.append((f.mean(), centre - half, centre + half))
        assert clustered_wilson(f, trials.sum()) == pytest.approx((centre - half, centre + half), abs=1e-9)
    (p_a, l_a, u_a), (p_b, l_b, u_b) = arms
    f_a, f_b = x / m, y / k
    r = oracle.pearsonr(f_a, f_b).statistic if min(np.ptp(f_a), np.ptp(f_b)) > 0 else 0.0
    below = (p_b - l_b) ** 2 + (u_a - p_a) ** 2 - 2 * r * (p_b - l_b) * (u_a - p_a)
    above = (u_b - p_b) ** 2 + (p_a - l_a) ** 2 - 2 * r * (u_b - p_b) * (p_a - l_a)
    assert low == pytest.approx(max(-1, p_b - p_a - math.sqrt(max(0, below))), abs=1e-6)
    assert high == pytest.approx(min(1, p_b - p_a + math.sqrt(max(0, above))), abs=1e-6)


@pytest.mark.parametrize("suite", ["beta20_1", "bimodal", "all99"])
@pytest.mark.parametrize(("cases", "k"), [(20, 3), (50, 5)])
def test_rates_cover_what_they_name(suite, cases, k):
    rng = np.random.default_rng(7)
    runs = 500
    a, b = {"beta20_1": (20, 1), "bimodal": (0.5, 0.5), "all99": (99e4, 1e4)}[suite]
    p = rng.beta(a, b, (runs, cases))
    x = rng.binomial(k, p)
    n = [k] * cases
    these = [stats.rate_these_cases(row, n) for row in x]
    new = [stats.rate_new_cases(row, n) for row in x]
    share_these = np.mean([r.low <= mean <= r.high for r, mean in zip(these, p.mean(axis=1), strict=True)])
    share_new = np.mean([r.low <= a / (a + b) <= r.high for r in new])
    assert share_these >= 0.95 - 3.5 * math.sqrt(0.05 * 0.95 / runs)
    assert share_new >= 0.95 - 3.5 * math.sqrt(0.05 * 0.95 / runs)
    assert all(r.low < r.high for r in these + new)
