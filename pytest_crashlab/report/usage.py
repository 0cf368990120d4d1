"""What the target took, as a table: time, tokens and money, with a dash for what nobody told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.report.figures import DASH, text
from pytest_crashlab.report.layout import columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from pytest_crashlab.report import views

_SMALL = 0.001


def table(usage: Sequence[views.UsageView]) -> Iterator[RenderableType]:
    """One line a number, with how many trials told it."""
    yield "Latency, tokens and cost of the target (a trial)"
    yield columns(
        [("what", "value", "95 %, new cases", "total", "from"), *(_row(u) for u in usage)],
        right=(1, 3),
        wrap=4,
    )


def _row(u: views.UsageView) -> tuple[str, str, str, str, str]:
    known = f"{u.trials} of {u.of} trials that ran"
    parts = [p for p in (u.basis, known if u.trials else None, u.why) if p is not None]
    unit = "" if u.value is None else f" {u.unit}"
    low_high = DASH if u.low is None and u.high is None else f"{amount(u.low)} to {amount(u.high)}{unit}"
    total = DASH if u.total is None else f"{amount(u.total)} {u.unit}"
    return (text(u.name), f"{amount(u.value)}{unit}", low_high, total, text("; ".join(parts) or None))


def amount(value: float | None) -> str:
    """A number with as many digits as it takes to tell it from nothing: "0.0042", "1.25", "12,400"."""
    if value is None:
        return DASH
    if value == 0:
        return "0"
    if abs(value) < _SMALL:
        return f"{value:.2g}"
    if abs(value) < 1:
        return f"{value:.3g}"
    return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) < 1000 else f"{value:,.0f}"
