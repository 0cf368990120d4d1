"""How numbers and foreign text are written. A number that is not known is a dash, never a 0."""

from __future__ import annotations

import math
import unicodedata
from decimal import Decimal

from pytest_crashlab.compare import sentences

DASH = "-"


def percent(share: float | None) -> str:
    """A share as percent with one decimal: "85.0 %"."""
    return DASH if share is None else sentences.percent(share)


def percent_interval(low: float | None, high: float | None) -> str:
    """An interval of shares: "78.0 % to 90.1 %". One that is not empty never reads as if it were."""
    if low is None or high is None:
        return DASH
    a, b = _apart(sentences.hundredfold(low), sentences.hundredfold(high))
    return f"{a:.1f} % to {b:.1f} %"


def _apart(low: float, high: float) -> tuple[float, float]:
    """Bounds that differ and would be written alike, a tenth outwards."""
    if low < high and round(low, 1) == round(high, 1):
        return math.floor(low * 10) / 10, math.ceil(high * 10) / 10
    return low, high


def signed_points(share: float | None) -> str:
    """A difference of shares in points with its sign: "-12.5", "+3.0", "0.0"."""
    if share is None:
        return DASH
    text = f"{sentences.hundredfold(share):+.1f}"
    return "0.0" if text in {"+0.0", "-0.0"} else text


def points_interval(low: float | None, high: float | None) -> str:
    """An interval of differences: "-31.4 to -8.6 points"."""
    if low is None or high is None:
        return DASH
    a, b = _apart(sentences.hundredfold(low), sentences.hundredfold(high))
    return f"{signed_points(a / 100)} to {signed_points(b / 100)} points"


def amount(value: float | None, unit: str) -> str:
    """A number in its unit: a share as percent, seconds or milliseconds, US dollars, tokens."""
    if value is None:
        return DASH
    if unit == "share":
        return percent(value)
    if unit == "s" and 0 < abs(value) < _SHORT:
        return "< 0.1 ms" if abs(value) < _SHORTEST else f"{digits(value * 1000)} ms"
    return f"{digits(value)} {unit}"


def seconds(value: float) -> str:
    """How long something took: "12.30 s", and below a tenth of a second "4.6 ms"."""
    if value == 0 or value >= _SHORT:
        return f"{value:.2f} s"
    return "< 0.1 ms" if value < _SHORTEST else f"{digits(value * 1000, 2)} ms"


def change(value: float | None, unit: str) -> str:
    """A difference with its sign, shares in points."""
    if value is None:
        return DASH
    if unit == "share":
        return f"{signed_points(value)} points"
    if unit == "s" and 0 < abs(value) < _SHORTEST:
        return f"less than 0.1 ms {'lower' if value < 0 else 'higher'}"
    return f"{'+' if value > 0 else ''}{amount(value, unit)}"


def change_interval(low: float | None, high: float | None, unit: str) -> str:
    """An interval of differences with its unit, shares in points; a bound that is not known is a dash."""
    if low is None and high is None:
        return DASH
    if unit == "share":
        return f"{signed_points(low)} to {signed_points(high)}"
    if unit == "s" and max(abs(bound or 0) for bound in (low, high)) < _SHORT:
        return f"{_signed(low, 1000)} to {_signed(high, 1000)} ms"
    return f"{_signed(low)} to {_signed(high)} {unit}"


_SHORT = 0.1  # seconds: below it a time reads in milliseconds
_SHORTEST = 0.0001


def _signed(value: float | None, times: float = 1) -> str:
    if value is None:
        return DASH
    return f"{'+' if value > 0 else ''}{digits(value * times)}"


def digits(value: float, most: int = 4) -> str:
    """A number with up to ``most`` digits that count and no exponent: "0.000012", "1.25", "12,400"."""
    if abs(value) >= 10_000:
        return f"{value:,.0f}"
    said = f"{value:.{most}g}"
    return f"{Decimal(said):f}" if "e" in said else said


def text(value: str | None) -> str:
    r"""Foreign text made safe for a terminal: one line, no escapes, nothing invisible that acts.

    Control characters, bidirectional overrides, line separators and lone surrogates are written out
    as Python would (``\x1b``); all else stays.
    """
    if value is None:
        return DASH
    if value.isascii() and value.isprintable():
        return value
    return "".join(c if _harmless(c) else _written_out(c) for c in value)


def ascii_text(value: str) -> str:
    """``value`` for a stream that is not UTF-8: what ASCII lacks is spelled or written out."""
    return value.replace("±", "+/-").encode("ascii", "backslashreplace").decode("ascii")


def _harmless(character: str) -> bool:
    category = unicodedata.category(character)
    if category == "Cf":  # joiners are part of words and emoji; the other format characters act on a line
        return character in "\u200c\u200d"
    return category not in {"Cc", "Cs", "Zl", "Zp", "Co"}


def _written_out(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
