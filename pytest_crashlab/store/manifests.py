"""Manifests on disk: read, listed, changed. JSON only, so that listing runs stays cheap."""

from __future__ import annotations

import os
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import CorruptRun, StoreError
from pytest_crashlab.store.atomic import write_whole
from pytest_crashlab.store.lock import FileLock
from pytest_crashlab.store.schema import Manifest, utc_now

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_crashlab.store.layout import RunPaths, StorePaths


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreProblem:
    """A run that could not be listed, and why, in a sentence."""

    run_id: str
    text: str


def run_ids(paths: StorePaths) -> list[str]:
    """The ids of all runs that have a folder, newest first; :class:`StoreError` when unreadable."""
    try:
        with os.scandir(paths.runs) as entries:
            names = [e.name for e in entries if not e.name.startswith(".") and e.is_dir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{paths.runs} cannot be read ({error.strerror or error}).") from error
    return sorted(names, reverse=True)


def read_manifest(paths: StorePaths, run_id: str) -> Manifest:
    """The manifest of a run.

    Raises :class:`StoreError` with near misses for a run that does not exist,
    :class:`CorruptRun` for a folder without a readable manifest, :class:`FormatTooNew`.
    """
    path, content = manifest_bytes(paths, run_id)
    return Manifest.from_bytes(content, str(path))


def manifest_bytes(paths: StorePaths, run_id: str) -> tuple[Path, bytes]:
    """The file of a run's manifest and what it holds; raises as :func:`read_manifest` does."""
    run = paths.run(run_id)
    path = run.manifest
    try:
        return path, path.read_bytes()
    except FileNotFoundError:
        if run.folder.is_dir():
            raise CorruptRun(f"{path} is missing; restore it or delete the run's folder.") from None
        raise StoreError(unknown_run(run_id, run_ids(paths), str(paths.root))) from None
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror or error}).") from error


def unknown_run(run_id: str, known: list[str], where: str) -> str:
    """The sentence for a run that is not there, with those that look like it."""
    near = get_close_matches(run_id, known, n=3, cutoff=0.75)
    if near:
        return f"There is no run {run_id} in {where}; did you mean {' or '.join(near)}?"
    return f"There is no run {run_id} in {where}; 'crashlab runs' lists those there are ({len(known)})."


def list_manifests(paths: StorePaths) -> tuple[list[Manifest], list[StoreProblem]]:
    """All manifests, newest first, and the runs whose manifest could not be read."""
    found: list[Manifest] = []
    problems: list[StoreProblem] = []
    for run_id in run_ids(paths):
        try:
            found.append(read_manifest(paths, run_id))
        except StoreError as error:
            if paths.runs.joinpath(run_id).is_dir():  # else it was deleted since it was listed
                problems.append(StoreProblem(run_id=run_id, text=str(error)))
    found.sort(key=lambda m: (m.created, m.id), reverse=True)
    return found, problems


def change_manifest(paths: StorePaths, run: RunPaths, **fields: Any) -> Manifest:
    """Set fields of a stored manifest; processes that change one at once do not undo each other."""
    with FileLock(paths.lock("manifests")):
        manifest = read_manifest(paths, run.folder.name).with_fields(**{"updated": utc_now(), **fields})
        write_whole(run.manifest, manifest.to_bytes())
    return manifest
