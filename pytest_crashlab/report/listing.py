"""Lists as text: runs, baselines, and the compared cases of two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.compare.sentences import count
from pytest_crashlab.report import card
from pytest_crashlab.report.figures import DASH, percent, signed_points, text
from pytest_crashlab.report.layout import draw, indented, unbroken

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from pytest_crashlab.report import views

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
    more: int = 0,
    width: int,
    color: bool,
    encoding: str = "utf-8",
) -> str:
    """The list of runs; ``more`` older ones were left out, ``problems`` are runs that cannot be read."""
    return draw(_runs(lines, problems, more), width, color=color, encoding=encoding)


def render_diff(view: views.DiffView, *, width: int, color: bool, encoding: str = "utf-8") -> str:
    """The verdict card of two runs and the compared cases that were asked for."""
    return draw(_diff(view), width, color=color, encoding=encoding)


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


def _runs(lines: Sequence[views.RunLineView], problems: Sequence[str], more: int) -> Iterator[RenderableType]:
    if lines:
        longest = max(len(text(line.id)) for line in lines)
        head = f"{'run':<{longest}}  {'status':<12}  {'cases':>9}  {'passed':>8}  {'undec.':>6}  {'miss.':>5}"
        yield unbroken(f"{head}  verdict")
    else:
        yield unbroken("No runs. Record one with 'pytest --trials=5'.")
    for line in lines:
        status = "not finished" if line.stale else text(line.status)
        yield unbroken(
            f"{text(line.id):<{longest}}  {status:<12}  {f'{line.cases} x {line.k}':>9}  "
            f"{percent(line.pass_rate):>8}  {_number(line.undecided):>6}  {_number(line.missing):>5}  "
            f"{text(line.word)}"
        )
        if labels := _labels(line):
            yield indented(labels)
    if more:
        yield unbroken(f"{count(more, 'older run')} not shown; --limit 0 shows all.")
    for problem in problems:
        yield indented(f"Not readable: {text(problem)}")


def _labels(line: views.RunLineView) -> str:
    dataset = " ".join(part for part in (line.dataset, line.dataset_version) if part)
    named = (
        ("name", line.name),
        ("release", line.release),
        ("prompt", line.prompt),
        ("dataset", dataset or None),
        ("split", line.split),
        ("baseline", ", ".join(line.names) or None),
    )
    return ", ".join(f"{what} {text(value)}" for what, value in named if value is not None)


def _number(value: int | None) -> str:
    return DASH if value is None else str(value)


def _diff(view: views.DiffView) -> Iterator[RenderableType]:
    for name, run in (("baseline", view.baseline), ("this run", view.candidate)):
        yield unbroken(
            f"{name}  {text(run.id)} ({text(run.status)}, {count(run.cases, 'case')}, "
            f"{count(run.trials, 'planned trial')})"
        )
    yield ""
    if view.baseline_line:
        yield indented(text(view.baseline_line))
        yield ""
    yield from card.verdict(view.verdict, most_moved=0)
    yield ""
    options = "".join(f" {text(part)}" for part in view.gate_options)
    yield unbroken(
        f"'crashlab gate {text(view.candidate.id)} --baseline {text(view.baseline.id)}{options}' "
        f"would end with {view.gate.exit_code}."
    )
    yield ""
    yield unbroken(f"{_SHOWN_WORDS[view.shown]}: {view.total}")
    yield from (card.moved_line(case, indent=2) for case in view.cases)
    if len(view.cases) < view.total:
        yield unbroken(f"  and {view.total - len(view.cases)} more; --limit 0 shows all.")
