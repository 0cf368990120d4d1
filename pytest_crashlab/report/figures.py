"""How numbers and foreign text are written. A number that is not known is a dash, never a 0."""

from __future__ import annotations

import unicodedata

from pytest_crashlab.compare import sentences

DASH = "-"


def percent(share: float | None) -> str:
    """A share as percent with one decimal: "85.0 %"."""
    return DASH if share is None else sentences.percent(share)


def percent_interval(low: float | None, high: float | None) -> str:
    """An interval of shares: "78.0 % to 90.1 %"."""
    if low is None or high is None:
        return DASH
    return f"{sentences.hundredfold(low):.1f} % to {sentences.hundredfold(high):.1f} %"


def signed_points(share: float | None) -> str:
    """A difference of shares in points with its sign: "-12.5", "+3.0", "0.0"."""
    if share is None:
        return DASH
    text = f"{sentences.hundredfold(share):+.1f}"
    return "0.0" if text in {"+0.0", "-0.0"} else text


def points_interval(low: float | None, high: float | None) -> str:
    """An interval of differences: "-31.4 to -8.6 points"."""
    return DASH if low is None or high is None else f"{signed_points(low)} to {signed_points(high)} points"


def amount(value: float | None, unit: str) -> str:
    """A number in its unit: a share as percent, seconds, US dollars, tokens; four digits that count."""
    if value is None:
        return DASH
    if unit == "share":
        return percent(value)
    return f"{_digits(value)} {unit}"


def change(value: float | None, unit: str) -> str:
    """A difference with its sign, shares in points."""
    if value is None:
        return DASH
    if unit == "share":
        return f"{signed_points(value)} points"
    sign = "+" if value > 0 else ""
    return f"{sign}{_digits(value)} {unit}"


def change_interval(low: float | None, high: float | None, unit: str) -> str:
    """An interval of differences; a bound that is not known is a dash."""
    if low is None and high is None:
        return DASH
    if unit == "share":
        return f"{signed_points(low)} to {signed_points(high)}"
    return " to ".join(DASH if bound is None else f"{bound:+.4g}" for bound in (low, high))


def _digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


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
