"""What the narrow tables of a run come to, case by case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pytest_crashlab.records.outcome import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from pytest_crashlab.store import StoredRun


class CaseCount(NamedTuple):
    """One case of a run: its plan, and what its trials came to. A tuple, as a run has thousands.

    A trial counts once, by the attempt that decides it. ``excluded`` trials (skip, xfail) are outside
    ``scheduled``; ``missing`` are scheduled trials without a row or without an outcome, of which
    ``no_outcome`` left a row. ``healthy`` trials had a sound instrument, in ``completed`` ones the target
    did all it was asked to do; ``behaved`` are both, and ``behaved_passes`` of them passed. ``units`` are
    those in which the trials say how far the target got.
    """

    case: str
    planned: int
    content: str
    pass_rule: str | None
    min_passes: int | None
    uses_trial: bool
    file: str | None
    line: int | None
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
    # Only the columns that are asked, numbers of cases instead of their ids, and flags that are ready before
    # they are summed: what is worked out within a group is worked out as often as there are cases.
    rows = (
        run.trials.lazy()
        .filter("deciding")
        .select("case", "trial", "kind", "infra_healthy", "target_completed", "t_unit")
        .join(run.cases.lazy().select("case", "planned").with_row_index("at"), on="case")
        .drop("case")
        .filter(pl.col("trial").is_between(1, pl.col("planned")))
        .unique(["at", "trial"])
        .select(
            "at",
            "t_unit",
            passes=passed,
            decided=system,
            undecided=kind == Kind.INSTRUMENT.value,
            excluded=kind == Kind.EXCLUDED.value,
            no_outcome=kind.is_null(),
            healthy=healthy,
            completed=completed,
            behaved=healthy & completed,
            behaved_passes=healthy & completed & passed,
        )
        .collect()
    )
    table = run.cases.with_row_index("at").join(
        rows.group_by("at").agg(pl.col(*_SUMS).sum()), on="at", how="left", maintain_order="left"
    )
    units: dict[int, set[str]] = {}
    for at, unit in rows.select("at", "t_unit").drop_nulls().unique().iter_rows():
        units.setdefault(at, set()).add(unit)
    counted = table.select(*_PLAN, pl.col(*_SUMS).fill_null(0)).rows()
    return RunCounts(
        cases=tuple(
            CaseCount._make((*row, frozenset(units[at]) if at in units else _NO_UNITS))
            for at, row in enumerate(counted)
        )
    )


def scheduled_checks(run: StoredRun) -> pl.DataFrame:
    """The rows of checks of the deciding attempts, those of excluded trials left out."""
    import polars as pl

    scheduled = run.trials.filter(
        pl.col("deciding") & pl.col("kind").cast(pl.String).ne_missing(Kind.EXCLUDED.value)
    )
    key = ["case", "trial", "attempt"]
    return run.checks.join(scheduled.select(key), on=key)


_NO_UNITS: frozenset[str] = frozenset()
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
