"""The ledger: what happened to runs and names, kept when the runs are gone."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import StoreError
from pytest_crashlab.store.lock import FileLock
from pytest_crashlab.store.schema import utc_now

if TYPE_CHECKING:
    from pathlib import Path


class Ledger:
    """An append-only file of JSON lines, each with ``kind`` and ``at`` (ISO, UTC)."""

    def __init__(self, path: Path, lock: Path) -> None:
        self._path = path
        self._lock = lock

    def append(self, kind: str, **data: Any) -> dict[str, Any]:
        """Add an entry that lasts through a crash, and return it; :class:`StoreError` when that fails."""
        entry = {"kind": kind, "at": utc_now(), **data}
        line = json.dumps(entry, separators=(",", ":")).encode() + b"\n"
        try:
            with FileLock(self._lock):
                handle = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
                try:
                    size = os.fstat(handle).st_size
                    if size and _last_byte(self._path, size) != b"\n":
                        line = b"\n" + line  # a writer was killed in its line; keep it apart from ours
                    written = os.write(handle, line)
                    if written != len(line):
                        os.ftruncate(handle, size)
                        raise StoreError(f"{self._path} cannot be written (the disk is full).")
                    os.fsync(handle)
                finally:
                    os.close(handle)
        except OSError as error:
            raise StoreError(f"{self._path} cannot be written ({error.strerror or error}).") from error
        return entry

    def read(self, kind: str | None = None) -> list[dict[str, Any]]:
        """All entries, oldest first, or those of one kind. Lines a killed writer left are passed over."""
        return [entry for _, entry in self._lines() if entry and kind in (None, entry["kind"])]

    def damaged(self) -> list[int]:
        """The numbers (from 1) of lines that hold no entry."""
        return [number for number, entry in self._lines() if entry is None]

    def _lines(self) -> list[tuple[int, dict[str, Any] | None]]:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"{self._path} cannot be read ({error.strerror or error}).") from error
        return [(n, _entry(line)) for n, line in enumerate(content.split(b"\n"), 1) if line]


def _last_byte(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(size - 1)
        return file.read(1)


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    if isinstance(entry, dict) and isinstance(entry.get("kind"), str):
        return entry
    return None
