"""What the judges took and how sure they were, apart from the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.compare.sentences import count, several
from pytest_crashlab.report import usage
from pytest_crashlab.report.figures import DASH, text
from pytest_crashlab.report.layout import indented

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from pytest_crashlab.report import views

ASKED = "trials that asked a judge"


def short(judges: views.JudgesView) -> Iterator[RenderableType]:
    """A few lines with the totals."""
    yield f"Judge {text(several(judges.models))} (no part of the target's numbers)"
    yield indented(", ".join(usage.short(used) for used in judges.usage))
    yield indented(flips(judges))


def table(judges: views.JudgesView) -> Iterator[RenderableType]:
    """One line a number, as for the target."""
    title = (
        f"Calls, time, tokens and cost of the judge {text(several(judges.models))} (a trial that asked it)"
    )
    yield from usage.table(judges.usage, title=title, of=ASKED)
    yield indented(flips(judges))


def flips(judges: views.JudgesView) -> str:
    """How often a judge disagreed with itself, in words."""
    if judges.flips is None:
        return f"Judge flips {DASH}: no judgement had two votes that could be read."
    return f"Judge flips {judges.flips} of {flips_of(judges)}"


def flips_of(judges: views.JudgesView) -> str:
    """What judge flips are counted over."""
    return f"{count(judges.flips_of, 'judgement')} of two votes or more"
