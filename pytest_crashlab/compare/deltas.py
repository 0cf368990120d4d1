"""What differs between two runs beside the pass rate: rates, checks, outcomes, time, tokens, cost.

All of it over the cases that both runs were asked and judged by alike, each case counted once. None of
it is the verdict, and none of it changes the gate; an outcome that was named after the run is exploratory.
"""

from __future__ import annotations

import math
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from pytest_crashlab.compare import usage
from pytest_crashlab.compare.counts import scheduled_checks
from pytest_crashlab.records.comparison import Delta
from pytest_crashlab.stats import holm, paired_t, paired_verdict, quantile_change
from pytest_crashlab.stats.mover import conditional_mover

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt
    import polars as pl

    from pytest_crashlab.compare.counts import CaseCount, RunCounts
    from pytest_crashlab.store import StoredRun

_Part = tuple[int, int]
_RATES = (  # name, what it is a share of, and the two counts of a case
    ("end-to-end success", "scheduled trials", ("passes", "scheduled")),
    (
        "behavioural success",
        "trials with a sound instrument and a completed target",
        ("behaved_passes", "behaved"),
    ),
    ("infrastructure availability", "scheduled trials", ("healthy", "scheduled")),
    ("target completion", "scheduled trials", ("completed", "scheduled")),
)
NOTHING_SHARED = "no case in which both runs have it"


def all_deltas(
    baseline: StoredRun,
    candidate: StoredRun,
    counts: tuple[RunCounts, RunCounts],
    outcomes: Sequence[str] = (),
) -> tuple[Delta, ...]:
    """Every difference beside the verdict's; ``outcomes`` labels named after the run."""
    in_a = counts[0].by_id()
    shared = [
        (in_a[b.case], b)
        for b in counts[1]
        if b.case in in_a and (in_a[b.case].content, in_a[b.case].pass_rule) == (b.content, b.pass_rule)
    ]
    if not shared:
        return ()
    cases = [b.case for _, b in shared]
    return (
        *_rates(shared),
        *_corrected(_checks(baseline, candidate, cases)),
        *_outcomes(baseline, candidate, shared, outcomes),
        *_measures(baseline, candidate, cases),
    )


def _rates(shared: Sequence[tuple[CaseCount, CaseCount]]) -> Iterator[Delta]:
    arms = list(zip(*shared, strict=True))
    for name, of, counts in _RATES:
        columns = [map(attrgetter(count), arm) for arm in arms for count in counts]
        yield _shares("rate", name, of, [_numbers(column) for column in columns], tested=False)


