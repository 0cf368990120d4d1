"""From rows to runs: one per arm, with the tables that a session's end makes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import UsageError
from pytest_crashlab.importing.rows import MOST_TRIALS
from pytest_crashlab.importing.source import refuse
from pytest_crashlab.records.outcome import Kind
from pytest_crashlab.records.run import RunStatus, new_run_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from pytest_crashlab.importing.labels import Meaning
    from pytest_crashlab.importing.rows import SourceRow
    from pytest_crashlab.importing.source import Source
    from pytest_crashlab.store import StoredRun

OWN = "own"  # as many planned trials as each case has


@dataclass(slots=True, kw_only=True)
class Arm:
    """The rows of one arm with what they came to, in the source's order."""

    name: str | None
    rows: list[SourceRow] = field(default_factory=list)
    meanings: list[Meaning] = field(default_factory=list)


def choose_arm(source: Source, wanted: str | None) -> None:
    """Leave only the rows of one arm in a source; `UsageError` for an arm that is not there."""
    if wanted is None:
        return
    have = sorted({row.arm for row in source.rows if row.arm is not None})
    if wanted not in have:
        raise UsageError(f"{source.path} has no arm {wanted!r}; it has {', '.join(have) or 'none'}.")
    source.rows = [row for row in source.rows if row.arm == wanted]


def split_arms(rows: Sequence[SourceRow], meanings: Sequence[Meaning]) -> list[Arm]:
    """The arms of the rows, in the order in which they come."""
    arms: dict[str | None, Arm] = {}
    for row, meaning in zip(rows, meanings, strict=True):
        arm = arms.setdefault(row.arm, Arm(name=row.arm))
        arm.rows.append(row)
        arm.meanings.append(meaning)
    return list(arms.values())


def number_trials(arm: Arm, path: str, *, in_order: bool) -> None:
    """Give every row its trial 1.. and its attempt 1.., as the source numbers them or in its order.

    Trials that begin at 0 are moved up by one. `UsageError` where the source does not number them, or
    where a trial is there twice and no attempt tells the two apart.
    """
    unnumbered = [row for row in arm.rows if row.trial is None]
    if in_order and len(unnumbered) == len(arm.rows):
        seen: dict[str, int] = {}
        for row in arm.rows:
            row.trial = seen[row.case] = seen.get(row.case, 0) + 1
    elif len(unnumbered) == len(arm.rows):
        raise UsageError(
            f"{path} has no column 'trial'; say which it is with --map trial=NAME, or count the rows of each "
            "case in the file's order with --number-trials."
        )
    refuse(path, [(row.where, "trial is not given") for row in unnumbered if row.trial is None])
    shift = 1 if min(row.trial or 0 for row in arm.rows) == 0 else 0
    problems: list[tuple[str, str]] = []
    known: set[tuple[str, int, int]] = set()
    for row in arm.rows:
        row.trial = (row.trial or 0) + shift
        row.attempt = 1 if row.attempt is None else row.attempt
        key = (row.case, row.trial, row.attempt)
        if not 1 <= row.trial <= MOST_TRIALS or not 1 <= row.attempt <= MOST_TRIALS:
            problems.append((row.where, f"trial {row.trial}, attempt {row.attempt} is out of range"))
        elif key in known:
            problems.append((row.where, f"trial {row.trial - shift} of {row.case} is there already"))
        known.add(key)
    refuse(path, problems)


def unmeasured(arm: Arm) -> list[str]:
    """Take back numbers that say "not measured" with a 0; the sentences tell what was taken.

    A target that decided a trial used tokens; where its count is 0 the source did not count, in this
    arm, and no 0 of that column is believed. A cost of 0 beside tokens is none either.
    """
    warnings = []
    for name in ("tokens_in", "tokens_out"):
        decided = zip(arm.rows, arm.meanings, strict=True)
        idle = (None, Kind.INSTRUMENT, Kind.EXCLUDED)
        if any(getattr(row, name) == 0 and meaning.kind not in idle for row, meaning in decided):
            zeros = [row for row in arm.rows if getattr(row, name) == 0]
            for row in zeros:
                setattr(row, name, None)
            warnings.append(f"{name} is 0 in {len(zeros)} of {len(arm.rows)} trials: read as not measured")
    free = [row for row in arm.rows if row.cost_usd == 0 and (row.tokens_in or row.tokens_out)]
    for row in free:
        row.cost_usd = None
    if free:
        warnings.append(f"cost_usd is 0 beside tokens in {len(free)} trials: read as not measured")
    return warnings


