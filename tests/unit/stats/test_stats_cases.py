"""Which cases moved, which tests stand: discrete and plain corrections."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as oracle
from stats_oracles import paired_counts

from pytest_crashlab import stats


def doubled_p(y, m, k, t):
    pmf = {
        j: math.comb(k, j) * math.comb(m, t - j) / math.comb(m + k, t)
        for j in range(max(0, t - m), min(t, k) + 1)
    }
    return min(
        1.0, 2 * sum(p for j, p in pmf.items() if j <= y), 2 * sum(p for j, p in pmf.items() if j >= y)
    )


def heyse(rows, q):
    """Discrete Benjamini-Hochberg as it is written: sort, sum the cdfs, take the last that holds."""
    laws = []
    for x, m, y, k in rows:
        t = x + y
        support = range(max(0, t - m), min(t, k) + 1)
        masses = [math.comb(k, j) * math.comb(m, t - j) / math.comb(m + k, t) for j in support]
        laws.append([(doubled_p(j, m, k, t), mass) for j, mass in zip(support, masses, strict=True)])
    p = [doubled_p(y, m, k, x + y) for x, m, y, k in rows]
    threshold = -1.0
    for rank, value in enumerate(sorted(p), start=1):
        total = sum(mass for law in laws for attainable, mass in law if attainable <= value * (1 + 1e-9))
        if total / rank <= q * (1 + 1e-9):
            threshold = value
    return p, [value <= threshold * (1 + 1e-9) for value in p]


@settings(max_examples=80, deadline=None)
@given(paired_counts(most_cases=10, most_trials=8), st.sampled_from([0.05, 0.3]))
def test_discrete_benjamini_hochberg_as_written(counts, q):
    rows = list(zip(*counts, strict=True))
    tests = stats.case_tests(*counts, q=q)
    p, proven = heyse(rows, q)
    assert tests.p == pytest.approx(p, rel=1e-9)
    assert (tests.proven != 0).tolist() == proven
    for (x, m, y, k), sign in zip(rows, tests.proven, strict=True):
        assert sign in (0, np.sign(y * m - x * k))


def test_one_broken_case_needs_four_trials():
    for k, proven in ((3, 0), (4, -1)):
        n = [k] * 10
        tests = stats.case_tests(n, n, [0] + [k] * 9, n)
        assert tests.proven.tolist() == [proven] + [0] * 9


def test_better_and_worse_are_told_apart():
    tests = stats.case_tests([10, 0, 5], [10] * 3, [0, 10, 5], [10] * 3)
    assert tests.proven.tolist() == [-1, 1, 0]
    assert tests.proven.dtype == np.int8


def test_silent_cases_cost_nothing():
    broken = [5, 5, 5], [5] * 3, [0, 5, 5], [5] * 3
    many = [5] * 500, [5] * 500, [0] + [5] * 499, [5] * 500
    assert stats.case_tests(*broken).proven[0] == stats.case_tests(*many).proven[0] == -1


def test_a_case_without_trials_in_one_arm_is_in_place_and_unproven():
    tests = stats.case_tests([5, 0, 5], [5, 0, 5], [0, 5, 0], [5, 5, 0])
    assert np.isnan(tests.p).tolist() == [False, True, True]
    assert tests.proven.tolist() == [-1, 0, 0]
    assert stats.case_tests([], [], [], []).p.size == 0
    assert stats.case_tests([0], [0], [1], [1]).proven.tolist() == [0]


def test_equal_versions_are_seldom_accused():
    rng = np.random.default_rng(9)
    n = np.full(50, 5)
    accused = 0
    runs = 300
    for _ in range(runs):
        p = rng.beta(0.5, 0.5, 50)
        accused += bool(stats.case_tests(rng.binomial(n, p), n, rng.binomial(n, p), n).proven.any())
    assert accused / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_many_cases_are_tested_quickly_enough_to_be_exact():
    rng = np.random.default_rng(2)
    n = np.full(2000, 20)
    p = rng.beta(2, 1, 2000)
    b = np.where(np.arange(2000) < 100, 0, p)
    tests = stats.case_tests(rng.binomial(n, p), n, rng.binomial(n, b), n)
    found = tests.proven[:100] == -1
    assert found.mean() > 0.6
    assert (tests.proven[100:] != 0).sum() <= 15


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), max_size=30), st.sampled_from([0.05, 0.2]))
def test_corrections_agree_with_statsmodels(p, level):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    if not p:
        assert stats.holm(p).size == stats.benjamini_hochberg(p).size == 0
        return
    # Next to a threshold the two may round to different sides.
    thresholds = [level / i for i in range(1, len(p) + 1)] + [
        level * i / len(p) for i in range(1, len(p) + 1)
    ]
    if any(math.isclose(value, t, rel_tol=1e-9) for value in p for t in thresholds):
        return
    assert stats.holm(p, level).tolist() == multitest.multipletests(p, level, "holm")[0].tolist()
    expected = multitest.multipletests(p, level, "fdr_bh")[0].tolist()
    assert stats.benjamini_hochberg(p, level).tolist() == expected


@given(st.integers(0, 30), st.integers(0, 30), st.data())
def test_fisher_imbalance_is_fishers_exact_test(a_total, b_total, data):
    a, b = data.draw(st.integers(0, a_total)), data.draw(st.integers(0, b_total))
    found = stats.fisher_imbalance(a, a_total, b, b_total)
    if not a_total or not b_total:
        assert found == 1
        return
    expected = oracle.fisher_exact([[a, a_total - a], [b, b_total - b]]).pvalue
    assert found == pytest.approx(expected, rel=1e-9)
