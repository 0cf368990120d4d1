"""What failed trials said, for a reader who asks why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_crashlab.report.figures import DASH, seconds, text
from pytest_crashlab.report.phases import ended, phase_times

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_crashlab.store import StoredRun

_MOST = 200


def first_messages(run: StoredRun, cases: Iterable[str]) -> dict[str, str]:
    """For each of ``cases`` what its first failed or crashed trial said, with the label and the line."""
    trials = run.trials
    failed = trials.filter(
        trials["deciding"] & trials["kind"].is_in(["fail", "crash"]) & trials["case"].is_in(list(cases))
    )
    first = failed.sort("trial").unique("case", keep="first", maintain_order=True)
    return {row["case"]: f"trial {row['trial']}: {_said(row)}" for row in first.iter_rows(named=True)}


def trial_lines(run: StoredRun, case: str) -> Iterator[str]:
    """Every trial of ``case``: outcome, where it was assigned, what it said in full."""
    rows = run.trials.filter(run.trials["deciding"] & (run.trials["case"] == case)).sort("trial")
    for row in rows.iter_rows(named=True):
        parts = ", ".join(f"{phase} {seconds(took)}" for phase, _, took in phase_times(row))
        beside = f" ({parts})" if parts else ""
        yield f"trial {row['trial']}: {_head(row)} in {seconds(row['duration'])}{beside}"
        if (end := ended(row)) is not None:
            yield f"  {end}"
        yield from (f"  {text(line)}" for line in (row["message"] or "").splitlines() if line.strip())
        if row["record_error"]:
            yield f"  Tear-down failed, and the outcome stands: {text(row['record_error'])}"


def _head(row: dict[str, Any]) -> str:
    return f"{text(row['outcome'] or 'no_outcome')} at {text(row['site']) if row['site'] else DASH}"


def _said(row: dict[str, Any]) -> str:
    message = next((line.strip() for line in (row["message"] or "").splitlines() if line.strip()), "")
    message = text(message)
    cut = f"{message[:_MOST]}..." if len(message) > _MOST else message
    return f"{_head(row)}: {cut}" if cut else _head(row)
