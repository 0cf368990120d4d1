"""What a test hands over as a number or as a word, whichever library it comes from."""

from __future__ import annotations

import math

from pytest_crashlab.errors import InstrumentFailure
from pytest_crashlab.records.line import LONGEST_LINE, is_line

_TRUTHS = frozenset({"bool", "bool_"})  # Python's and numpy's, which is no subclass of the former


def real(value: object) -> float | None:
    """``value`` as a float where it is a real number: of Python, ``decimal``, numpy, a tensor of one.

    None for anything else; true and false are no numbers, and text is none.
    """
    if type(value).__name__ in _TRUTHS or isinstance(value, str | bytes):
        return None
    if isinstance(value, int | float):
        return _finite_or_not(value)
    return _finite_or_not(value) if hasattr(type(value), "__float__") else None


def _finite_or_not(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]  # what has no float raises, and is none
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]  # an int too large
    except (TypeError, ValueError):
        return None


def word(value: object, what: str) -> str:
    """``value`` where it is a line of text. Raises :class:`InstrumentFailure` (``misdeclared``)."""
    if is_line(value):
        return value
    shown = repr(value)
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    raise InstrumentFailure(
        "misdeclared", f"{what} is {shown}; give it one line of text of at most {LONGEST_LINE} characters"
    )


def progress(value: object) -> float | None:
    """How far a target got, where ``value`` says so: a real number from 0 on."""
    t = real(value)
    return t if t is not None and math.isfinite(t) and t >= 0 else None
