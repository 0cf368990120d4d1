"""One case over the runs that had it: a mark a trial, its share of passes, and a line of shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_crashlab.compare.sentences import count
from pytest_crashlab.report.figures import percent, text
from pytest_crashlab.report.layout import draw, indented, unbroken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from pytest_crashlab.store import StoredRun

_BARS = "▁▂▃▄▅▆▇█"
_MARKS = {"pass": "P", "fail": "F", "crash": "C", "instrument": "?", "excluded": "-"}
LEGEND = "P passed, F failed, C crashed, ? undecided, - excluded, . missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLineView:
    """A case in one run: ``marks`` a character a planned trial; ``content`` and ``pass_rule`` digests."""

    run: str
    started: str
    release: str | None
    branch: str | None
    marks: str
    passes: int
    decided: int
    planned: int
    content: str | None
    pass_rule: str | None

    @property
    def share(self) -> float | None:
        """Passes over decided trials; None where nothing was decided."""
        return self.passes / self.decided if self.decided else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryView:
    """A case over runs, newest first; ``more`` older runs had it and were not read."""

    case: str
    lines: tuple[HistoryLineView, ...]
    more: int

    @property
    def sparkline(self) -> str:
        """The share of passes from the oldest run to the newest, a bar a run; a blank where unknown."""
        return "".join(_bar(line.share) for line in reversed(self.lines))


def history_line(run: StoredRun, case: str) -> HistoryLineView:
    """What ``run`` says of ``case``, which it planned."""
    plan = run.cases.filter(run.cases["case"] == case).row(0, named=True)
    trials = run.trials.filter((run.trials["case"] == case) & run.trials["deciding"])
    kinds = dict(trials.select("trial", "kind").iter_rows())
    marks = "".join(_MARKS.get(kinds.get(n) or "", ".") for n in range(1, plan["planned"] + 1))
    return HistoryLineView(
        run=run.manifest.id,
        started=run.manifest.created,
        release=run.manifest.release,
        branch=(run.manifest.git or {}).get("branch"),
        marks=marks,
        passes=marks.count("P"),
        decided=sum(marks.count(mark) for mark in "PFC"),
        planned=plan["planned"],
        content=plan["content"],
        pass_rule=plan["pass_rule"],
    )


def render_history(view: HistoryView, *, width: int, color: bool, encoding: str = "utf-8") -> str:
    """``view`` as lines of text."""
    parts = _history(view, ascii_only="utf" not in encoding.lower())
    return draw(parts, width, color=color, encoding=encoding)


def _history(view: HistoryView, *, ascii_only: bool) -> Iterator[RenderableType]:
    yield unbroken(text(view.case))
    if not ascii_only and view.sparkline.strip():
        yield indented(f"{view.sparkline}  (oldest to newest)")
    run, marks = (max(len(text(getattr(line, name))) for line in view.lines) for name in ("run", "marks"))
    previous: HistoryLineView | None = None
    rows = []
    for line in reversed(view.lines):
        rows.append((line, _changed(previous, line)))
        previous = line
    for line, changed in reversed(rows):
        where = ", ".join(
            f"{name} {text(value)}"
            for name, value in (("release", line.release), ("branch", line.branch))
            if value is not None
        )
        beside = "  ".join(part for part in (where, changed) if part)
        yield unbroken(
            f"  {text(line.run):<{run}}  {text(line.marks):<{marks}}  "
            f"{f'{line.passes}/{line.decided}':>7}  {percent(line.share):>8}  {beside}".rstrip()
        )
    if view.more:
        yield indented(f"{count(view.more, 'older run')} not shown; --limit 0 shows all.")
    yield indented(LEGEND)


def _changed(before: HistoryLineView | None, line: HistoryLineView) -> str:
    """What is not as in the run before, so that a jump is not read as the target's."""
    if before is None:
        return ""
    words = [
        word
        for word, name in (("asks something else", "content"), ("judged by another rule", "pass_rule"))
        if getattr(before, name) != getattr(line, name)
    ]
    return " and ".join(words)


def _bar(share: float | None) -> str:
    return " " if share is None else _BARS[min(len(_BARS) - 1, int(share * len(_BARS)))]


def history_json(view: HistoryView) -> dict[str, object]:
    """``view`` as plain values, newest run first."""
    names = ("run", "started", "release", "branch", "marks", "passes", "decided", "planned", "share")
    runs = [{name: getattr(line, name) for name in names} for line in view.lines]
    return {"schema": "crashlab.history", "version": 1, "case": view.case, "more": view.more, "runs": runs}
