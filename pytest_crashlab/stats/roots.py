"""Where a monotone function crosses zero, without scipy.optimize (half a second of imports)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_ROUNDS = 200


def crossing(
    function: Callable[[float], float], start: float, step: float, tolerance: float = 1e-12
) -> float:
    """The root of an increasing ``function``, searched outwards from ``start`` in growing steps.

    Infinite values of ``function`` are fine; a root beyond all bounds comes back as +-inf.
    """
    low = high = start
    f_low = f_high = function(start)
    step = max(abs(step), 1e-3)
    while f_low > 0:
        high, f_high = low, f_low
        low -= step
        step *= 2
        if low < -1e6:
            return -math.inf
        f_low = function(low)
    while f_high < 0:
        low, f_low = high, f_high
        high += step
        step *= 2
        if high > 1e6:
            return math.inf
        f_high = function(high)
    return _within(function, (low, f_low), (high, f_high), tolerance)


def _within(
    function: Callable[[float], float],
    left: tuple[float, float],
    right: tuple[float, float],
    tolerance: float,
) -> float:
    """Regula falsi in the Illinois form, with a bisection where it is slow or a value is infinite."""
    (low, f_low), (high, f_high) = left, right
    if f_low == 0:
        return low
    if f_high == 0:
        return high
    side = 0
    for count in range(_ROUNDS):
        if high - low <= tolerance * max(1.0, abs(low), abs(high)):
            break
        straight = math.isfinite(f_low) and math.isfinite(f_high) and count % 6 != 5
        middle = (low * f_high - high * f_low) / (f_high - f_low) if straight else (low + high) / 2
        if not low < middle < high:
            middle = (low + high) / 2
        value = function(middle)
        if value == 0:
            return middle
        if value < 0:
            low, f_low = middle, value
            if side < 0:
                f_high /= 2
            side = -1
        else:
            high, f_high = middle, value
            if side > 0:
                f_low /= 2
            side = 1
    return (low + high) / 2
