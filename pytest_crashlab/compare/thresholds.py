"""Thresholds that need no baseline: a case's ``min_passes`` and the run's least pass rate.

A threshold is missed only when it would be missed with every open trial counted as a pass, and stays
open while those trials could still reach it: an outage must neither fail nor pass a gate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.compare.counts import count_cases
from pytest_crashlab.compare.sentences import count, percent
from pytest_crashlab.errors import UsageError
from pytest_crashlab.records.comparison import ThresholdResult

if TYPE_CHECKING:
    from pytest_crashlab.compare.counts import CaseCount, RunCounts
    from pytest_crashlab.store import StoredRun


def check_thresholds(run: StoredRun, *, min_pass_rate: float | None = None) -> tuple[ThresholdResult, ...]:
    """Every ``min_passes`` of the run's cases and, where given, the least pass rate (a share of 1).

    A case whose trials are all skipped has no threshold. Raises `UsageError` for a rate outside 0..1.
    """
    if min_pass_rate is not None and not 0 <= min_pass_rate <= 1:
        raise UsageError(
            f"The least pass rate has to be a share from 0 to 1, not {min_pass_rate}: write 0.9 for 90 %."
        )
    if min_pass_rate is None and run.cases["min_passes"].null_count() == run.cases.height:
        return ()
    counts = count_cases(run)
    results = [
        _min_passes(case, case.min_passes)
        for case in counts
        if case.min_passes is not None and case.scheduled > 0
    ]
    if min_pass_rate is not None:
        results.append(_pass_rate(counts, min_pass_rate))
    return tuple(results)


def _min_passes(case: CaseCount, least: int) -> ThresholdResult:
    met: bool | None = case.passes >= least
    if not met and case.passes + case.open + case.excluded >= least:
        met = None
    text = f"{case.case} passed {case.passes} of {count(case.decided, 'decided trial')}"
    if met is None:
        waiting = count(case.open + case.excluded, "trial")
        text += f" and {waiting} gave no decision, so it cannot be said whether it passes {least}"
    else:
        text += f"; it has to pass at least {least}"
    return ThresholdResult(name="min_passes", case=case.case, met=met, text=f"{text}.")


def _pass_rate(counts: RunCounts, least: float) -> ThresholdResult:
    cases = [c for c in counts if c.scheduled > 0]
    decided = [c for c in cases if c.decided > 0]
    wanted = percent(least)
    if not decided:
        text = f"No trial was decided, so the pass rate cannot be held against {wanted}."
        return ThresholdResult(name="min_pass_rate", case=None, met=None, text=text)
    rate = sum(c.passes / c.decided for c in decided) / len(decided)
    best = sum((c.passes + c.open) / c.scheduled for c in cases) / len(cases)
    worst = sum(c.passes / c.scheduled for c in cases) / len(cases)
    few_open = (counts.undecided + counts.missing) * 10 <= counts.scheduled
    slack = 1e-9  # a mean of fractions that should be exactly the limit may miss it by rounding
    text = f"The pass rate is {percent(rate)}"
    if best < least - slack:
        return ThresholdResult(
            name="min_pass_rate", case=None, met=False, text=f"{text}; at least {wanted} is asked for."
        )
    if worst >= least - slack or (rate >= least - slack and few_open):
        return ThresholdResult(
            name="min_pass_rate", case=None, met=True, text=f"{text}; at least {wanted} was asked for."
        )
    waiting = count(counts.undecided + counts.missing, "trial")
    text += f" and {waiting} gave no decision, so it cannot be said whether it reaches {wanted}."
    return ThresholdResult(name="min_pass_rate", case=None, met=None, text=text)
