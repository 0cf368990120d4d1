"""From mappings to rows: what each may hold, and a sentence that names the one that is wrong."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from pytest_crashlab.datasets.dataset import FIELDS
from pytest_crashlab.errors import UsageError
from pytest_crashlab.records.dataset import Row, content_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_OWN_ID = 12


class _Given(BaseModel):
    """The fields of a row as they are written."""

    model_config = ConfigDict(strict=True, extra="forbid")

    id: str | int | None = None
    input: JsonValue = None
    expected: JsonValue = None
    metadata: dict[str, JsonValue] | None = None
    labels: list[str] | None = None


def check_rows(
    given: Iterable[tuple[str, Any]], *, columns: Mapping[str, str], source: str
) -> tuple[Row, ...]:
    """The rows of ``(place, mapping)`` pairs.

    ``columns``: field -> the key that holds it. Keys that are no field go to the metadata. Raises
    ``UsageError`` that names the place of a row with a wrong value, with a key that looks like a
    misspelt field, or with the id of an earlier one.
    """
    _refuse_unknown_fields(columns, source)
    rows: list[Row] = []
    seen: dict[str, Row] = {}
    unused = set(columns.values())
    for where, mapping in given:
        if not hasattr(mapping, "keys"):
            raise UsageError(
                f'{where} is {type(mapping).__name__}; write a row with keys, as {{"input": ...}}'
            )
        unused -= set(mapping.keys())
        row = _row(where, _fields(where, dict(mapping), columns))
        if row.id in seen:
            raise UsageError(_repeated(row, seen[row.id]))
        seen[row.id] = row
        rows.append(row)
    if not rows:
        raise UsageError(f"{source} has no row")
    if unused:
        raise UsageError(f"{source} has no {min(unused)!r} in any row, and columns= names it")
    return tuple(rows)


def _refuse_unknown_fields(columns: Mapping[str, str], source: str) -> None:
    unknown = sorted(set(columns) - set(FIELDS))
    if unknown:
        raise UsageError(
            f"{source}: columns= names the field {unknown[0]!r}; the fields of a row are {', '.join(FIELDS)}"
        )


def _fields(where: str, mapping: dict[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a row, by their own names; every other key goes into the metadata."""
    fields: dict[str, Any] = {}
    for field in FIELDS:
        key = columns.get(field, field)
        if key in mapping:
            fields[field] = mapping.pop(key)
    others = {str(key): value for key, value in mapping.items()}
    for key in others:
        near = get_close_matches(key.lower(), [f for f in FIELDS if f not in fields], n=1, cutoff=0.8)
        if near and near[0] not in columns:
            raise UsageError(
                f"{where} has the key {key!r}: if that is its {near[0]}, rename it or give "
                f"columns={{{near[0]!r}: {key!r}}}; if it is not, move it into metadata"
            )
    metadata = fields.get("metadata")
    if others and (metadata is None or isinstance(metadata, dict)):
        twice = sorted(set(others) & set(metadata or {}))
        if twice:
            raise UsageError(f"{where} has {twice[0]!r} both beside metadata and in it; keep one of them")
        fields["metadata"] = {**(metadata or {}), **others}
    return fields


def _row(where: str, fields: dict[str, Any]) -> Row:
    try:
        given = _Given.model_validate(fields)
        content = content_of(given.input, given.expected)
        content_of(given.metadata, None)
    except ValidationError as error:
        raise UsageError(f"{where} is no row: {_first(error)}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is no row: it holds what JSON cannot ({error})") from None
    own = None if given.id is None else str(given.id)
    if own is not None and not own.strip():
        raise UsageError(f"{where} has an empty id; write one, or leave the id out")
    return Row(
        id=content[:_OWN_ID] if own is None else own,
        input=given.input,
        expected=given.expected,
        metadata=given.metadata or {},
        labels=tuple(given.labels or ()),
        content=content,
        where=where,
    )


def _first(error: ValidationError) -> str:
    """The field that is wrong and why, without the names of pydantic's own branches."""
    found = error.errors(include_url=False, include_input=False)[0]
    field = str(found["loc"][0]) if found["loc"] else "it"
    wanted = {
        "id": "give text or a whole number",
        "labels": "give a list of texts",
        "metadata": "give an object whose values are JSON",
    }.get(field, "give a JSON value (text, number, true, false, null, list or object)")
    return f"its {field} cannot be read; {wanted}"


def _repeated(row: Row, first: Row) -> str:
    if row.id == row.content[:_OWN_ID] == first.content[:_OWN_ID]:
        return (
            f"{row.where} repeats {first.where} (the same input and expected, and no id); "
            "give each an id of its own, or leave one out"
        )
    return f"{row.where} has the id {row.id!r} of {first.where}; give each row an id of its own"
