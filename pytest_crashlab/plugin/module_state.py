"""What trials leave behind in modules, where the next trial of their process finds it.

Opt-in (``--crashlab-watch-state``), since it looks at the project's modules before and after every trial.
"""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crashlab.plugin.keys import TRIAL_KEY

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping
    from pathlib import Path
    from types import ModuleType

OUTPUT = "crashlab_module_state"
"""Where a worker's part lies in what it tells the controller as it ends."""

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_SEQUENCES = (list, tuple, deque)
_MAPPINGS = (dict, defaultdict, OrderedDict, Counter)
_MOST = 10_000  # members of one container that are looked at
_INSTALLED = ("site-packages", "dist-packages")


@dataclass(slots=True)
class ModuleState:
    """``trials`` that were watched; ``changed`` name -> after how many of them it was not as before."""

    trials: int = 0
    changed: Counter[str] = field(default_factory=Counter)

    def add(self, part: Mapping[str, Any]) -> None:
        """Take over what another process found."""
        self.trials += int(part["trials"])
        self.changed.update(part["changed"])

    def to_mapping(self) -> dict[str, Any]:
        """As it is stored and sent, the most often changed name first."""
        return {"trials": self.trials, "changed": dict(self.changed.most_common())}


class StateWatch:
    """Compares names of modules, and attributes of their classes, before and after each trial.

    Looked at are modules whose file lies below ``root`` and not among installed packages. Plain values are
    compared by value, containers by what is in them, one level deep, caches of functools by their size,
    everything else by identity: what an object changes inside of itself is not seen.
    """

    def __init__(self, root: Path, state: ModuleState) -> None:
        self._root = f"{root}/"
        self._state = state

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Look before the trial's set-up and after its tear-down."""
        if TRIAL_KEY not in item.stash:
            return (yield)
        before = dict(self._names())
        try:
            return (yield)
        finally:
            self._state.trials += 1
            for name, value in self._names():
                if name in before and before[name] != value:
                    self._state.changed[name] += 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """In a worker, tell the controller."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[OUTPUT] = self._state.to_mapping()

    def _names(self) -> Iterator[tuple[str, object]]:
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and file.startswith(self._root) and not _is_installed(file):
                yield from _values(name, module)


def _is_installed(file: str) -> bool:
    return any(folder in file for folder in _INSTALLED)


def _values(name: str, module: ModuleType) -> Iterator[tuple[str, object]]:
    for key, value in list(vars(module).items()):
        if not _is_own(key):
            continue
        if isinstance(value, type):
            if value.__module__ == name:
                yield from _of_class(f"{name}.{key}", value)
            continue
        yield f"{name}.{key}", _token(value)


def _of_class(name: str, cls: type) -> Iterator[tuple[str, object]]:
    for key, value in list(vars(cls).items()):
        if _is_own(key) and not callable(value):
            yield f"{name}.{key}", _token(value)


def _is_own(key: str) -> bool:
    return not key.startswith("__") and key.isidentifier()


def _token(value: object) -> object:
    """What two looks compare; never runs code of the value's own."""
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if kind in _SEQUENCES:
        return kind, len(value), tuple(_member(v) for v in islice(value, _MOST))  # type: ignore[arg-type, call-overload]
    if kind in (set, frozenset):
        return kind, len(value), frozenset(_member(v) for v in islice(value, _MOST))  # type: ignore[arg-type, call-overload]
    if kind in _MAPPINGS:
        pairs = islice(value.items(), _MOST)  # type: ignore[attr-defined]
        return kind, len(value), tuple((_member(k), _member(v)) for k, v in pairs)  # type: ignore[arg-type]
    if kind.__name__ == "_lru_cache_wrapper":
        return kind, value.cache_info().currsize  # type: ignore[attr-defined]
    return kind, id(value)


def _member(value: object) -> object:
    return (type(value), value) if type(value) in _PLAIN else id(value)
