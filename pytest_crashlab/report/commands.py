"""The commands to type after a comparison: the same after a session and after ``crashlab gate``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pytest_crashlab.records.comparison import Word

if TYPE_CHECKING:
    from pytest_crashlab.records.comparison import Comparison


def run_name(reference: str | None, run_id: str) -> str:
    """What to call a run in a command: its id, or the file it came from, which no store holds."""
    return reference if reference is not None and reference.endswith(".crashrun") else run_id


def after_comparison(
    comparison: Comparison | None, reference: str | None, *, candidate: str | None = None, store: str = ""
) -> list[str]:
    """Open the comparison, then the case that got worse most surely; empty where nothing was compared.

    ``reference`` what the user named the baseline by, and ``candidate`` the run that was compared with it;
    ``store`` an option to put behind the command.
    """
    if comparison is None or not comparison.baseline_id:
        return []
    named = shlex.quote(run_name(candidate, comparison.candidate_id))
    baseline = shlex.quote(run_name(reference, comparison.baseline_id))
    diff = f"crashlab{store} diff {baseline} {named}"
    commands = [f"{diff} --show worse" if comparison.word is Word.REGRESSED else diff]
    worse = sorted((c.p, c.case) for c in comparison.cases if c.delta < 0)
    if worse:
        commands.append(f"crashlab{store} view {named} --case {shlex.quote(worse[0][1])}")
    return commands
