"""The ledger: what happened to runs and names, kept when the runs are gone."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import StoreError
from pytest_crashlab.records.dataset import Split
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store.lock import FileLock
from pytest_crashlab.store.schema import utc_now

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_crashlab.store.schema import Manifest

LOOK = "look"


class Ledger:
    """An append-only file of JSON lines, each with ``kind`` and ``at`` (ISO, UTC)."""

    def __init__(self, path: Path, lock: Path) -> None:
        self._path = path
        self._lock = lock

    def append(self, kind: str, **data: Any) -> dict[str, Any]:
        """Add an entry that lasts through a crash, and return it; :class:`StoreError` when that fails.

        It makes no store: where there is none, nothing can be kept.
        """
        if not self._path.parent.is_dir():
            raise StoreError(f"{self._path} cannot be written: there is no store at {self._path.parent}.")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """How often a holdout was looked at: its runs, comparisons of them, and evidence that was shown.

    ``of_version`` looks at this version of the data set (at these very rows, where it has no
    version); ``of_dataset`` at any. Both count runs that were deleted.
    """

    dataset: str
    version: str | None
    of_version: int
    of_dataset: int

    @property
    def sentence(self) -> str:
        """Which look it is by now."""
        name = " ".join(filter(None, (self.dataset, self.version)))
        which = f"Look {self.of_version} at the holdout of {name}"
        if self.of_dataset == self.of_version:
            return f"{which}; deleted runs count."
        return f"{which}, {self.of_dataset} at any version; deleted runs count."


def record_look(ledger: Ledger, manifest: Manifest, why: str, *, against: str | None = None) -> list[Looks]:
    """Count a look at each holdout that a run measured, and return how many there are now.

    ``why`` "run", "comparison" or "view"; ``against`` the baseline's run id. A run counts once, and
    so does a comparison of the same two runs, by itself or in the candidate's own session; every view
    counts. A run of no holdout counts nothing. Raises :class:`StoreError` where it cannot be written.
    """
    found = []
    for name, version, digest in _holdouts(manifest):
        if not any(_is_known(entry, name, manifest.id, why, against) for entry in ledger.read(LOOK)):
            ledger.append(
                LOOK,
                why=why,
                run=manifest.id,
                baseline=against,
                dataset=name,
                version=version,
                digest=digest,
                split=Split.HOLDOUT.value,
            )
        found.append(count_looks(ledger, name, version, digest))
    return found


def count_looks(ledger: Ledger, dataset: str, version: str | None, digest: str | None = None) -> Looks:
    """The looks so far at the holdout of ``dataset``; its rows' digest stands for a version."""
    looks = [entry for entry in ledger.read(LOOK) if entry.get("dataset") == dataset]
    same = [
        entry
        for entry in looks
        if entry.get("version") == version and (version is not None or entry.get("digest") == digest)
    ]
    return Looks(dataset=dataset, version=version, of_version=len(same), of_dataset=len(looks))


def looks_of(ledger: Ledger, manifest: Manifest) -> list[Looks]:
    """The looks so far at the holdouts that a run measured; none for a run of no holdout."""
    return [count_looks(ledger, *holdout) for holdout in _holdouts(manifest)]


def is_sealed(manifest: Manifest) -> bool:
    """Whether a run's evidence is shown by a counted look alone: it measured a holdout and has ended."""
    return manifest.split == Split.HOLDOUT and manifest.status is not RunStatus.RUNNING


def _holdouts(manifest: Manifest) -> Iterator[tuple[str, str | None, str | None]]:
    """``(name, version, digest)`` of each data set of which the run measured the holdout."""
    uses = [use for use in manifest.datasets if use.get("split") == Split.HOLDOUT]
    for use in uses:
        yield str(use["name"]), use.get("version"), use.get("digest")
    if not uses and manifest.split == Split.HOLDOUT:  # imported: no rows are known
        yield manifest.dataset or "an unnamed data set", manifest.dataset_version, None


def _is_known(entry: dict[str, Any], dataset: str, run: str, why: str, against: str | None) -> bool:
    if entry.get("run") != run or entry.get("dataset") != dataset or why == "view":
        return False
    if why == "run":
        return entry.get("why") == "run"
    return entry.get("why") in ("run", "comparison") and entry.get("baseline") == against
