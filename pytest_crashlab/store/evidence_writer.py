"""Evidence as a run goes on: one SQLite file per process, one compressed JSON document per attempt."""

from __future__ import annotations

import json
import os
import zlib
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import StoreError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from pathlib import Path

FORMAT = 1
LOG_GLOB = "evidence-*.db"
_LEVEL = 3  # zlib's: half the time of its default for a few percent more of disk
_MICROSECONDS = 1e6


def log_path(folder: Path, worker: str) -> Path:
    """The file in which one process of a run writes its evidence."""
    return folder / f"evidence-{worker}.db"


def moment(start: float) -> int:
    """A row's ``start`` (seconds since the epoch) in whole microseconds: what tells attempts apart."""
    return round(start * _MICROSECONDS)


def storable_case(case: str) -> str:
    """A case id as the tables have it: half a surrogate pair is no text for SQLite either."""
    if case.isascii():
        return case
    return case.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def pack(document: Mapping[str, Any]) -> bytes:
    """A document as it is stored: compact ASCII JSON under zlib."""
    return zlib.compress(json.dumps(document, separators=(",", ":")).encode("ascii"), _LEVEL)


class EvidenceWriter:
    """Writes the evidence of one process of a run, each attempt in a transaction of its own.

    So a killed process loses nothing that :meth:`write` returned from. Which attempt of its trial it was
    is not known here: the controller counts them, and :func:`~.evidence_merge.merge_evidence` finds it
    by the row's ``start``. The file is made with the first document.
    """

    def __init__(self, folder: Path, worker: str) -> None:
        self._folder = folder
        self._path = log_path(folder, worker)
        self._process = os.getpid()
        self._database: sqlite3.Connection | None = None
        self._waiting: list[tuple[str, int, int, bytes]] = []

    def write(self, case: str, trial: int, start: float, document: Mapping[str, Any]) -> None:
        """Keep the evidence of the attempt that began at ``start`` (seconds since the epoch).

        Raises :class:`StoreError` when the disk does not take it. While the run's folder is not there
        yet, as when a worker is faster than its controller, documents wait in memory.
        """
        import sqlite3

        if os.getpid() != self._process:
            return  # a child that a test forked and that ran on: it owns nothing of the run
        self._waiting.append((storable_case(case), trial, moment(start), pack(document)))
        if self._database is None and not self._folder.is_dir():
            return
        waiting, self._waiting = self._waiting, []
        try:
            if self._database is None:
                self._database = _open_log(self._path)
            with self._database:
                self._database.executemany("INSERT OR REPLACE INTO log VALUES (?, ?, ?, ?)", waiting)
        except sqlite3.Error as error:
            raise StoreError(f"{self._path} cannot be written ({error}).") from error

    @property
    def waits_for_folder(self) -> bool:
        """Whether documents are in memory because the run's folder is not there."""
        return bool(self._waiting) and not self._folder.is_dir()

    def close(self) -> None:
        """Write what waited and close; what has no folder to go to is dropped with a ``StoreError``."""
        import sqlite3

        if os.getpid() != self._process:
            return
        waiting, self._waiting = self._waiting, []
        try:
            if waiting and self._database is None:
                self._database = _open_log(self._path)
            if self._database is not None:
                with self._database:
                    self._database.executemany("INSERT OR REPLACE INTO log VALUES (?, ?, ?, ?)", waiting)
                self._database.close()
        except sqlite3.Error as error:
            raise StoreError(f"{self._path} cannot be written ({error}).") from error
        finally:
            self._database = None


def _open_log(path: Path) -> sqlite3.Connection:
    import sqlite3

    # tests may hand the end of a trial to another thread; there is still one writer at a time
    database = sqlite3.connect(path, check_same_thread=False)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=NORMAL")  # waiting for the disk per trial would cost more than it
    database.execute(
        "CREATE TABLE IF NOT EXISTS log (case_id TEXT, trial INTEGER, start INTEGER, document BLOB, "
        "PRIMARY KEY (case_id, trial, start))"
    )
    database.execute(f"PRAGMA user_version={FORMAT}")
    return database
