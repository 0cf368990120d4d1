"""The commands to type after a comparison: the same after a session and after ``crashlab gate``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pytest_crashlab.records.comparison import Word

if TYPE_CHECKING:
    from pytest_crashlab.records.comparison import Comparison


def baseline_name(reference: str | None, run_id: str) -> str:
    """What to call the baseline in a command: its id, or the file it came from, which no store holds."""
    return reference if reference is not None and reference.endswith(".crashrun") else run_id


def after_comparison(comparison: Comparison | None, reference: str | None, *, store: str = "") -> list[str]:
    """Open the comparison, then the case that got worse most surely; empty where nothing was compared.

    ``reference`` what the user named the baseline by; ``store`` an option to put behind the command.
    """
    if comparison is None or not comparison.baseline_id:
        return []
    candidate = comparison.candidate_id
    baseline = shlex.quote(baseline_name(reference, comparison.baseline_id))
    diff = f"crashlab{store} diff {baseline} {candidate}"
    commands = [f"{diff} --show worse" if comparison.word is Word.REGRESSED else diff]
    worse = sorted((c.p, c.case) for c in comparison.cases if c.delta < 0)
    if worse:
        commands.append(f"crashlab{store} view {candidate} --case {shlex.quote(worse[0][1])}")
    return commands
