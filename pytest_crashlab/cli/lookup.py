"""Which store and which run an argument means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_crashlab.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from pytest_crashlab.store import Manifest, Store, StoredRun

FOLDER = ".crashlab"
LATEST = "latest"
RUN_HELP = f"a run id, a part of it that fits one run, a baseline's name, a .crashrun file, or {LATEST}"
_FEWEST = 4


def open_store(args: argparse.Namespace) -> Store:
    """The store of ``--store``, ``CRASHLAB_STORE`` or the nearest folder; `StoreError` for none."""
    from pytest_crashlab.store import Store

    given = args.store or os.environ.get("CRASHLAB_STORE")
    return Store.open(Path(given) if given else nearest_store(Path.cwd()))


def nearest_store(folder: Path) -> Path:
    """The ``.crashlab`` of ``folder`` or of the nearest one above it that has one; else ``folder``'s."""
    for candidate in (folder, *folder.parents):
        if (candidate / FOLDER).is_dir():
            return candidate / FOLDER
    return folder / FOLDER


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
        manifests = store.manifests()
        if not manifests:
            raise UsageError("There is no run yet; record one with 'pytest --trials=5'.")
        return manifests[0].id
    if reference in ids:
        return reference
    if len(reference) < _FEWEST:
        return None
    fits = [i for i in ids if i.startswith(reference) or short_run(i).startswith(reference)]
    fits = fits or [i for i in ids if i.endswith(f"-{reference}")]
    if len(fits) > 1:
        raise UsageError(f"{reference} fits {len(fits)} runs ({_some(fits)}); write more of the id.")
    return fits[0] if fits else None


def load_run(store: Store, reference: str) -> StoredRun:
    """The run that ``reference`` names with its tables; ``reference`` may also be a ``.crashrun`` file."""
    if reference.endswith(".crashrun"):
        from pytest_crashlab.store.export import load_export

        return load_export(reference)
    return store.load(find_run(store, reference).id)


def named(store: Store, reference: str) -> str | None:
    """The id of the run that the name ``reference`` stands for, as last promoted; None for no name."""
    from pytest_crashlab.errors import StoreError

    try:
        return store.refs.read(reference)
    except StoreError:
        return None  # no name can look like this, so it is an id or a mistake


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:3]) + (" ..." if len(ids) > 3 else "")
