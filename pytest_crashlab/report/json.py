"""Views as JSON for programs: one object with a schema name and a version.

Within a version fields are only added. Shares are numbers in 0..1; null means not known.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pytest_crashlab.records.classification import BUILTIN_EXCEPTIONS
from pytest_crashlab.records.outcome import BUILTIN_OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crashlab.compare.planning import Design
    from pytest_crashlab.report import views

VERSION = 1
MOST_CASES = 200
MOST_SITES = 10


def session_json(view: views.SessionView, *, most_cases: int | None = MOST_CASES) -> dict[str, Any]:
    """``view`` as plain values, bounded: at most ``most_cases`` cases (None: all) and ten sites a label.

    Cases that did not pass in every trial come first; ``cases_total`` says how many there are.
    """
    data = asdict(view)
    data["cases_total"] = len(view.cases)
    if most_cases is not None and len(view.cases) > most_cases:
        order = sorted(view.cases, key=lambda c: c.outcome == "All pass")
        data["cases"] = [asdict(c) for c in order[:most_cases]]
    for outcome in data["outcomes"]:
        outcome["sites_total"] = len(outcome["sites"])
        outcome["sites"] = outcome["sites"][:MOST_SITES]
    if view.verdict is not None:
        data["verdict"] = verdict_json(view.verdict, most_cases=most_cases)
    return {"schema": "crashlab.session", "version": VERSION, **data}


def verdict_json(card: views.VerdictView, *, most_cases: int | None = MOST_CASES) -> dict[str, Any]:
    """A verdict card; where its cases are cut those that moved come first."""
    data = asdict(card)
    if most_cases is not None and len(card.cases) > most_cases:
        unmoved = [c for c in card.cases if c.delta == 0]
        data["cases"] = [asdict(c) for c in (*card.moved, *unmoved)[:most_cases]]
    return data


def diff_json(view: views.DiffView) -> dict[str, Any]:
    """Two runs with the cases that were asked for; the verdict's own list of cases is left out."""
    data = asdict(view)
    del data["verdict"]["cases"]
    return {"schema": "crashlab.diff", "version": VERSION, **data}


def runs_json(lines: Sequence[views.RunLineView], problems: Sequence[str]) -> dict[str, Any]:
    """The list of runs, newest first, and what could not be read."""
    return {
        "schema": "crashlab.runs",
        "version": VERSION,
        "runs": [asdict(line) for line in lines],
        "problems": list(problems),
    }


def baselines_json(lines: Sequence[views.BaselineLineView]) -> dict[str, Any]:
    """Every name and the run it stands for."""
    return {"schema": "crashlab.baselines", "version": VERSION, "baselines": [asdict(line) for line in lines]}


def outcomes_json(view: views.OutcomesView) -> dict[str, Any]:
    """The labels of a run by the place that assigned them."""
    return {"schema": "crashlab.outcomes", "version": VERSION, **asdict(view)}


def builtin_outcomes_json() -> dict[str, Any]:
    """The built-in labels, and those that exceptions come to ("" for one that the test has to read)."""
    return {
        "schema": "crashlab.builtin_outcomes",
        "version": VERSION,
        "exceptions": dict(BUILTIN_EXCEPTIONS),
        "outcomes": [
            {"label": o.label, "kind": o.kind.value, "definition": o.definition, "completed": o.completed}
            for o in BUILTIN_OUTCOMES.values()
        ],
    }


def design_json(design: Design) -> dict[str, Any]:
    """A planned run and what it would show."""
    return {"schema": "crashlab.plan", "version": VERSION, **asdict(design), "sentences": design.sentences}


def dumps(data: dict[str, Any]) -> str:
    """JSON text for a terminal or a file: ASCII, so that no stream's encoding matters."""
    return json.dumps(data, indent=2, allow_nan=False)
