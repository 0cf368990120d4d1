"""Marks beside the tests that got worse, in the form that a CI service shows them in."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_crashlab.report.figures import text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_crashlab.report import views

MOST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A sentence about a case: ``file`` relative to the root and ``line`` from 1, None where unknown.

    ``failed``: the gate fails this case; else it got worse without proof.
    """

    case: str
    file: str | None
    line: int | None
    failed: bool
    sentence: str


def annotations_of(
    view: views.SessionView, places: Mapping[str, tuple[str | None, int | None]]
) -> tuple[Annotation, ...]:
    """At most ten: cases that the gate fails first, then those that got worse, clearest first.

    ``places`` file and line of each case.
    """
    failed = () if view.gate is None else view.gate.failed_cases
    compared = {} if view.verdict is None else {case.case: case for case in view.verdict.moved}
    worse = [case for case, change in compared.items() if change.delta < 0]
    found = []
    for case in dict.fromkeys((*failed, *worse)):
        file, line = places.get(case, (None, None))
        sentence = _sentence(compared.get(case), view, case)
        found.append(Annotation(case=case, file=file, line=line, failed=case in failed, sentence=sentence))
    return tuple(found[:MOST])


def _sentence(change: views.ComparedCaseView | None, view: views.SessionView, case: str) -> str:
    if change is not None and change.delta < 0:
        proven = "proven worse" if change.proven < 0 else "not proven by itself"
        said = f"{change.a_pass}/{change.a_n} -> {change.b_pass}/{change.b_n} trials passed, {proven}."
        return f"{said} {change.message}" if change.message else said
    missed = [t.text for t in view.thresholds if t.case == case and t.met is False]
    return " ".join(missed) or "The gate fails this case."


def github_lines(found: tuple[Annotation, ...]) -> tuple[str, ...]:
    """Workflow commands, one a line, to be printed as they are."""
    return tuple(
        f"::{'error' if note.failed else 'warning'} "
        + ",".join(
            f"{name}={_property(value)}"
            for name, value in (
                ("file", note.file),
                ("line", None if note.line is None else str(note.line)),
                ("title", note.case),
            )
            if value is not None
        )
        + f"::{_data(note.sentence)}"
        for note in found
    )


def gitlab_json(found: tuple[Annotation, ...]) -> str:
    """A Code Quality report, which GitLab shows beside the changed lines of a merge request."""
    return json.dumps(
        [
            {
                "description": f"{text(note.case)}: {text(note.sentence)}",
                "check_name": "pytest-crashlab",
                "fingerprint": hashlib.sha256(note.case.encode("utf-8", "replace")).hexdigest(),
                "severity": "major" if note.failed else "minor",
                "location": {"path": note.file or ".", "lines": {"begin": note.line or 1}},
            }
            for note in found
        ],
        indent=1,
    )


def _data(value: str) -> str:
    """A message: what would end the command or begin another one is written as its code."""
    return text(value).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
