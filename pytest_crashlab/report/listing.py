"""Lists as text: runs, baselines, and the compared cases of two runs."""

from __future__ import annotations

import shlex
import time
from datetime import datetime
from typing import TYPE_CHECKING

from pytest_crashlab.compare.sentences import count
from pytest_crashlab.report import card
from pytest_crashlab.report.case_diff import named
from pytest_crashlab.report.figures import DASH, percent, signed_points, text
from pytest_crashlab.report.layout import Hanging, draw, indented, unbroken
from pytest_crashlab.report.outcomes import assignment_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from pytest_crashlab.report import views

_MOST_ASSIGNMENTS = 20
_MOST_CLASSES = 5
_SHOWN_WORDS = {
    "worse": "Cases that got worse",
    "better": "Cases that got better",
    "moved": "Cases that moved",
    "same": "Cases without a change",
    "flip": "Cases that flip in either run (3 trials or more)",
    "never": "Cases that never pass in this run",
    "all": "All compared cases",
}


def render_runs(
    lines: Sequence[views.RunLineView],
    problems: Sequence[str] = (),
    *,
    head: str | None = None,
    more: str | None = None,
    now: float | None = None,
    width: int,
    color: bool,
    encoding: str = "utf-8",
) -> str:
    """The list of runs; ``problems`` are runs that cannot be read.

    ``head`` how many there are, ``more`` how to see the older ones; ``now`` in seconds since the epoch
    is what ages are counted to.
    """
    return draw(
        _runs(lines, problems, head, more, time.time() if now is None else now),
        width,
        color=color,
        encoding=encoding,
    )


def render_diff(
    view: views.DiffView, candidate: str, *, width: int, color: bool, encoding: str = "utf-8"
) -> str:
    """The verdict card of two runs and the compared cases; ``candidate`` what a command calls this run."""
    return draw(_diff(view, text(candidate)), width, color=color, encoding=encoding)


def render_baselines(
    lines: Sequence[views.BaselineLineView], *, width: int, color: bool, encoding: str = "utf-8"
) -> str:
    """Every name and the run it stands for."""
    return draw(_baselines(lines), width, color=color, encoding=encoding)


def _baselines(lines: Sequence[views.BaselineLineView]) -> Iterator[RenderableType]:
    if not lines:
        yield "No names. 'pytest --save-baseline=main' or 'crashlab baseline promote main RUN' makes one."
        return
    name, run = (max(len(text(getattr(line, field))) for line in lines) for field in ("name", "run"))
    head = f"{'name':<{name}}  {'run':<{run}}  {'commit':<7}  {'passed':>8}  drift"
    yield unbroken(head)
    for line in lines:
        drift = DASH
        if line.drift is not None:
            drift = f"{signed_points(line.drift)} points in {count(line.drift_over, 'promotion')}"
        gone = "" if line.status is not None else "  (the run is gone)"
        yield unbroken(
            f"{text(line.name):<{name}}  {text(line.run):<{run}}  {text(line.commit)[:7]:<7}  "
            f"{percent(line.pass_rate):>8}  {drift}{gone}"
        )
    yield indented(
        "For a branch a session looks for the run nearest to what is tested and may use another one: "
        "'crashlab baseline explain NAME' says which."
    )


def _runs(
    lines: Sequence[views.RunLineView],
    problems: Sequence[str],
    head: str | None,
    more: str | None,
    now: float,
) -> Iterator[RenderableType]:
    if head is not None:
        yield indented(head)
    if lines:
        longest = max(len(text(line.id)) for line in lines)
        titles = f"{'run':<{longest}}  {'age':>4}  {'cases':>9}  {'passed':>8}  {'verdict':<12}  gate"
        yield unbroken(titles)
    elif head is None:
        yield unbroken("No runs. Record one with 'pytest --trials=5'.")
    for line in lines:
        status = "not finished" if line.stale else text(line.status)
        word = text(line.word) if line.word or line.status == "completed" else status
        yield unbroken(
            f"{text(line.id):<{longest}}  {_age(line.started, now):>4}  {f'{line.cases} x {line.k}':>9}  "
            f"{percent(line.pass_rate):>8}  {word:<12}  {_gate(line.exit_code)}"
        )
        if labels := _labels(line):
            yield indented(labels)
    if more is not None:
        yield indented(more)
    for problem in problems:
        yield indented(f"Not readable: {text(problem)}")


