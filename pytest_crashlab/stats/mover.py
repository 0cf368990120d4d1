"""Intervals of means over cases, from Wilson's: for these cases, and for new ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pytest_crashlab.stats.intervals import Z95, difference, t95, wilson

if TYPE_CHECKING:
    from pytest_crashlab.stats.inputs import Floats, Numbers

_ALIKE = 1e6


def prior_strength(passes: Numbers, n: Numbers) -> float:
    """``a + b`` of the beta distribution that the cases' pass probabilities are spread like, 0.5..1e6.

    ``(1 - rho) / rho`` with ``rho`` the moment estimate of the intraclass correlation of
    ``passes/n`` (Kleinman 1973). 1e6, all cases alike, where nothing shows a spread.
    """
    rate = (float(passes.sum()) + 0.5) / (float(n.sum()) + 1)
    noise = float(np.mean(1 / n))
    if n.size < 2 or noise >= 1:
        return _ALIKE
    rho = (float((passes / n).var(ddof=1)) / (rate * (1 - rate)) - noise) / (1 - noise)
    return min(max((1 - rho) / rho, 0.5), _ALIKE) if rho > 0 else _ALIKE


def between_case_gain(passes: Numbers, n: Numbers) -> float:
    """How much more a trial says about the mean of *these* cases than one of a homogeneous suite, >= 1.

    Cases that differ (some always pass, some never) leave less within-case variance than ``p q``: it
    is taken as that of each case's beta posterior (empirical Bayes) under :func:`prior_strength`.
    """
    strength = prior_strength(passes, n)
    if strength >= _ALIKE:
        return 1.0
    rate = (float(passes.sum()) + 0.5) / (float(n.sum()) + 1)
    alpha = strength * rate + passes
    beta = strength * (1 - rate) + n - passes
    total = strength + n
    left = float(np.mean(alpha * beta / (total * (total + 1))))
    return max(1.0, rate * (1 - rate) / left)


def conditional_mover(
    x: Numbers, m: Numbers, y: Numbers, l_: Numbers, weights: Floats | None = None
) -> tuple[float, float]:
    """95 % interval of the mean difference over *these* cases: Wilson per arm, square-and-add.

    The effective trials of an arm are ``gain / sum(w^2/m)`` with :func:`between_case_gain` over both
    arms. Source: Newcombe 1998 with the variance of a stratified mean. Assumes independent arms.
    Every ``m`` and ``l_`` >= 1; passes may be
    expected ones, not whole.
    """
    w = np.full(m.size, 1 / m.size) if weights is None else weights
    gain = between_case_gain(x + y, m + l_)
    rates = float((w * x / m).sum()), float((w * y / l_).sum())
    sizes = gain / float((w * w / m).sum()), gain / float((w * w / l_).sum())
    a, b = (min(1.0, max(0.0, rate)) for rate in rates)
    return difference(a, wilson(a, sizes[0]), b, wilson(b, sizes[1]))


def stratified_wilson(passes: Numbers, n: Numbers) -> tuple[float, float]:
    """95 % interval of the mean pass share over *these* cases; every ``n`` >= 1, at least one case.

    Wilson with the effective trials of :func:`conditional_mover` for a single arm.
    """
    rate = min(1.0, float(np.mean(passes / n)))
    return wilson(rate, between_case_gain(passes, n) * n.size / float(np.mean(1 / n)), Z95)


def clustered_size(shares: Floats, trials: float) -> float:
    """Effective trials behind the mean of ``shares`` when cases are the sampled units.

    ``p q / SE^2`` of the case means, between 1 and ``trials``; the number of cases where the
    standard error is 0 and says nothing. Source: design effect, Kish 1965; Dean and Pagano 2015.
    """
    rate = float(shares.mean())
    squared = float(shares.var(ddof=1)) / shares.size
    if squared <= 1e-18:
        return float(shares.size)
    return min(max(rate * (1 - rate) / squared, 1.0), trials)


def clustered_wilson(shares: Floats, trials: float) -> tuple[float, float]:
    """95 % interval of the mean of ``shares`` over *new* cases of this kind.

    Wilson on :func:`clustered_size` with Student's t in place of 1.96 (Franco et al. 2019 on why).
    One case says nothing about others: (0, 1).
    """
    if shares.size < 2:
        return 0.0, 1.0
    rate = min(1.0, float(shares.mean()))
    return wilson(rate, clustered_size(shares, trials), t95(shares.size - 1))


def clustered_mover(x: Numbers, m: Numbers, y: Numbers, l_: Numbers) -> tuple[float, float]:
    """95 % interval of the mean difference over *new* cases: clustered Wilson per arm, paired.

    Source: Newcombe 1998b, method 10, with clustered arms and the correlation of their case shares.
    One case says nothing about others: (-1, 1).
    """
    if m.size < 2:
        return -1.0, 1.0
    a, b = x / m, y / l_
    spread = math.sqrt(float(a.var()) * float(b.var()))
    correlation = float(np.mean((a - a.mean()) * (b - b.mean()))) / spread if spread > 1e-12 else 0.0
    return difference(
        min(1.0, float(a.mean())),
        clustered_wilson(a, float(m.sum())),
        min(1.0, float(b.mean())),
        clustered_wilson(b, float(l_.sum())),
        min(1.0, max(-1.0, correlation)),
    )
