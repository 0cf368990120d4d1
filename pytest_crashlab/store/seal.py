"""From a journal to tables: what happens when a run ends."""

from __future__ import annotations

import contextlib
import io
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import CorruptRun, StoreError
from pytest_crashlab.records.case import CasePlan
from pytest_crashlab.records.outcome import Decision, Kind
from pytest_crashlab.store.atomic import move_into_place, temporary_beside
from pytest_crashlab.store.journal import JournalContent, decode_lines
from pytest_crashlab.store.plan import Plan
from pytest_crashlab.store.repeats import mark_repeats
from pytest_crashlab.store.schema import case_columns, check_columns, later_columns, trial_columns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl

    from pytest_crashlab.store.layout import RunPaths

_PART = 1_000_000  # bytes of a journal that are read at once
_NOT_IN_JOURNAL = {"decision", "deciding"}
_KEY = ["case", "trial", "attempt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The tables of a run and what was noticed while they were made."""

    cases: pl.DataFrame
    trials: pl.DataFrame
    checks: pl.DataFrame
    dropped_lines: int = 0
    warnings: tuple[str, ...] = ()


def build_tables(
    plan: Plan | None, journal: JournalContent, where: Path, *, skip_damaged: bool = False
) -> Tables:
    """The tables that a plan and a journal make; of an attempt that is there twice the first counts.

    Raises :class:`CorruptRun` for a damaged line before the last unless ``skip_damaged``.
    """
    import polars as pl

    damaged: list[int] = []
    raw = _read_lines(journal.whole, where, damaged if skip_damaged else None)
    if raw.select(pl.struct(_KEY).n_unique()).item() < raw.height:
        raw = raw.unique(_KEY, keep="first", maintain_order=True)
    checks = (
        raw.select([*_KEY, "checks"])
        .explode("checks")
        .filter(pl.col("checks").is_not_null())
        .unnest("checks")
        .select([pl.col(n).cast(t) for n, t in check_columns().items()])
    )
    trials = mark_repeats(mark_deciding(raw.drop("checks")))
    warnings = [f"line {n} of the journal was damaged and dropped" for n in damaged]
    if plan is None:
        planned = trials.group_by("case", maintain_order=True).agg(pl.col("trial").max())
        plan = Plan(cases=[CasePlan(id=case, planned=n) for case, n in planned.iter_rows()])
        if plan.cases:
            warnings.append("the plan was lost; the cases are those that have a trial")
    cases = _case_table(plan)
    strangers = trials.filter(~pl.col("case").is_in(cases["case"].implode()))["case"].unique()
    if len(strangers):
        first = strangers.sort()[0]
        warnings.append(f"trials of cases that were not planned ({len(strangers)}, the first {first})")
    return Tables(
        cases=cases,
        trials=trials,
        checks=checks,
        dropped_lines=journal.dropped + len(damaged),
        warnings=tuple(warnings),
    )


def _case_table(plan: Plan) -> pl.DataFrame:
    import polars as pl

    fields = {name: "id" if name == "case" else name for name in case_columns()}
    return pl.DataFrame(
        {name: [getattr(case, field) for case in plan.cases] for name, field in fields.items()},
        schema=case_columns(),
    )


def attempts_in(journal: JournalContent, where: Path) -> dict[str, set[tuple[int, int]]]:
    """Case -> (trial, attempt) of every line; :class:`CorruptRun` for a damaged one."""
    seen: dict[str, set[tuple[int, int]]] = {}
    if journal.whole:
        for case, trial, attempt in _read_lines(journal.whole, where, None).select(_KEY).iter_rows():
            seen.setdefault(case, set()).add((trial, attempt))
    return seen


def _read_lines(whole: bytes, where: Path, damaged: list[int] | None) -> pl.DataFrame:
    """The journal's rows with a column ``checks``; the reader for whole files first, as it is fast."""
    import polars as pl

    columns = {n: t for n, t in trial_columns().items() if n not in _NOT_IN_JOURNAL}
    inner = {n: t for n, t in check_columns().items() if n not in _KEY}
    # enums are read as text: a label they do not know has to be named with its line
    text = {n: pl.String() if isinstance(t, pl.Enum) else t for n, t in columns.items()}
    schema = {**text, "checks": pl.List(pl.Struct(inner))}
    if not whole:
        return pl.DataFrame(schema={**columns, "checks": schema["checks"]})
    try:
        frame = pl.concat(pl.read_ndjson(io.BytesIO(part), schema=schema) for part in _parts(whole))
        if frame.height == whole.count(b"\n") and not _holes(frame):
            return frame.with_columns(
                pl.col("attempt").fill_null(1),
                pl.col("worker").fill_null("main"),
                *(pl.col(n).cast(t) for n, t in columns.items() if isinstance(t, pl.Enum)),
            )
    except pl.exceptions.PolarsError:
        pass  # read again, line by line, to say which one it is
    rows = [
        {**row._asdict(), "checks": [asdict(check) for check in checks]}
        for row, checks in decode_lines(whole, where, damaged=damaged)
    ]
    return pl.DataFrame(rows, schema={**columns, "checks": schema["checks"]})


def _parts(whole: bytes) -> Iterator[bytes]:
    """``whole`` in pieces of whole lines: the reader needs ten times the memory of what it is given."""
    start = 0
    while start < len(whole):
        end = whole.find(b"\n", start + _PART) + 1 or len(whole)
        yield whole[start:end]
        start = end


def journal_text(tables: Tables) -> str:
    """The journal that makes ``tables``, for a sealed run that goes on."""
    import polars as pl

    inner = [name for name in check_columns() if name not in _KEY]
    checks = tables.checks.group_by(_KEY, maintain_order=True).agg(pl.struct(inner).alias("checks"))
    rows = tables.trials.drop(*_NOT_IN_JOURNAL)
    return rows.join(checks, on=_KEY, how="left", maintain_order="left").write_ndjson()


def _holes(frame: pl.DataFrame) -> bool:
    """Whether something is null that every attempt, or every check, has."""
    import polars as pl

    needed = ["case", "trial", "start", "duration"]
    if any(frame[name].null_count() for name in needed):
        return True
    checks = frame.select(pl.col("checks").explode()).drop_nulls().unnest("checks")
    return bool(checks["name"].null_count() or checks["required"].null_count())


def mark_deciding(attempts: pl.DataFrame) -> pl.DataFrame:
    """Add ``decision`` and ``deciding`` to rows of attempts, in the order and types of the table.

    The first attempt with a pass or fail decides its trial; without one the first that was excluded;
    without that the last there is.
    """
    import polars as pl

    columns = trial_columns()
    decisions = {kind.value: kind.decision.value for kind in Kind}
    attempt = pl.col("attempt").cast(pl.Int64)
    decided = pl.col("decision").is_in([Decision.PASS.value, Decision.FAIL.value])
    rank = (
        pl.when(decided)
        .then(attempt)
        .when(pl.col("decision") == Decision.EXCLUDED.value)
        .then(attempt + 2**32)
        .otherwise(2**40 - attempt)
    )
    return (
        attempts.with_columns(
            pl.col("kind")
            .cast(pl.String)
            .replace_strict(decisions, return_dtype=pl.String)
            .cast(columns["decision"])
            .alias("decision")
        )
        .with_columns(rank.alias("rank"))
        .with_columns((pl.col("rank") == pl.col("rank").min().over(["case", "trial"])).alias("deciding"))
        .select([pl.col(n).cast(t) for n, t in columns.items()])
    )


def count_trials(cases: pl.DataFrame, trials: pl.DataFrame) -> dict[str, int]:
    """Counts of a run's trials by what their deciding attempts came to.

    ``planned`` trials in the plan; ``passed``, ``failed`` (crashes among them), ``undecided``,
    ``excluded`` by decision; ``missing`` planned and without an outcome; ``scheduled`` planned
    without the excluded; ``healthy`` with an outcome and a healthy infrastructure.
    """
    import polars as pl

    deciding = trials.filter(pl.col("deciding") & pl.col("case").is_in(cases["case"].implode()))
    by_decision = dict(
        deciding.group_by(pl.col("decision").cast(pl.String))
        .len()
        .filter(pl.col("decision").is_not_null())
        .iter_rows()
    )
    planned = int(cases["planned"].sum())
    excluded = by_decision.get(Decision.EXCLUDED.value, 0)
    healthy = pl.col("infra_healthy").fill_null(pl.col("kind") != Kind.INSTRUMENT.value)
    counted = deciding.filter(
        pl.col("decision").is_not_null() & (pl.col("decision") != Decision.EXCLUDED.value) & healthy
    )
    return {
        "planned": planned,
        "passed": by_decision.get(Decision.PASS.value, 0),
        "failed": by_decision.get(Decision.FAIL.value, 0),
        "undecided": by_decision.get(Decision.INCONCLUSIVE.value, 0),
        "excluded": excluded,
        "missing": max(0, planned - sum(by_decision.values())),
        "scheduled": planned - excluded,
        "healthy": counted.height,
    }


def count_outcomes(trials: pl.DataFrame) -> dict[str, int]:
    """Deciding attempts per label, most frequent first; ``no_outcome`` for rows without one."""
    import polars as pl

    counts = (
        trials.filter(pl.col("deciding"))
        .group_by(pl.col("outcome").fill_null("no_outcome"))
        .len()
        .sort(["len", "outcome"], descending=[True, False])
    )
    return dict(counts.iter_rows())


def models_of(trials: pl.DataFrame) -> list[str]:
    """The models that answered the targets of any attempt, sorted."""
    said = trials["models"].drop_nulls().unique().to_list()
    return sorted({model for models in said for model in models.split(", ")})


def write_tables(paths: RunPaths, tables: Tables) -> None:
    """Write the narrow tables of a run, each whole or not at all."""
    import polars as pl

    for path, frame in (
        (paths.cases, tables.cases),
        (paths.trials, tables.trials),
        (paths.checks, tables.checks),
    ):
        temporary = temporary_beside(path)
        try:
            frame.write_parquet(temporary, compression="zstd")
            move_into_place(temporary, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise StoreError(f"{path} cannot be written ({error.strerror or error}).") from error
        except pl.exceptions.PolarsError as error:  # its writer's own form of a full disk
            with contextlib.suppress(OSError):
                temporary.unlink()
            first = str(error).partition("\n")[0]
            raise StoreError(f"{path} cannot be written ({first}).") from error


def read_tables(sources: dict[str, Any], where: str) -> Tables:
    """The tables of a sealed run; ``sources`` has a path or file object for cases, trials, checks.

    Raises :class:`CorruptRun` for one that is missing, is no Parquet or lacks a column.
    """
    return Tables(
        cases=_read_table(sources, "cases", case_columns(), where),
        trials=_read_table(sources, "trials", trial_columns(), where),
        checks=_read_table(sources, "checks", check_columns(), where),
    )


def _read_table(
    sources: dict[str, Any], table: str, columns: dict[str, pl.DataType], folder: str
) -> pl.DataFrame:
    import polars as pl

    where = f"{folder}/{table}.parquet"
    try:
        frame = pl.read_parquet(sources[table])
        if list(frame.schema.items()) == list(columns.items()):  # as this version writes it: nothing to do
            return frame
        lost = [name for name in columns if name not in frame.columns]
        damaged = [name for name in lost if name not in later_columns(table)]
        if damaged:
            raise CorruptRun(f"{where} has no column {damaged[0]!r}; delete the run or restore the file.")
        frame = frame.with_columns(pl.lit(None).alias(name) for name in lost)
        return frame.select([pl.col(n).cast(t) for n, t in columns.items()])
    except FileNotFoundError:
        raise CorruptRun(f"{where} is missing; delete the run or restore the file.") from None
    except (OSError, pl.exceptions.PolarsError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise CorruptRun(f"{where} cannot be read ({first}); delete the run or restore the file.") from error
