"""Many looks, few finds: corrections for several tests at once."""

from __future__ import annotations

import numpy as np

from pytest_crashlab.stats.inputs import Bools, Reals, probabilities, share, whole


def holm(p: Reals, alpha: float = 0.05) -> Bools:
    """Which p-values stand when the chance of any false one is held at ``alpha``.

    Source: Holm 1979. Any dependence. Same order as given; no p-value gives an empty array.
    Raises BadInput.
    """
    values = probabilities("p", p)
    share("alpha", alpha)
    order = np.argsort(values, kind="stable")
    passed = values[order] <= alpha / np.arange(values.size, 0, -1)
    stands = np.zeros(values.size, dtype=np.bool_)
    stands[order] = np.logical_and.accumulate(passed)
    return stands


def benjamini_hochberg(p: Reals, q: float = 0.05) -> Bools:
    """Which p-values stand when a share ``q`` of those that do may be false.

    Source: Benjamini and Hochberg 1995. Assumes independent or positively dependent tests.
    Raises BadInput.
    """
    values = probabilities("p", p)
    share("q", q)
    order = np.argsort(values, kind="stable")
    (passed,) = np.nonzero(values[order] <= q * np.arange(1, values.size + 1) / max(1, values.size))
    stands = np.zeros(values.size, dtype=np.bool_)
    if passed.size:
        stands[order[: passed[-1] + 1]] = True
    return stands


def any_false_alarm(comparisons: int, per_comparison: float = 0.025) -> float:
    """The chance of at least one false Regressed in that many comparisons of equal runs."""
    share("per_comparison", per_comparison)
    return float(1 - (1 - per_comparison) ** whole("comparisons", comparisons))
