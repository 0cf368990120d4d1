"""Which store and which run a word means, for people: the command line, notebooks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_crashlab.errors import StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crashlab.store.runs import Store, StoredRun
    from pytest_crashlab.store.schema import Manifest

FOLDER = ".crashlab"
LATEST = "latest"
_FEWEST = 4


def nearest_store(folder: Path) -> Path:
    """The ``.crashlab`` of ``folder`` or of the nearest one above it that has one; else ``folder``'s."""
    for candidate in (folder, *folder.parents):
        if (candidate / FOLDER).is_dir():
            return candidate / FOLDER
    return folder / FOLDER


def is_file(reference: str) -> bool:
    """Whether ``reference`` names an exported run, which is in no store."""
    return reference.endswith(".crashrun")


def find_run(store: Store, reference: str) -> Manifest:
    """The manifest of the run that ``reference`` names, in whatever state it is.

    Raises `UsageError` for one that fits several runs and `StoreError` with near misses for none.
    """
    run_id = run_by_id(store, reference) or named(store, reference)
    return store.manifest(run_id or reference)


def run_by_id(store: Store, reference: str) -> str | None:
    """The id of the one run that ``reference`` fits, or of the newest for ``latest``; None for no run."""
    from pytest_crashlab.store.candidates import short_run

    ids = store.run_ids()
    if reference == LATEST:
        heads = store.heads()
        if not heads:
            raise UsageError("There is no run yet; record one with 'pytest --trials=5'.")
        return heads[0].id
    if reference in ids:
        return reference
    if len(reference) < _FEWEST:
        return None
    fits = [i for i in ids if i.startswith(reference) or short_run(i).startswith(reference)]
    fits = fits or [i for i in ids if i.endswith(f"-{reference}")]
    if len(fits) > 1:
        raise UsageError(f"{reference} fits {len(fits)} runs ({_some(fits)}); write more of the id.")
    return fits[0] if fits else None


def named(store: Store, reference: str) -> str | None:
    """The id of the run that the name ``reference`` stands for, as last promoted; None for no name."""
    try:
        return store.refs.read(reference)
    except StoreError:
        return None  # no name can look like this, so it is an id or a mistake


def load_run(run: str | os.PathLike[str], store: Store | str | os.PathLike[str] | None = None) -> StoredRun:
    """A run with its tables, for notebooks and scripts: ``manifest``, ``cases``, ``trials``, ``checks``.

    ``run`` is a run id or a part of it that fits one run, a baseline's name, ``latest``, or the path of a
    ``.crashrun`` file; ``store`` an open store or its folder, by default ``CRASHLAB_STORE``, else the
    nearest ``.crashlab`` here or above. A path object is always a file. Raises :class:`UsageError` for a
    word that fits several runs, :class:`StoreError` for none and :class:`CorruptRun` for a damaged one.
    """
    from pytest_crashlab.store.export import load_export
    from pytest_crashlab.store.runs import Store

    if not isinstance(run, str) or is_file(run):
        return load_export(run)
    if not isinstance(store, Store):
        given = store or os.environ.get("CRASHLAB_STORE")
        store = Store.open(Path(given) if given else nearest_store(Path.cwd()))
    return store.load(find_run(store, run).id)


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:3]) + (" ..." if len(ids) > 3 else "")
