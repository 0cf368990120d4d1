"""Repeated trials for pytest, gated on an honest comparison with a stored baseline."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_crashlab.datasets.dataset import Dataset as Dataset
    from pytest_crashlab.errors import InstrumentFailure as InstrumentFailure
    from pytest_crashlab.hookspec import hookimpl as hookimpl
    from pytest_crashlab.plugin.author import Trial as Trial
    from pytest_crashlab.provider.bound import Bound as Provider
    from pytest_crashlab.provider.judge import Judge as Judge
    from pytest_crashlab.records.check import Check as Check
    from pytest_crashlab.records.outcome import Outcome as Outcome
    from pytest_crashlab.records.outcome import Vocabulary as Vocabulary
    from pytest_crashlab.sandbox.sandbox import Sandbox as Sandbox
    from pytest_crashlab.store.lookup import load_run as load_run
    from pytest_crashlab.store.runs import Store as Store

__version__ = "0.1.0"

# Where each public name lives; a name is imported when it is first asked for, so that
# ``import pytest_crashlab`` costs nothing in a session that does not use the plugin.
_HOMES = {
    "Check": "pytest_crashlab.records.check",
    "Dataset": "pytest_crashlab.datasets.dataset",
    "InstrumentFailure": "pytest_crashlab.errors",
    "Judge": "pytest_crashlab.provider.judge",
    "Outcome": "pytest_crashlab.records.outcome",
    "Provider": "pytest_crashlab.provider.bound:Bound",
    "Sandbox": "pytest_crashlab.sandbox.sandbox",
    "Store": "pytest_crashlab.store.runs",
    "Trial": "pytest_crashlab.plugin.author",
    "Vocabulary": "pytest_crashlab.records.outcome",
    "hookimpl": "pytest_crashlab.hookspec",
    "load_run": "pytest_crashlab.store.lookup",
}

__all__ = [
    "Check",
    "Dataset",
    "InstrumentFailure",
    "Judge",
    "Outcome",
    "Provider",
    "Sandbox",
    "Store",
    "Trial",
    "Vocabulary",
    "__version__",
    "hookimpl",
    "load_run",
]


def __getattr__(name: str) -> object:
    home, _, other_name = _HOMES.get(name, "").partition(":")
    if not home:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), other_name or name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
