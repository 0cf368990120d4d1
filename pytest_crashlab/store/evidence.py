"""Reading the evidence of one attempt, without that of the others.

Nothing that judges runs imports this module: what a target said can be read, and changes no number.
"""

from __future__ import annotations

import contextlib
import json
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import StoreError
from pytest_crashlab.store.evidence_writer import LOG_GLOB, moment, storable_case

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_crashlab.store.layout import RunPaths

# No attempt that was ever recorded comes near; a document that claims more was made to fill a memory.
_LARGEST = 64 * 2**20
_DEEPEST = 100
_LARGEST_FILE = 1024 * 2**20


def read_evidence(
    run: RunPaths, case: str, trial: int, attempt: int, *, start: float | None = None
) -> dict[str, Any] | None:
    """The evidence of one attempt of a run, None where it left none.

    ``start`` its row's, in seconds since the epoch, finds it in a run that is not sealed too. Raises
    :class:`StoreError` for a file or a document that cannot be read. Stored text is decoded as JSON and
    nothing else.
    """
    key = (storable_case(case), trial)
    if run.evidence.exists():
        found = _one(run.evidence, _SEALED, (*key, attempt))
        if found is not None:
            return found
    if start is None:
        return None
    for log in sorted(run.folder.glob(LOG_GLOB)):
        found = _one(log, _RUNNING, (*key, moment(start)))
        if found is not None:
            return found
    return None


def read_exported_evidence(
    path: str | os.PathLike[str], case: str, trial: int, attempt: int
) -> dict[str, Any] | None:
    """The same out of a ``.crashrun`` file, None also where it was exported without evidence."""
    with _as_store_error(str(path)):
        try:
            with zipfile.ZipFile(path) as archive, archive.open("evidence.db") as file:
                content = file.read(_LARGEST_FILE + 1)
        except KeyError:
            return None
        if len(content) > _LARGEST_FILE:
            raise ValueError(f"it unpacks to more than {_LARGEST_FILE // 2**20} MiB")
        return _in_memory(content, case, trial, attempt)


def _in_memory(content: bytes, case: str, trial: int, attempt: int) -> dict[str, Any] | None:
    import sqlite3

    if not content:
        raise ValueError("it is empty")
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(content)
        return _select(database, _SEALED, (storable_case(case), trial, attempt))


# evidence.db may come from somebody else: a view or a trigger in it is no table of ours
_SEALED = ("evidence", "attempt = ?3")
_RUNNING = ("log", "start BETWEEN ?3 - 1 AND ?3 + 1")


def _one(path: Path, place: tuple[str, str], key: tuple[str, int, int]) -> dict[str, Any] | None:
    import sqlite3

    with _as_store_error(str(path)):
        address = f"{path.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as database:
            return _select(database, place, key)


def _select(
    database: sqlite3.Connection, place: tuple[str, str], key: tuple[str, int, int]
) -> dict[str, Any] | None:
    table, condition = place
    database.execute("PRAGMA trusted_schema=OFF")
    database.execute("PRAGMA query_only=ON")
    kind = database.execute("SELECT type FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    if kind is None or kind[0] != "table":
        raise ValueError("it has no evidence table")
    query = f"SELECT document FROM {table} WHERE case_id = ?1 AND trial = ?2 AND {condition}"  # noqa: S608
    row = database.execute(query, key).fetchone()
    return None if row is None else _unpack(row[0])


def _unpack(blob: object) -> dict[str, Any]:
    if not isinstance(blob, bytes):
        raise ValueError("a document is no compressed text")  # noqa: TRY004 - one kind for all damage
    unpacking = zlib.decompressobj()
    content = unpacking.decompress(blob, _LARGEST)
    if unpacking.unconsumed_tail:
        raise ValueError(f"a document unpacks to more than {_LARGEST // 2**20} MiB")
    if not unpacking.eof:
        raise ValueError("a document is cut off")
    document = json.loads(content, parse_constant=_refuse_constant)
    if not isinstance(document, dict):
        raise ValueError("a document is no JSON object")  # noqa: TRY004 - as above
    _refuse_depth(document)
    return document


def _refuse_constant(name: str) -> None:
    raise ValueError(f"a document holds {name}, which is no JSON")


def _refuse_depth(document: dict[str, Any]) -> None:
    """What the writer makes is a few dozen levels deep; what would overflow a reader's stack is not."""
    level: list[Any] = [document]
    for _ in range(_DEEPEST):
        inner = [value for value in level if isinstance(value, dict | list)]
        if not inner:
            return
        level = [item for value in inner for item in (value.values() if isinstance(value, dict) else value)]
    raise ValueError(f"a document is more than {_DEEPEST} levels deep")


@contextlib.contextmanager
def _as_store_error(where: str) -> Iterator[None]:
    import sqlite3

    try:
        yield
    except (sqlite3.Error, OSError, ValueError, zlib.error, zipfile.BadZipFile, RecursionError) as error:
        raise StoreError(
            f"The evidence in {where} cannot be read ({error}); the run's numbers do not need it."
        ) from error
