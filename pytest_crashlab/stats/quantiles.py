"""Quantiles of what trials took, with intervals that know trials of one case to be alike."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_crashlab.errors import BadInput
from pytest_crashlab.stats.inputs import Counts, Reals, counts, same_length, share
from pytest_crashlab.stats.mover import clustered_wilson


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """A quantile of ``n`` values of ``cases`` cases, in their unit, with its 95 % interval.

    ``value`` None without a value; a bound is None where so few values cannot give it, as the upper
    bound of a high quantile.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    cases: int


def quantile(values: Reals, case: Counts, q: float) -> Quantile:
    """The ``q`` quantile of ``values``, each of the case numbered in ``case``.

    Interval: the clustered Wilson interval of the share of values at or below it, read back through
    the sorted values (Woodruff 1952). Assumes that the cases are a fair sample of their kind. Raises
    BadInput.
    """
    share("q", q)
    x, codes = np.asarray(values, dtype=np.float64), counts("case", case)
    if x.ndim != 1:
        raise BadInput(f"values must have one dimension, got {x.ndim} dimensions.")
    same_length("values", x, "case", codes)
    wrong = np.flatnonzero(~np.isfinite(x))
    if wrong.size:
        raise BadInput(f"values[{wrong[0]}] = {x[wrong[0]]} is not a finite number.")
    if not x.size:
        return Quantile(value=None, low=None, high=None, n=0, cases=0)
    ordered = np.sort(x)
    value = float(np.quantile(ordered, q))
    _, place = np.unique(codes, return_inverse=True)
    sizes = np.bincount(place).astype(np.float64)
    if sizes.size < 2:
        return Quantile(value=value, low=None, high=None, n=x.size, cases=sizes.size)
    below = np.bincount(place, x <= value)
    at_most = float(below.sum() / x.size)
    shares = np.clip(q + (below - at_most * sizes) / sizes.mean(), 0.0, 1.0)
    low, high = clustered_wilson(shares, float(x.size))
    first, last = math.floor(low * x.size) - 1, math.ceil(high * x.size)
    return Quantile(
        value=value,
        low=min(value, float(ordered[first])) if first >= 0 else None,
        high=max(value, float(ordered[last])) if last < x.size else None,
        n=x.size,
        cases=sizes.size,
    )


def quantile_change(a: Quantile, b: Quantile) -> tuple[float | None, float | None, float | None]:
    """``b - a`` with its 95 % interval, by square-and-add (Zou and Donner 2008); None: not known.

    Assumes independent runs, which is cautious where they share their cases.
    """
    if a.value is None or b.value is None:
        return None, None, None
    change = b.value - a.value
    low = high = None
    if b.low is not None and a.high is not None:
        low = change - math.hypot(b.value - b.low, a.high - a.value)
    if b.high is not None and a.low is not None:
        high = change + math.hypot(b.high - b.value, a.value - a.low)
    return change, low, high
