"""What a summary says beside the pass rate, in a few lines: ``crashlab view`` has the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.compare.sentences import count
from pytest_crashlab.report import usage
from pytest_crashlab.report.figures import DASH, percent, percent_interval, text
from pytest_crashlab.report.layout import columns, indented

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from pytest_crashlab.report import views

_FEW = 5


def lines(view: views.SessionView, rates: Sequence[views.RateView]) -> Iterator[RenderableType]:
    """The ``rates``, how repeats agree, and what the target took."""
    yield "Beside it (95 %, new cases)"
    yield columns([_rate(rate) for rate in rates], right=(1,))
    yield indented(_repeats(view.repeats))
    yield indented(f"flip cases {_flips(view.repeats)}")
    yield indented(", ".join(usage.short(used) for used in view.usage))


def _rate(rate: views.RateView) -> tuple[str, str, str, str]:
    of = f"{rate.numerator} of {rate.denominator}" if rate.denominator else DASH
    return text(rate.name), percent(rate.value), percent_interval(rate.low, rate.high), of


def _repeats(repeats: views.RepeatsView) -> str:
    """Pass^j of the first few j and of the last, each over the cases with every trial decided."""
    points = repeats.pass_hat
    shown = points if len(points) <= _FEW else (*points[: _FEW - 1], points[-1])
    known = [p for p in shown if p.value is not None]
    if not known:
        return f"pass^j {DASH}: no case has all of its planned trials decided"
    said = ", ".join(f"pass^{p.j} {percent(p.value)}" for p in known)
    over = sorted({p.cases for p in known})
    cases = count(over[0], "case") if len(over) == 1 else f"{over[0]} to {over[-1]} cases"
    return f"{said} ({cases} with every trial decided)"


def _flips(repeats: views.RepeatsView) -> str:
    if repeats.flips is None:
        return f"{DASH}: use at least 3 trials to see flips"
    if not repeats.flips_of:
        return f"{DASH}: no case has all of its planned trials decided"
    return f"{repeats.flips} of {repeats.flips_of}"
