"""How small a drop a number of trials can show."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from scipy import special

from pytest_crashlab.errors import BadInput
from pytest_crashlab.stats.inputs import Counts, arm, counts, same_length, share
from pytest_crashlab.stats.roots import crossing
from pytest_crashlab.stats.simulate import simulated_power
from pytest_crashlab.stats.suite import SuiteModel, fit_suite

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_crashlab.stats.inputs import Ints

POWER = 0.8
FORMULA_FROM = 200
"""Below this many trials in both arms together the formula promises too much: the drop is simulated."""

_ROUNDS = 6
_LEAST = 1e-6


def critical_sum(alpha: float = 0.05, power: float = POWER) -> float:
    """``z_(1-alpha/2) + z_power``: 2.8016 for 5 % two-sided and 80 %."""
    return float(special.ndtri(1 - share("alpha", alpha) / 2) + special.ndtri(share("power", power)))


def minimal_drop(
    cases: int,
    trials_a: float,
    trials_b: float,
    within: float,
    between: float = 0.0,
    *,
    alpha: float = 0.05,
    power: float = POWER,
) -> float:
    """The drop that a normal test of the mean difference shows with ``power``.

    ``within`` mean variance ``p (1 - p)`` of one trial; ``between`` variance over cases of the true
    change (0 when only these cases are meant). Source: Miller 2024. It promises too much near 100 %,
    where the candidate's own variance is larger: see ``detectable_drop``. Raises BadInput.
    """
    if cases < 1 or trials_a <= 0 or trials_b <= 0:
        raise BadInput(
            f"a design needs cases and trials, got {cases} cases, {trials_a} and {trials_b} trials."
        )
    variance = between + within * (1 / trials_a + 1 / trials_b)
    return critical_sum(alpha, power) * math.sqrt(variance / cases)


def cases_needed(
    drop: float,
    *,
    within_a: float,
    within_b: float,
    between: float,
    trials_a: float,
    trials_b: float,
    alpha: float = 0.05,
    power: float = POWER,
) -> float:
    """How many cases show ``drop`` with ``power`` for new cases; not rounded, trials may be inf.

    Source: Miller 2024. ``within_a``, ``within_b``: mean variance of one trial in each arm;
    ``between``: variance over cases of the true change. Raises BadInput.
    """
    share("drop", drop)
    variance = between + within_a / trials_a + within_b / trials_b
    return critical_sum(alpha, power) ** 2 * variance / drop**2


def within_variance(passes: Counts, n: Counts) -> float | None:
    """Mean variance of one trial within a case, ``x (k - x) / (k (k - 1))`` over cases with k >= 2.

    With single trials only, ``p (1 - p)`` of the whole, an upper bound. None without a trial.
    """
    x, k = arm("passes", passes, "n", n)
    twice = k >= 2
    if twice.any():
        x, k = x[twice], k[twice]
        return float((x * (k - x) / (k * (k - 1))).mean())
    if not k.any():
        return None
    rate = float(x.sum() / k.sum())
    return rate * (1 - rate)


def detectable_drop(a_pass: Counts, a_n: Counts, b_n: Counts) -> float | None:
    """The smallest drop of the mean pass rate that ``b_n`` new trials would show in four of five tries.

    From the baseline's passes and trials, one entry a case, and the candidate's planned trials; cases
    without trials in either are left out. The baseline's cases are modelled as beta-binomial and the
    candidate as the same cases shifted on the logit scale. From 200 trials in both upwards: the normal
    formula with the candidate's own variance at the drop, iterated. Below: simulated with the mid-p
    test of ``paired_verdict`` (fixed seed, same answer every time).

    None when there is no case, or when not even a drop to 0 would be shown. Raises BadInput.
    """
    x, m = arm("a_pass", a_pass, "a_n", a_n)
    l_ = counts("b_n", b_n)
    same_length("a_pass", x, "b_n", l_)
    keep = (m > 0) & (l_ > 0)
    x, m, l_ = x[keep], m[keep], l_[keep]
    if not m.size:
        return None
    return drop_of_design(fit_suite(x, m), m, l_, x)


def drop_of_design(suite: SuiteModel, m: Ints, l_: Ints, x: Ints | None = None) -> float | None:
    """As ``detectable_drop`` for a suite that is known; ``x`` the baseline's passes where it has run."""
    iterated = _iterated_drop(suite, m, l_)
    if m.sum() + l_.sum() >= FORMULA_FROM:
        return iterated if iterated < suite.rate else None
    return _simulated_drop(simulated_power(suite, m, l_, x), suite.rate - _LEAST, iterated)


def _iterated_drop(suite: SuiteModel, m: Ints, l_: Ints) -> float:
    per_a, per_b = float((1 / m).sum()) / m.size**2, float((1 / l_).sum()) / l_.size**2
    within = suite.variance
    drop = critical_sum() * math.sqrt(within * (per_a + per_b))
    for _ in range(_ROUNDS):
        if drop >= suite.rate:
            break
        drop = critical_sum() * math.sqrt(within * per_a + suite.shifted(drop).variance * per_b)
    return drop


def _simulated_drop(power: Callable[[float], float], largest: float, guess: float) -> float | None:
    if largest <= 0 or power(largest) < POWER:
        return None
    found = crossing(lambda d: power(min(max(d, 0.0), largest)) - POWER, min(guess, largest), guess / 4, 1e-3)
    return min(found, largest)
