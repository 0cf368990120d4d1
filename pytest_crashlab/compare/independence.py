"""Failures that follow the process: trials that share a worker share more than the test asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_crashlab.compare.sentences import count
from pytest_crashlab.compare.shared import STATE_OPENING, state_warning
from pytest_crashlab.records.outcome import Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pytest_crashlab.store import StoredRun

ALPHA = 0.01
_FIRST_LOOK, _PERMUTATIONS, _MOST_DRAWS = 199, 9_999, 20_000_000
_OPENING = "Failures follow the process"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCluster:
    """Failures that are not spread over the processes of a run as chance would.

    ``worker`` the process that differs most; ``failures`` of its ``trials`` in the ``cases`` that both
    passed and failed and ran in several processes; ``expected`` failures if the process did not
    matter; ``p`` of the permutation test; ``workers`` how many processes there were; ``fresh`` whether
    each round of trials had processes of its own.
    """

    worker: str
    failures: int
    trials: int
    expected: float
    cases: int
    workers: int
    p: float
    fresh: bool = False

    @property
    def sentence(self) -> str:
        """What was found, what it means for the numbers, and what to do."""
        advice = (
            "The processes were fresh in each round, so look for what else one had to itself: a server, a "
            "port, its time."
            if self.fresh
            else "--crashlab-isolation=round, fresh processes for each round, tells it from the target."
        )
        return (
            f"{_OPENING}: {self.worker} failed {self.failures} of {count(self.trials, 'trial')} where "
            f"{self.expected:.1f} are expected (p = {max(self.p, 0.0001):.4f}); trials of one process share "
            f"its module state, caches and hash seed, so intervals may be too narrow. {advice}"
        )


def worker_cluster(run: StoredRun) -> WorkerCluster | None:
    """The cluster of ``run``'s failures by process, if they have one that chance does not explain.

    Permutes pass and fail among the decided trials of each case, so that a broken case is no cluster
    wherever it ran. The statistic sums the squared standardised excess of failures over processes
    (the stratified form of Fisher's comparison; Mantel 1963). Needs a case that passed and failed,
    in more than one process: a run of one process gives None, as nothing there can tell.
    """
    import polars as pl

    mixed = pl.col("failed").any().over("case") & ~pl.col("failed").all().over("case")
    spread = pl.col("worker").n_unique().over("case") > 1
    rows = (
        run.trials.filter(
            pl.col("deciding") & pl.col("decision").is_in([Decision.PASS.value, Decision.FAIL.value])
        )
        .with_columns(failed=pl.col("decision") == Decision.FAIL.value)
        .filter(mixed & spread)
        .sort("case", "trial")
    )
    if rows.is_empty():
        return None
    workers = rows["worker"].cast(pl.String).to_list()
    names = sorted(set(workers))
    place = {name: i for i, name in enumerate(names)}
    case = rows["case"].rank("dense").cast(pl.Int64).to_numpy() - 1
    failed = rows["failed"].to_numpy().astype(np.float64)
    worker = np.asarray([place[name] for name in workers], dtype=np.int64)
    moments = _moments(case, worker, failed, len(names))
    p = _p_value(case, worker, failed, moments)
    if p >= ALPHA:
        return None
    expected, variance = moments
    observed = np.bincount(worker, failed, minlength=len(names))
    excess = np.where(variance > 0, (observed - expected) / np.sqrt(np.maximum(variance, 1e-12)), -np.inf)
    most = int(np.argmax(excess))
    return WorkerCluster(
        worker=names[most],
        failures=int(observed[most]),
        trials=int((worker == most).sum()),
        expected=float(expected[most]),
        cases=int(case[-1]) + 1,
        workers=len(names),
        p=p,
        fresh=run.manifest.isolation == "round",
    )


def with_warning(warnings: Sequence[str], run: StoredRun) -> list[str]:
    """``warnings`` of a run with those about its processes brought up to date."""
    found = worker_cluster(run)
    kept = [warning for warning in warnings if not warning.startswith((_OPENING, STATE_OPENING))]
    state = state_warning(run.manifest)
    return [*kept, *([] if found is None else [found.sentence]), *([] if state is None else [state])]


_Moments = tuple["NDArray[np.float64]", "NDArray[np.float64]"]


def _moments(
    case: NDArray[np.int64], worker: NDArray[np.int64], failed: NDArray[np.float64], workers: int
) -> _Moments:
    """Mean and variance of each process's failures when a case's are dealt out at random."""
    cases = int(case[-1]) + 1
    of_case = np.bincount(case).astype(np.float64)[:, None]
    share = np.bincount(case, failed)[:, None] / of_case
    dealt = np.bincount(case * workers + worker, minlength=cases * workers).reshape(cases, workers)
    variance = share * (1 - share) * dealt * (of_case - dealt) / (of_case - 1)
    return (share * dealt).sum(axis=0), variance.sum(axis=0)


def _p_value(
    case: NDArray[np.int64], worker: NDArray[np.int64], failed: NDArray[np.float64], moments: _Moments
) -> float:
    """Permutation p-value, (1 + as extreme) / (1 + drawn); 199 draws do for what is plainly chance."""
    expected, variance = moments
    counted = variance > 0

    def statistic(values: NDArray[np.float64]) -> float:
        observed = np.bincount(worker, values, minlength=len(expected))
        return float(((observed - expected)[counted] ** 2 / variance[counted]).sum())

    seen = statistic(failed) * (1 - 1e-9)
    random = np.random.default_rng(0)  # the same run gets the same sentence
    extreme = drawn = 0
    most = max(_FIRST_LOOK, min(_PERMUTATIONS, _MOST_DRAWS // len(case)))
    while drawn < most and not (drawn == _FIRST_LOOK and extreme > _FIRST_LOOK * 10 * ALPHA):
        # sorted by case first, so each case's values stay its own
        extreme += statistic(failed[np.lexsort((random.random(len(case)), case))]) >= seen
        drawn += 1
    return (1 + extreme) / (1 + drawn)
