"""Parameters as text that is the same in every process and on every machine."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import functools
import re
import types
import uuid
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}")
_PLAIN = (bytes, bytearray, complex, range, slice, type(...), decimal.Decimal, fractions.Fraction)
_BY_REPR = (*_PLAIN, dt.date, dt.time, dt.timedelta, dt.timezone, re.Pattern, uuid.UUID)
_DEPTH = 50


def canonical(value: object, root: Path, fallback: str) -> str:
    """Return ``value`` as text; of an object without a stable one, its type and ``fallback``.

    Paths below ``root`` are written relative to it. Mappings and sets are sorted. The text tells
    types apart: 1, 1.0, True and "1" differ.
    """
    return _Writer(root, fallback).text(value, 0)


class _Writer:
    def __init__(self, root: Path, fallback: str) -> None:
        self._root = root
        self._fallback = fallback
        self._open: set[int] = set()

    def text(self, value: Any, depth: int) -> str:
        if value is None or isinstance(value, bool):
            return repr(value)
        if isinstance(value, enum.Enum):
            return f"{_name(type(value))}.{value.name}"
        kind = type(value)
        if isinstance(value, (str, int, float)):
            base = next(base for base in (str, int, float) if isinstance(value, base))
            plain = base.__repr__(value)
            return f"{base.__name__}:{plain}" if kind is base else f"{_name(kind)}:{plain}"
        if isinstance(value, PurePath):
            return f"path:{self._path(value)}"
        if isinstance(value, _BY_REPR):
            return f"{_name(kind)}:{value!r}"
        if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)):
            return self._named(value)
        if depth > _DEPTH or id(value) in self._open:
            return "..."
        self._open.add(id(value))
        try:
            return self._compound(value, depth + 1)
        finally:
            self._open.discard(id(value))

    def _compound(self, value: Any, depth: int) -> str:
        name = _name(type(value))
        if isinstance(value, dict):
            pairs = sorted((self.text(key, depth), self.text(entry, depth)) for key, entry in value.items())
            return f"{name}{{{_joined(f'{key}={entry}' for key, entry in pairs)}}}"
        if isinstance(value, (set, frozenset)):
            return f"{name}{{{_joined(sorted(self.text(entry, depth) for entry in value))}}}"
        if isinstance(value, (list, tuple)):
            return f"{name}[{_joined(self.text(entry, depth) for entry in value)}]"
        if isinstance(value, functools.partial):
            return f"partial[{self.text([value.func, value.args, value.keywords], depth)}]"
        if isinstance(value, types.MethodType):
            return f"method[{self.text(value.__self__, depth)}, {value.__func__.__qualname__}]"
        fields = _fields(value)
        if fields is not None:
            return f"{name}({_joined(f'{field}={self.text(entry, depth)}' for field, entry in fields)})"
        array = _array(value)
        return f"{name}:{array}" if array is not None else self._by_repr(value, name)

    def _by_repr(self, value: object, name: str) -> str:
        if type(value).__repr__ is not object.__repr__:
            try:
                text = repr(value)
            except Exception:  # noqa: BLE001 - a user's __repr__ may raise anything
                text = "0x0000"
            if not _ADDRESS.search(text):
                return f"{name}:{text}"
        return f"{name}@{self._fallback}"

    def _named(self, value: Any) -> str:
        qualname = getattr(value, "__qualname__", None) or value.__name__
        text = f"{getattr(value, '__module__', None) or ''}:{qualname}"
        return f"{text}@{self._fallback}" if "<" in qualname else text

    def _path(self, path: PurePath) -> str:
        try:
            return path.relative_to(self._root).as_posix()
        except (ValueError, TypeError):
            return path.as_posix()


def _fields(value: Any) -> list[tuple[str, Any]] | None:
    """Return the fields of a dataclass, attrs class or pydantic model, else None."""
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    elif isinstance(getattr(kind, "__attrs_attrs__", None), tuple):
        names = [field.name for field in kind.__attrs_attrs__]
    elif isinstance(getattr(kind, "model_fields", None), dict):
        names = list(kind.model_fields)
    else:
        return None
    return [(name, getattr(value, name)) for name in names if hasattr(value, name)]


def _array(value: Any) -> str | None:
    """Return all of a numpy array, whose repr leaves out the middle; None for other values."""
    if type(value).__module__.partition(".")[0] != "numpy" or not hasattr(value, "tolist"):
        return None
    return f"{getattr(value, 'dtype', '')}{getattr(value, 'shape', '')}{value.tolist()!r}"


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def _name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
