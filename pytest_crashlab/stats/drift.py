"""How far two runs of the same version drift apart, and whether a change is larger than that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pytest_crashlab.errors import BadInput
from pytest_crashlab.stats.inputs import Counts, paired_arms
from pytest_crashlab.stats.intervals import Z95

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_crashlab.stats.inputs import Floats, Ints

Pair: TypeAlias = "tuple[Counts, Counts, Counts, Counts]"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftGuard:
    """Whether a change is larger than drift explains.

    ``factor`` the noise factor used; ``limit`` what the mean difference has to exceed, a share;
    ``exceeded`` whether it does.
    """

    factor: float
    limit: float
    exceeded: bool


def noise_factor(pairs: Iterable[Pair]) -> float | None:
    """The A/A factor phi: how much more equal versions differ than their trials alone explain, >= 1.

    ``pairs`` of runs of the same version, each ``(a_pass, a_n, b_pass, b_n)`` with one entry a case.
    ``sum d^2 / sum v`` over cases and pairs: squared differences of the pass shares over their
    variance given the passes of both. None without a pair that says anything ("not calibrated").
    Assumes that past drift is like today's. Raises BadInput.
    """
    squares = variance = 0.0
    for pair in pairs:
        x, m, y, l_ = paired_arms(*pair)
        squares += float(((y / l_ - x / m) ** 2).sum())
        variance += float(_variances(x, m, y, l_).sum())
    return max(1.0, squares / variance) if variance > 0 else None


def drift_guard(a_pass: Counts, a_n: Counts, b_pass: Counts, b_n: Counts, *, factor: float) -> DriftGuard:
    """Whether the mean difference exceeds 1.96 standard errors inflated by ``factor``.

    Required beside the test for a word of change when a noise factor is known. Without a case
    nothing is exceeded. Raises BadInput.
    """
    if not 1 <= factor < math.inf:
        raise BadInput(f"factor = {factor} is less than 1 or not finite.")
    x, m, y, l_ = paired_arms(a_pass, a_n, b_pass, b_n)
    if not m.size:
        return DriftGuard(factor=factor, limit=math.nan, exceeded=False)
    limit = Z95 * math.sqrt(factor * float(_variances(x, m, y, l_).sum())) / m.size
    delta = float((y / l_ - x / m).mean())
    return DriftGuard(factor=factor, limit=limit, exceeded=abs(delta) > limit)


def _variances(x: Ints, m: Ints, y: Ints, l_: Ints) -> Floats:
    """Variance of each case's difference given the passes of both arms (hypergeometric)."""
    t, n = x + y, m + l_
    result: Floats = t * (n - t) / ((n - 1) * m * l_)
    return result
