"""The rows of a run, one a deciding attempt, for whoever looks for what its trials have in common."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from pytest_crashlab.compare.sentences import count
from pytest_crashlab.report.figures import amount, text
from pytest_crashlab.report.layout import draw, indented, unbroken
from pytest_crashlab.report.outcomes import assignment_lines, assignments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from pytest_crashlab.report import views
    from pytest_crashlab.store import StoredRun

_MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialLineView:
    """What a trial came to; ``label`` None and ``kind`` "missing" where it never reported.

    ``duration`` seconds from set-up to the end of tear-down, ``latency`` seconds of the target itself;
    ``cached`` whether an answer of a provider came from a cache, None where that cannot be told.
    """

    case: str
    trial: int
    attempt: int | None
    label: str | None
    kind: str | None
    phase: str | None
    duration: float | None
    latency: float | None
    tokens: int | None
    cost_usd: float | None
    cached: bool | None
    worker: str | None
    site: str | None
    failure_class: str | None
    message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectionView:
    """The trials of a run that were asked for, by case and trial; ``found`` how many there are of them."""

    run: str
    trials: int
    assigned: tuple[views.AssignmentView, ...]
    lines: tuple[TrialLineView, ...]
    found: int


def inspection(
    run: StoredRun, *, labels: tuple[str, ...] = (), cases: str | None = None, limit: int = 0
) -> InspectionView:
    """The trials of ``run`` with one of ``labels``, of cases with ``cases`` in their id; ``limit`` 0: all."""
    wanted = [
        line
        for line in _lines(run)
        if (not labels or (line.label or _MISSING) in labels) and (cases is None or cases in line.case)
    ]
    return InspectionView(
        run=run.manifest.id,
        trials=int(run.cases["planned"].sum()),
        assigned=assignments(run),
        lines=tuple(wanted[:limit] if limit else wanted),
        found=len(wanted),
    )


def _lines(run: StoredRun) -> Iterator[TrialLineView]:
    rows = run.trials.filter(run.trials["deciding"])
    told = {(row["case"], row["trial"]): row for row in rows.iter_rows(named=True)}
    for case, planned in run.cases.select("case", "planned").iter_rows():
        for trial in range(1, planned + 1):
            yield _line(case, trial, told.get((case, trial)))


def _line(case: str, trial: int, row: dict[str, Any] | None) -> TrialLineView:
    if row is None:
        nothing = dict.fromkeys(f.name for f in fields(TrialLineView))
        return TrialLineView(**{**nothing, "case": case, "trial": trial, "kind": _MISSING})  # type: ignore[arg-type]
    known = [n for n in (row["tokens_in"], row["tokens_out"]) if n is not None]
    return TrialLineView(
        case=case,
        trial=trial,
        attempt=row["attempt"],
        label=row["outcome"],
        kind=row["kind"],
        phase=row["phase"],
        duration=row["duration"],
        latency=row["run_duration"],
        tokens=sum(known) if known else None,
        cost_usd=row["cost_usd"],
        cached=row["cached"],
        worker=row["worker"],
        site=row["site"],
        failure_class=row["failure_class"],
        message=row["message"],
    )


def render_inspection(view: InspectionView, *, width: int, color: bool, encoding: str = "utf-8") -> str:
    """``view`` as lines of text."""
    return draw(_inspection(view), width, color=color, encoding=encoding)


def _inspection(view: InspectionView) -> Iterator[RenderableType]:
    yield unbroken(f"crashlab run {text(view.run)}: {count(view.trials, 'planned trial')}")
    yield ""
    yield from assignment_lines(view.assigned)
    yield ""
    if not view.lines:
        yield "No trial of the run is as asked for."
        return
    for line in view.lines:
        yield unbroken(f"  {text(line.case)} trial {line.trial}: {_what(line)}")
        if line.message is not None:
            yield indented(f"  {text(line.message)}")
    if view.found > len(view.lines):
        yield indented(f"and {view.found - len(view.lines):,} more; --limit 0 shows all.")


def _what(line: TrialLineView) -> str:
    if line.kind == _MISSING:
        return "missing"
    said = text(line.label)
    if line.failure_class is not None:
        said += f" [{text(line.failure_class)}]"
    if line.site is not None:
        said += f" at {text(line.site)}"
    beside = ", ".join(text(part) for part in (line.phase, line.worker) if part is not None)
    return f"{said} in {amount(line.duration, 's')}" + (f" ({beside})" if beside else "")


def inspection_json(view: InspectionView) -> dict[str, Any]:
    """``view`` as plain values."""
    return {"schema": "crashlab.inspect", "version": 1, **asdict(view)}


def inspection_csv(view: InspectionView) -> str:
    """The lines of ``view`` as CSV with a head; nothing where a value is not known."""
    written = io.StringIO()
    names = [f.name for f in fields(TrialLineView)]
    table = csv.writer(written, lineterminator="\n")
    table.writerow(names)
    for line in view.lines:
        table.writerow(["" if (value := getattr(line, name)) is None else value for name in names])
    return written.getvalue()
