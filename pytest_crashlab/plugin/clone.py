"""One trial's item: a copy of a collected item that shares nothing a run changes.

Parent, fixture information and call specification are shared, so that parameter indices and with
them higher-scoped fixtures stay the same between the trials of a case. Fresh are: id, keywords,
markers, stash, user properties, report sections, fixture request, class instance, and a doctest's
globals.
"""

from __future__ import annotations

import copy
import functools
import io
import types
from collections import Counter
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crashlab.plugin import compat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Attributes that clone() sets itself, and those that every trial of a case may share.
_FRESH = frozenset(
    {"keywords", "own_markers", "extra_keyword_matches", "stash", "_store", "_report_sections"}
    | {"user_properties", "_request", "funcargs", "_obj", "_instance", "_excinfo", "dtest", "_id", "_nodeid"}
)
_SHARED = frozenset(
    {"name", "parent", "config", "session", "path", "fspath", "originalname", "callspec", "_fixtureinfo"}
    | {"fixturenames", "runner", "obj", "location"}
)
_CONTAINERS = (list, dict, set, bytearray)
_EMPTY_CELL = types.CellType()


class CannotRepeat(Exception):
    """An item whose copy would not be independent; the message says why."""


class Cloner:
    """Makes the trials of cases; knows which containers several nodes of ``items`` share."""

    def __init__(self, items: Iterable[pytest.Item]) -> None:
        self._seen = _owners(items)
        self._kinds: dict[type[pytest.Item], _Kind] = {}

    def prepare(self, item: pytest.Item) -> Callable[[], pytest.Item]:
        """Return a function that makes a copy of ``item`` each time; ``CannotRepeat`` if none can be made.

        The state of ``item`` at this moment is what every copy starts with.
        """
        cls = type(item)
        kind = self._kinds.get(cls)
        if kind is None:
            kind = self._kinds[cls] = _Kind(cls)
        if kind.refusal is not None:
            raise CannotRepeat(kind.refusal)
        state = kind.state(item)
        parts = {name: value for name, value in state.items() if name not in _FRESH}
        shared = {name: value for name, value in parts.items() if self._may_share(item, name, value)}
        own = [(name, value) for name, value in parts.items() if name not in shared]
        in_slots = [(name, shared.pop(name)) for name in shared.keys() - vars(item).keys()]
        renew = compat.renewal(item)
        renew_fixtures = _fixture_renewal(item, state)
        bind = _binding(item, state)
        new_of, set_raw = cls.__new__, object.__setattr__

        def make() -> pytest.Item:
            new = new_of(cls)
            vars(new).update(shared)
            for name, value in in_slots:
                set_raw(new, name, value)
            for name, value in own:
                set_raw(new, name, _own_copy(value, item, new, {}))
            renew(new)
            renew_fixtures(new)
            if bind is not None:
                bind(new)
            return new

        return make

    def _may_share(self, item: pytest.Item, name: str, value: object) -> bool:
        """Tell whether all trials may share ``value``; refuse what can be neither shared nor copied."""
        if name in _SHARED or value is None or isinstance(value, (str, int, float, bool)):
            return True
        if isinstance(value, types.MethodType) and value.__self__ is item:
            return False
        if type(value) in _CONTAINERS:
            return self._seen[id(value)] > 1
        _check_shareable(item, name, value)
        return True


class _Kind:
    """What items of one class have in common; ``refusal`` why they cannot be copied, None if they can."""

    def __init__(self, cls: type[pytest.Item]) -> None:
        self._slots = tuple(_slots(cls))
        self.refusal: str | None = None
        if {"__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__"} & _defined_by(cls, below=pytest.Item):
            self.refusal = f"{_name(cls)} defines its own way to be copied"
            return
        try:
            cls.__new__(cls)
        except TypeError as error:
            self.refusal = f"{_name(cls)} cannot be made anew: {error}"

    def state(self, item: pytest.Item) -> dict[str, Any]:
        """Return all attributes that ``item`` itself holds, in its dictionary and in slots."""
        state = dict(vars(item))
        for name in self._slots:
            try:
                state[name] = getattr(item, name)
            except AttributeError:
                continue
        return state


def _slots(cls: type) -> Iterator[str]:
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name in {"__dict__", "__weakref__"}:
                continue
            private = name.startswith("__") and not name.endswith("__")
            yield f"_{base.__name__.lstrip('_')}{name}" if private else name