def build_run(
    arm: Arm,
    *,
    imported: Mapping[str, Any],
    labels: Mapping[str, Any],
    planned: int | str | None = None,
    cases: Sequence[str] = (),
    status: RunStatus = RunStatus.COMPLETED,
) -> StoredRun:
    """The sealed run of an arm whose trials are numbered.

    ``planned`` trials a case: a number, ``own`` for as many as each case has, None for as many as any
    case has (what is not there is missing then). ``cases`` are planned too. ``labels`` are fields of the
    manifest.
    """
    import polars as pl

    from pytest_crashlab.compare import run_numbers, summary_fields
    from pytest_crashlab.store import Manifest, StoredRun
    from pytest_crashlab.store.seal import count_outcomes, count_trials

    warnings = unmeasured(arm)
    trials = _trial_table(arm)
    case_table = _case_table(arm, planned, cases)
    strangers = trials.join(case_table, on="case").filter(pl.col("trial") > pl.col("planned")).height
    if strangers:
        raise UsageError(f"{strangers} trials are numbered above the {planned} that --trials plans a case.")
    counts = count_trials(case_table, trials)
    manifest = Manifest(
        id=new_run_id(),
        status=status,
        k=int(str(case_table["planned"].max())),
        planned_cases=case_table.height,
        total_cases=case_table.height,
        planned_trials=counts["planned"],
        case_ids=case_table["case"].to_list(),
        counts=counts,
        outcomes=count_outcomes(trials),
        imported={**imported, "arm": arm.name},
        warnings=warnings,
        **labels,
    )
    checks = pl.DataFrame(schema=_check_schema())
    run = StoredRun(manifest=manifest, cases=case_table, trials=trials, checks=checks)
    summary = summary_fields(run_numbers(run))
    sealed = manifest.with_fields(summary=summary, finished=manifest.created)
    return StoredRun(manifest=sealed, cases=case_table, trials=trials, checks=checks)


def _check_schema() -> dict[str, pl.DataType]:
    from pytest_crashlab.store.schema import check_columns

    return check_columns()


def _case_table(arm: Arm, planned: int | str | None, cases: Sequence[str]) -> pl.DataFrame:
    import polars as pl

    from pytest_crashlab.store.schema import case_columns

    most: dict[str, int] = dict.fromkeys(cases, 0)
    contents: dict[str, str] = {}
    for row in arm.rows:
        most[row.case] = max(most.get(row.case, 0), row.trial or 0)
        if row.content is not None and contents.setdefault(row.case, row.content) != row.content:
            raise UsageError(f"{row.where}: {row.case} has another input than in an earlier row.")
    k = planned if isinstance(planned, int) else max(most.values(), default=1)
    known = {
        "case": list(most),
        "planned": [n if planned == OWN else k for n in most.values()],
        "content": [contents.get(case, "") for case in most],
        "uses_trial": False,
    }
    columns = case_columns()
    return pl.DataFrame({name: known.get(name) for name in columns}, schema=columns)


def _trial_table(arm: Arm) -> pl.DataFrame:
    import polars as pl

    from pytest_crashlab.store.schema import trial_columns
    from pytest_crashlab.store.seal import mark_deciding

    columns = {n: t for n, t in trial_columns().items() if n not in ("decision", "deciding")}
    rows, meanings = arm.rows, arm.meanings
    data: dict[str, Any] = {
        "outcome": [m.outcome for m in meanings],
        "kind": [None if m.kind is None else m.kind.value for m in meanings],
        "failure_class": [m.failure_class for m in meanings],
        "infra_healthy": [_healthy(m.kind) for m in meanings],
        "target_completed": [m.completed for m in meanings],
        "run_duration": [row.latency for row in rows],
        "worker": ["import"] * len(rows),
        "phase": [None] * len(rows),
        "record_error": [None] * len(rows),
    }
    for name in columns:
        if name not in data:
            data[name] = [getattr(row, name, None) for row in rows]  # what no source tells is null
    return mark_deciding(pl.DataFrame({n: data[n] for n in columns}, schema=columns))


def _healthy(kind: Kind | None) -> bool | None:
    return None if kind in (None, Kind.EXCLUDED) else kind is not Kind.INSTRUMENT
