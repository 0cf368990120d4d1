"""Tests over cases: the simple rule, the paired t test, what is shown for new cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as oracle
from stats_oracles import paired_counts

from pytest_crashlab import stats


@settings(max_examples=60, deadline=None)
@given(paired_counts(most_cases=12))
def test_simple_rule_and_t_test_against_scipy(counts):
    x, m, y, k = (np.array(c) for c in counts)
    d = y / k - x / m
    rule = stats.normal_rule(*counts)
    assert rule.delta == pytest.approx(d.mean(), abs=1e-12)
    assert rule.cases == d.size
    if d.size == 1:
        assert math.isnan(rule.p_value)
        assert math.isnan(rule.half_width)
        return
    if np.ptp(d) < 1e-9:
        assert rule.half_width == 0
        assert rule.p_value == (1 if abs(d[0]) < 1e-9 else 0)
        return
    error = d.std(ddof=1) / math.sqrt(d.size)
    assert rule.half_width == pytest.approx(1.96 * error, rel=1e-9)
    assert rule.p_value == pytest.approx(2 * oracle.norm.sf(abs(d.mean()) / error), rel=1e-9, abs=1e-300)
    expected = oracle.ttest_1samp(d, 0)
    paired = stats.paired_t(d)
    assert paired.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    interval = expected.confidence_interval()
    assert (paired.low, paired.high) == pytest.approx((interval.low, interval.high), abs=1e-9)
    assert stats.new_cases(*counts).p_value == pytest.approx(expected.pvalue, rel=1e-9)


def test_nothing_and_one():
    assert math.isnan(stats.normal_rule([], [], [], []).delta)
    assert math.isnan(stats.paired_t([]).mean)
    assert math.isnan(stats.paired_t([2.0]).p_value)
    none = stats.new_cases([], [], [], [])
    assert math.isnan(none.low)
    assert (none.shown, none.cases) == (False, 0)
    one = stats.new_cases([5], [5], [0], [5])
    assert (one.low, one.high, one.shown) == (-1, 1, False)


def test_differences_without_spread():
    assert stats.paired_t([0.0, 0.0, 0.0]).p_value == 1
    same = stats.paired_t([-0.5, -0.5])
    assert (same.t, same.p_value) == (-math.inf, 0)


def test_shown_needs_ten_cases_and_both_tests():
    n = [5] * 12
    drop = [2, 3, 2, 1, 2, 3, 2, 2, 1, 2, 3, 2]
    assert stats.new_cases(n, n, drop, n).shown
    assert not stats.new_cases(n[:9], n[:9], drop[:9], n[:9]).shown
    one_broken = [0] + [5] * 11
    assert not stats.new_cases(n, n, one_broken, n).shown


def test_unequal_trials_do_not_show_what_is_not_there():
    # The t test alone raises an alarm in a third of these pairs of equal versions.
    rng = np.random.default_rng(4)
    runs, cases = 300, 50
    alone = shown = 0
    for _ in range(runs):
        x, y = rng.binomial(10, np.full(cases, 0.99)), rng.binomial(1, np.full(cases, 0.99))
        new = stats.new_cases(x, [10] * cases, y, [1] * cases)
        alone += new.p_value < 0.05
        shown += new.shown
    assert alone / runs > 0.2
    assert shown / runs <= 0.05


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_paired_t_serves_other_units(differences):
    result = stats.paired_t(differences)
    assert result.low <= result.mean <= result.high
    assert 0 <= result.p_value <= 1
    assert result.df == len(differences) - 1
