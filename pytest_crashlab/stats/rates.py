"""How often a run passed, with an interval that is never a false ±0."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pytest_crashlab.stats.inputs import Counts, Ints, arm
from pytest_crashlab.stats.intervals import jeffreys, t95
from pytest_crashlab.stats.mover import clustered_size, clustered_wilson, stratified_wilson
from pytest_crashlab.stats.normal import CRITICAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A rate in 0..1 and its interval.

    ``value`` the mean over cases of the share that passed (each case counts once); ``low, high`` its
    95 % interval by ``method``; ``cases`` and ``trials`` it is made of.

    Without a case ``value``, ``low`` and ``high`` are None: unavailable, never 0.
    """

    value: float | None
    low: float | None
    high: float | None
    cases: int
    trials: int
    method: str


def rate_these_cases(passes: Counts, n: Counts) -> Rate:
    """Mean pass share with an interval for *these* cases: a stratified Wilson interval.

    One entry a case, cases with n = 0 are dropped. Assumes independent trials within a case. See
    ``mover.stratified_wilson``. Raises BadInput.
    """
    x, m = _decided(passes, n)
    return _rate(x, m, stratified_wilson(x, m) if m.size else None, "stratified Wilson")


def rate_new_cases(passes: Counts, n: Counts) -> Rate:
    """Mean pass share with an interval for *new* cases of this kind: a clustered Wilson interval.

    One entry a case, cases with n = 0 are dropped. Assumes that the cases are a fair sample; their
    trials may depend on each other. See ``mover.clustered_wilson``. Raises BadInput.
    """
    x, m = _decided(passes, n)
    return _rate(x, m, clustered_wilson(x / m, float(m.sum())) if m.size else None, "clustered Wilson")


def jeffreys_rate(passes: Counts, n: Counts) -> Rate:
    """As ``rate_new_cases`` with Jeffreys' interval on the effective trials times ``(1.96/t)^2``.

    An alternative, slightly narrower, slightly below 95 % for few cases. Raises BadInput.
    """
    x, m = _decided(passes, n)
    bounds = None
    if m.size >= 2:
        value = min(1.0, float((x / m).mean()))
        size = clustered_size(x / m, float(m.sum())) * (CRITICAL / t95(m.size - 1)) ** 2
        bounds = jeffreys(value * size, size)
    elif m.size:
        bounds = 0.0, 1.0
    return _rate(x, m, bounds, "Jeffreys")


def normal_rate(passes: Counts, n: Counts) -> Rate:
    """Mean pass share plus and minus 1.96 standard errors over cases, cut to 0..1.

    The simple rule, kept for comparison: it has zero width when all cases agree. With one case there
    is no standard error, ``low`` and ``high`` are None. Raises BadInput.
    """
    x, m = _decided(passes, n)
    bounds = None
    if m.size >= 2:
        shares = x / m
        reach = CRITICAL * float(shares.std(ddof=1)) / math.sqrt(m.size)
        value = float(shares.mean())
        bounds = max(0.0, value - reach), min(1.0, value + reach)
    return _rate(x, m, bounds, "normal")


def _decided(passes: Counts, n: Counts) -> tuple[Ints, Ints]:
    x, m = arm("passes", passes, "n", n)
    return x[m > 0], m[m > 0]


def _rate(x: Ints, m: Ints, bounds: tuple[float, float] | None, method: str) -> Rate:
    low, high = bounds or (None, None)
    value = min(1.0, float((x / m).mean())) if m.size else None
    return Rate(value=value, low=low, high=high, cases=m.size, trials=int(m.sum()), method=method)