def _numbers(column: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.fromiter(column, dtype=np.int64)


def _shares(
    group: str, name: str, of: str, columns: Sequence[npt.NDArray[np.int64]], *, tested: bool
) -> Delta:
    """The mean over cases of a share in each run, and the difference; ``tested`` with an exact p-value.

    ``columns``: by case how many trials have it and of how many, in the baseline and in the candidate.
    """
    asked = (columns[1] != 0) & (columns[3] != 0)
    x, m, y, l_ = (column[asked] for column in columns)
    base = Delta(
        group=group,
        name=name,
        unit="share",
        a=None,
        b=None,
        a_n=int(m.sum()),
        b_n=int(l_.sum()),
        of=of,
        cases=x.size,
    )
    if not x.size:
        return replace(base, why=NOTHING_SHARED)
    a, b = float((x / m).mean()), float((y / l_).mean())
    if tested:
        verdict = paired_verdict(x, m, y, l_)
        return replace(
            base, a=a, b=b, delta=verdict.delta, low=verdict.low, high=verdict.high, p=verdict.p_value
        )
    low, high = conditional_mover(x, m, y, l_)
    return replace(base, a=a, b=b, delta=b - a, low=low, high=high)


def _corrected(deltas: Sequence[Delta]) -> tuple[Delta, ...]:
    """Which of several differences are proven, the chance of any false one held at 5 % (Holm)."""
    tested = [d for d in deltas if d.p is not None]
    stands = dict(zip((d.name for d in tested), holm([d.p or 0.0 for d in tested]), strict=True))
    return tuple(
        replace(d, proven=int(math.copysign(1, d.delta))) if stands.get(d.name) and d.delta else d
        for d in deltas
    )


def _checks(baseline: StoredRun, candidate: StoredRun, cases: Sequence[str]) -> list[Delta]:
    sums = [_check_sums(run, cases) for run in (baseline, candidate)]
    names = sorted({name for arm in sums for name, _ in arm})
    found = []
    for name in names:
        parts = [[arm.get((name, c), (0, 0)) for c in cases] for arm in sums]
        columns = [_numbers(column) for part in parts for column in zip(*part, strict=True)]
        found.append(_shares("check", name, "trials in which it could be evaluated", columns, tested=True))
    return found


def _check_sums(run: StoredRun, cases: Sequence[str]) -> dict[tuple[str, str], _Part]:
    import polars as pl

    if run.checks.is_empty():
        return {}
    wanted = pl.Series(cases, dtype=pl.String)
    sums = (
        scheduled_checks(run)
        .filter(pl.col("ok").is_not_null() & pl.col("case").is_in(wanted.implode()))
        .group_by("name", "case")
        .agg(passed=pl.col("ok").sum(), evaluated=pl.len())
    )
    return {(name, case): (passed, n) for name, case, passed, n in sums.iter_rows()}


def _outcomes(
    baseline: StoredRun,
    candidate: StoredRun,
    shared: Sequence[tuple[CaseCount, CaseCount]],
    later: Sequence[str],
) -> Iterator[Delta]:
    declared = candidate.manifest.declared_outcomes
    for exploratory, labels in ((False, declared), (True, [x for x in later if x not in declared])):
        yield from _corrected(
            [_outcome(baseline, candidate, shared, label, exploratory=exploratory) for label in labels]
        )


def _outcome(
    baseline: StoredRun,
    candidate: StoredRun,
    shared: Sequence[tuple[CaseCount, CaseCount]],
    label: str,
    *,
    exploratory: bool,
) -> Delta:
    in_a, in_b = (_with_label(run, label) for run in (baseline, candidate))
    columns = (
        _numbers(column)
        for arm, (labelled, _) in zip(zip(*shared, strict=True), (in_a, in_b), strict=True)
        for column in (
            (labelled.get(c.case, 0) for c in arm),
            (c.decided + c.undecided for c in arm),
        )
    )
    delta = _shares("outcome", label, "trials that reported", list(columns), tested=True)
    why = delta.why
    if why is None and in_a[1] is None and in_b[1] is None:
        why = "assigned in neither run"
    return replace(delta, exploratory=exploratory, kind=in_b[1] or in_a[1], why=why)


def _with_label(run: StoredRun, label: str) -> tuple[dict[str, int], str | None]:
    import polars as pl

    rows = run.trials.filter(
        pl.col("deciding") & (pl.col("outcome") == label) & (pl.col("kind") != "excluded")
    )
    kind = None if rows.is_empty() else str(rows["kind"][0])
    return dict(rows.group_by("case").len().iter_rows()), kind


def _measures(baseline: StoredRun, candidate: StoredRun, cases: Sequence[str]) -> Iterator[Delta]:
    import polars as pl

    wanted = pl.Series(cases, dtype=pl.String)
    a, b = (
        usage.usage_rows(run).filter(pl.col("case").is_in(wanted.implode())) for run in (baseline, candidate)
    )
    in_both = zip(usage.QUANTILES, usage.latencies(a), usage.latencies(b), strict=True)
    for (name, _), before, now in in_both:
        change, low, high = quantile_change(before, now)
        yield Delta(
            group="measure",
            name=name,
            unit="s",
            a=before.value,
            b=now.value,
            a_n=before.n,
            b_n=now.n,
            of="trials that ran",
            cases=now.cases,
            delta=change,
            low=low,
            high=high,
            why=_unknown_in(before.value, now.value)
            or (None if low is not None and high is not None else "too few trials or cases to bound it"),
        )
    for name, column, unit in usage.AMOUNTS:
        yield _amount(a, b, name, column, unit)


def _amount(a: pl.DataFrame, b: pl.DataFrame, name: str, column: str, unit: str) -> Delta:
    before, now = usage.case_means(a, column), usage.case_means(b, column)
    both = [case for case in now if case in before]
    base = Delta(
        group="measure",
        name=name,
        unit=unit,
        a=_mean([before[c] for c in both] or list(before.values())),
        b=_mean([now[c] for c in both] or list(now.values())),
        a_n=a.height - a[column].null_count(),
        b_n=b.height - b[column].null_count(),
        of="trials that ran",
        cases=len(both),
    )
    why = _unknown_in(base.a, base.b)
    if column == "cost_usd":
        bases = usage.basis_of(a), usage.basis_of(b)
        base = replace(base, basis=bases[0] if bases[0] == bases[1] else None)
        if why is None and (bases[0] != bases[1] or bases[0] is None or " and " in bases[0]):
            of_each = [kind or "of unknown basis" for kind in bases]
            why = f"{of_each[0]} in the baseline, {of_each[1]} in this run: not comparable"
    if why is None and not both:
        why = NOTHING_SHARED
    if why is not None:
        return replace(base, why=why)
    result = paired_t([now[c] - before[c] for c in both])
    bounded = math.isfinite(result.low) and result.low < result.high
    return replace(
        base,
        delta=result.mean,
        low=result.low if bounded else None,
        high=result.high if bounded else None,
        p=result.p_value if bounded else None,
        why=None if bounded else "too few cases, or no spread between them, to bound it",
    )


def _unknown_in(a: float | None, b: float | None) -> str | None:
    if a is None and b is None:
        return "not known in either run"
    if a is None:
        return "not known in the baseline"
    return "not known in this run" if b is None else None


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