def _fixture_renewal(item: pytest.Item, state: dict[str, Any]) -> Callable[[pytest.Item], None]:
    """Return what gives a copy fixture values, and a doctest globals, that no other trial fills or clears.

    A request that pytest can make anew is left to it: it does when it runs an item whose ``_request``
    is False, as it is after every run.
    """
    dtest = state.get("dtest")
    has_values = "funcargs" in state
    has_request = "_request" in state
    is_made_at_start = hasattr(item, "_initrequest")

    def renew(new: pytest.Item) -> None:
        if has_values:
            setattr_raw(new, "funcargs", {})
        if has_request:
            setattr_raw(new, "_request", False if is_made_at_start else compat.fresh_request(new))
        if dtest is not None:
            copied = copy.copy(dtest)
            if isinstance(getattr(copied, "globs", None), dict):
                copied.globs = copied.globs.copy()
            setattr_raw(new, "dtest", copied)

    return renew


def _binding(item: pytest.Item, state: dict[str, Any]) -> Callable[[Any], None] | None:
    """Return what gives a copy of ``item`` the object it tests, on a class instance of its own.

    None: leave it to pytest, which makes the instance when the trial is set up.
    """
    obj: Any = state.get("_obj")
    instance: Any = state.get("_instance")

    def shared(new: pytest.Item) -> None:
        setattr_raw(new, "_obj", obj)

    def rebound(new: Any) -> None:
        setattr_raw(new, "_obj", types.MethodType(obj.__func__, new.instance))

    if obj is None:
        return None
    if instance is None:
        return shared
    if getattr(instance, getattr(item, "originalname", item.name), None) == obj:
        return None
    # A plugin put another object in place at collection.
    is_method = isinstance(obj, types.MethodType) and obj.__self__ is instance
    return rebound if is_method else shared


def setattr_raw(item: pytest.Item, name: str, value: object) -> None:
    """Set an attribute as pytest's own constructor did, past properties of subclasses."""
    object.__setattr__(item, name, value)


def _check_shareable(item: pytest.Item, name: str, value: object) -> None:
    """Refuse what a first trial would use up or what leads back to the item that was copied."""
    where = f"{_name(type(item))} keeps"
    if compat.is_request(value):
        raise CannotRepeat(f"{where} in .{name} the fixture request of one run")
    if isinstance(value, (Iterator, Coroutine, io.IOBase)):
        raise CannotRepeat(f"{where} in .{name} a {type(value).__name__}, which the first trial would use up")
    if any(held is item or getattr(held, "__self__", None) is item for held in _held_by(value)):
        raise CannotRepeat(f"{where} in .{name} a {type(value).__name__} that refers back to it")


def _held_by(value: object) -> list[object]:
    """Return what ``value`` holds at first hand."""
    if isinstance(value, functools.partial):
        return [*value.args, *value.keywords.values(), value.func]
    if isinstance(value, types.FunctionType):
        cells = value.__closure__ or ()
        return [cell.cell_contents for cell in cells if cell != _EMPTY_CELL]
    if isinstance(value, type):
        return []
    try:
        return list(vars(value).values())
    except TypeError:
        return []


def _own_copy(value: Any, old: pytest.Item, new: pytest.Item, memo: dict[int, Any]) -> Any:
    """Copy nested built-in containers and bind methods to ``new``; everything else is shared."""
    kind = type(value)
    if kind is types.MethodType and value.__self__ is old:
        return types.MethodType(value.__func__, new)
    if kind not in _CONTAINERS:
        return value
    if id(value) in memo:
        return memo[id(value)]
    copied: Any = kind() if kind in {list, dict} else kind(value)
    memo[id(value)] = copied
    if kind is list:
        copied.extend(_own_copy(entry, old, new, memo) for entry in value)
    elif kind is dict:
        copied.update((key, _own_copy(entry, old, new, memo)) for key, entry in value.items())
    return copied


def _owners(items: Iterable[pytest.Item]) -> Counter[int]:
    """Count for each container, by identity, how many nodes hold it."""
    owners: Counter[int] = Counter()
    parents: set[pytest.Collector] = set()
    for item in items:
        if item.parent is not None:
            parents.add(item.parent)
        for name, value in vars(item).items():
            if name not in _FRESH and name not in _SHARED and type(value) in _CONTAINERS:
                owners[id(value)] += 1
    for parent in list(parents):
        for node in parent.iter_parents():
            parents.add(node)  # type: ignore[arg-type]
    for parent in parents:
        for value in vars(parent).values():
            if type(value) in _CONTAINERS:
                owners[id(value)] += 1
    return owners


def _defined_by(cls: type, *, below: type) -> set[str]:
    """Return the names that ``cls`` and its bases define, without those that ``below`` has too."""
    names: set[str] = set()
    for base in cls.__mro__:
        if base not in below.__mro__:
            names |= base.__dict__.keys()
    return names


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
