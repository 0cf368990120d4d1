"""One judgement of a stored run, for every verb that gives or promises one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_crashlab.compare.policies import NO_VERDICT, PASSES, decide
from pytest_crashlab.compare.thresholds import check_thresholds
from pytest_crashlab.records.comparison import Policy
from pytest_crashlab.records.run import RunStatus

if TYPE_CHECKING:
    from pytest_crashlab.records.comparison import Comparison, Gate, ThresholdResult
    from pytest_crashlab.store import StoredRun


def recorded_thresholds(run: StoredRun, min_pass_rate: float | None = None) -> tuple[ThresholdResult, ...]:
    """The run's thresholds: those of its cases, and a least pass rate (by default the recorded one)."""
    least = run.manifest.min_pass_rate if min_pass_rate is None else min_pass_rate
    return check_thresholds(run, min_pass_rate=least)


def judge(
    run: StoredRun,
    comparison: Comparison | None,
    *,
    policy: str | None = None,
    min_pass_rate: float | None = None,
) -> tuple[tuple[ThresholdResult, ...], Gate]:
    """Thresholds and gate of a stored run beside ``comparison`` (None: none was asked for).

    What is not given is as the run was recorded. A run that did not complete never passes.
    """
    thresholds = recorded_thresholds(run, min_pass_rate)
    recorded = run.manifest.policy if run.manifest.policy in list(Policy) else Policy.REGRESSIONS
    gate = decide(Policy(policy or recorded), comparison, thresholds)
    unfinished = run.manifest.status is not RunStatus.COMPLETED
    if unfinished and gate.exit_code == PASSES and gate.policy is not Policy.REPORT:
        text = f"The run is {run.manifest.status.value}: not every planned trial reported."
        gate = replace(gate, exit_code=NO_VERDICT, because=(text,))
    return thresholds, gate
