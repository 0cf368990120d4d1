"""Looking before the end: what a look may cost, and evidence that may be looked at any time."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from pytest_crashlab.errors import BadInput
from pytest_crashlab.stats.inputs import Floats, Reals, share, whole
from pytest_crashlab.stats.roots import crossing

_FAR = 8.0
_POINTS = 1001


def obf_spending(fraction: float, alpha: float = 0.025) -> float:
    """How much of a one-sided ``alpha`` may be spent when ``fraction`` of the information is in.

    ``2 (1 - Phi(z / sqrt(fraction)))`` with ``z`` the ``1 - alpha/2`` point. Source: Lan and DeMets
    1983, O'Brien-Fleming type. Raises BadInput outside 0 < fraction <= 1.
    """
    if not 0 < fraction <= 1:
        raise BadInput(f"fraction = {fraction} is not above 0 and at most 1.")
    z = special.ndtri(1 - share("alpha", alpha) / 2)
    return float(2 * special.ndtr(-z / math.sqrt(fraction)))


def obf_boundaries(fractions: Reals, alpha: float = 0.025) -> Floats:
    """One-sided critical z of each look that spend ``alpha`` as ``obf_spending`` says.

    ``fractions`` of the information, rising, the last at most 1. By recursive integration of the
    score process on a grid (Armitage, McPherson and Rowe 1969; Jennison and Turnbull 2000, ch. 19).
    Raises BadInput.
    """
    times = np.asarray(fractions, dtype=np.float64)
    if times.ndim != 1 or not times.size or (np.diff(times, prepend=0.0) <= 0).any():
        raise BadInput("fractions must be one flat list of rising numbers above 0.")
    spent = before = 0.0
    score, mass = np.zeros(1), np.ones(1)
    boundaries = []
    for time in (float(t) for t in times):
        step, root = math.sqrt(time - before), math.sqrt(time)
        allowed = obf_spending(time, alpha) - spent
        boundary = _boundary(score / step, mass, root / step, allowed)
        boundaries.append(boundary)
        nodes = np.linspace(-_FAR * root, boundary * root, _POINTS)
        arrived = np.exp(-0.5 * ((nodes[:, None] - score) / step) ** 2) @ mass
        weights = np.full(_POINTS, (nodes[1] - nodes[0]) / (step * math.sqrt(2 * math.pi)))
        weights[[0, -1]] /= 2
        score, mass = nodes, arrived * weights
        before, spent = time, spent + allowed
    return np.array(boundaries)


def _boundary(score: Floats, mass: Floats, scale: float, allowed: float) -> float:
    """The z that paths now at ``score`` with probability ``mass`` exceed with probability ``allowed``."""
    return crossing(lambda z: allowed - float(mass @ special.ndtr(score - z * scale)), 2.0, 0.5, 1e-10)


def win_loss_e_value(losses: int, wins: int) -> float:
    """Evidence that losses are more likely than wins: valid at whatever moment one stops.

    A bet on each discordant pair, mixed uniformly over loss probabilities above 1/2:
    ``2^(n+1) B(losses + 1, wins + 1) P(p > 1/2)``. Under equal chances it exceeds ``1/alpha`` with
    probability at most ``alpha``: 40 for a one-sided 2.5 %. Source: Turner and Grunwald 2023; Ville
    1939. Weaker than a planned number of trials. Raises BadInput.
    """
    losses, wins = whole("losses", losses), whole("wins", wins)
    log_e = (losses + wins + 1) * math.log(2) + float(special.betaln(losses + 1, wins + 1))
    return float(math.exp(log_e) * special.betainc(wins + 1, losses + 1, 0.5))
