"""Small sources of imported trials, and the command on them."""

from __future__ import annotations

import json

from pytest_crashlab import Store, load_run
from pytest_crashlab.cli import main


def json_lines(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


def trials(cases, **fields):
    """Rows of P, F, or a label per trial: ``{"a": "PFP"}``."""
    return [
        {"case": case, "trial": n, "passed": letter == "P", **fields}
        for case, letters in cases.items()
        for n, letter in enumerate(letters, 1)
    ]


def bring_in(folder, *args):
    """Import with the command; the runs by their arm (or name), in order of the arms."""
    store = folder / "store"
    before = set(Store.open(store).run_ids()) if store.exists() else set()
    assert main(["--store", str(store), "import", *map(str, args)]) == 0
    new = set(Store.open(store).run_ids()) - before
    runs = [load_run(run_id, store) for run_id in new]
    return {run.manifest.imported["arm"]: run for run in runs}
