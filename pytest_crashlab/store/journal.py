"""The journal: one line per attempt, written at once, read back after any kind of end."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from time import monotonic  # bound now: a test may put another clock in its place
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import CorruptRun, StoreError
from pytest_crashlab.records.check import CheckRow
from pytest_crashlab.records.trial import TrialRow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_SYNC_EVERY = 0.2
_ENCODER = json.JSONEncoder(separators=(",", ":"))


def encode(row: TrialRow, checks: Sequence[CheckRow] = (), *, text: str | None = None) -> bytes:
    """The journal line of an attempt: ASCII JSON, the fields of ``row.to_json()`` and ``checks``.

    ``text`` is that JSON where it was made before.
    """
    line = _dump(row, checks) if text is None else text
    # JSON for the table reader: it refuses NaN, and turns half a surrogate pair into a NUL
    if "NaN" in line or "Infinity" in line or "\\ud" in line:
        line = _dump(_storable_row(row), [_storable_check(check) for check in checks])
    return line.encode("ascii") + b"\n"


def _dump(row: TrialRow, checks: Sequence[CheckRow]) -> str:
    data: dict[str, Any] = {n: v for n in _TYPES if (v := getattr(row, n)) is not None}
    if checks:
        data["checks"] = [{n: getattr(check, n) for n in _CHECK_TYPES} for check in checks]
    return _ENCODER.encode(data)


def _storable_row(row: TrialRow) -> TrialRow:
    return TrialRow(*map(_storable, row))


def _storable_check(check: CheckRow) -> CheckRow:
    return replace(check, **{field.name: _storable(getattr(check, field.name)) for field in fields(check)})


def _storable(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str) and not isinstance(value, StrEnum):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


class JournalWriter:
    """Appends lines to a journal; each is out of this process when :meth:`append` returns.

    So a killed process loses nothing. The disk is waited for at most every 200 ms, and at the end.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        except OSError as error:
            raise StoreError(f"{path} cannot be opened for writing ({error.strerror}).") from error
        self._size = os.fstat(self._handle).st_size
        self._synced = monotonic()

    def append(self, line: bytes) -> None:
        """Write one line; :class:`StoreError` when the disk does not take it, the journal as before."""
        try:
            written = os.write(self._handle, line)
        except OSError as error:
            raise StoreError(f"{self._path} cannot be written ({error.strerror}).") from error
        if written != len(line):
            os.ftruncate(self._handle, self._size)  # half a line would spoil the next one
            raise StoreError(f"{self._path} cannot be written (the disk is full).")
        self._size += written
        now = monotonic()
        if now - self._synced >= _SYNC_EVERY:
            os.fsync(self._handle)
            self._synced = now

    def close(self) -> None:
        """Wait for the disk and close; nothing happens the second time."""
        if self._handle >= 0:
            handle, self._handle = self._handle, -1
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalContent:
    """What a journal holds up to its last whole line; ``dropped`` counts a torn last line."""

    whole: bytes
    dropped: int


def read_journal(path: Path) -> JournalContent:
    """The whole lines of a journal; a last line that a killed writer left torn is dropped and counted.

    A missing file is an empty journal.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return JournalContent(whole=b"", dropped=0)
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror or error}).") from error
    if not content or content.endswith(b"\n"):
        return JournalContent(whole=content, dropped=0)
    cut = content.rfind(b"\n") + 1
    try:
        decode(content[cut:])
    except ValueError:
        return JournalContent(whole=content[:cut], dropped=1)
    return JournalContent(whole=content + b"\n", dropped=0)  # all but the line's end was written


def decode(line: bytes) -> tuple[TrialRow, tuple[CheckRow, ...]]:
    """The attempt in a journal line; :class:`ValueError` with what is wrong when there is none."""
    data = json.loads(line.decode())  # bytes would be taken for UTF-16 where they look like it
    if not isinstance(data, dict):
        raise ValueError("not an object")  # noqa: TRY004 - one kind of error for every damaged line
    for name, kinds in _TYPES.items():
        value = data.get(name)
        if value is None and name not in _NEEDED:
            continue
        if type(value) not in kinds:  # exactly: a bool is no trial number
            raise ValueError(f"{name} is {value!r}")
    return TrialRow.from_mapping(data), tuple(_check(c) for c in data.get("checks") or ())


def _check(data: Any) -> CheckRow:
    if not isinstance(data, dict):
        raise ValueError(f"a check is {data!r}")  # noqa: TRY004 - as above
    for name, kinds in _CHECK_TYPES.items():
        value = data.get(name)
        if type(value) not in kinds:
            raise ValueError(f"{name} of a check is {value!r}")
    known: dict[str, Any] = {name: data.get(name) for name in _CHECK_TYPES}
    return CheckRow(**known)


_CHECK_TYPES: dict[str, tuple[type, ...]] = {
    "name": (str,),
    "required": (bool,),
    "ok": (bool, type(None)),
    "why": (str, type(None)),
    "site": (str, type(None)),
    "judge": (str, type(None)),
    "value": (int, float, type(None)),
    "at_least": (int, float, type(None)),
    "at_most": (int, float, type(None)),
    "kind": (str, type(None)),
    "failure_class": (str, type(None)),
    "must": (str, type(None)),
}
_TYPES: dict[str, tuple[type, ...]] = {
    "case": (str,),
    "trial": (int,),
    "outcome": (str,),
    "kind": (str,),
    "start": (int, float),
    "duration": (int, float),
    "attempt": (int,),
    "phase": (str,),
    "infra_healthy": (bool,),
    "target_completed": (bool,),
    "t": (int, float),
    "horizon": (int, float),
    "t_unit": (str,),
    "run_duration": (int, float),
    "prepare_s": (int, float),
    "verify_s": (int, float),
    "record_s": (int, float),
    "worker": (str,),
    "site": (str,),
    "failure_class": (str,),
    "message": (str,),
    "record_error": (str,),
    "tokens_in": (int,),
    "tokens_out": (int,),
    "cost_usd": (int, float),
    "cost_basis": (str,),
    "prompt": (str,),
    "models": (str,),
    "judge_calls": (int,),
    "judge_tokens_in": (int,),
    "judge_tokens_out": (int,),
    "judge_s": (int, float),
    "judge_cost_usd": (int, float),
    "judge_cost_basis": (str,),
    "judge_models": (str,),
    "judge_voted": (int,),
    "judge_split": (int,),
    "replayed": (bool,),
    "answers": (str,),
    "cached": (bool,),
}
_NEEDED = {"case", "trial", "start", "duration"}


def decode_lines(
    whole: bytes, where: Path, *, damaged: list[int] | None = None
) -> Iterator[tuple[TrialRow, tuple[CheckRow, ...]]]:
    """Every attempt of a journal's whole lines, in order.

    A line that holds none raises :class:`CorruptRun` with its number (from 1), or, when ``damaged``
    is given, is passed over and its number appended there.
    """
    for number, line in enumerate(whole.split(b"\n"), 1):
        if not line:
            continue
        try:
            yield decode(line)
        except ValueError as error:
            if damaged is None:
                raise CorruptRun(
                    f"Line {number} of {where} holds no trial ({error}); remove that line, "
                    "or recover the run without its damaged lines."
                ) from None
            damaged.append(number)
