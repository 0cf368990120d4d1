"""The store of runs: begin one, list them, load one, mend one."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import CorruptRun, StoreError
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store.atomic import sync_folder, temporary_beside, write_whole
from pytest_crashlab.store.layout import StorePaths, check_store, create_store
from pytest_crashlab.store.ledger import Ledger
from pytest_crashlab.store.manifests import (
    StoreProblem,
    change_manifest,
    list_manifests,
    read_manifest,
    run_ids,
)
from pytest_crashlab.store.refs import Refs
from pytest_crashlab.store.schema import Manifest
from pytest_crashlab.store.seal import read_tables
from pytest_crashlab.store.writer import (
    RunWriter,
    lock_run,
    remove_running_files,
    running_tables,
    seal_run,
    unseal_run,
)

if TYPE_CHECKING:
    import os

    import polars as pl

    from pytest_crashlab.store.heads import RunHead
    from pytest_crashlab.store.layout import RunPaths
    from pytest_crashlab.store.seal import Tables

__all__ = ["Manifest", "RunWriter", "Store", "StoreProblem", "StoredRun"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredRun:
    """A run with its narrow tables; their columns are in :mod:`pytest_crashlab.store.schema`."""

    manifest: Manifest
    cases: pl.DataFrame
    trials: pl.DataFrame
    checks: pl.DataFrame

    @classmethod
    def of(cls, manifest: Manifest, tables: Tables) -> StoredRun:
        """A run as its amendments leave it."""
        from pytest_crashlab.store.amendments import apply_amendments

        trials = apply_amendments(manifest, tables.trials) if manifest.amendments else tables.trials
        return cls(manifest=manifest, cases=tables.cases, trials=trials, checks=tables.checks)


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name; what they hold stays what it is."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


class Store:
    """A folder of runs with names for some of them. ``problems``: what the last listing left out."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths = StorePaths(root)
        self.ledger = Ledger(self.paths.ledger, self.paths.lock("ledger"))
        self.refs = Refs(self.paths, self.ledger)
        self.problems: list[StoreProblem] = []

    @classmethod
    def open(cls, root: str | os.PathLike[str], *, create: bool = False) -> Store:
        """The store at ``root``; with ``create`` it is made where there is none.

        Raises :class:`StoreError` where there is none or something else, :class:`FormatTooNew`.
        """
        store = cls(Path(root))
        if create:
            create_store(store.paths)
        check_store(store.paths)
        return store

    def begin(self, manifest: Manifest) -> RunWriter:
        """Start a run: its folder and manifest are there, or neither is.

        Raises :class:`StoreError` when there is a run of that id or the disk refuses.
        """
        run = self.paths.run(manifest.id)
        temporary = temporary_beside(run.folder)
        try:
            temporary.mkdir(parents=True)
            (temporary / "manifest.json").write_bytes(manifest.to_bytes())
            if run.folder.exists():
                raise FileExistsError
            temporary.rename(run.folder)
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            if run.folder.exists():
                raise StoreError(f"There is a run {manifest.id} in {self.root} already.") from None
            raise StoreError(f"{run.folder} cannot be created ({error.strerror or error}).") from error
        sync_folder(self.paths.runs)
        return self._writer(run)

    def reopen(self, run_id: str) -> RunWriter:
        """Go on with a run that ended early or was killed: what it has stays, attempts are added.

        Raises :class:`StoreError` while another process writes it or where no session recorded it,
        and :class:`CorruptRun` for a damaged journal or table.
        """
        run = self.paths.run(run_id)
        if read_manifest(self.paths, run_id).imported is not None:
            raise StoreError(f"Run {run_id} was imported: there is no session to go on with; import it anew.")
        lock = lock_run(run)
        try:
            if read_manifest(self.paths, run_id).status is not RunStatus.RUNNING:
                unseal_run(self.paths, run)
            return RunWriter(self.paths, run, lock)
        except BaseException:
            lock.release()
            raise

    def _writer(self, run: RunPaths) -> RunWriter:
        lock = lock_run(run)
        try:
            return RunWriter(self.paths, run, lock)
        except BaseException:
            lock.release()
            raise

    def manifests(self) -> list[Manifest]:
        """All runs, newest first. Those that cannot be read are in :attr:`problems`."""
        found, self.problems = list_manifests(self.paths)
        return found

    def heads(self) -> list[RunHead]:
        """What a list shows of each run, newest first: in a large store, a fraction of :meth:`manifests`."""
        from pytest_crashlab.store.heads import list_heads

        found, self.problems = list_heads(self.paths)
        return found

    def head(self, run_id: str) -> RunHead:
        """What a list shows of one run; raises as :meth:`manifest` does."""
        from pytest_crashlab.store.heads import read_head

        return read_head(self.paths, run_id)

    def run_ids(self) -> list[str]:
        """The ids of all runs, newest first, without reading any."""
        return run_ids(self.paths)

    def manifest(self, run_id: str) -> Manifest:
        """The manifest of one run; :class:`StoreError` with near misses where there is none."""
        return read_manifest(self.paths, run_id)

    def changed_at(self, run_id: str) -> float:
        """When the run was last written, in seconds since the epoch."""
        run = self.paths.run(run_id)
        times = [p.stat().st_mtime for p in (run.manifest, run.journal) if p.exists()]
        return max(times, default=0.0)

    def load(self, run_id: str) -> StoredRun:
        """A run with its tables; one that is running is read from its journal, as far as it is.

        Raises :class:`CorruptRun` for a table or a journal line that cannot be read.
        """
        run = self.paths.run(run_id)
        manifest = read_manifest(self.paths, run_id)
        if manifest.status is RunStatus.RUNNING:
            tables = running_tables(run)
        else:
            sources = {"cases": run.cases, "trials": run.trials, "checks": run.checks}
            tables = read_tables(sources, str(run.folder))
        return StoredRun.of(manifest, tables)

    def seal_held(self, run_id: str, status: RunStatus) -> Manifest:
        """Seal a running run for the process that holds its lock and waits for this one."""
        return seal_run(self.paths, self.paths.run(run_id), status)

    def recover(self, run_id: str, *, skip_damaged: bool = False) -> Manifest:
        """Seal what a killed process left; a sealed run is only tidied.

        The status is completed when every planned trial has an outcome, cancelled else. A torn last
        line is dropped and counted; a damaged line before it raises :class:`CorruptRun` unless
        ``skip_damaged``. The manifest has no ``summary`` then: whoever computes numbers sets it.
        """
        read_manifest(self.paths, run_id)
        run = self.paths.run(run_id)
        lock = lock_run(run)
        try:
            manifest = read_manifest(self.paths, run_id)
            if manifest.status is RunStatus.RUNNING:
                return seal_run(self.paths, run, None, skip_damaged=skip_damaged)
            remove_running_files(run)
            return manifest
        finally:
            lock.release(remove=True)

    def set_fields(self, run_id: str, **fields: Any) -> Manifest:
        """Set fields of a stored manifest; :class:`TypeError` for unknown ones."""
        return change_manifest(self.paths, self.paths.run(run_id), **fields)

    def save_comparison(self, run_id: str, baseline_id: str, comparison: dict[str, Any]) -> Path:
        """Keep a comparison of ``run_id`` with ``baseline_id``, in place of an earlier one.

        Dataclasses anywhere in ``comparison`` are stored as objects of their fields.
        """
        read_manifest(self.paths, run_id)
        folder = self.paths.run(run_id).comparisons
        self.paths.run(baseline_id)  # an id that can be a file's name
        path = folder / f"{baseline_id}.json"
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise StoreError(f"{folder} cannot be created ({error.strerror or error}).") from error
        # In one line: thousands of cases take a second to indent, and no one reads them there.
        write_whole(path, json.dumps({"format": 1, **comparison}, default=fields_of).encode() + b"\n")
        return path

    def comparisons(self, run_id: str) -> dict[str, dict[str, Any]]:
        """The kept comparisons of a run by baseline id; :class:`CorruptRun` for one that is no JSON."""
        found: dict[str, dict[str, Any]] = {}
        folder = self.paths.run(run_id).comparisons
        for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
            try:
                found[path.stem] = dict(json.loads(path.read_bytes()))
            except (OSError, ValueError, TypeError):
                raise CorruptRun(f"{path} cannot be read; delete it and compare again.") from None
        return found

    def delete(self, run_id: str, *, reason: str | None = None) -> None:
        """Remove a run for good; the ledger keeps that it was there, and the names it had.

        Raises :class:`StoreError` while another process writes it.
        """
        run = self.paths.run(run_id)
        try:
            known = read_manifest(self.paths, run_id)
        except CorruptRun:
            known = Manifest(id=run_id)  # a damaged run can be deleted too
        lock = lock_run(run)
        try:
            names = {name for name, current in self.refs.all().items() if current == run_id}
            self.ledger.append(
                "deletion",
                run=run_id,
                recorded_for=sorted({*known.recorded_for, *names}),
                branch=(known.git or {}).get("branch"),
                dataset=known.dataset,
                split=known.split,
                reason=reason,
            )
            trash = temporary_beside(run.folder)
            run.folder.rename(trash)
        except OSError as error:
            raise StoreError(f"{run.folder} cannot be deleted ({error.strerror or error}).") from error
        finally:
            lock.release()
        shutil.rmtree(trash, ignore_errors=True)