def _labels(line: views.RunLineView) -> str:
    dataset = " ".join(part for part in (line.dataset, line.dataset_version) if part)
    named = (
        ("status", line.status if line.word and line.status != "completed" else None),
        ("branch", line.branch),
        ("commit", None if line.commit is None else line.commit[:7]),
        ("undecided", str(line.undecided) if line.undecided else None),
        ("missing", str(line.missing) if line.missing else None),
        ("name", line.name),
        ("release", line.release),
        ("prompt", line.prompt),
        ("dataset", dataset or None),
        ("split", line.split),
        ("baseline", ", ".join(line.names) or None),
    )
    said = [f"{what} {text(value)}" for what, value in named if value is not None]
    return ", ".join([*said, *(["amended"] if line.amended else [])])


def _age(started: str, now: float) -> str:
    """How long ago, in the largest unit that fits: "5m", "3h", "12d"."""
    try:
        seconds = max(0.0, now - datetime.fromisoformat(started).timestamp())
    except ValueError:
        return DASH
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size:.0f}{unit}"
    return f"{seconds:.0f}s"


def _gate(exit_code: int | None) -> str:
    words = {0: "passes", 1: "fails", 10: "no verdict"}
    return DASH if exit_code is None else f"{exit_code} {words.get(exit_code, '')}".rstrip()


def _classes(view: views.DiffView) -> Iterator[RenderableType]:
    """What the cases fail as, so that it can be asked for; or how many are of the class asked for."""
    if view.failure_class is not None:
        of = f"{view.total} of {count(view.shown_total, 'case')}"
        yield indented(f"{of} failed as {text(view.failure_class)} in a trial of this run.")
    elif len(view.classes) > 1:
        named = ", ".join(f"{text(tag)} ({cases})" for tag, cases in view.classes[:_MOST_CLASSES])
        more = len(view.classes) - _MOST_CLASSES
        rest = f" and {more} more" if more > 0 else ""
        yield indented(f"They failed as {named}{rest}; --class shows those of one class.")


def _diff(view: views.DiffView, candidate: str) -> Iterator[RenderableType]:
    for name, run in (("baseline", view.baseline), ("this run", view.candidate)):
        size = f"{count(run.cases, 'case')}, {count(run.trials, 'planned trial')}"
        head = f"{text(run.id)} ({text(run.status)}, {size})"
        yield Hanging((f"{name} ", *head.split(" ")), below=2)
    yield ""
    if view.baseline_line:
        yield indented(text(view.baseline_line))
        yield ""
    yield from card.verdict(view.verdict, most_moved=0)
    yield ""
    yield "Outcomes by the line that assigned them"
    yield from assignment_lines(view.assignments, most=_MOST_ASSIGNMENTS)
    yield ""
    options = "".join(f" {text(part)}" for part in view.gate_options)
    yield unbroken(f"'crashlab gate {candidate}{options}' would end with {view.gate.exit_code}.")
    yield ""
    yield unbroken(f"{_SHOWN_WORDS[view.shown]}: {view.shown_total}")
    yield from _classes(view)
    for case in view.cases:
        yield from card.moved_lines(case, indent=2, alarm=card.alarms(view.verdict))
    if len(view.cases) < view.total:
        yield unbroken(f"  and {view.total - len(view.cases)} more; --limit 0 shows all.")
    if view.cases:
        first = text(shlex.quote(view.cases[0].case))
        runs = f"{text(named(view))} {candidate}"
        yield ""
        yield unbroken(f"one by one  crashlab diff {runs} --show {view.shown} --case {first}")
