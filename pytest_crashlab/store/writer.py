"""Writing a run: the journal while it lasts, the tables and the manifest when it ends."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Self

from pytest_crashlab.errors import StoreError
from pytest_crashlab.records.case import CasePlan
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store.atomic import write_whole
from pytest_crashlab.store.evidence_merge import merge_evidence
from pytest_crashlab.store.journal import JournalWriter, encode, read_journal
from pytest_crashlab.store.lock import FileLock
from pytest_crashlab.store.manifests import change_manifest, read_manifest
from pytest_crashlab.store.plan import Plan
from pytest_crashlab.store.repeats import count_cached
from pytest_crashlab.store.schema import iso_utc, utc_now
from pytest_crashlab.store.seal import (
    attempts_in,
    build_tables,
    count_outcomes,
    count_trials,
    journal_text,
    models_of,
    read_tables,
    write_tables,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

    from pytest_crashlab.records.check import CheckRow
    from pytest_crashlab.records.trial import TrialRow
    from pytest_crashlab.store.layout import RunPaths, StorePaths
    from pytest_crashlab.store.schema import Manifest
    from pytest_crashlab.store.seal import Tables


def lock_run(run: RunPaths) -> FileLock:
    """The right to write a run; :class:`StoreError` while another process has it."""
    lock = FileLock(run.writer_lock)
    if not lock.try_acquire():
        raise StoreError(
            f"Run {run.folder.name} is being written by another process; wait for it or end it first."
        )
    return lock


class RunWriter:
    """The one writer of a running run. It holds the run's lock until :meth:`seal` or :meth:`close`."""

    def __init__(self, paths: StorePaths, run: RunPaths, lock: FileLock) -> None:
        self._paths = paths
        self._run = run
        self._lock = lock
        self._process = os.getpid()
        content = read_journal(run.journal)
        self._seen = attempts_in(content, run.journal)
        if content.dropped:
            # what follows must not be joined to the torn line
            write_whole(run.journal, content.whole)
            before = read_manifest(paths, run.folder.name).dropped_lines
            change_manifest(paths, run, dropped_lines=before + content.dropped)
        self._journal = JournalWriter(run.journal)

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._run.folder.name

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self._run.folder

    def write_plan(self, plan: Plan) -> None:
        """Store what is planned, before the first trial."""
        write_whole(self._run.plan, plan.to_bytes())

    def append(self, row: TrialRow, checks: Sequence[CheckRow] = (), *, text: str | None = None) -> bool:
        """Record an attempt at once; False, and nothing written, for one that is there already.

        ``text`` is ``row.to_json()`` with the checks, where the caller has it already. Raises
        :class:`StoreError` when the disk does not take it.
        """
        self._refuse_other_process()
        seen = self._seen.setdefault(row.case, set())
        key = (row.trial, row.attempt)
        if key in seen:
            return False
        self._journal.append(encode(row, checks, text=text))
        seen.add(key)
        return True

    def update(self, **fields: Any) -> Manifest:
        """Set fields of the manifest while the run goes on; :class:`TypeError` for unknown ones."""
        return change_manifest(self._paths, self._run, **fields)

    def seal(self, status: RunStatus, **fields: Any) -> Manifest:
        """End the run: tables, then the manifest, then away with journal and plan.

        Killed in between, the run is still running on disk and can be recovered. ``outcomes``,
        ``counts``, ``case_ids`` and the planned numbers come from the tables unless given.
        """
        self._refuse_other_process()
        self._journal.close()
        try:
            if read_manifest(self._paths, self.run_id).status is RunStatus.RUNNING:
                return seal_run(self._paths, self._run, status, **fields)
            return change_manifest(self._paths, self._run, **fields)
        finally:
            self._lock.release(remove=True)

    @contextlib.contextmanager
    def handed_over(self) -> Iterator[int]:
        """Let a process that this one starts and waits for seal the run (see ``Store.seal_held``).

        Yields the open file of the run's lock: a process that inherits it holds the lock too, so that
        nobody takes the run for a dead one as long as either of them lives.
        """
        self._refuse_other_process()
        self._journal.close()
        try:
            yield self._lock.handle
        finally:
            if read_manifest(self._paths, self.run_id).status is not RunStatus.RUNNING:
                self._lock.release(remove=True)

    def _refuse_other_process(self) -> None:
        """A child that a test forked and that ran on into the session owns nothing of the run."""
        if os.getpid() != self._process:
            raise StoreError(f"Run {self.run_id} is written by process {self._process}, not by a fork of it.")

    def close(self) -> None:
        """Let go of the run without ending it: it stays as a killed process would leave it."""
        self._journal.close()
        self._lock.release(remove=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_plan(run: RunPaths) -> Plan | None:
    """The plan of a running run, None where none was written."""
    try:
        return Plan.from_bytes(run.plan.read_bytes(), str(run.plan))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{run.plan} cannot be read ({error.strerror or error}).") from error


def running_tables(run: RunPaths, *, skip_damaged: bool = False) -> Tables:
    """The tables of a run that has not ended, from its plan and journal."""
    return build_tables(read_plan(run), read_journal(run.journal), run.journal, skip_damaged=skip_damaged)


def seal_run(
    paths: StorePaths,
    run: RunPaths,
    status: RunStatus | None,
    *,
    skip_damaged: bool = False,
    **fields: Any,
) -> Manifest:
    """Seal a running run whose lock the caller holds.

    ``status`` None: what the journal shows, completed when every planned trial has an outcome and
    cancelled else, finished when its last attempt did.
    """
    if status is RunStatus.RUNNING:
        raise ValueError("a sealed run is completed, cancelled or failed")
    before = read_manifest(paths, run.folder.name)
    tables = running_tables(run, skip_damaged=skip_damaged)
    counts = count_trials(tables.cases, tables.trials)
    if status is None:
        whole = counts["planned"] > 0 and counts["missing"] == 0
        status = RunStatus.COMPLETED if whole else RunStatus.CANCELLED
        if tables.trials.height:
            ends = (tables.trials["start"] + tables.trials["duration"]).max()
            fields.setdefault("finished", iso_utc(float(str(ends))))
        if tables.dropped_lines:
            fields.setdefault("warnings", [*before.warnings, "recovered from its journal"])
    computed = {
        "status": status,
        "finished": utc_now(),
        "counts": counts,
        "outcomes": count_outcomes(tables.trials),
        "models": models_of(tables.trials),
        "replayed": before.replayed or bool(tables.trials["replayed"].any()),
        "cached": count_cached(tables.trials),
        "case_ids": tables.cases["case"].to_list(),
        "planned_cases": tables.cases.height,
        "total_cases": max(before.total_cases, tables.cases.height),
        "planned_trials": counts["planned"],
        "dropped_lines": before.dropped_lines + tables.dropped_lines,
    }
    values = {**computed, **fields}
    write_tables(run, tables)
    lost = merge_evidence(run, tables.trials)
    values["warnings"] = [*values.get("warnings", before.warnings), *tables.warnings, *lost]
    manifest = change_manifest(paths, run, **values)
    remove_running_files(run)
    return manifest


def remove_running_files(run: RunPaths) -> None:
    """Remove what only a running run needs."""
    for path in (run.journal, run.plan, run.control, run.budget_use):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def unseal_run(paths: StorePaths, run: RunPaths) -> None:
    """Turn a sealed run back into a running one, so that trials can be added; the lock is held."""
    tables = read_tables({"cases": run.cases, "trials": run.trials, "checks": run.checks}, str(run.folder))
    manifest = read_manifest(paths, run.folder.name)
    cases = [CasePlan(id=row.pop("case"), **row) for row in tables.cases.iter_rows(named=True)]
    plan = Plan(cases=cases, seed=manifest.seed, order=manifest.trial_order)
    write_whole(run.plan, plan.to_bytes())
    write_whole(run.journal, journal_text(tables).encode())
    stale: dict[str, Any] = {"finished": None, "summary": None, "gate": None, "counts": None, "outcomes": {}}
    change_manifest(paths, run, status=RunStatus.RUNNING, **stale)
