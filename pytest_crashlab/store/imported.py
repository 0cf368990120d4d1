"""A run that no session recorded: stored whole, or not at all."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from pytest_crashlab.errors import StoreError
from pytest_crashlab.store.atomic import sync_folder, temporary_beside
from pytest_crashlab.store.layout import RunPaths
from pytest_crashlab.store.seal import Tables, write_tables

if TYPE_CHECKING:
    from pytest_crashlab.store.runs import Store, StoredRun


def add_sealed(store: Store, run: StoredRun) -> None:
    """Put a sealed run into the store.

    Raises :class:`StoreError` when there is a run of that id or the disk refuses.
    """
    folder = store.paths.run(run.manifest.id).folder
    temporary = temporary_beside(folder)
    try:
        temporary.mkdir(parents=True)
        write_tables(RunPaths(temporary), Tables(cases=run.cases, trials=run.trials, checks=run.checks))
        (temporary / "manifest.json").write_bytes(run.manifest.to_bytes())
        if folder.exists():
            raise StoreError(f"There is a run {run.manifest.id} in {store.root} already.")
        temporary.rename(folder)
    except OSError as error:
        raise StoreError(f"{folder} cannot be created ({error.strerror or error}).") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    sync_folder(store.paths.runs)
