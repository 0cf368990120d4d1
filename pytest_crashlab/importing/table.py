"""Trials as JSON lines or as a Parquet table."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import UsageError
from pytest_crashlab.importing.rows import FIELDS, source_row
from pytest_crashlab.importing.source import Source, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_crashlab.importing.rows import SourceRow


def read_json_lines(path: Path, names: Mapping[str, str]) -> Source:
    """The trials of a file with one JSON object a line, plain or gzip. `UsageError` for bad lines."""
    content = read_bytes(path)
    text = content
    if content[:2] == b"\x1f\x8b":
        try:
            text = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise UsageError(f"{path} is no whole gzip file ({error}); nothing was imported.") from None
    rows: list[SourceRow] = []
    problems: list[tuple[str, str]] = []
    keys: set[str] = set()
    for number, line in enumerate(text.split(b"\n"), 1):
        if not line.strip():
            continue
        where = f"line {number}"
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError("not an object")  # noqa: TRY004, TRY301 - told as any bad line
            keys |= record.keys()
            rows.append(source_row(record, names, where))
        except (ValueError, RecursionError) as error:
            problems.append((where, _why(error)))
    _known_columns(path, names, keys, any_rows=bool(rows or problems))
    refuse(str(path), problems)
    return Source(kind="JSON lines", path=str(path), sha256=hashlib.sha256(content).hexdigest(), rows=rows)


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return "no JSON"
    return "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)


def read_parquet(path: Path, names: Mapping[str, str]) -> Source:
    """The trials of a Parquet table, one a row. `UsageError` for bad rows."""
    import polars as pl

    content = read_bytes(path)
    try:
        frame = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise UsageError(f"{path} cannot be read as Parquet ({first}).") from None
    _known_columns(path, names, set(frame.columns), any_rows=True)
    wanted = [names.get(field, field) for field in FIELDS]
    rows: list[SourceRow] = []
    problems: list[tuple[str, str]] = []
    for number, record in enumerate(_records(frame.select([n for n in wanted if n in frame.columns])), 1):
        try:
            rows.append(source_row(record, names, f"row {number}"))
        except ValueError as error:
            problems.append((f"row {number}", str(error)))
    refuse(str(path), problems)
    return Source(kind="Parquet", path=str(path), sha256=hashlib.sha256(content).hexdigest(), rows=rows)


def _records(frame: Any) -> Iterator[dict[str, Any]]:
    yield from frame.iter_rows(named=True)


def _known_columns(path: Path, names: Mapping[str, str], keys: set[str], *, any_rows: bool) -> None:
    """A mapping names columns that are there, and a case has to be one of them."""
    if not any_rows:
        raise UsageError(f"{path} holds no row.")
    wrong = [f"{field}={name}" for field, name in names.items() if name not in keys]
    have = ", ".join(sorted(keys)) or "none"
    if wrong:
        raise UsageError(f"--map {wrong[0]}: {path} has no column of that name; it has {have}.")
    case = names.get("case", "case")
    if keys and case not in keys:
        raise UsageError(
            f"{path} has no column {case!r}; say which it is with --map case=NAME (it has {have})."
        )


def read_bytes(path: Path) -> bytes:
    """A file's bytes; `UsageError` where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror or error}).") from None
