"""Files of rows: JSON lines, CSV and Parquet, each row with the place it stands at."""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import json
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_crashlab.datasets.checking import check_rows
from pytest_crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_crashlab.records.dataset import Row

_Placed = tuple[str, Any]


def read_file(path: Path, columns: Mapping[str, str]) -> tuple[Row, ...]:
    """The checked rows of a file. Raises ``UsageError`` that names the file and the line."""
    readers = {".jsonl": _json_lines, ".ndjson": _json_lines, ".csv": _csv, ".parquet": _parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UsageError(f"{path} is of no known kind; give a .jsonl, .csv or .parquet file")
    try:
        labels = columns.get("labels", "labels") if reader is _csv else None
        given = reader(path) if labels is None else _with_lists(reader(path), labels)
        return check_rows(given, columns=columns, source=str(path))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise UsageError(f"data set {path} cannot be read ({error.strerror or error})") from None


def _json_lines(path: Path) -> Iterator[_Placed]:
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                where = f"{path.name}:{number}"
                yield where, _decoded(line, where)


def _decoded(line: str, where: str) -> Any:
    try:
        return json.loads(line, object_pairs_hook=_each_key_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise UsageError(f"{where} is no JSON ({error.msg} at column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} cannot be read: {error}") from None


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"it has the key {twice!r} twice; keep one of them")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value; write null or a text")


def _csv(path: Path) -> Iterator[_Placed]:
    """Rows by the names in the first line; a cell is text, and an empty one is as if it were not there."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, [])
            if len(set(header)) < len(header):
                raise UsageError(f"{path.name}:1 names a column twice; each column has a name of its own")
            last = reader.line_num
            for cells in reader:
                where, last = f"{path.name}:{last + 1}", reader.line_num
                if not cells:
                    continue
                if len(cells) != len(header):
                    raise UsageError(f"{where} has {len(cells)} cells, and the first line has {len(header)}")
                yield where, {name: cell for name, cell in zip(header, cells, strict=True) if cell != ""}
        except csv.Error as error:
            raise UsageError(f"{path.name}:{reader.line_num} is no CSV ({error})") from None


def _with_lists(rows: Iterator[_Placed], column: str) -> Iterator[_Placed]:
    for where, row in rows:
        if column in row:
            row[column] = [part.strip() for part in row[column].split(",") if part.strip()]
        yield where, row


def _parquet(path: Path) -> Iterator[_Placed]:
    import polars as pl
    from polars.exceptions import PolarsError

    try:
        with path.open("rb") as file:
            table = pl.read_parquet(file)
    except PolarsError as error:
        raise UsageError(f"{path} is no Parquet file ({str(error).splitlines()[0]})") from None
    for number, row in enumerate(table.iter_rows(named=True), 1):
        yield (
            f"{path.name}, row {number}",
            {key: _plain(cell) for key, cell in row.items() if cell is not None},
        )


def _plain(cell: Any) -> Any:
    """Dates and decimals as text; everything else as it is, for the check to judge."""
    if isinstance(cell, dict):
        return {key: _plain(value) for key, value in cell.items()}
    if isinstance(cell, list):
        return [_plain(value) for value in cell]
    if isinstance(cell, dt.date | dt.time):
        return cell.isoformat()
    return str(cell) if isinstance(cell, dt.timedelta | decimal.Decimal) else cell
