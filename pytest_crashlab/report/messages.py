"""What failed trials said, for a reader who asks why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_crashlab.report.figures import DASH, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_crashlab.store import StoredRun

_MOST = 200


def first_messages(run: StoredRun, cases: Iterable[str]) -> dict[str, str]:
    """For each of ``cases`` what its first failed or crashed trial said, with the label and the line."""
    wanted, found = set(cases), {}
    for row in _deciding(run):
        if row["case"] in wanted and row["case"] not in found and row["kind"] in {"fail", "crash"}:
            found[row["case"]] = f"trial {row['trial']}: {_said(row)}"
    return found


def trial_lines(run: StoredRun, case: str) -> Iterator[str]:
    """Every trial of ``case``: outcome, where it was assigned, what it said in full."""
    for row in _deciding(run):
        if row["case"] == case:
            yield f"trial {row['trial']}: {_head(row)} in {row['duration']:.2f} s"
            yield from (f"  {text(line)}" for line in (row["message"] or "").splitlines() if line.strip())


def _deciding(run: StoredRun) -> Iterator[dict[str, Any]]:
    return iter(run.trials.filter(run.trials["deciding"]).sort("case", "trial").iter_rows(named=True))


def _head(row: dict[str, Any]) -> str:
    return f"{text(row['outcome'] or 'no_outcome')} at {text(row['site']) if row['site'] else DASH}"


def _said(row: dict[str, Any]) -> str:
    message = next((line.strip() for line in (row["message"] or "").splitlines() if line.strip()), "")
    message = text(message)
    cut = f"{message[:_MOST]}..." if len(message) > _MOST else message
    return f"{_head(row)}: {cut}" if cut else _head(row)
