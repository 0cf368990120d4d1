"""The numbers of one run, each with its denominator. Nothing is 0 because nothing was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_crashlab.compare.counts import count_cases, scheduled_checks
from pytest_crashlab.records.outcome import Kind
from pytest_crashlab.stats import (
    disagreement,
    flips,
    normal_rate,
    pass_at,
    pass_hat,
    rate_new_cases,
    rate_these_cases,
)
from pytest_crashlab.stats.mover import clustered_wilson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crashlab.compare.counts import CaseCount, RunCounts
    from pytest_crashlab.stats import Flips, PassHat, Rate
    from pytest_crashlab.store import StoredRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One of the five rates: ``numerator`` of ``denominator`` trials, with the words for both.

    ``value`` is exactly that ratio, ``low`` and ``high`` its 95 % interval for new cases of this kind;
    all three are None where the denominator is 0.
    """

    name: str
    what: str
    of: str
    numerator: int
    denominator: int
    value: float | None
    low: float | None
    high: float | None
    check: str | None = None
    cases: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A place in the source that assigned an outcome, and how often it did; None: not known."""

    site: str | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeCount:
    """One line of the distribution: ``share`` of all planned trials. Both None: missing trials."""

    label: str | None
    kind: Kind | None
    count: int
    share: float
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNumbers:
    """Everything a run can say without a baseline.

    ``pass_rate_these`` and ``pass_rate_new`` are one rate (mean over cases of the share of decided
    trials that passed) with two intervals; ``pass_rate_normal`` has that of the simple rule. ``never``
    are cases with decided trials and no pass, ``skipped`` those without a scheduled trial.
    """

    counts: RunCounts
    pass_rate_these: Rate
    pass_rate_new: Rate
    pass_rate_normal: Rate
    ratios: tuple[Ratio, ...]
    pass_hat: tuple[PassHat, ...]
    pass_at: tuple[PassHat, ...]
    flips: Flips
    disagreement: float | None
    outcomes: tuple[OutcomeCount, ...]
    never: tuple[str, ...]
    skipped: tuple[str, ...]


def run_numbers(run: StoredRun) -> RunNumbers:
    """All numbers of ``run`` from its narrow tables."""
    counts = count_cases(run)
    scheduled = [c for c in counts if c.scheduled > 0]
    passes, decided = _ints([c.passes for c in scheduled]), _ints([c.decided for c in scheduled])
    planned = _ints([c.scheduled for c in scheduled])
    return RunNumbers(
        counts=counts,
        pass_rate_these=rate_these_cases(passes, decided),
        pass_rate_new=rate_new_cases(passes, decided),
        pass_rate_normal=normal_rate(passes, decided),
        ratios=(*_reliability(scheduled), *_criteria(run, counts)),
        pass_hat=pass_hat(passes, decided, planned),
        pass_at=pass_at(passes, decided, planned),
        flips=flips(passes, decided, planned),
        disagreement=disagreement(passes, decided),
        outcomes=_distribution(run, counts),
        never=tuple(c.case for c in scheduled if c.decided > 0 and c.passes == 0),
        skipped=tuple(c.case for c in counts if c.scheduled == 0),
    )


def ratio(
    name: str, what: str, of: str, parts: Sequence[tuple[int, int]], *, check: str | None = None
) -> Ratio:
    """The ratio of two sums over cases, ``parts`` being (numerator, denominator) of each.

    The interval is the clustered Wilson interval of the linearised case values (ratio estimator,
    Cochran 1977, 6.3), which is that of the case mean where all cases have equally many trials.
    """
    tops = np.asarray([t for t, b in parts if b], dtype=np.float64)
    bottoms = np.asarray([b for _, b in parts if b], dtype=np.float64)
    numerator, denominator = int(tops.sum()), int(bottoms.sum())
    value = low = high = None
    if denominator:
        value = numerator / denominator
        low, high = _of_new_cases(value + (tops - value * bottoms) / bottoms.mean(), float(denominator))
    return Ratio(
        name=name,
        what=what,
        of=of,
        numerator=numerator,
        denominator=denominator,
        value=value,
        low=low,
        high=high,
        check=check,
        cases=tops.size,
    )


def _of_new_cases(shares: np.typing.NDArray[np.float64], trials: float) -> tuple[float | None, float | None]:
    """None for one case, which says nothing about others."""
    return (None, None) if shares.size < 2 else clustered_wilson(shares, trials)


def _reliability(cases: Sequence[CaseCount]) -> tuple[Ratio, ...]:
    return (
        ratio("end-to-end success", "passed", "scheduled trials", [(c.passes, c.scheduled) for c in cases]),
        ratio(
            "behavioural success",
            "passed",
            "trials with a sound instrument and a completed target",
            [(c.behaved_passes, c.behaved) for c in cases],
        ),
        ratio(
            "infrastructure availability",
            "had a sound instrument",
            "scheduled trials",
            [(c.healthy, c.scheduled) for c in cases],
        ),
        ratio(
            "target completion",
            "completed",
            "scheduled trials",
            [(c.completed, c.scheduled) for c in cases],
        ),
    )


def _criteria(run: StoredRun, counts: RunCounts) -> tuple[Ratio, ...]:
    """One ratio per check: passed over trials in which it could be evaluated."""
    import polars as pl

    if run.checks.is_empty():
        return ()
    planned = pl.Series([c.case for c in counts], dtype=pl.String)
    sums = (
        scheduled_checks(run)
        .filter(pl.col("ok").is_not_null() & pl.col("case").is_in(planned.implode()))
        .group_by("name", "case", maintain_order=True)
        .agg(passed=pl.col("ok").sum(), evaluated=pl.len())
    )
    parts: dict[str, list[tuple[int, int]]] = {name: [] for name in run.checks["name"].unique().sort()}
    for row in sums.iter_rows(named=True):
        parts[row["name"]].append((row["passed"], row["evaluated"]))
    return tuple(
        ratio(f"check {name}", "held", "trials in which it could be evaluated", values, check=name)
        for name, values in parts.items()
    )


def _distribution(run: StoredRun, counts: RunCounts) -> tuple[OutcomeCount, ...]:
    """One line per label and kind, most frequent first, then the missing trials."""
    import polars as pl

    planned_trials = sum(c.planned for c in counts)
    planned = pl.DataFrame(
        {"case": [c.case for c in counts], "planned": [c.planned for c in counts]},
        schema={"case": pl.String, "planned": pl.Int32},
    )
    rows = (
        run.trials.filter(pl.col("deciding") & pl.col("kind").is_not_null())
        .join(planned, on="case")
        .filter(pl.col("trial").is_between(1, pl.col("planned")))
        .group_by("outcome", pl.col("kind").cast(pl.String), "site")
        .len()
        .sort(["len", "site"], descending=[True, False])
    )
    lines: dict[tuple[str, str], list[Site]] = {}
    for outcome, kind, site, count in rows.iter_rows():
        lines.setdefault((outcome, kind), []).append(Site(site=site, count=count))
    found = [
        OutcomeCount(
            label=label,
            kind=Kind(kind),
            count=(total := sum(s.count for s in sites)),
            share=total / planned_trials,
            sites=tuple(sites),
        )
        for (label, kind), sites in lines.items()
    ]
    found.sort(key=lambda o: (-o.count, str(o.label)))
    if counts.missing:
        found.append(
            OutcomeCount(label=None, kind=None, count=counts.missing, share=counts.missing / planned_trials)
        )
    return tuple(found)


def _ints(values: list[int]) -> np.typing.NDArray[np.int64]:
    return np.asarray(values, dtype=np.int64)


def summary_fields(numbers: RunNumbers) -> dict[str, Any]:
    """Plain numbers for a manifest, so that runs can be listed without their tables. Unknown is None."""
    rate, new, counts = numbers.pass_rate_these, numbers.pass_rate_new, numbers.counts
    full = numbers.pass_hat[-1] if numbers.pass_hat else None
    return {
        "pass_rate": rate.value,
        "these_low": rate.low,
        "these_high": rate.high,
        "new_low": new.low,
        "new_high": new.high,
        "cases": len(counts),
        "cases_decided": rate.cases,
        "scheduled": counts.scheduled,
        "passes": counts.passes,
        "decided": counts.decided,
        "undecided": counts.undecided,
        "missing": counts.missing,
        "excluded": counts.excluded,
        "pass_hat_k": None if full is None else full.value,
        "flips": numbers.flips.flip,
        "flips_of": numbers.flips.eligible,
        "never": len(numbers.never),
        "ratios": {
            r.name: {"value": r.value, "numerator": r.numerator, "denominator": r.denominator}
            for r in numbers.ratios
            if r.check is None
        },
    }
