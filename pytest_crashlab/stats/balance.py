"""Are the instrument's failures balanced between two runs? Fisher's exact test."""

from __future__ import annotations

import numpy as np

from pytest_crashlab.errors import BadInput
from pytest_crashlab.stats.inputs import whole
from pytest_crashlab.stats.stratified import log_hypergeometric


def fisher_imbalance(a_bad: int, a_total: int, b_bad: int, b_total: int) -> float:
    """Two-sided p-value of Fisher's exact test on ``a_bad/a_total`` against ``b_bad/b_total``.

    Sums the tables that are no more likely than the seen one. Source: Fisher 1935. Assumes
    independent trials: an outage that hits many at once makes it smaller than it should be, which is
    what it is used for. A run without trials gives 1. Raises BadInput.
    """
    a_total, b_total = whole("a_total", a_total), whole("b_total", b_total)
    for name, bad, total in (("a_bad", a_bad, a_total), ("b_bad", b_bad, b_total)):
        if whole(name, bad) > total:
            raise BadInput(f"{name} = {bad} is more than {name.replace('bad', 'total')} = {total}.")
    low, log_pmf = log_hypergeometric(np.array([a_total]), np.array([b_total]), np.array([a_bad + b_bad]))
    pmf = np.exp(log_pmf[0])
    seen = pmf[int(b_bad) - int(low[0])]
    return min(1.0, float(pmf[pmf <= seen * (1 + 1e-7)].sum()))
