"""Failures that cluster in time: an outage that hides in a label of the system under test."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_crashlab.compare.codes import case_codes
from pytest_crashlab.records.outcome import Decision

if TYPE_CHECKING:
    from pytest_crashlab.store import StoredRun

_TESTABLE_ORDER = "rounds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """``failures`` of ``trials`` in a row, over ``cases`` cases; ``start`` and ``end`` since the epoch."""

    failures: int
    trials: int
    cases: int
    start: float
    end: float

    @property
    def when(self) -> str:
        """From when to when, in UTC: "14:03:10 to 14:07:55 UTC"."""
        first, last = (time.strftime("%H:%M:%S", time.gmtime(t)) for t in (self.start, self.end))
        return f"{first} to {last} UTC"


def failure_cluster(run: StoredRun) -> Cluster | None:
    """The cluster of ``run``'s failures, if they have one that chance does not explain.

    Tests the decided trials in order of their start. Only an order that is random over cases can be
    tested: trials of a case in a row cannot be told from a broken case, so other orders give None.
    """
    if run.manifest.trial_order != _TESTABLE_ORDER:
        return None
    import polars as pl

    from pytest_crashlab.stats import failure_clusters

    decided = run.trials.select("case", "trial", "deciding", "decision", "start", "duration").filter(
        pl.col("deciding") & pl.col("decision").is_in([Decision.PASS.value, Decision.FAIL.value])
    )
    rows = (
        decided.with_columns(case_codes(decided["case"]))
        .sort("start", "trial", "case")
        .select(
            "case",
            (pl.col("decision") == Decision.FAIL.value).alias("failed"),
            "start",
            (pl.col("start") + pl.col("duration")).alias("end"),
        )
    )
    found = failure_clusters(rows["case"].to_numpy(), rows["failed"].to_numpy())
    if found is None or not found.found:
        return None
    inside = rows.slice(found.first, found.last - found.first + 1)
    return Cluster(
        failures=found.failures,
        trials=inside.height,
        cases=found.cases,
        start=float(inside["start"][0]),
        end=float(inside["end"][-1]),
    )
