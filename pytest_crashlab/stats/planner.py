"""Before spending: which drop a design shows, and how many trials a drop needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pytest_crashlab.stats.inputs import Counts, arm, paired_arms, share, whole
from pytest_crashlab.stats.mover import conditional_mover
from pytest_crashlab.stats.power import drop_of_design
from pytest_crashlab.stats.suite import assumed_suite, fit_suite
from pytest_crashlab.stats.verdict import paired_verdict

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_TRIALS = 100
USUAL_RATE = 20 / 21
USUAL_STRENGTH = 21.0
"""Beta(20, 1): a suite that passes 95 % of its trials, most cases nearly always."""


def planned_drop(
    cases: int,
    trials_a: int,
    trials_b: int | None = None,
    *,
    rate: float = USUAL_RATE,
    strength: float = USUAL_STRENGTH,
) -> float | None:
    """The drop of the mean pass rate that a design shows in four of five tries.

    ``trials_a`` and ``trials_b`` (the same by default) a case. Nothing is measured yet, so the suite
    is assumed: its mean ``rate`` and how alike its cases are (``strength`` a + b of a beta
    distribution; 1: most cases always or never pass, 1000: all alike). None when no drop would be
    shown. See ``detectable_drop`` for a measured baseline. Raises BadInput.
    """
    whole("cases", cases, least=1)
    m = np.full(cases, whole("trials_a", trials_a, least=1))
    l_ = np.full(cases, whole("trials_b", trials_a if trials_b is None else trials_b, least=1))
    return drop_of_design(assumed_suite(cases, rate, strength), m, l_)


def planned_trials(
    cases: int,
    drop: float,
    *,
    rate: float = USUAL_RATE,
    strength: float = USUAL_STRENGTH,
    most: int = MOST_TRIALS,
) -> int | None:
    """The fewest trials a case, in both runs, that show ``drop`` in four of five tries.

    As ``planned_drop``. None when ``most`` trials are not enough. Raises BadInput.
    """
    share("drop", drop)
    return _fewest(lambda k: planned_drop(cases, k, rate=rate, strength=strength), drop, most)


def trials_to_show(a_pass: Counts, a_n: Counts, drop: float, *, most: int = MOST_TRIALS) -> int | None:
    """The fewest new trials a case that show ``drop`` against a measured baseline in four of five tries.

    The baseline keeps its trials, so beyond some number more do not help. None when ``most`` are not
    enough or the baseline is empty. Raises BadInput.
    """
    share("drop", drop)
    x, m = arm("a_pass", a_pass, "a_n", a_n)
    x, m = x[m > 0], m[m > 0]
    if not m.size:
        return None
    suite = fit_suite(x, m)
    return _fewest(lambda k: drop_of_design(suite, m, np.full(m.size, k), x), drop, most)


def more_rounds(
    a_pass: Counts,
    a_n: Counts,
    b_pass: Counts,
    b_n: Counts,
    *,
    margin: float,
    both: bool = False,
    most: int = MOST_TRIALS,
) -> int | None:
    """How many more rounds (a trial of every case) would bring the interval inside ``margin``.

    If every share of passes stays where it is; ``both`` whether the baseline is run again as well.
    The interval of ``paired_verdict`` is taken to shrink as its conditional MOVER interval does. 0
    when it is inside already, None when the difference itself is not, when ``most`` rounds are not
    enough (the baseline's own trials may be too few), or without a case. Raises BadInput.
    """
    share("margin", margin)
    x, m, y, l_ = paired_arms(a_pass, a_n, b_pass, b_n)
    verdict = paired_verdict(a_pass, a_n, b_pass, b_n)
    if not verdict.cases or abs(verdict.delta) >= margin:
        return None

    def reach(rounds: int) -> tuple[float, float]:
        more_a, more_b = m + rounds * both, l_ + rounds
        low, high = conditional_mover(x / m * more_a, more_a, y / l_ * more_b, more_b)
        return verdict.delta - low, high - verdict.delta

    below, above = reach(0)
    per_below = (verdict.delta - verdict.low) / below if below > 0 else 0.0
    per_above = (verdict.high - verdict.delta) / above if above > 0 else 0.0
    for rounds in range(most + 1):
        below, above = reach(rounds)
        if verdict.delta - per_below * below >= -margin and verdict.delta + per_above * above <= margin:
            return rounds
    return None


def _fewest(drop_at: Callable[[int], float | None], drop: float, most: int) -> int | None:
    """The smallest k in 1..most with ``drop_at(k) <= drop``: upwards in doublings, then between two."""
    whole("most", most, least=1)

    def enough(k: int) -> bool:
        shown = drop_at(k)
        return shown is not None and shown <= drop

    low, high = 0, 1
    while not enough(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
