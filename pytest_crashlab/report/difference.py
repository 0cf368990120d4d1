"""Two runs beside each other, with the cases that were asked for."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_crashlab.report import views
from pytest_crashlab.report.build import gate_view, run_view, verdict_view
from pytest_crashlab.report.outcomes import compared_assignments

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_crashlab.records.comparison import Comparison, Gate
    from pytest_crashlab.store import StoredRun

_FEWEST_FOR_FLIPS = 3


def _flips(passes: int, trials: int) -> bool:
    return trials >= _FEWEST_FOR_FLIPS and 0 < passes < trials


SHOWN: dict[str, Callable[[views.ComparedCaseView], bool]] = {
    "worse": lambda c: c.delta < 0,
    "better": lambda c: c.delta > 0,
    "moved": lambda c: c.delta != 0,
    "same": lambda c: c.delta == 0,
    "flip": lambda c: _flips(c.a_pass, c.a_n) or _flips(c.b_pass, c.b_n),
    "never": lambda c: c.b_pass == 0,
    "all": lambda c: True,  # noqa: ARG005  every case
}


def failure_classes(run: StoredRun) -> dict[str, frozenset[str]]:
    """The classes of each case's failed trials: their tag, or the outcome's label where they have none."""
    failed = run.trials.filter(run.trials["deciding"] & run.trials["kind"].is_in(["fail", "crash"]))
    found: dict[str, set[str]] = {}
    for case, tag, label in failed.select("case", "failure_class", "outcome").iter_rows():
        found.setdefault(case, set()).add(tag or label)
    return {case: frozenset(tags) for case, tags in found.items()}


def diff_view(
    baseline: StoredRun,
    candidate: StoredRun,
    comparison: Comparison,
    gate: Gate,
    *,
    show: str,
    limit: int | None = None,
    failure_class: str | None = None,
    baseline_line: str | None = None,
    gate_options: tuple[str, ...] = (),
) -> views.DiffView:
    """Two runs, what ``gate`` says of them, and the compared cases that are asked for.

    ``show``: worse, better, moved, same, flip (passes some trials of 3 or more, in either run),
    never (no pass in the candidate) or all; at most ``limit`` cases, of ``failure_class`` alone (a tag
    of a failed trial of the candidate, its label where it has none). ``baseline_line`` why a name
    came to this baseline; ``gate_options`` what ``gate`` has to be asked with to say the same.
    """
    card = verdict_view(comparison, candidate)
    unmoved = [c for c in card.cases if c.delta == 0]
    shown = [c for c in (*card.moved, *unmoved) if SHOWN[show](c)]
    classes = failure_classes(candidate)
    found = Counter(tag for c in shown for tag in classes.get(c.case, ()))
    wanted = [c for c in shown if failure_class is None or failure_class in classes.get(c.case, ())]
    return views.DiffView(
        baseline=run_view(baseline.manifest),
        candidate=run_view(candidate.manifest),
        verdict=card,
        gate=gate_view(gate),
        shown=show,
        cases=tuple(wanted if limit is None else wanted[:limit]),
        total=len(wanted),
        shown_total=len(shown),
        failure_class=failure_class,
        classes=tuple(sorted(found.items(), key=lambda item: (-item[1], item[0]))),
        baseline_line=baseline_line,
        gate_options=gate_options,
        assignments=compared_assignments(baseline, candidate),
    )
