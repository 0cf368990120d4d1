"""Exported runs: one small ``.crashrun`` file, a zip of a run's manifest and tables."""

from __future__ import annotations

import contextlib
import io
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_crashlab.errors import CorruptRun, StoreError
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store.atomic import move_into_place, temporary_beside
from pytest_crashlab.store.runs import StoredRun
from pytest_crashlab.store.schema import Manifest
from pytest_crashlab.store.seal import read_tables

if TYPE_CHECKING:
    import os

    from pytest_crashlab.store.runs import Store

_MANIFEST = "manifest.json"
_TABLES = {"cases": "cases.parquet", "trials": "trials.parquet", "checks": "checks.parquet"}
_OPTIONAL = ("calls.parquet",)
_EVIDENCE = "evidence.db"
# No run that was ever measured comes near; a file that claims more was made to fill a memory.
_LARGEST = 256 * 2**20
_MOST_ROWS = 10_000_000
# The same run gives the same bytes, so that a committed file changes only with the run.
_NO_DATE = (1980, 1, 1, 0, 0, 0)


def export_run(store: Store, run_id: str, path: str | os.PathLike[str], *, evidence: bool = False) -> Path:
    """Write a sealed run to ``path``, whole or not at all; ``evidence`` adds inputs, outputs, traces.

    Raises :class:`StoreError` for a run that is still running or a path that cannot be written.
    """
    run = store.load(run_id)  # a run that cannot be read is not exported
    if run.manifest.status is RunStatus.RUNNING:
        raise StoreError(f"Run {run_id} has not ended; 'crashlab recover {run_id}' seals what there is.")
    folder = store.paths.run(run_id).folder
    names = [_MANIFEST, *_TABLES.values(), *_OPTIONAL, *([_EVIDENCE] if evidence else [])]
    target = Path(path)
    temporary = temporary_beside(target)
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                if (folder / name).exists():
                    _add(archive, name, (folder / name).read_bytes())
        move_into_place(temporary, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise StoreError(f"{target} cannot be written ({error.strerror or error}).") from error
    return target


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, _NO_DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, content)


def load_export(path: str | os.PathLike[str]) -> StoredRun:
    """The run in a ``.crashrun`` file. Nothing is unpacked to disk; evidence is not read.

    Raises :class:`CorruptRun` for a file that is no export, lacks a part, has a part twice or claims
    a size that no run has, :class:`FormatTooNew`, and :class:`StoreError` when it cannot be opened.
    """
    source = Path(path)
    try:
        with zipfile.ZipFile(source) as archive:
            _check_names(archive, source)
            content = _part(archive, _MANIFEST, source)
            manifest = Manifest.from_bytes(content, f"{source}/{_MANIFEST}")
            parts = {key: io.BytesIO(_part(archive, name, source)) for key, name in _TABLES.items()}
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError, ValueError) as error:
        raise CorruptRun(f"{source} is no exported run ({error}); export it again.") from error
    except OSError as error:
        raise StoreError(f"{source} cannot be read ({error.strerror or error}).") from error
    _check_rows(parts, source)
    tables = read_tables(parts, str(source))
    return StoredRun.of(manifest, tables)


def _check_names(archive: zipfile.ZipFile, source: Path) -> None:
    names = archive.namelist()
    known = {_MANIFEST, _EVIDENCE, *_TABLES.values(), *_OPTIONAL}
    strange = [name for name in names if name not in known]
    if strange:
        raise CorruptRun(f"{source} holds {strange[0][:80]!r}, which no exported run does; export it again.")
    if len(set(names)) != len(names):
        raise CorruptRun(f"{source} holds a part twice; export it again.")
    packings = {part.compress_type for part in archive.infolist()}
    if packings - {zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED}:
        raise CorruptRun(f"{source} is packed as no exported run is; export it again.")


def _part(archive: zipfile.ZipFile, name: str, source: Path) -> bytes:
    try:
        file = archive.open(name)
    except KeyError:
        raise CorruptRun(f"{source} lacks {name}; export it again.") from None
    with file:
        content = file.read(_LARGEST + 1)  # what the directory says of its size may be untrue
    if len(content) > _LARGEST:
        raise CorruptRun(f"{source} is refused: {name} unpacks to more than {_LARGEST // 2**20} MiB.")
    return content


def _check_rows(parts: dict[str, io.BytesIO], source: Path) -> None:
    import polars as pl

    for key, part in parts.items():
        try:
            rows = pl.scan_parquet(part).select(pl.len()).collect().item()
        except (OSError, pl.exceptions.PolarsError) as error:
            first = (str(error).splitlines() or [""])[0]
            raise CorruptRun(
                f"{source}/{_TABLES[key]} cannot be read ({first}); export the run again."
            ) from error
        if rows > _MOST_ROWS:
            raise CorruptRun(f"{source} is refused: {_TABLES[key]} claims {rows} rows.")
        part.seek(0)
