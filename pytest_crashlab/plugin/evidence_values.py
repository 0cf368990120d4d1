"""From what a test hands over to what JSON can say: no secrets, bounded, and every cut visible."""

from __future__ import annotations

import base64
import codecs
import dataclasses
import enum
import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_crashlab.records.redaction import Redactor

_DEEPEST = 40
_MOST_VALUES = 50_000
_LONGEST_REPR = 2_000
# A text is looked through a little beyond where it is cut, so that a key across the edge is seen whole.
SLACK = 8_192


def plain(value: object) -> Any:
    """``value`` as JSON can say it, as it is now; what it cannot is its ``repr`` with its type.

    Texts are whole. A value too deep or with too many parts says in its place that it is cut.
    """
    return _Plain().of(value, 0)


def is_json(value: object, depth: int = 0) -> bool:
    """Whether ``value`` is made of what JSON has: mappings with text keys, lists, texts, numbers, None."""
    if value is None or isinstance(value, str | int | float):
        return True
    if depth > _DEEPEST:
        return False
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and is_json(v, depth + 1) for k, v in value.items())
    return isinstance(value, list | tuple) and all(is_json(item, depth + 1) for item in value)


def text_of(content: bytes) -> str | None:
    """``content`` as text if that is what it is, though its last character may be cut; else None."""
    if b"\0" in content:
        return None
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(content)
    except UnicodeDecodeError:
        return None


def in_base64(content: bytes) -> str:
    """Bytes as JSON can carry them."""
    return base64.b64encode(content).decode("ascii")


class Finish:
    """Makes the texts of one trial fit to be stored: without secrets, and of bounded length.

    ``limit`` characters of one text are kept, ten times that of all; a cut says how much there was.
    """

    def __init__(self, redactor: Redactor, limit: int) -> None:
        self._redactor = redactor
        self.limit = limit
        self._left = 10 * limit

    def text(self, text: str, size: int | None = None) -> str:
        """The beginning of ``text``; ``size`` its true length, where only its beginning is at hand."""
        limit = min(self.limit, max(self._left, 0))
        whole = len(text) if size is None else size
        kept = self._redactor(text[: limit + SLACK])
        if whole > limit:
            kept = f"{kept[:limit]}{_mark(whole, limit)}"
        self._left -= len(kept)
        return kept

    def both_ends(self, text: str) -> str:
        """Beginning and end of ``text``: what a program printed last is often why it is read."""
        limit = min(self.limit, max(self._left, 0))
        if len(text) <= limit:
            return self.text(text)
        tail = limit // 2
        head = limit - tail
        begin = self._redactor(text[: head + SLACK])[:head]
        end = self._redactor(text[-(tail + SLACK) :])
        self._left -= limit
        return f"{begin}{_mark(len(text), limit)}{end[len(end) - min(tail, len(end)) :]}"

    def value(self, value: Any) -> Any:
        """A plain value with every text in it finished."""
        return self._redactor.within(value, self.text)


def _mark(whole: int, kept: int) -> str:
    return f"\n[... cut: {kept:,} of {whole:,} characters are kept ...]\n"


class _Plain:
    """One conversion: counts the values it makes."""

    def __init__(self) -> None:
        self._left = _MOST_VALUES

    def of(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, enum.Enum):
            return self.of(value.value, depth)
        if isinstance(value, str):
            return str(value)
        if isinstance(value, int):
            return int(value) if abs(value) < 2**63 else str(int(value))
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(float(value))
        if depth > _DEEPEST:
            return "[... cut: too deep ...]"
        try:
            return self._compound(value, depth)
        except Exception as error:  # noqa: BLE001 - foreign objects raise anything, and this is for show
            return {"type": _type(value), "repr": f"[cannot be shown: {type(error).__name__}]"}

    def _compound(self, value: Any, depth: int) -> Any:
        if isinstance(value, Mapping):
            kept = {_key(k): self.of(v, depth + 1) for k, v in self._first(value.items())}
            return {**kept, **({"[... cut ...]": _left_out(value, kept)} if len(kept) < len(value) else {})}
        if isinstance(value, bytes | bytearray | memoryview):
            text = text_of(bytes(value))
            return f"[{len(value):,} bytes]" if text is None else text
        if isinstance(value, Sequence | AbstractSet):
            items = [self.of(item, depth + 1) for item in self._first(value)]
            return [*items, *([_left_out(value, items)] if len(items) < len(value) else [])]
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            shown = [f.name for f in dataclasses.fields(value) if f.repr]
            return {name: self.of(getattr(value, name), depth + 1) for name in shown}
        dump = getattr(value, "model_dump", None)  # pydantic, and what looks like it
        if callable(dump) and not isinstance(value, type):
            return self.of(dump(mode="json"), depth + 1)
        item = getattr(value, "item", None)
        if callable(item) and getattr(value, "ndim", None) == 0:  # a number of numpy and the like
            return self.of(item(), depth + 1)
        text = repr(value)
        return {
            "type": _type(value),
            "repr": text if len(text) <= _LONGEST_REPR else text[:_LONGEST_REPR] + "...",
        }

    def _first(self, values: Any) -> list[Any]:
        """As many of ``values`` as may still be shown."""
        found = list(islice(values, max(self._left, 0)))
        self._left -= len(found)
        return found


def _key(key: object) -> str:
    return key if isinstance(key, str) else repr(key)


def _left_out(values: Any, kept: Any) -> str:
    return f"[... cut: {len(kept):,} of {len(values):,} are kept ...]"


def _type(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
