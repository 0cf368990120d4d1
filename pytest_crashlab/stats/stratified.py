"""The exact test within cases: trials change arms, cases never mix.

Given the passes ``t`` of a case in both arms together, its ``N`` trials are exchangeable between the
arms when nothing changed, so the candidate's passes ``Y`` are hypergeometric, independently per case,
and ``S = sum Y`` is their convolution (Cochran 1954, Mantel and Haenszel 1959; exact: Gart 1970,
Mehta, Patel and Gray 1985; mid-p: Lancaster 1961). Under a common odds ratio ``exp(theta)`` the
probabilities become ``P(S=s) exp(theta s)``, normalised: that gives the interval.

How it is computed: the pmfs of the cases are tilted to the ``theta`` at which ``S`` is expected where
it was seen, convolved there, and tilted back where another ``theta`` is asked for. All terms are
positive and the ones that matter are the large ones, so a p-value of 1e-300 keeps its digits and the
rest of the support (thousands of sums that cannot matter) need not be carried.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from pytest_crashlab.stats.roots import crossing

if TYPE_CHECKING:
    from pytest_crashlab.stats.inputs import Floats, Ints

_NEGLIGIBLE = 1e-24


def log_hypergeometric(m: Ints, l_: Ints, t: Ints) -> tuple[Ints, Floats]:
    """Smallest possible candidate passes and log pmf upwards from there, one row a stratum.

    ``m`` and ``l_`` trials of baseline and candidate, ``t`` passes of both. Rows are padded with -inf.
    """
    low = np.maximum(0, t - m)
    width = int((np.minimum(t, l_) - low).max(initial=0)) + 1
    y = low[:, None] + np.arange(width)
    valid = y <= np.minimum(t, l_)[:, None]
    y = np.where(valid, y, low[:, None])
    log_pmf = (
        _log_choose(l_[:, None], y)
        + _log_choose(m[:, None], t[:, None] - y)
        - _log_choose(m + l_, t)[:, None]
    )
    return low, np.where(valid, log_pmf, -np.inf)


def _log_choose(n: Ints, k: Ints) -> Floats:
    result: Floats = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return result


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tail:
    """One-sided p-values at one odds ratio: ``low`` of so few candidate passes, ``high`` of so many."""

    low: float
    high: float

    @property
    def two_sided(self) -> float:
        """Twice the smaller one, at most 1."""
        return min(1.0, 2 * min(self.low, self.high))


class StratifiedTest:
    """The test and its inversion for the counts of one comparison.

    ``m``, ``l_``, ``t``: trials of baseline and candidate and passes of both, one entry a case, every
    ``m`` and ``l_`` >= 1; ``seen`` the candidate's passes over all cases; ``observed`` how much of the
    probability of the seen sum counts (1/2 mid-p, 1 exact); ``weights`` of the cases in the mean
    difference that :meth:`delta` maps an odds ratio to (equal by default).

    Assumes that trials of a case are exchangeable; nothing is assumed about the cases. Cases that only
    pass or only fail in both arms carry no information and change nothing.
    """

    __slots__ = (
        "_cumulant",
        "_index",
        "_log_pmf",
        "_observed",
        "_offset",
        "_pmf",
        "_steps",
        "_widths",
        "at_highest",
        "at_lowest",
        "centre",
        "expected",
        "seen",
    )

    def __init__(
        self, m: Ints, l_: Ints, t: Ints, *, seen: int, observed: float, weights: Floats | None = None
    ) -> None:
        share = np.full(m.size, 1 / max(1, m.size)) if weights is None else weights
        per_pass = share * (1 / m + 1 / l_)
        self._offset = float(-(share * t / m).sum())
        size, inverse, low, self._log_pmf = _groups(m, l_, t)
        self._steps = _Steps(
            count=size,
            low=low,
            y=np.arange(self._log_pmf.shape[1], dtype=np.float64),
            per_pass=np.asarray(np.bincount(inverse, per_pass, minlength=size.size), dtype=np.float64),
        )
        self.seen = seen
        self._observed = observed
        self._widths = np.isfinite(self._log_pmf).sum(axis=1)
        lowest = int((size * low).sum())
        highest = lowest + int((size * (self._widths - 1)).sum())
        self.expected, variance = self._moments(0.0)
        self.at_lowest, self.at_highest = seen <= lowest, seen >= highest
        self.centre = 0.0
        if lowest < highest:
            # A sum at the end of its support has its centre at infinity: half a pass inside is as good.
            wanted = min(max(float(seen), lowest + 0.5), highest - 0.5)
            guess = (wanted - self.expected) / variance
            # Anywhere well within a standard deviation serves as well.
            near = min(1e-3, 0.1 / math.sqrt(variance))
            self.centre = crossing(
                lambda theta: self._moments(theta)[0] - wanted, guess, 0.1 * (1 + abs(guess)), near
            )
        self._cumulant = self._cumulant_at(self.centre)
        start, self._pmf = self._convolve()
        self._index = seen - lowest - start

    @property
    def direction(self) -> int:
        """-1 when the candidate passed less often than expected, +1 more often, 0 exactly as expected."""
        surplus = self.seen - self.expected
        return 0 if abs(surplus) <= 1e-9 * max(1.0, abs(self.expected)) else int(math.copysign(1, surplus))

    def tail(self, theta: float = 0.0) -> Tail:
        """One-sided p-values under a common log odds ratio ``theta`` (0: nothing changed)."""
        log_here = (theta - self.centre) * self.seen - self._cumulant_at(theta) + self._cumulant
        scale = math.exp(log_here)
        upper = theta <= self.centre
        beyond = self._pmf[self._index + 1 :] if upper else self._pmf[: self._index][::-1]
        # Tilting back towards theta makes every step away from the seen sum less likely: no overflow.
        decay = np.exp(-abs(theta - self.centre) * np.arange(1, beyond.size + 1))
        here = float(self._pmf[self._index])
        tail = (float(beyond @ decay) + self._observed * here) * scale
        other = 1.0 + (2 * self._observed - 1) * here * scale - tail
        tail, other = min(tail, 1.0), min(max(other, 0.0), 1.0)
        return Tail(low=other, high=tail) if upper else Tail(low=tail, high=other)

    def bound(self, side: int, alpha: float) -> float:
        """The log odds ratio below (``side`` -1) or above (+1) which the test rejects at ``alpha``."""
        if self.at_lowest if side < 0 else self.at_highest:
            return side * math.inf

        def excess(theta: float) -> float:
            tail = self.tail(theta)
            p = tail.high if side < 0 else tail.low
            return -side * (math.log(p) - math.log(alpha)) if p > 0 else side * math.inf

        spread = 1.96 / math.sqrt(max(self._moments(self.centre)[1], 1e-6))
        return crossing(excess, self.centre + side * spread, spread / 4, 1e-10)

    def delta(self, theta: float) -> float:
        """Expected mean over cases of candidate minus baseline pass share under ``theta``, given ``t``."""
        steps = self._steps
        if math.isinf(theta):
            expected = steps.low + (self._widths - 1 if theta > 0 else 0)
        else:
            expected = steps.low + self._rows(theta)[0]
        return self._offset + float((steps.per_pass * expected).sum())

    def _tilted(self, theta: float) -> tuple[Floats, Floats]:
        """Per group: the probabilities under ``theta``, not normalised, and the log of their scale."""
        logits = self._log_pmf + theta * self._steps.y
        top = logits.max(axis=1)
        return np.exp(logits - top[:, None]), top

    def _cumulant_at(self, theta: float) -> float:
        """Log of the expectation of ``exp(theta S)`` when nothing changed."""
        mass, top = self._tilted(theta)
        steps = self._steps
        return float(steps.count @ (np.log(mass.sum(axis=1)) + top + theta * steps.low))

    def _rows(self, theta: float) -> tuple[Floats, Floats]:
        """Per group: mean and variance under ``theta`` of the passes above the lowest."""
        mass, _ = self._tilted(theta)
        y, total = self._steps.y, mass.sum(axis=1)
        mean = mass @ y / total
        return mean, mass @ (y * y) / total - mean * mean

    def _moments(self, theta: float) -> tuple[float, float]:
        """Mean and variance of ``S`` under ``theta``."""
        mean, variance = self._rows(theta)
        steps = self._steps
        return float(steps.count @ (steps.low + mean)), float(steps.count @ variance)

    def _convolve(self) -> tuple[int, Floats]:
        """From where on the pmf of ``S`` at the centre matters, counted from the lowest sum, and the pmf."""
        tilted, _ = self._tilted(self.centre)
        queue: list[tuple[int, int, int, Floats]] = []
        for i, count in enumerate(self._steps.count):
            row = tilted[i, : self._widths[i]]
            row = row / row.sum()
            start, pmf = _power(row, int(count))
            queue.append((pmf.size, i, start, pmf))
        # Short ones first: two long arrays meet only once.
        heapq.heapify(queue)
        while len(queue) > 1:
            _, i, start, pmf = heapq.heappop(queue)
            _, _, other_start, other = heapq.heappop(queue)
            start, pmf = _trim(start + other_start, np.convolve(pmf, other))
            heapq.heappush(queue, (pmf.size, i, start, pmf))
        return (queue[0][2], queue[0][3]) if queue else (0, np.ones(1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Steps:
    """Groups of equal cases: how many, their lowest passes, the steps above it, what a pass is worth."""

    count: Ints
    low: Ints
    y: Floats
    per_pass: Floats


def _groups(m: Ints, l_: Ints, t: Ints) -> tuple[Ints, Ints, Ints, Floats]:
    """Sizes of the groups of equal cases, the group of each case, lowest passes and log pmf."""
    base = int(max(m.max(initial=0), l_.max(initial=0))) + 1
    key = (m * base + l_) * (2 * base) + t
    unique, inverse, size = np.unique(key, return_inverse=True, return_counts=True)
    rest, tt = np.divmod(unique, 2 * base)
    mm, ll = np.divmod(rest, base)
    low, log_pmf = log_hypergeometric(mm, ll, tt)
    return size, inverse, low, log_pmf


def _power(pmf: Floats, count: int) -> tuple[int, Floats]:
    """``pmf`` convolved with itself ``count`` times, by repeated squaring."""
    start, result = 0, np.ones(1)
    base_start, base = _trim(0, pmf)
    while True:
        if count & 1:
            start, result = _trim(start + base_start, np.convolve(result, base))
        count >>= 1
        if not count:
            return start, result
        base_start, base = _trim(2 * base_start, np.convolve(base, base))


def _trim(start: int, pmf: Floats) -> tuple[int, Floats]:
    """Without the ends that cannot matter beside the largest term."""
    if pmf.size < 64:
        return start, pmf
    kept = np.flatnonzero(pmf > pmf.max() * _NEGLIGIBLE)
    first, last = int(kept[0]), int(kept[-1])
    return start + first, pmf[first : last + 1]
