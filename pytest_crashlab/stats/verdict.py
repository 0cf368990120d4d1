"""Did these cases get worse? The p-value and the interval that the verdict's word rests on."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pytest_crashlab.stats.inputs import (
    Counts,
    Floats,
    Ints,
    Variant,
    counts,
    paired_arms,
    same_length,
    variant_weight,
)
from pytest_crashlab.stats.mover import conditional_mover
from pytest_crashlab.stats.stratified import StratifiedTest

ALPHA = 0.05
TIE = 1e-9
"""A p-value this close to ALPHA is ALPHA: 3/3 -> 0/3 is exactly 0.05 and proves nothing."""


class PairedVerdict(NamedTuple):
    """Candidate minus baseline over these cases.

    ``p_value`` two-sided; ``low, high`` the 95 % interval of the mean difference, in shares -1..1;
    ``delta`` the mean difference itself; ``half_width`` how far ``delta`` is from the bound on zero's
    side, so that a change is outside the noise exactly when it is larger; ``contradictory`` whether
    the test and the mean point in opposite directions (possible with unequal trials only): no word
    can be given then; ``cases`` how many were compared. Without a case everything is NaN.
    """

    p_value: float
    low: float
    high: float
    delta: float
    half_width: float
    contradictory: bool
    cases: int

    @property
    def significant(self) -> bool:
        """Whether ``p_value`` is below 0.05, ties excluded."""
        return is_significant(self.p_value)


NOTHING = PairedVerdict(math.nan, math.nan, math.nan, math.nan, math.nan, contradictory=False, cases=0)


def is_significant(p_value: float, alpha: float = ALPHA) -> bool:
    """Whether ``p_value`` is below ``alpha`` by more than rounding (NaN is not)."""
    return p_value < alpha - TIE


def paired_verdict(
    a_pass: Counts, a_n: Counts, b_pass: Counts, b_n: Counts, *, variant: Variant = "mid-p"
) -> PairedVerdict:
    """The exact stratified test of candidate B against baseline A, and its interval.

    Arguments: passes and decided trials, whole numbers, one entry a case; a case without a decided
    trial in either arm is dropped.

    p-value: exact conditional Cochran-Mantel-Haenszel test, ``variant`` "mid-p" (default) or "exact".
    Interval: the bound on zero's side inverts the same test under a common odds ratio, so that it
    excludes 0 exactly when p < 0.05; the far bound is the wider of that and a conditional
    MOVER-Wilson interval, because the odds ratio need not be common.

    Assumes exchangeable trials within a case; the cases are fixed. It answers "did these cases get
    worse", not "would new ones" (see ``new_cases``) nor "was it my change" (only interleaved runs
    can tell). With equal trials it stays valid for the mean when some cases rise and others fall.

    Raises BadInput (a ValueError) for counts that cannot be.
    """
    observed = variant_weight(variant)
    x, m, y, l_ = paired_arms(a_pass, a_n, b_pass, b_n)
    return _verdict((x, m, y, l_), observed=observed, cases=x.size)


def paired_trials_verdict(
    both_pass: Counts, only_a: Counts, only_b: Counts, both_fail: Counts, *, variant: Variant = "mid-p"
) -> PairedVerdict:
    """As ``paired_verdict`` where trial i of A and trial i of B are a pair (they share a seed).

    Arguments: how many pairs of each case passed in both runs, in A only, in B only, in neither; one
    entry a case. A case without a pair is dropped.

    Every pair is a stratum of its own: given the discordant pairs, those won by B are binomial with
    1/2 (McNemar 1947; mid-p: Fagerland et al. 2013). Each case keeps the same weight in ``delta``.
    More powerful than ``paired_verdict`` when seeds decide much; valid also when they decide nothing.
    With pairs in unequal number the test counts pairs and ``delta`` counts cases.
    """
    observed = variant_weight(variant)
    cells = [
        counts(name, values)
        for name, values in (
            ("both_pass", both_pass),
            ("only_a", only_a),
            ("only_b", only_b),
            ("both_fail", both_fail),
        )
    ]
    for name, values in zip(("only_a", "only_b", "both_fail"), cells[1:], strict=True):
        same_length("both_pass", cells[0], name, values)
    table = np.stack(cells, axis=1)
    pairs = table.sum(axis=1)
    table, pairs = table[pairs > 0], pairs[pairs > 0]
    if not pairs.size:
        return NOTHING
    x = np.repeat(np.tile([1, 1, 0, 0], pairs.size), table.ravel())
    y = np.repeat(np.tile([1, 0, 1, 0], pairs.size), table.ravel())
    one = np.ones(x.size, dtype=np.int64)
    weights = np.repeat(1 / (pairs * pairs.size), pairs)
    return _verdict((x, one, y, one), observed=observed, weights=weights, cases=pairs.size)


def _verdict(
    strata: tuple[Ints, Ints, Ints, Ints], *, observed: float, weights: Floats | None = None, cases: int
) -> PairedVerdict:
    x, m, y, l_ = strata
    if not cases:
        return NOTHING
    changes = y / l_ - x / m
    delta = float(changes.mean() if weights is None else (weights * changes).sum())
    delta = 0.0 if abs(delta) < 1e-12 else max(-1.0, min(1.0, delta))
    test = StratifiedTest(m, l_, x + y, seen=int(y.sum()), observed=observed, weights=weights)
    p = test.tail().two_sided
    side = test.direction
    contradictory = side != (delta > 0) - (delta < 0)
    low, high = test.delta(test.bound(-1, ALPHA / 2)), test.delta(test.bound(1, ALPHA / 2))
    wide_low, wide_high = conditional_mover(x, m, y, l_, weights)
    if side <= 0 or contradictory:
        low = min(low, wide_low)
    if side >= 0 or contradictory:
        high = max(high, wide_high)
    low, high = max(-1.0, min(low, delta)), min(1.0, max(high, delta))
    if not is_significant(p):
        low, high = _snap(low, -1), _snap(high, 1)
    return PairedVerdict(p, low, high, delta, _half_width(low, high, delta), contradictory, cases)


def _snap(bound: float, side: int) -> float:
    """``bound``, or 0 where a tie left it a rounding error on the wrong side of 0."""
    return 0.0 if bound * side < 0 or abs(bound) < TIE else bound


def _half_width(low: float, high: float, delta: float) -> float:
    if delta > 0:
        return delta - low
    if delta < 0:
        return high - delta
    return max(high, -low)
