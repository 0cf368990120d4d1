"""The simple rule: case means, 1.96 standard errors, a normal approximation."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

from pytest_crashlab.stats.inputs import Counts, paired_arms

CRITICAL = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalRule:
    """What the simple rule says.

    ``delta`` candidate minus baseline, mean over cases; ``half_width`` 1.96 standard errors of it;
    ``p_value`` two-sided; ``cases`` compared. NaN where they are too few (no case; one case has no
    standard error).
    """

    delta: float
    half_width: float
    p_value: float
    cases: int


def normal_rule(a_pass: Counts, a_n: Counts, b_pass: Counts, b_n: Counts) -> NormalRule:
    """The mean of the paired differences of pass shares against 1.96 standard errors over cases.

    Assumes many cases (it is used from 20 upwards; that is the caller's to hold) and about as many
    trials in both arms: with unequal trials near 100 % it raises false alarms. Differences that are
    all the same have no spread: p is 0, or 1 where they are all 0. Raises BadInput.
    """
    x, m, y, l_ = paired_arms(a_pass, a_n, b_pass, b_n)
    changes = y / l_ - x / m
    if changes.size == 0:
        return NormalRule(delta=math.nan, half_width=math.nan, p_value=math.nan, cases=0)
    delta = float(changes.mean())
    if changes.size == 1:
        return NormalRule(delta=delta, half_width=math.nan, p_value=math.nan, cases=1)
    error = float(changes.std(ddof=1)) / math.sqrt(changes.size)
    if error < 1e-12:
        error = 0.0
        p_value = 1.0 if abs(delta) < 1e-12 else 0.0
    else:
        p_value = float(2 * special.ndtr(-abs(delta) / error))
    return NormalRule(delta=delta, half_width=CRITICAL * error, p_value=p_value, cases=changes.size)
