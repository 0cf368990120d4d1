"""What stays: runs, their names, and which run is meant by a name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_crashlab.store.plan import Plan as Plan
    from pytest_crashlab.store.runs import RunWriter as RunWriter
    from pytest_crashlab.store.runs import Store as Store
    from pytest_crashlab.store.runs import StoredRun as StoredRun
    from pytest_crashlab.store.schema import Manifest as Manifest

_HOMES = {
    "Manifest": "pytest_crashlab.store.schema",
    "Plan": "pytest_crashlab.store.plan",
    "RunWriter": "pytest_crashlab.store.runs",
    "Store": "pytest_crashlab.store.runs",
    "StoredRun": "pytest_crashlab.store.runs",
}

__all__ = ["Manifest", "Plan", "RunWriter", "Store", "StoredRun"]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
