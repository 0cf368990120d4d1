"""Who judged the checks: a required check that another judge decides is another measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.compare.sentences import several
from pytest_crashlab.records.comparison import Note, Reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_crashlab.compare.pairing import Pairing
    from pytest_crashlab.store import StoredRun

BY_ITSELF = "the test itself"
_Judges = dict[str, frozenset[str]]


def judges_of(run: StoredRun, cases: Sequence[str] | None = None, *, required: bool = False) -> _Judges:
    """Check -> who judged it in ``cases`` (None: all); the tests themselves have no name and are not in."""
    import polars as pl

    rows = run.checks
    if rows.is_empty():
        return {}
    if required:
        rows = rows.filter(pl.col("required"))
    if cases is not None:
        rows = rows.filter(pl.col("case").is_in(pl.Series(cases, dtype=pl.String).implode()))
    found = rows.group_by("name").agg(pl.col("judge").drop_nulls().unique())
    return {name: frozenset(judges) for name, judges in found.iter_rows()}


def judge_blockers(baseline: StoredRun, candidate: StoredRun, pairing: Pairing) -> Iterator[Reason]:
    """A required check of the compared cases that another judge decided in each run."""
    cases = [p.case for p in pairing.pairs]
    a, b = (judges_of(run, cases, required=True) for run in (baseline, candidate))
    differing = [n for n in sorted({*a} & {*b}) if a[n] and b[n] and a[n] != b[n]]
    if differing:
        name = differing[0]
        yield Reason(
            code="judged_differently",
            text=(
                f"A required check was judged by a different judge in each run: {several(differing)} "
                f"({', '.join(sorted(a[name]))} in the baseline, {', '.join(sorted(b[name]))} in this run)."
            ),
        )


def judge_notes(baseline: StoredRun, candidate: StoredRun, pairing: Pairing) -> Iterator[Note]:
    """Checks whose judge only one of the runs still tells."""
    cases = [p.case for p in pairing.pairs]
    a, b = (judges_of(run, cases) for run in (baseline, candidate))
    if gone := [n for n in sorted({*a} & {*b}) if bool(a[n]) != bool(b[n])]:
        yield Note(
            code="judge_unknown",
            text=f"The judge details of one run are gone: {several(gone)}.",
        )
