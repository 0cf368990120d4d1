"""Failing trials of gated cases do not fail the session by themselves: how their reports say so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_crashlab.plugin.process import PLAN

if TYPE_CHECKING:
    import pytest

    from pytest_crashlab.records.case import CasePlan

FAILED, UNDECIDED, SUBTEST, TEARDOWN = "failed", "undecided", "subtest", "teardown"

# mark -> (category in pytest's last line, letter, word)
_STATUS = {
    FAILED: ("trials failed", "f", "TRIAL FAILED"),
    UNDECIDED: ("trials undecided", "u", "TRIAL UNDECIDED"),
    SUBTEST: ("subtests of trials failed", "f", "SUBTEST OF TRIAL FAILED"),
    TEARDOWN: ("trials with tear-down errors", "t", "TRIAL TEAR-DOWN ERROR"),
}
_MARK = "_crashlab_mark"
_ROW = "_crashlab_row"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedCases:
    """Which cases the gate judges instead of each trial's report.

    ``everything`` all of them (a baseline that is still to be recorded, or a threshold on the whole
    run); ``pairs`` case id -> [content, pass rule] in the baseline.
    """

    everything: bool = False
    pairs: dict[str, list[str | None]] = field(default_factory=dict)

    def __contains__(self, case: CasePlan) -> bool:
        if self.everything or case.min_passes is not None:
            return True
        return self.pairs.get(case.id) == [case.content, case.pass_rule]


def rewrite(report: pytest.TestReport, mark: str, message: str) -> None:
    """Turn a failed report into one that pytest, xdist, JUnit and --lf treat as an expected failure.

    Skipped with ``wasxfail`` is the one form that all of them understand; the category of its own
    comes from ``status``. The traceback goes: k of them a case would hide what matters.
    """
    report.outcome = "skipped"
    report.wasxfail = message
    report.longrepr = message
    setattr(report, _MARK, mark)


def status(report: pytest.TestReport) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Category, letter and word of a rewritten report; None for any other."""
    mark = getattr(report, _MARK, None)
    if mark is None:
        return None
    category, letter, word = _STATUS[mark]
    return category, letter, (word, {"yellow": True})


def attach(report: pytest.TestReport, row: str) -> None:
    """Let a row travel with a report to the process that records, as JSON text."""
    setattr(report, _ROW, row)


def attach_plan(report: pytest.TestReport, plan: str) -> None:
    """Let the plan travel with the first report of a worker, as JSON text."""
    setattr(report, PLAN, plan)


def detach(report: pytest.TestReport) -> tuple[str | None, str | None]:
    """``(plan, row)`` of a report; taken off it, since the terminal keeps reports to the end."""
    fields: dict[str, Any] = report.__dict__
    return fields.pop(PLAN, None), fields.pop(_ROW, None)
