"""What repeating a case tells: pass^j, pass@j, flips and disagreement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_crashlab.errors import BadInput
from pytest_crashlab.stats.inputs import Counts, Floats, Ints, arm, counts, same_length
from pytest_crashlab.stats.mover import clustered_wilson

if TYPE_CHECKING:
    from collections.abc import Callable

FEWEST_FOR_FLIPS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PassHat:
    """The chance over ``j`` trials, mean over ``cases``, with its 95 % interval for new cases.

    None where no case has ``j`` planned trials that are all decided.
    """

    j: int
    value: float | None
    low: float | None
    high: float | None
    cases: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """How many cases passed in all, in some or in no trial.

    ``all_pass`` and ``never`` over the cases with every planned trial decided; ``incomplete`` the
    other ones; ``flip`` cases that passed in some trials and failed in others, of ``eligible`` cases
    that are complete and have at least 3 trials. ``flip`` is None where no case has 3 planned trials:
    fewer cannot show a flip.
    """

    flip: int | None
    all_pass: int
    never: int
    incomplete: int
    eligible: int


def pass_hat(passes: Counts, n: Counts, planned: Counts) -> tuple[PassHat, ...]:
    """pass^j for j = 1 .. the largest plan: the chance that ``j`` trials of a case all pass.

    One entry a case: passes, decided and planned trials. Mean of ``C(x, j) / C(k, j)``, unbiased,
    over the cases with all of their k planned trials decided, so that with one plan for all cases
    the curve never rises. Source: Yao et al. 2024 (tau-bench). Interval: clustered Wilson on the
    case values. Raises BadInput.
    """
    return _curve(passes, n, planned, _all_of)


def pass_at(passes: Counts, n: Counts, planned: Counts) -> tuple[PassHat, ...]:
    """pass@j for j = 1 .. the largest plan: the chance that at least one of ``j`` trials passes.

    Mean of ``1 - C(k - x, j) / C(k, j)``, over the same cases as ``pass_hat``. Source: Chen et al.
    2021 (Codex). Raises BadInput.
    """
    return _curve(passes, n, planned, lambda x, k, j: 1 - _all_of(k - x, k, j))


def flips(passes: Counts, n: Counts, planned: Counts) -> Flips:
    """Cases that pass in some trials and fail in others. Cases without a planned trial count nowhere.

    The share of flip cases grows with the number of trials: compare runs on ``disagreement``.
    Raises BadInput.
    """
    x, m, k = _planned(passes, n, planned)
    complete = (m == k) & (k > 0)
    eligible = complete & (k >= FEWEST_FOR_FLIPS)
    flip = int((eligible & (x > 0) & (x < m)).sum())
    return Flips(
        flip=flip if (k >= FEWEST_FOR_FLIPS).any() else None,
        all_pass=int((complete & (x == m)).sum()),
        never=int((complete & (x == 0)).sum()),
        incomplete=int((m < k).sum()),
        eligible=int(eligible.sum()),
    )


def disagreement(passes: Counts, n: Counts) -> float | None:
    """The chance that two trials of a case disagree, mean over cases with two decided trials or more.

    ``2 x (k - x) / (k (k - 1))`` per case, unbiased at every number of trials. None without such a
    case. Raises BadInput.
    """
    x, k = arm("passes", passes, "n", n)
    x, k = x[k >= 2], k[k >= 2]
    return float((2 * x * (k - x) / (k * (k - 1))).mean()) if k.size else None


def _curve(
    passes: Counts, n: Counts, planned: Counts, chance: Callable[[Ints, Ints, int], Floats]
) -> tuple[PassHat, ...]:
    x, m, k = _planned(passes, n, planned)
    complete = (m == k) & (k > 0)
    points = []
    for j in range(1, int(k.max(initial=0)) + 1):
        kept = complete & (k >= j)
        if not kept.any():
            points.append(PassHat(j=j, value=None, low=None, high=None, cases=0))
            continue
        shares = chance(x[kept], k[kept], j)
        low, high = clustered_wilson(shares, float(k[kept].sum()))
        value = min(1.0, float(shares.mean()))
        points.append(PassHat(j=j, value=value, low=low, high=high, cases=int(kept.sum())))
    return tuple(points)


def _all_of(x: Ints, k: Ints, j: int) -> Floats:
    """C(x, j) / C(k, j), as a product so that it is exact at 0 and 1."""
    steps = np.arange(j)
    factors = np.maximum(x[:, None] - steps, 0) / (k[:, None] - steps)
    result: Floats = factors.prod(axis=1)
    return result


def _planned(passes: Counts, n: Counts, planned: Counts) -> tuple[Ints, Ints, Ints]:
    x, m = arm("passes", passes, "n", n)
    k = counts("planned", planned)
    same_length("passes", x, "planned", k)
    wrong = np.flatnonzero(m > k)
    if wrong.size:
        i = int(wrong[0])
        raise BadInput(f"n[{i}] = {m[i]} is more than planned[{i}] = {k[i]}.")
    return x, m, k
