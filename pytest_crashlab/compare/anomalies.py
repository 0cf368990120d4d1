"""What looks wrong with a run's own data, before anything is compared with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.compare.clusters import failure_cluster
from pytest_crashlab.compare.judges import judges_of
from pytest_crashlab.compare.sentences import count, percent, several
from pytest_crashlab.compare.usage import ZERO_COST, usage_rows
from pytest_crashlab.records.comparison import Note

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from pytest_crashlab.store import StoredRun

_FEWEST = 10
_FAR_BELOW = 0.5


def anomalies(run: StoredRun) -> Iterator[Note]:
    """Every anomaly of ``run``, each as a sentence."""
    import polars as pl

    rows = run.trials.filter(pl.col("deciding") & pl.col("kind").is_not_null() & (pl.col("kind") != "excluded"))
    yield from _in_time(run, rows)
    yield from _one_label(rows)
    yield from _progress(rows)
    for name, judges in sorted(judges_of(run).items()):
        if len(judges) > 1:
            yield Note(
                code="two_judges",
                text=f"Check {name} was judged by {several(sorted(judges))}: its rate mixes them.",
            )
    if run.manifest.replayed:
        yield Note(code="replayed", text="Answers of the provider were replayed: they measure nothing new.")
    if usage_rows(run)["zero_cost"].any():
        yield Note(code="zero_cost", text=f"{ZERO_COST[0].upper()}{ZERO_COST[1:]}.")


def _in_time(run: StoredRun, rows: pl.DataFrame) -> Iterator[Note]:
    failures = rows.filter(rows["decision"] == "fail").height
    if run.manifest.trial_order == "cases" and failures:
        yield Note(
            code="order_untestable",
            text="Whether failures cluster in time cannot be tested: the trials of a case ran in a row.",
        )
        return
    if (found := failure_cluster(run)) is not None:
        yield Note(
            code="clustered_failures",
            text=f"Failures cluster in time: from {found.when}, {found.failures} of {found.trials} trials "
            f"failed, over {count(found.cases, 'unrelated case')}.",
        )


def _one_label(rows: pl.DataFrame) -> Iterator[Note]:
    """Everything under one label that is no pass: more likely one cause than so many findings."""
    import polars as pl

    if rows.height < _FEWEST or rows["outcome"].n_unique() != 1 or rows["kind"][0] == "pass":
        return
    sites = rows["site"].drop_nulls().n_unique()
    yield Note(
        code="one_label",
        text=f"All {rows.height} trials of {count(rows.select(pl.col('case').n_unique()).item(), 'case')} have "
        f"one outcome, {rows['outcome'][0]}, assigned in {count(sites, 'place')}: look for one cause.",
    )


def _progress(rows: pl.DataFrame) -> Iterator[Note]:
    """Targets that used their horizon up far before it, went beyond it, or count in several units."""
    import polars as pl

    known = rows.filter(pl.col("t").is_not_null())
    early = known.filter(
        pl.col("outcome").str.contains("exhausted|timed_out|timeout")
        & (pl.col("t") < _FAR_BELOW * pl.col("horizon"))
    )
    if early.height:
        worst = early.with_columns(share=pl.col("t") / pl.col("horizon")).sort("share")
        yield Note(
            code="far_below_horizon",
            text=f"{count(early.height, 'trial')} ended as {early['outcome'][0]} far below the horizon (the "
            f"earliest after {percent(worst['share'][0])} of it): something else may have stopped them.",
        )
    beyond = known.filter(
        (pl.col("t") < 0) | pl.col("t").is_nan() | (pl.col("t") > pl.col("horizon")).fill_null(value=False)
    )
    if beyond.height:
        yield Note(
            code="beyond_horizon",
            text=f"{count(beyond.height, 'trial')} say that the target got to a point outside of 0 to its "
            f"horizon: {several(beyond['case'].unique(maintain_order=True).to_list())}.",
        )
    mixed = (
        rows.filter(pl.col("t_unit").is_not_null())
        .group_by("case", maintain_order=True)
        .agg(pl.col("t_unit").unique())
        .filter(pl.col("t_unit").list.len() > 1)
    )
    if mixed.height:
        yield Note(
            code="two_units",
            text=f"How far the target got is counted in several units within a case: "
            f"{several(mixed['case'].to_list())}.",
        )
