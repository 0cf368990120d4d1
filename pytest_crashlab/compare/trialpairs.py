"""Trials that are pairs because both runs used one seed: trial i of A beside trial i of B."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_crashlab.compare.pairing import Pair
from pytest_crashlab.records.outcome import Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pytest_crashlab.store import StoredRun


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialPairs:
    """Pairs of trials of each case: passed in both, in A only, in B only, in neither."""

    both: npt.NDArray[np.int64]
    only_a: npt.NDArray[np.int64]
    only_b: npt.NDArray[np.int64]
    neither: npt.NDArray[np.int64]

    @property
    def total(self) -> int:
        """How many pairs of trials there are."""
        return int((self.both + self.only_a + self.only_b + self.neither).sum())


def trial_pairs(
    baseline: StoredRun, candidate: StoredRun, cases: Sequence[str], *, undecided_fail: bool = False
) -> TrialPairs:
    """The trials of ``cases`` that both runs decided, one entry a case in the order given.

    ``undecided_fail`` counts the candidate's undecided trials as fails.
    """
    import polars as pl

    order = pl.DataFrame({"case": list(cases)}, schema={"case": pl.String}).with_row_index("place")
    decided = [Decision.PASS.value, Decision.FAIL.value]

    def arm(run: StoredRun, name: str, wanted: list[str]) -> pl.DataFrame:
        return run.trials.filter(pl.col("deciding") & pl.col("decision").is_in(wanted)).select(
            "case", "trial", (pl.col("decision") == Decision.PASS.value).alias(name)
        )

    wanted = [*decided, Decision.INCONCLUSIVE.value] if undecided_fail else decided
    sums = (
        arm(baseline, "a", decided)
        .join(arm(candidate, "b", wanted), on=["case", "trial"])
        .group_by("case")
        .agg(
            both=(pl.col("a") & pl.col("b")).sum(),
            only_a=(pl.col("a") & ~pl.col("b")).sum(),
            only_b=(~pl.col("a") & pl.col("b")).sum(),
            neither=(~pl.col("a") & ~pl.col("b")).sum(),
        )
    )
    table = order.join(sums, on="case", how="left").sort("place").fill_null(0)
    return TrialPairs(
        **{
            name: table[name].cast(pl.Int64).to_numpy().astype(np.int64)
            for name in ("both", "only_a", "only_b", "neither")
        }
    )


def only_paired(pairs: Sequence[Pair], trials: TrialPairs) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
    """``pairs`` with the counts of their paired trials alone, and the cases that have no such pair."""
    kept, without = [], []
    for i, pair in enumerate(pairs):
        both, only_a, only_b, neither = (
            int(x[i]) for x in (trials.both, trials.only_a, trials.only_b, trials.neither)
        )
        n = both + only_a + only_b + neither
        if n:
            kept.append(
                Pair(
                    a=pair.a._replace(passes=both + only_a, decided=n),
                    b=pair.b._replace(passes=both + only_b, decided=n),
                )
            )
        else:
            without.append(pair.case)
    return tuple(kept), tuple(without)
