"""Intervals for one proportion and for a difference of two: Wilson, Clopper-Pearson, Newcombe."""

from __future__ import annotations

import math

from scipy import special

from pytest_crashlab.errors import BadInput
from pytest_crashlab.stats.inputs import share

Z95 = 1.959963984540054
"""Two-sided 95 % point of the normal distribution."""


def t95(df: float) -> float:
    """Two-sided 95 % point of Student's t with ``df`` >= 1 degrees of freedom."""
    return float(special.stdtrit(df, 0.975))


def wilson(rate: float, n: float, critical: float = Z95) -> tuple[float, float]:
    """Wilson's score interval for ``rate`` seen in ``n`` trials (``n`` may be an effective number).

    Source: Wilson 1927. Assumes independent trials of one probability; where that does not hold the
    caller passes an effective ``n``. Never has zero width. ``n`` = 0 gives (0, 1).
    """
    if not 0 <= rate <= 1:
        raise BadInput(f"rate = {rate} is not between 0 and 1.")
    if not n >= 0:
        raise BadInput(f"n = {n} is negative or not a number.")
    if n == 0:
        return 0.0, 1.0
    z2 = critical * critical / n
    centre = (rate + z2 / 2) / (1 + z2)
    half = math.sqrt(z2) * math.sqrt(rate * (1 - rate) + z2 / 4) / (1 + z2)
    low = 0.0 if rate == 0 else max(0.0, centre - half)
    high = 1.0 if rate == 1 else min(1.0, centre + half)
    return low, high


def clopper_pearson(passes: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's exact interval for ``passes`` of ``n`` independent trials.

    Source: Clopper and Pearson 1934. Never covers less than ``confidence``, often more. ``n`` = 0
    gives (0, 1).
    """
    if not 0 <= passes <= n:
        raise BadInput(f"passes = {passes} is not between 0 and n = {n}.")
    tail = (1 - share("confidence", confidence)) / 2
    low = 0.0 if passes == 0 else float(special.betaincinv(passes, n - passes + 1, tail))
    high = 1.0 if passes == n else float(special.betaincinv(passes + 1, n - passes, 1 - tail))
    return low, high


def jeffreys(passes: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Jeffreys' interval; both numbers may be effective ones.

    Source: Brown, Cai and DasGupta 2001, with their bounds 0 and 1 at no and all passes.
    """
    if not 0 <= passes <= n:
        raise BadInput(f"passes = {passes} is not between 0 and n = {n}.")
    tail = (1 - share("confidence", confidence)) / 2
    a, b = passes + 0.5, n - passes + 0.5
    low = 0.0 if passes == 0 else float(special.betaincinv(a, b, tail))
    high = 1.0 if passes == n else float(special.betaincinv(a, b, 1 - tail))
    return low, high


def difference(
    rate_a: float,
    bounds_a: tuple[float, float],
    rate_b: float,
    bounds_b: tuple[float, float],
    correlation: float = 0.0,
) -> tuple[float, float]:
    """Interval for B minus A from the interval of each ("MOVER", square-and-add).

    Source: Newcombe 1998, methods 10 of both papers; Zou and Donner 2008. ``correlation`` is that
    of the two estimates. Cut to -1..1.
    """
    delta = rate_b - rate_a
    (low_a, high_a), (low_b, high_b) = bounds_a, bounds_b

    def reach(b: float, a: float) -> float:
        return math.sqrt(max(0.0, b * b + a * a - 2 * correlation * b * a))

    low = delta - reach(rate_b - low_b, high_a - rate_a)
    high = delta + reach(high_b - rate_b, rate_a - low_a)
    return max(-1.0, low), min(1.0, high)


def newcombe(a_pass: int, a_n: int, b_pass: int, b_n: int) -> tuple[float, float]:
    """Newcombe's interval for ``b_pass/b_n - a_pass/a_n`` of two independent samples.

    Source: Newcombe 1998a, method 10. Assumes one probability per sample: no cases.
    """
    for name, passes, n in (("a_pass", a_pass, a_n), ("b_pass", b_pass, b_n)):
        if n < 1:
            raise BadInput(f"{name} needs at least one trial, got n = {n}.")
        if not 0 <= passes <= n:
            raise BadInput(f"{name} = {passes} is not between 0 and n = {n}.")
    rate_a, rate_b = a_pass / a_n, b_pass / b_n
    return difference(rate_a, wilson(rate_a, a_n), rate_b, wilson(rate_b, b_n))
