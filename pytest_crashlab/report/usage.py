"""What the target or its judges took, as a table, with a dash for what nobody told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.report import figures
from pytest_crashlab.report.figures import DASH, digits, text
from pytest_crashlab.report.layout import columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from pytest_crashlab.report import views

_SMALL = 0.001
_SHORT = 0.1  # seconds: below it a time reads in milliseconds


def table(
    usage: Sequence[views.UsageView],
    *,
    title: str = "Latency, tokens and cost of the target (a trial)",
    of: str = "trials that ran",
) -> Iterator[RenderableType]:
    """One line a number, with how many trials told it ``of`` those that could."""
    yield title
    yield columns(
        [("what", "value", "95 %, new cases", "total", "from"), *(_row(u, of) for u in usage)],
        right=(1, 3),
        wrap=4,
    )


def _row(u: views.UsageView, of: str) -> tuple[str, str, str, str, str]:
    known = f"{u.trials} of {u.of} {of}"
    parts = [p for p in (u.basis, known if u.trials else None, u.why) if p is not None]
    value, low, high, unit = u.value, u.low, u.high, u.unit
    if unit == "s" and value is not None and value < _SHORT:
        value, low, high = (None if x is None else x * 1000 for x in (value, low, high))
        unit = "ms"
    in_unit = "" if value is None else f" {unit}"
    low_high = DASH if low is None and high is None else f"{amount(low)} to {amount(high)}{in_unit}"
    total = DASH if u.total is None else f"{amount(u.total)} {u.unit}"
    return (text(u.name), f"{amount(value)}{in_unit}", low_high, total, text("; ".join(parts) or None))


def short(used: views.UsageView) -> str:
    """A time a trial, or a total: "latency p50 2.1 s", "15 calls", "tokens in 7,500", "cost -"."""
    told = used.value if used.name.startswith("latency") else used.total
    if told is None:
        return f"{text(used.name)} {DASH}"
    known = [used.basis] if used.basis else []
    if used.trials < used.of:
        known.append(f"{used.trials} of {used.of} trials told it")
    beside = f" ({', '.join(text(part) for part in known)})" if known else ""
    if used.unit == used.name:
        noun = used.name.removesuffix("s") if told == 1 else used.name
        return f"{amount(told)} {text(noun)}{beside}"
    if used.name.startswith(used.unit):
        return f"{text(used.name)} {amount(told)}{beside}"
    return f"{text(used.name)} {figures.amount(told, used.unit)}{beside}"


def amount(value: float | None) -> str:
    """A number with as many digits as it takes to tell it from nothing: "0.0042", "1.25", "12,400"."""
    if value is None:
        return DASH
    if value == 0:
        return "0"
    if abs(value) < _SMALL:
        return digits(value, 2)
    if abs(value) < 1:
        return f"{value:.3g}"
    return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) < 1000 else f"{value:,.0f}"
