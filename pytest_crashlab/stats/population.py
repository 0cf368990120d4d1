"""Would new cases of this kind get worse? Cases are the sampled units here."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from pytest_crashlab.errors import BadInput
from pytest_crashlab.stats.inputs import Counts, Floats, Reals, paired_arms
from pytest_crashlab.stats.intervals import t95
from pytest_crashlab.stats.mover import clustered_mover
from pytest_crashlab.stats.verdict import is_significant

FEWEST_CASES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCases:
    """A change in the light of the cases that were not run.

    ``p_value`` of the paired t test; ``low, high`` 95 % interval of the mean difference over new
    cases; ``shown`` whether a change is shown for new cases of this kind; ``cases`` compared.
    """

    p_value: float
    low: float
    high: float
    shown: bool
    cases: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedT:
    """Student's paired t test.

    ``mean`` of the differences with its 95 % interval ``low, high``, ``t``, ``df`` and two-sided
    ``p_value``. NaN where there are too few differences.
    """

    mean: float
    low: float
    high: float
    t: float
    df: int
    p_value: float


def paired_t(differences: Reals) -> PairedT:
    """Student's paired t test of ``differences``, one a case, in their own unit.

    Source: Student 1908. Assumes that the mean over cases is about normal. Serves latency, token and
    cost differences as well. Differences that are all the same have no spread: p is 0, or 1 where
    they are all 0. Raises BadInput for a value that is not finite.
    """
    d: Floats = np.asarray(differences, dtype=np.float64)
    if d.ndim != 1:
        raise BadInput(f"differences must have one dimension (one entry a case), got {d.ndim} dimensions.")
    wrong = np.flatnonzero(~np.isfinite(d))
    if wrong.size:
        raise BadInput(f"differences[{wrong[0]}] = {d[wrong[0]]} is not a finite number.")
    mean = float(d.mean()) if d.size else math.nan
    df = max(0, d.size - 1)
    if not df:
        return PairedT(mean=mean, low=math.nan, high=math.nan, t=math.nan, df=df, p_value=math.nan)
    error = float(d.std(ddof=1)) / math.sqrt(d.size)
    if error <= 1e-12 * max(1.0, abs(mean)):
        t = 0.0 if abs(mean) <= 1e-12 else math.copysign(math.inf, mean)
        return PairedT(mean=mean, low=mean, high=mean, t=t, df=df, p_value=float(t == 0))
    t = mean / error
    reach = t95(df) * error
    p_value = float(2 * special.stdtr(df, -abs(t)))
    return PairedT(mean=mean, low=mean - reach, high=mean + reach, t=t, df=df, p_value=p_value)


def new_cases(a_pass: Counts, a_n: Counts, b_pass: Counts, b_n: Counts) -> NewCases:
    """Whether a change is shown for new cases of this kind.

    Shown when the paired t test has p < 0.05 *and* the clustered MOVER interval excludes 0 *and* at
    least ten cases were compared. The t test alone fails when the arms have unequal trials; the
    interval alone is the one to print. Assumes that the cases are a fair sample of their kind.
    Without a case all is NaN and not shown. Raises BadInput.
    """
    x, m, y, l_ = paired_arms(a_pass, a_n, b_pass, b_n)
    if not m.size:
        return NewCases(p_value=math.nan, low=math.nan, high=math.nan, shown=False, cases=0)
    p_value = paired_t(y / l_ - x / m).p_value
    low, high = clustered_mover(x, m, y, l_)
    shown = is_significant(p_value) and not low <= 0 <= high and m.size >= FEWEST_CASES
    return NewCases(p_value=p_value, low=low, high=high, shown=shown, cases=m.size)
