"""The checks of one run, each with how often it could be evaluated, held, and who judged it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_crashlab.compare.counts import scheduled_checks
from pytest_crashlab.compare.judges import BY_ITSELF
from pytest_crashlab.compare.rates import ratio
from pytest_crashlab.stats import paired_t

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from pytest_crashlab.compare.counts import RunCounts
    from pytest_crashlab.store import StoredRun


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSummary:
    """One check over a run.

    ``evaluated`` trials of ``cases`` cases told something, ``failed`` of them that it does not hold, and
    ``missing`` scheduled trials of those cases told nothing. ``rate`` is the share in which it held,
    ``mean`` the mean over cases of the measured number, each with its 95 % interval for new cases and None
    where there is none. ``required`` None: in some trials. Several ``kinds`` or ``judges``: the numbers mix
    them.
    """

    name: str
    kinds: tuple[str, ...]
    required: bool | None
    evaluated: int
    failed: int
    missing: int
    cases: int
    judges: tuple[str, ...]
    rate: float | None
    rate_low: float | None
    rate_high: float | None
    mean: float | None
    mean_low: float | None
    mean_high: float | None
    measured: int


def check_summaries(run: StoredRun, counts: RunCounts) -> tuple[CheckSummary, ...]:
    """Every check that a trial of ``run`` came to, by name. Excluded trials are in none of the numbers."""
    rows = scheduled_checks(run)
    scheduled = {c.case: c.scheduled for c in counts}
    names = rows["name"].unique().sort()
    return tuple(_summary(name, rows.filter(rows["name"] == name), scheduled) for name in names)


def _summary(name: str, rows: pl.DataFrame, scheduled: dict[str, int]) -> CheckSummary:
    import polars as pl

    told = pl.col("ok").is_not_null() | pl.col("value").is_not_null()
    cases = rows.group_by("case", maintain_order=True).agg(
        held=pl.col("ok").sum(),
        answered=pl.col("ok").is_not_null().sum(),
        evaluated=told.sum(),
        mean=pl.col("value").filter(pl.col("value").is_finite()).mean(),
    )
    heard = rows.filter(told)
    held = ratio(name, "held", "", list(cases.select("held", "answered").iter_rows()))
    mean, mean_low, mean_high = _mean(cases["mean"].drop_nulls().to_list())
    evaluated = int(cases["evaluated"].sum())
    required = rows["required"].unique().to_list()
    return CheckSummary(
        name=name,
        kinds=tuple(heard["kind"].drop_nulls().unique().sort()),
        required=required[0] if len(required) == 1 else None,
        evaluated=evaluated,
        failed=held.denominator - held.numerator,
        missing=sum(scheduled.get(case, 0) for case in cases["case"]) - evaluated,
        cases=int((cases["evaluated"] > 0).sum()),
        judges=tuple(heard["judge"].fill_null(BY_ITSELF).unique().sort()),
        rate=held.value,
        rate_low=held.low,
        rate_high=held.high,
        mean=mean,
        mean_low=mean_low,
        mean_high=mean_high,
        measured=int(rows["value"].is_finite().sum()),
    )


def _mean(case_means: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """The mean over cases with its interval; no bounds where cases cannot tell how much they differ."""
    if not case_means:
        return None, None, None
    found = paired_t(case_means)
    bounded = bool(np.isfinite(found.low)) and found.low < found.high
    return found.mean, found.low if bounded else None, found.high if bounded else None
