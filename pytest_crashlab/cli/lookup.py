"""Which store and which run an argument means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_crashlab.store.lookup import LATEST, find_run, is_file, named, nearest_store, run_by_id
from pytest_crashlab.store.lookup import load_run as _load_run

if TYPE_CHECKING:
    import argparse

    from pytest_crashlab.store import Store, StoredRun

__all__ = [
    "LATEST",
    "RUN_HELP",
    "find_run",
    "is_file",
    "load_run",
    "named",
    "nearest_store",
    "open_store",
    "run_by_id",
]

RUN_HELP = f"a run id, a part of it that fits one run, a baseline's name, a .crashrun file, or {LATEST}"


def open_store(args: argparse.Namespace, *runs: str) -> Store:
    """The store of ``--store``, ``CRASHLAB_STORE`` or the nearest folder; `StoreError` for none.

    Where all ``runs`` that a verb is asked for are files it works without one: unless a store was named,
    an absent one is then as good as an empty one, and nothing is created.
    """
    from pytest_crashlab.store import Store

    given = args.store or os.environ.get("CRASHLAB_STORE")
    root = Path(given) if given else nearest_store(Path.cwd())
    if runs and all(is_file(run) for run in runs) and not given and not root.exists():
        return Store(root)
    return Store.open(root)


def load_run(store: Store, reference: str) -> StoredRun:
    """The run that ``reference`` names with its tables; ``reference`` may also be a ``.crashrun`` file."""
    return _load_run(reference, store)
