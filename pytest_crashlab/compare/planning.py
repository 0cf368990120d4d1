"""Before anything is spent: which drop a number of cases and trials would show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_crashlab.compare.counts import count_cases
from pytest_crashlab.compare.sentences import count, percent, points
from pytest_crashlab.compare.usage import Usage, run_usage
from pytest_crashlab.errors import UsageError
from pytest_crashlab.stats import detectable_drop, planned_drop, planned_trials, trials_to_show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_crashlab.store import StoredRun

USUAL_PASS_RATE = 0.95
MOST_TRIALS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A planned run and what it would show in four of five tries; shares in 0..1.

    ``detectable`` the smallest drop that ``trials`` trials a case show, None without ``trials`` or
    where not even a drop to nothing would be shown; ``needed`` the fewest trials a case that show
    ``drop``, None without ``drop`` or where 100 are not enough. ``baseline_trials`` decided trials a
    case of the baseline, None where the baseline is to be run with as many as the candidate. ``seconds``
    a trial took in the baseline, set-up and tear-down included, and ``cost`` what its target used: None
    where nothing was measured.
    """

    cases: int
    trials: int | None
    pass_rate: float
    measured: bool
    baseline: str | None
    baseline_trials: float | None
    drop: float | None
    detectable: float | None
    needed: int | None
    seconds: float | None = None
    cost: Usage | None = None

    @property
    def sentences(self) -> list[str]:
        """What to tell, one sentence a fact."""
        said = [self._assumed()]
        if self.trials is not None:
            said.append(self._detectable(self.trials))
        if self.drop is not None:
            said.append(self._needed(self.drop))
        if self.measured and (trials := self.trials or self.needed) is not None:
            said += self._expected(self.cases * trials)
        return said

    def _expected(self, trials: int) -> Iterator[str]:
        """What a run of so many trials takes, if a trial takes what it did in the baseline."""
        of = count(trials, "trial")
        if self.seconds is not None:
            yield f"A run of {of} takes about {_time(self.seconds * trials)} of trials one after the other."
        cost = self.cost
        if cost is None or cost.value is None:
            yield "What it costs is not known: no trial of the baseline told a cost."
            return
        low, high = (None if bound is None else bound * trials for bound in (cost.low, cost.high))
        between = "" if low is None or high is None else f" ({low:,.4g} to {high:,.4g}, 95 %, new cases)"
        yield (
            f"It costs about {cost.value * trials:,.4g} USD{between}: {cost.value:,.4g} USD a trial, "
            f"{cost.basis or 'of unknown basis'}, known of {cost.trials} of {cost.of} trials."
        )

    def _assumed(self) -> str:
        rate = percent(self.pass_rate)
        if self.baseline is None:
            cases = count(self.cases, "case")
            return f"Assumed: {cases} that pass {rate} of their trials, most of them nearly always."
        return (
            f"{count(self.cases, 'case')} as in run {self.baseline}: pass rate {rate}, "
            f"{self.baseline_trials:.1f} decided trials a case."
        )

    def _detectable(self, trials: int) -> str:
        design = f"{count(trials, 'trial')} a case ({count(self.cases * trials, 'trial')} a run)"
        if self.detectable is None:
            return f"With {design} not even a drop to 0 would be found in 4 of 5 tries."
        return f"With {design} a drop of {points(self.detectable)} points is found in 4 of 5 tries."

    def _needed(self, drop: float) -> str:
        wanted = f"a drop of {points(drop)} points in 4 of 5 tries"
        if self.needed is None:
            more = (
                "add cases"
                if self.baseline is None
                else "add cases, or give the baseline more trials as well"
            )
            return f"To find {wanted}, {MOST_TRIALS} trials a case are not enough: {more}."
        total = count(self.cases * self.needed, "trial")
        return f"To find {wanted}, each case needs {count(self.needed, 'trial')} ({total} a run)."


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.2g} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def assumed_design(
    *, cases: int, trials: int | None, pass_rate: float | None = None, drop: float | None = None
) -> Design:
    """A design of which nothing was measured: both runs have ``trials`` trials a case.

    ``pass_rate`` strictly between 0 and 1, by default 0.95. Raises `BadInput` for numbers that no
    design has.
    """
    rate = USUAL_PASS_RATE if pass_rate is None else pass_rate
    return Design(
        cases=cases,
        trials=trials,
        pass_rate=rate,
        measured=False,
        baseline=None,
        baseline_trials=None,
        drop=drop,
        detectable=None if trials is None else planned_drop(cases, trials, rate=rate),
        needed=None if drop is None else planned_trials(cases, drop, rate=rate, most=MOST_TRIALS),
    )


def measured_design(
    run: StoredRun, *, cases: int | None = None, trials: int | None, drop: float | None = None
) -> Design:
    """A design against a baseline that is there, which keeps the trials it has.

    ``cases`` None: the run's decided cases; another number: that many cases like them, taken evenly.
    Raises `UsageError` for a run without a decided trial and `BadInput` for impossible numbers.
    """
    decided = [c for c in count_cases(run) if c.decided]
    if not decided:
        raise UsageError(f"Run {run.manifest.id} has no decided trial, so nothing can be planned by it.")
    size = len(decided) if cases is None else cases
    taken = [decided[i * len(decided) // size] for i in range(size)]
    passes = np.asarray([c.passes for c in taken], dtype=np.int64)
    n = np.asarray([c.decided for c in taken], dtype=np.int64)
    shown = None if trials is None else detectable_drop(passes, n, np.full(size, trials))
    return Design(
        cases=size,
        trials=trials,
        pass_rate=float((passes / n).mean()),
        measured=True,
        baseline=run.manifest.id,
        baseline_trials=float(n.mean()),
        drop=drop,
        detectable=shown,
        needed=None if drop is None else trials_to_show(passes, n, drop, most=MOST_TRIALS),
        seconds=_seconds(run),
        cost=next(used for used in run_usage(run) if used.unit == "USD"),
    )


def _seconds(run: StoredRun) -> float | None:
    """The mean duration of the trials that ran."""
    ran = run.trials.filter(run.trials["deciding"] & (run.trials["duration"] > 0))["duration"]
    return None if ran.is_empty() else float(ran.sum()) / len(ran)
