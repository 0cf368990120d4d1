"""The checks of a run, as a table: how often each could be evaluated, what it came to, who judged it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_crashlab.compare.judges import BY_ITSELF
from pytest_crashlab.compare.sentences import count
from pytest_crashlab.report.figures import DASH, digits, percent, percent_interval, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLineView:
    """A check over the run: ``evaluated`` trials of ``cases`` cases told something, ``missing`` nothing.

    ``rate`` the share in which it held, ``mean`` over cases of the number that ``measured`` trials had,
    with 95 % intervals for new cases. ``required`` None: in some trials only. More than one of ``kinds`` or
    ``judges``: the numbers mix them.
    """

    name: str
    kinds: tuple[str, ...]
    required: bool | None
    evaluated: int
    failed: int
    missing: int
    cases: int
    judges: tuple[str, ...]
    rate: float | None
    rate_low: float | None
    rate_high: float | None
    mean: float | None
    mean_low: float | None
    mean_high: float | None
    measured: int


def table(checks: Sequence[CheckLineView]) -> Iterator[RenderableType]:
    """One line a check, its name last as it may be long; below it the mean of what it measured."""
    from pytest_crashlab.report.layout import columns

    yield "Checks"
    head = ("n", "failed", "missing", "value", "95 %, new cases", "check")
    yield columns([head, *(row for check in checks for row in _rows(check))], right=(0, 1, 2, 3), wrap=5)


def _rows(check: CheckLineView) -> Iterator[tuple[str, ...]]:
    trials = (str(check.evaluated), str(check.failed), str(check.missing))
    mean = (f"mean {digits(check.mean)}" if check.mean is not None else DASH, mean_interval(check))
    if check.rate is None:
        yield (*trials, *mean, _name(check))
        return
    rate = (percent(check.rate), percent_interval(check.rate_low, check.rate_high))
    yield (*trials, *rate, _name(check))
    if check.mean is not None:
        yield (str(check.measured), "", "", *mean, "")


def _name(check: CheckLineView) -> str:
    """The check with what it is: "tone (judge, soft, by gpt-x)"."""
    soft = {True: [], False: ["soft"], None: ["soft in some trials"]}[check.required]
    judges = [] if check.judges in {(), (BY_ITSELF,)} else [f"by {text(' and '.join(check.judges))}"]
    said = ", ".join([text(" and ".join(check.kinds)), *soft, *judges] if check.kinds else [*soft, *judges])
    return f"{text(check.name)} ({said})" if said else text(check.name)


def mean_interval(check: CheckLineView) -> str:
    """The interval of the mean, a dash where it is not known."""
    if check.mean_low is None or check.mean_high is None:
        return DASH
    return f"{digits(check.mean_low)} to {digits(check.mean_high)}"


def measured_of(check: CheckLineView) -> str:
    """What a mean is of: "40 of 50 trials, 10 cases"."""
    return (
        f"{check.measured} of {count(check.evaluated + check.missing, 'trial')}, {count(check.cases, 'case')}"
    )
