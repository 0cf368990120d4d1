"""Rows as they come in: numbered by attempt, counted once, written at once."""

from __future__ import annotations

from collections import Counter
from time import time  # bound now: a test may put another clock in its place
from typing import TYPE_CHECKING

from pytest_crashlab.records.outcome import INSTRUMENT_OUTCOMES, Decision
from pytest_crashlab.records.trial import TrialRow

if TYPE_CHECKING:
    from pytest_crashlab.plugin.rows import Finished
    from pytest_crashlab.store.runs import RunWriter

# More attempts of one trial than this would be a bug of the session, not a fact worth counting.
_MOST_ATTEMPTS = 255
UNKNOWN_WORKER = "unknown"  # xdist says which tests have begun, and not where


class Recorder:
    """Writes the rows of one run and keeps the few counts that progress and the end need."""

    def __init__(self, writer: RunWriter, attempts: dict[str, dict[int, int]]) -> None:
        self._writer = writer
        self._attempts: dict[str, bytearray] = {}
        for case, trials in attempts.items():
            counts = bytearray(max(trials) + 1)
            for trial, count in trials.items():
                counts[trial] = min(count, _MOST_ATTEMPTS)
            self._attempts[case] = counts
        self._last_of_worker: dict[str, tuple[str, int]] = {}
        self.labels: Counter[str] = Counter()
        self.decisions: Counter[Decision] = Counter()
        self.reported = sum(self._reported(case) for case in self._attempts)
        self.troubled: set[str] = set()  # cases with a trial that failed or gave no decision
        self.cost: float | None = None  # US dollars that the targets of this session told
        self.costless = 0  # rows that told none
        self.slowest: tuple[float, str] | None = None  # seconds of the longest trial, and its case
        self._untold: set[tuple[str, int]] = set()  # trials that have rows, and none with an outcome

    def add(self, finished: Finished) -> TrialRow:
        """Record the row of a report."""
        row = finished.row
        self._last_of_worker[row.worker] = (row.case, row.trial)
        numbered = self._number(row)
        text = finished.text if numbered is row else None  # it names the first attempt
        self._writer.append(numbered, finished.checks, text=text)
        self._count(numbered)
        return numbered

    def lost(self, case: str, trial: int, worker: str, message: str, *, began: float) -> TrialRow | None:
        """Record that the process which ran a trial is gone; None when its row had come in already."""
        if self._last_of_worker.get(worker) == (case, trial):
            return None
        return self._unreported("worker_lost", case, trial, worker, message, began=began)

    def left(self, case: str, trial: int, message: str, *, began: float) -> TrialRow:
        """Record that the session was stopped while another process ran a trial."""
        return self._unreported("interrupted", case, trial, UNKNOWN_WORKER, message, began=began)

    def _unreported(
        self, label: str, case: str, trial: int, worker: str, message: str, *, began: float
    ) -> TrialRow:
        outcome = INSTRUMENT_OUTCOMES[label]
        row = self._number(
            TrialRow(
                case=case,
                trial=trial,
                outcome=outcome.label,
                kind=outcome.kind,
                infra_healthy=False,
                target_completed=False,
                start=began,
                duration=max(time() - began, 0.0),
                worker=worker,
                message=message,
            )
        )
        self._writer.append(row, [])
        self._count(row)
        return row

    def _number(self, row: TrialRow) -> TrialRow:
        """Give the attempt its number: one more than the attempts of this trial so far."""
        attempts = self._attempts.setdefault(row.case, bytearray())
        if len(attempts) <= row.trial:
            attempts.extend(bytes(row.trial + 1 - len(attempts)))
        attempts[row.trial] = min(attempts[row.trial] + 1, _MOST_ATTEMPTS)
        return row._replace(attempt=attempts[row.trial]) if attempts[row.trial] > 1 else row

    def _count(self, row: TrialRow) -> None:
        self.reported += row.attempt == 1
        if row.outcome is not None:
            self._untold.discard((row.case, row.trial))
        elif row.attempt == 1:
            self._untold.add((row.case, row.trial))
        self.labels[row.outcome or "no_outcome"] += 1
        if row.decision is not None:
            self.decisions[row.decision] += 1
        if row.decision in (Decision.FAIL, Decision.INCONCLUSIVE):
            self.troubled.add(row.case)
        if row.cost_usd is None:
            self.costless += 1
        else:
            self.cost = (self.cost or 0.0) + row.cost_usd
        if self.slowest is None or row.duration > self.slowest[0]:
            self.slowest = row.duration, row.case

    @property
    def ran(self) -> set[str]:
        """The cases of which something was reported."""
        return set(self._attempts)

    def missing(self, planned: dict[str, int]) -> int:
        """How many planned trials have no row, or none with an outcome."""
        untold = sum(case in planned for case, _ in self._untold)
        return untold + sum(k - self._reported(case) for case, k in planned.items())

    def _reported(self, case: str) -> int:
        return sum(count > 0 for count in self._attempts.get(case, b""))
