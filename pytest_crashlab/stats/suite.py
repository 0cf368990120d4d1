"""A model of a suite: how the pass probabilities of its cases are spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from pytest_crashlab.stats.inputs import Floats, Ints, share
from pytest_crashlab.stats.mover import prior_strength
from pytest_crashlab.stats.roots import crossing

_NODES = 16
_EDGE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SuiteModel:
    """Pass probabilities: ``p[i, q]`` is quantile q of what is known about case i (rows weigh the same).

    ``cells`` the distinct rows of ``p`` and ``of`` which one a case has: cases with the same counts are
    known alike, and the functions of a large suite are worked out for each once.
    """

    cells: Floats
    of: Ints

    @property
    def p(self) -> Floats:
        """A row a case."""
        return self.cells[self.of]

    @property
    def rate(self) -> float:
        """Mean pass probability."""
        return float(self.p.mean())

    @property
    def variance(self) -> float:
        """Mean variance ``p (1 - p)`` of one trial."""
        return float((self.cells * (1 - self.cells))[self.of].mean())

    def shifted(self, drop: float) -> SuiteModel:
        """The same cases, all moved by one step on the logit scale so that the mean falls by ``drop``."""
        logits = special.logit(np.clip(self.cells, _EDGE, 1 - _EDGE))
        target = self.rate - drop
        step = crossing(lambda c: float(special.expit(logits + c)[self.of].mean()) - target, 0.0, 1.0, 1e-9)
        return SuiteModel(cells=special.expit(logits + step), of=self.of)


def fit_suite(passes: Ints, n: Ints) -> SuiteModel:
    """The cases of a run as beta posteriors under a common beta prior; every ``n`` >= 1.

    The prior's mean is the pooled rate (half a pass and half a failure added, so that an all-green
    run is not taken for one that cannot fail), its strength the moment estimate of
    ``mover.prior_strength``.
    """
    rate = (int(passes.sum()) + 0.5) / (int(n.sum()) + 1)
    strength = prior_strength(passes, n)
    cells, inverse = np.unique(np.stack([passes, n], axis=1), axis=0, return_inverse=True)
    alpha = strength * rate + cells[:, 0]
    beta = strength * (1 - rate) + cells[:, 1] - cells[:, 0]
    return SuiteModel(cells=_quantiles(alpha, beta), of=inverse.ravel())


def assumed_suite(cases: int, rate: float, strength: float) -> SuiteModel:
    """A suite that nothing was measured of: Beta with mean ``rate`` and ``strength`` a + b.

    A small strength means cases that always or never pass, a large one that all are alike.
    """
    share("rate", rate)
    alpha = np.array([strength * rate])
    return SuiteModel(cells=_quantiles(alpha, strength - alpha), of=np.zeros(cases, dtype=np.int64))


def _quantiles(alpha: npt.NDArray[Any], beta: npt.NDArray[Any]) -> Floats:
    levels = (np.arange(_NODES) + 0.5) / _NODES
    return np.asarray(special.betaincinv(alpha[:, None], beta[:, None], levels), dtype=np.float64)
