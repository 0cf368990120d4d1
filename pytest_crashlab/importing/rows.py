"""One row of a source, with the types a trial has."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOST_TRIALS = 1_000_000


@dataclass(slots=True, kw_only=True)
class SourceRow:
    """A trial as its source tells it. ``where`` names the row in errors, None elsewhere is "not given".

    ``passed`` the source's own verdict; ``outcome`` its own label; ``score`` a number that passes from a
    threshold on; ``latency`` seconds of the target; ``content`` digest of what the case asked.
    """

    where: str
    case: str
    trial: int | None = None
    attempt: int | None = None
    arm: str | None = None
    passed: bool | None = None
    score: float | None = None
    outcome: str | None = None
    completed: bool | None = None
    t: float | None = None
    horizon: float | None = None
    t_unit: str | None = None
    start: float | None = None
    duration: float | None = None
    latency: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    cost_basis: str | None = None
    failure_class: str | None = None
    message: str | None = None
    site: str | None = None
    content: str | None = None


def source_row(record: Mapping[str, Any], names: Mapping[str, str], where: str) -> SourceRow:
    """The row of a decoded record; ``names`` maps a field to the record's own key.

    Raises :class:`ValueError` saying which value cannot be read, or that there is no case.
    """
    values: dict[str, Any] = {}
    for field, read in FIELDS.items():
        value = record.get(names.get(field, field))
        if value is not None:
            try:
                values["content" if field == "input" else field] = read(value)
            except ValueError as error:
                raise ValueError(f"{names.get(field, field)} is {_short(value)}, {error}") from None
    if values.get("case") is None:
        raise ValueError(f"{names.get('case', 'case')} is not given")
    return SourceRow(where=where, **values)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("no text")  # noqa: TRY004 - one kind of error for every bad value
    return str(value)


def _whole(value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("not a whole number")  # noqa: TRY004 - as above
    return value


def _count(value: object) -> int | None:
    if isinstance(value, float) and math.isnan(value):
        return None
    number = _whole(value)
    if not 0 <= number <= 2**62:
        raise ValueError("not a count")
    return number


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("not a number")  # noqa: TRY004 - as above
    if math.isinf(value):
        raise ValueError("not a finite number")
    return None if math.isnan(value) else float(value)


def _amount(value: object) -> float | None:
    number = _number(value)
    if number is not None and number < 0:
        raise ValueError("below 0")
    return number


def verdict(value: object) -> bool | None:
    """Whether a trial passed: true, false, 1 or 0; None for NaN. Other values raise `ValueError`."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        if math.isnan(value):
            return None
        if value in (0, 1):
            return bool(value)
    raise ValueError("neither true, false, 1 nor 0")


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("neither true nor false")  # noqa: TRY004 - as above
    return value


def moment(value: object) -> float | None:
    """Seconds since the epoch, given so or as an ISO 8601 time; without a zone it is UTC."""
    if isinstance(value, datetime):
        when = value
    elif isinstance(value, str):
        try:
            when = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("no time as ISO 8601 has it") from None
    else:
        return _number(value)
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _basis(value: object) -> str:
    if value not in ("billed", "estimated"):
        raise ValueError("neither billed nor estimated")
    return str(value)


def digest(value: object) -> str:
    """A digest of anything that JSON can say."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def one_line(value: object) -> str:
    """The start of a text on one line, at most 300 characters."""
    return " ".join(str(value).split())[:300]


FIELDS: dict[str, Callable[[Any], Any]] = {
    "case": _text,
    "trial": _whole,
    "attempt": _whole,
    "arm": _text,
    "passed": verdict,
    "score": _number,
    "outcome": _text,
    "completed": _flag,
    "t": _amount,
    "horizon": _amount,
    "t_unit": _text,
    "start": moment,
    "duration": _amount,
    "latency": _amount,
    "tokens_in": _count,
    "tokens_out": _count,
    "cost_usd": _amount,
    "cost_basis": _basis,
    "failure_class": _text,
    "message": one_line,
    "site": _text,
    "input": digest,
}
