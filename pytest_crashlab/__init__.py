"""Repeated trials for pytest, gated on an honest comparison with a stored baseline."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_crashlab.records.check import Check as Check
    from pytest_crashlab.records.outcome import Outcome as Outcome
    from pytest_crashlab.records.outcome import Vocabulary as Vocabulary

__version__ = "0.1.0"

# Where each public name lives; a name is imported when it is first asked for, so that
# ``import pytest_crashlab`` costs nothing in a session that does not use the plugin.
_HOMES = {
    "Check": "pytest_crashlab.records.check",
    "Outcome": "pytest_crashlab.records.outcome",
    "Vocabulary": "pytest_crashlab.records.outcome",
}

__all__ = ["Check", "Outcome", "Vocabulary", "__version__"]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
