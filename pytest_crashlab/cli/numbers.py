"""Numbers on the command line, read as pytest's options of the same names read them."""

from __future__ import annotations

import math

from pytest_crashlab.errors import UsageError


def points(flag: str, value: str | None) -> float | None:
    """Points of pass rate (0 to 100, above 0) as a share; None stays None."""
    if value is None:
        return None
    share = _number(value) / 100
    if not 0 < share < 1:
        raise UsageError(f"{flag}={value} is out of range; write for example {flag}=5 for five points.")
    return share


def share(flag: str, value: str | None) -> float | None:
    """A share from ``0.9`` or ``90%``; None stays None."""
    if value is None:
        return None
    number = _number(value) / (100 if value.endswith("%") else 1)
    if not 0 <= number <= 1:
        raise UsageError(f"{flag}={value} is out of range; write for example {flag}=0.9 or {flag}=90%.")
    return number


def whole(flag: str, value: str | None, *, most: int, least: int = 1) -> int | None:
    """A whole number from ``least`` to ``most``; None stays None."""
    if value is None:
        return None
    try:
        number = int(value)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise UsageError(
            f"{flag}={value} is no whole number from {least} to {most}; write for example {flag}=5."
        )
    return number


def labels(value: str | None) -> tuple[str, ...]:
    """Labels with commas between them, each once."""
    return tuple(dict.fromkeys(part.strip() for part in (value or "").split(",") if part.strip()))


def _number(value: str) -> float:
    try:
        return float(value.removesuffix("%"))
    except ValueError:
        return math.nan
