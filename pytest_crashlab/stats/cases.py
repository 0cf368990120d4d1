"""Which cases moved: an exact test for each and a correction for having looked at all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pytest_crashlab.stats.inputs import Counts, Floats, arms, share
from pytest_crashlab.stats.stratified import log_hypergeometric

_SAME = 1 + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CaseTests:
    """One entry a case, in the order given.

    ``p`` two-sided p-value of the case alone (NaN without a trial in one arm); ``proven`` -1 proven
    worse, +1 proven better, 0 not proven.
    """

    p: Floats
    proven: npt.NDArray[np.int8]


def case_tests(a_pass: Counts, a_n: Counts, b_pass: Counts, b_n: Counts, *, q: float = 0.05) -> CaseTests:
    """Fisher's exact test per case (twice the smaller tail), proven by the discrete Benjamini-Hochberg rule.

    Source: Heyse 2011. In place of ``cases x p`` it uses ``sum_j P(p_j <= p)`` over the p-values that
    each case can attain at all given its passes, so cases that cannot prove anything (always passing,
    too few trials) cost nothing. At most a share ``q`` of the proven cases is expected to be a false
    find. Three trials a run never prove a case; four can. Raises BadInput.
    """
    x, m, y, l_ = arms(a_pass, a_n, b_pass, b_n)
    share("q", q)
    p = np.full(x.size, np.nan)
    proven = np.zeros(x.size, dtype=np.int8)
    (live,) = np.nonzero((m > 0) & (l_ > 0))
    if not live.size:
        return CaseTests(p=p, proven=proven)
    x, m, y, l_ = x[live], m[live], y[live], l_[live]
    low, log_pmf = log_hypergeometric(m, l_, x + y)
    pmf = np.exp(log_pmf)
    at_most = pmf.cumsum(axis=1)
    at_least = pmf[:, ::-1].cumsum(axis=1)[:, ::-1]
    attainable = np.minimum(1.0, 2 * np.minimum(at_most, at_least))
    p[live] = seen = attainable[np.arange(live.size), y - low]

    order = np.argsort(attainable, axis=None, kind="stable")
    chance = pmf.ravel()[order].cumsum()
    ranked = np.sort(seen)
    below = np.searchsorted(attainable.ravel()[order], ranked * _SAME, side="right")
    expected = chance[below - 1]
    # Equal p-values share the rank of the last of them.
    rank = np.searchsorted(ranked, ranked * _SAME, side="right")
    accepted = np.flatnonzero(expected / rank <= q * _SAME)
    if accepted.size:
        rejected = seen <= ranked[accepted[-1]] * _SAME
        proven[live] = np.where(rejected, np.sign(y * m - x * l_), 0)
    return CaseTests(p=p, proven=proven)
