"""What the narrow tables of a run come to, case by case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_crashlab.records.outcome import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from pytest_crashlab.store import StoredRun


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseCount:
    """One case of a run: its plan, and what its trials came to.

    A trial counts once, by the attempt that decides it. ``excluded`` trials (skip, xfail) are outside
    ``scheduled``; ``missing`` are scheduled trials without a row or without an outcome, of which
    ``no_outcome`` left a row. ``healthy`` trials had a sound instrument, in ``completed`` ones the target
    did all it was asked to do; ``behaved`` are both, and ``behaved_passes`` of them passed. ``units`` are
    those in which the trials say how far the target got.
    """

    case: str
    planned: int
    passes: int
    decided: int
    undecided: int
    excluded: int
    no_outcome: int
    healthy: int
    completed: int
    behaved: int
    behaved_passes: int
    units: frozenset[str]
    content: str
    pass_rule: str | None
    min_passes: int | None
    uses_trial: bool
    file: str | None
    line: int | None

    @property
    def scheduled(self) -> int:
        """Planned trials that were meant to give a decision."""
        return self.planned - self.excluded

    @property
    def missing(self) -> int:
        """Scheduled trials that never reported an outcome."""
        return self.scheduled - self.decided - self.undecided

    @property
    def fails(self) -> int:
        """Decided trials that did not pass."""
        return self.decided - self.passes

    @property
    def open(self) -> int:
        """Scheduled trials without a decision, for whichever reason."""
        return self.undecided + self.missing


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """All cases of a run's plan, in plan order."""

    cases: tuple[CaseCount, ...]

    def __iter__(self) -> Iterator[CaseCount]:
        return iter(self.cases)

    def __len__(self) -> int:
        return len(self.cases)

    def by_id(self) -> dict[str, CaseCount]:
        """The cases by their id."""
        return {c.case: c for c in self.cases}

    @property
    def scheduled(self) -> int:
        """Scheduled trials of all cases."""
        return sum(c.scheduled for c in self.cases)

    @property
    def passes(self) -> int:
        """Passed trials of all cases."""
        return sum(c.passes for c in self.cases)

    @property
    def decided(self) -> int:
        """Decided trials of all cases."""
        return sum(c.decided for c in self.cases)

    @property
    def undecided(self) -> int:
        """Undecided trials of all cases."""
        return sum(c.undecided for c in self.cases)

    @property
    def missing(self) -> int:
        """Missing trials of all cases."""
        return sum(c.missing for c in self.cases)

    @property
    def excluded(self) -> int:
        """Excluded trials of all cases."""
        return sum(c.excluded for c in self.cases)


def count_cases(run: StoredRun) -> RunCounts:
    """Count every case of ``run``'s plan by the deciding attempt of each trial.

    Rows of a case or of a trial number outside the plan count for nothing: the plan says what was to
    be measured.
    """
    import polars as pl

    kind = pl.col("kind").cast(pl.String)
    in_trials = kind != Kind.EXCLUDED.value
    system = kind.is_in([Kind.PASS.value, Kind.FAIL.value, Kind.CRASH.value])
    healthy = in_trials & pl.col("infra_healthy").fill_null(value=system)
    completed = in_trials & pl.col("target_completed").fill_null(
        value=kind.is_in([Kind.PASS.value, Kind.FAIL.value])
    )
    passed = kind == Kind.PASS.value
    rows = (
        run.trials.filter(pl.col("deciding"))
        .join(run.cases.select("case", "planned"), on="case")
        .filter(pl.col("trial").is_between(1, pl.col("planned")))
        .unique(["case", "trial"])
        .group_by("case")
        .agg(
            passes=passed.sum(),
            decided=system.sum(),
            undecided=(kind == Kind.INSTRUMENT.value).sum(),
            excluded=(kind == Kind.EXCLUDED.value).sum(),
            no_outcome=kind.is_null().sum(),
            healthy=healthy.sum(),
            completed=completed.sum(),
            behaved=(healthy & completed).sum(),
            behaved_passes=(healthy & completed & passed).sum(),
            units=pl.col("t_unit").cast(pl.String).drop_nulls().unique(),
        )
    )
    sums = rows.select("case", "units", *_SUMS)
    table = run.cases.join(sums, on="case", how="left", maintain_order="left").with_columns(
        pl.col(*_SUMS).fill_null(0)
    )
    return RunCounts(cases=tuple(_count(row) for row in table.select(*_COLUMNS).iter_rows()))


def scheduled_checks(run: StoredRun) -> pl.DataFrame:
    """The rows of checks of the deciding attempts, those of excluded trials left out."""
    import polars as pl

    scheduled = run.trials.filter(
        pl.col("deciding") & pl.col("kind").cast(pl.String).ne_missing(Kind.EXCLUDED.value)
    )
    key = ["case", "trial", "attempt"]
    return run.checks.join(scheduled.select(key), on=key)


def _count(row: tuple[Any, ...]) -> CaseCount:
    units, *rest = row
    return CaseCount(units=frozenset(units or ()), **dict(zip(_COLUMNS[1:], rest, strict=True)))


_SUMS = (
    "passes",
    "decided",
    "undecided",
    "excluded",
    "no_outcome",
    "healthy",
    "completed",
    "behaved",
    "behaved_passes",
)
_PLAN = ("case", "planned", "content", "pass_rule", "min_passes", "uses_trial", "file", "line")
_COLUMNS = ("units", *_PLAN, *_SUMS)
