"""Two other exact tests of the same question, to set beside the verdict; neither decides it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pytest_crashlab.stats.inputs import Counts, Floats, Ints, Variant, paired_arms, variant_weight
from pytest_crashlab.stats.stratified import log_hypergeometric

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_SUMS = 2_000_000


def sign_flip_p(
    a_pass: Counts, a_n: Counts, b_pass: Counts, b_n: Counts, *, variant: Variant = "exact"
) -> float | None:
    """Two-sided p-value of the mean difference when whole cases may change sign.

    Enumerates all ``2^cases`` signs. Source: Fisher 1935. Assumes that a case's difference is as
    likely up as down; pays for the spread between cases, so it is weaker than ``paired_verdict``.
    None without a case, or when the sum takes more than two million values. Raises BadInput.
    """
    weight = variant_weight(variant)
    x, m, y, l_ = paired_arms(a_pass, a_n, b_pass, b_n)
    scale = _scale(m, l_)
    if scale is None:
        return None
    changes = y * (scale // l_) - x * (scale // m)
    half = np.array([0.5, 0.5])
    return _two_sided(
        ((np.array([-abs(d), abs(d)]), half) for d in changes if d),
        int(changes.sum()),
        weight,
    )


def case_weighted_p(
    a_pass: Counts, a_n: Counts, b_pass: Counts, b_n: Counts, *, variant: Variant = "mid-p"
) -> float | None:
    """As the test of ``paired_verdict`` with every case of the same weight.

    That is, on the mean difference itself; the same test when all trials are equal in number. None
    without a case, or when the sum takes more than two million values. Raises BadInput.
    """
    weight = variant_weight(variant)
    x, m, y, l_ = paired_arms(a_pass, a_n, b_pass, b_n)
    scale = _scale(m, l_)
    if scale is None:
        return None
    per_pass = scale // l_ + scale // m
    low, log_pmf = log_hypergeometric(m, l_, x + y)
    steps = []
    for i in range(m.size):
        pmf = np.exp(log_pmf[i][np.isfinite(log_pmf[i])])
        steps.append((per_pass[i] * (low[i] + np.arange(pmf.size)), pmf))
    return _two_sided(steps, int((per_pass * y).sum()), weight)


def _scale(m: Ints, l_: Ints) -> int | None:
    """A number that makes every share of passes whole; None without a case or beyond reason."""
    scale = math.lcm(*(int(k) for k in np.unique(np.concatenate([m, l_]))))
    return scale if m.size and scale < 2**40 else None


def _two_sided(steps: Iterable[tuple[Ints, Floats]], seen: int, weight: float) -> float | None:
    sums: Ints = np.zeros(1, dtype=np.int64)
    pmf: Floats = np.ones(1)
    for values, chances in steps:
        every = np.add.outer(sums, values).ravel()
        if every.size > _MOST_SUMS:
            return None
        sums, place = np.unique(every, return_inverse=True)
        together = np.multiply.outer(pmf, chances).ravel()
        pmf = np.asarray(np.bincount(place.ravel(), together), dtype=np.float64)
    here = weight * pmf[sums == seen].sum()
    low, high = pmf[sums < seen].sum() + here, pmf[sums > seen].sum() + here
    return min(1.0, float(2 * min(low, high)))
