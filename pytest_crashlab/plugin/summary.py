"""What a session prints around pytest's own lines: the plan at its head, the verdict at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_crashlab.plugin import process, rounds
from pytest_crashlab.plugin.manifest import is_partial

if TYPE_CHECKING:
    import pytest

    from pytest_crashlab.conclude.brief import Conclusion
    from pytest_crashlab.plugin.fanout import Selection
    from pytest_crashlab.plugin.session import RunSession


@dataclass(slots=True)
class Ending:
    """How the session ends: what its run came to, its exit code, what became of a promotion.

    ``unfinished``: why a session without a gate is no
    pass although nothing failed.
    """

    conclusion: Conclusion | None = None
    exit_status: int = 0
    promotion: str | None = None
    unfinished: str | None = None


def baseline_line(session: RunSession) -> str | None:
    """Which run is compared with, and why that one; None where no baseline was asked for."""
    return None if session.resolution is None else session.resolution.reason


def header_lines(session: RunSession) -> list[str]:
    """The lines of the session's header."""
    lines = []
    if session.remaining is not None:
        planned = sum(case.planned for case in session.remaining.cases)
        decided = sum(len(trials) for trials in session.remaining.decided.values())
        lines.append(
            f"crashlab: goes on with run {session.run_id}: {planned - decided} of {planned} trials are left"
        )
    if session.settings.replay is not None:
        lines.append(
            f"crashlab: models are not asked, answers are replayed from {session.settings.replay}: no verdict"
        )
    if session.started:
        lines += rounds.header(session.settings.isolation)
        if session.order != session.settings.order:
            lines.append(
                "crashlab: trials run case by case, since --sw, --ff and --nf name an order of cases; "
                "failures that cluster in time cannot be told from those of single cases"
            )
    line, resolution = baseline_line(session), session.resolution
    if line is not None and resolution is not None:
        lines += [f"crashlab: {line}", *(f"crashlab: note: {note.text}" for note in resolution.notes)]
    return lines


def plan_lines(session: RunSession) -> list[str]:
    """How many cases and trials, what was left out, and what cannot be repeated."""
    selection = session.selection
    if selection is None:
        return []
    planned = [case.planned for case in selection.cases]
    trials = f"{len(planned)} case{'s' * (len(planned) != 1)}"
    if planned and min(planned) == max(planned):
        trials += f" x {planned[0]} trial{'s' * (planned[0] != 1)} = {sum(planned)}"
    elif planned:
        trials += f", {min(planned)} to {max(planned)} trials each = {sum(planned)}"
    if session.baseline is not None:
        manifest = session.baseline.manifest
        run = f"run {manifest.id}, {manifest.planned_trials} trials"
        name = session.settings.baseline  # None in a resumed run, which keeps the baseline it had
        trials += f", baseline {run}" if name is None else f", baseline {name} ({run})"
    lines = [f"crashlab: {trials}"]
    if len(planned) < selection.collected:
        lines.append(f"crashlab: {len(planned)} of {selection.collected} cases selected")
    elif is_partial(session.config, selection, session.baseline):
        lines.append("crashlab: a selection of cases: compared, and not to be promoted")
    if process.distributes(session.config):  # else said where the rows are read
        lines += [f"crashlab: {use.sentence}" for use in selection.datasets]
    lines += [f"crashlab: {look}" for look in session.looks]
    lines += [f"crashlab: runs once only, {why}: {case}" for case, why in selection.once]
    return [*lines, *_vocabulary_lines(selection)]


def _vocabulary_lines(selection: Selection) -> list[str]:
    """What the declared vocabularies alone say, before a trial runs."""
    if not selection.vocabularies:
        return []
    from pytest_crashlab.records.vocabulary_lint import Declared, lint_declared

    found = lint_declared([Declared.from_mapping(data) for data in selection.vocabularies])
    return [f"crashlab: {finding.text}" for finding in found if finding.allowed is None]


def print_summary(reporter: pytest.TerminalReporter, session: RunSession, ending: Ending) -> None:
    """Print what the run came to, or why that cannot be said."""
    if session.problem is not None:
        reporter.write_line(f"ERROR: {session.problem}", red=True)
        return
    conclusion = ending.conclusion
    if conclusion is not None:
        if session.config.option.verbose >= 0:
            reporter.write_sep("=", "crashlab")
        reporter.write(conclusion.text)
        if conclusion.gate is not None and ending.exit_status != conclusion.gate.exit_code:
            reporter.write_line(
                f"The session ends with exit code {ending.exit_status}, which does not come from the gate."
            )
    problems = () if conclusion is None else conclusion.problems
    for line in filter(None, (ending.unfinished, ending.promotion, *problems)):
        reporter.write_line(line)
    if conclusion is not None and conclusion.annotations:
        reporter.ensure_newline()
        for line in conclusion.annotations:  # read by the CI service, which does not show them here
            reporter.write_line(line)
    if session.store_error is not None:
        reporter.write_line(f"crashlab: the run is not whole in the store: {session.store_error}", red=True)
