"""When a run is sealed: the evidence of its processes becomes one ``evidence.db``, keyed by attempt."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from pytest_crashlab.store.evidence_writer import FORMAT, LOG_GLOB, moment

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    import polars as pl

    from pytest_crashlab.store.layout import RunPaths

# Told by a process that did not run the trial, so that its moment is not the one of the evidence.
_TOLD_BY_OTHERS = frozenset({"worker_lost", "interrupted"})


def merge_evidence(run: RunPaths, trials: pl.DataFrame) -> tuple[str, ...]:
    """Move what the processes of a run wrote into its ``evidence.db``; return warnings.

    ``trials`` the run's table: a document belongs to the attempt of its case and trial that began when
    it says, or, where that process died before it could report, to the attempt that says so. Evidence
    decides nothing, so nothing here raises: a file that cannot be read or written stays where it is and
    is named in a warning. Killed in between, it does the same again.
    """
    logs = sorted(run.folder.glob(LOG_GLOB))
    if not logs:
        return ()
    attempts = _Attempts(trials)
    warnings = []
    for log in logs:
        problem = _merge(log, run.evidence, attempts)
        if problem is not None:
            warnings.append(problem)
    return tuple(warnings)


def _merge(log: Path, target: Path, attempts: _Attempts) -> str | None:
    import sqlite3

    try:
        with contextlib.closing(_open(target)) as database:
            database.execute("ATTACH DATABASE ? AS log", (str(log),))
            keys = database.execute("SELECT case_id, trial, start FROM log.log").fetchall()
            found = [(*key, attempt) for key in keys if (attempt := attempts.find(*key)) is not None]
            with database:
                database.executemany(
                    "INSERT OR REPLACE INTO main.evidence SELECT case_id, trial, ?4, document FROM log.log "
                    "WHERE case_id = ?1 AND trial = ?2 AND start = ?3",
                    found,
                )
    except (sqlite3.Error, OSError) as error:
        return f"the evidence in {log.name} could not be kept ({error}); the file is left as it is"
    for name in (log.name, f"{log.name}-wal", f"{log.name}-shm"):
        with contextlib.suppress(OSError):
            log.with_name(name).unlink()
    lost = len(keys) - len(found)
    return f"evidence of {lost} attempts without a row was dropped" if lost else None


def _open(path: Path) -> sqlite3.Connection:
    import sqlite3

    database = sqlite3.connect(path)
    try:
        database.execute(
            "CREATE TABLE IF NOT EXISTS evidence (case_id TEXT, trial INTEGER, attempt INTEGER, "
            "document BLOB, PRIMARY KEY (case_id, trial, attempt))"
        )
        database.execute(f"PRAGMA user_version={FORMAT}")
    except BaseException:
        database.close()
        raise
    return database


class _Attempts:
    """Finds the attempt that began at a moment."""

    def __init__(self, trials: pl.DataFrame) -> None:
        columns = ("case", "trial", "attempt", "start", "outcome")
        self._by_start: dict[tuple[str, int, int], int] = {}
        self._lost: dict[tuple[str, int], int] = {}
        for case, trial, attempt, start, outcome in trials.select(columns).iter_rows():
            self._by_start[case, trial, moment(start)] = attempt
            if outcome in _TOLD_BY_OTHERS:
                self._lost[case, trial] = attempt

    def find(self, case: str, trial: int, start: int) -> int | None:
        """The attempt; a microsecond either way is how far the text of a number may be off."""
        for key in (start, start - 1, start + 1):
            attempt = self._by_start.get((case, trial, key))
            if attempt is not None:
                return attempt
        return self._lost.get((case, trial))
