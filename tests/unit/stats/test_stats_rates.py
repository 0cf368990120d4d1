"""Rates, pass^j, flips: by enumeration, and at the edges."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_crashlab import stats

RATES = (stats.rate_these_cases, stats.rate_new_cases, stats.jeffreys_rate, stats.normal_rate)

runs = st.lists(
    st.integers(1, 6).flatmap(lambda k: st.tuples(st.integers(0, k), st.just(k))), min_size=1, max_size=8
)


@pytest.mark.parametrize("rate", RATES, ids=lambda f: f.__name__)
def test_no_decided_trial_is_unavailable_not_zero(rate):
    for passes, n in (([], []), ([0, 0], [0, 0])):
        result = rate(passes, n)
        assert (result.value, result.low, result.high, result.cases, result.trials) == (
            None,
            None,
            None,
            0,
            0,
        )


@pytest.mark.parametrize("rate", RATES, ids=lambda f: f.__name__)
def test_each_case_counts_once_and_undecided_cases_not_at_all(rate):
    result = rate([1, 10, 0], [1, 20, 0])
    assert result.value == pytest.approx(0.75)
    assert (result.cases, result.trials) == (2, 21)


@pytest.mark.parametrize("rate", RATES[:3], ids=lambda f: f.__name__)
def test_three_of_three_is_never_a_certainty(rate):
    result = rate([3], [3])
    assert result.value == result.high == 1
    assert result.low < 0.45


def test_one_case_says_nothing_about_others():
    assert (stats.rate_new_cases([2], [4]).low, stats.rate_new_cases([2], [4]).high) == (0, 1)
    assert stats.normal_rate([2], [4]).low is None


@given(runs)
def test_intervals_hold_their_value(rows):
    passes, n = zip(*rows, strict=True)
    for rate in RATES[:3]:
        result = rate(passes, n)
        assert 0 <= result.low <= result.value <= result.high <= 1
        assert result.low < result.high


def test_jeffreys_is_close_to_the_clustered_wilson():
    passes, n = [5, 5, 4, 5, 3, 5, 5, 0, 5, 5], [5] * 10
    one, other = stats.jeffreys_rate(passes, n), stats.rate_new_cases(passes, n)
    assert one.low == pytest.approx(other.low, abs=0.03)
    assert one.high == pytest.approx(other.high, abs=0.03)


def enumerated(outcomes, j, wanted):
    """Share of the subsets of ``j`` trials for which ``wanted`` (all or any) holds."""
    subsets = list(itertools.combinations(outcomes, j))
    return Fraction(sum(wanted(s) for s in subsets), len(subsets))


@given(runs)
def test_curves_equal_all_subsets(rows):
    passes, n = zip(*rows, strict=True)
    for curve, wanted in ((stats.pass_hat, all), (stats.pass_at, any)):
        points = curve(passes, n, n)
        assert [p.j for p in points] == list(range(1, max(n) + 1))
        for point in points:
            values = [enumerated([1] * x + [0] * (k - x), point.j, wanted) for x, k in rows if k >= point.j]
            assert point.cases == len(values)
            assert point.value == pytest.approx(float(sum(values) / len(values)), abs=1e-12)
            assert point.low <= point.value <= point.high


@given(st.lists(st.integers(0, 5), min_size=1, max_size=10))
def test_with_one_plan_pass_hat_never_rises_and_pass_at_never_falls(passes):
    n = [5] * len(passes)
    hat = [p.value for p in stats.pass_hat(passes, n, n)]
    at = [p.value for p in stats.pass_at(passes, n, n)]
    assert hat == sorted(hat, reverse=True)
    assert at == sorted(at)
    assert hat[0] == pytest.approx(at[0])
    assert hat[-1] == pytest.approx(np.mean([x == 5 for x in passes]))


def test_only_complete_cases_are_in_the_curve():
    points = stats.pass_hat([3, 2, 0], [3, 2, 0], [3, 3, 0])
    assert [(p.value, p.cases) for p in points] == [(1.0, 1)] * 3
    assert [(p.j, p.value, p.low, p.cases) for p in stats.pass_at([1], [1], [2])] == [
        (1, None, None, 0),
        (2, None, None, 0),
    ]
    assert stats.pass_hat([], [], []) == ()


def test_pass_hat_is_unbiased_where_the_plug_in_is_not():
    rng = np.random.default_rng(3)
    p = rng.beta(0.5, 0.5, 200_000)
    x = rng.binomial(5, p)
    n = np.full(x.size, 5)
    truth = math.gamma(5.5) * math.gamma(1) / (math.gamma(0.5) * math.gamma(6))
    assert stats.pass_hat(x, n, n)[4].value == pytest.approx(truth, abs=0.004)
    assert abs(((x / 5) ** 5).mean() - truth) > 0.04


def test_flips():
    result = stats.flips([3, 2, 0, 1, 2, 0], [3, 3, 3, 3, 2, 0], [3, 3, 3, 3, 3, 0])
    assert (result.flip, result.all_pass, result.never, result.incomplete, result.eligible) == (2, 1, 1, 1, 4)


def test_fewer_than_three_trials_cannot_show_flips():
    result = stats.flips([1, 2, 0], [2, 2, 2], [2, 2, 2])
    assert (result.flip, result.all_pass, result.never, result.incomplete, result.eligible) == (
        None,
        1,
        1,
        0,
        0,
    )
    assert stats.flips([], [], []).flip is None


def test_three_planned_trials_that_are_incomplete_leave_no_flip_to_see():
    result = stats.flips([1], [2], [3])
    assert (result.flip, result.eligible, result.incomplete) == (0, 0, 1)


@given(runs)
def test_disagreement_is_the_share_of_pairs_that_differ(rows):
    passes, n = zip(*rows, strict=True)
    shares = [
        np.mean([a != b for a, b in itertools.combinations([1] * x + [0] * (k - x), 2)])
        for x, k in rows
        if k >= 2
    ]
    found = stats.disagreement(passes, n)
    if not shares:
        assert found is None
    else:
        assert found == pytest.approx(np.mean(shares), abs=1e-12)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_disagreement_does_not_depend_on_the_number_of_trials(k):
    rng = np.random.default_rng(k)
    p = rng.beta(20, 1, 60_000)
    expected = 2 * 20 / (21 * 22)
    assert stats.disagreement(rng.binomial(k, p), np.full(p.size, k)) == pytest.approx(expected, abs=0.003)
