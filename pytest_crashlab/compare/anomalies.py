"""What looks wrong with a run's instrument, before any number of it is believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.compare.caching import cache_notes
from pytest_crashlab.compare.clusters import failure_cluster
from pytest_crashlab.compare.sentences import count, several
from pytest_crashlab.compare.usage import usage_rows
from pytest_crashlab.records.comparison import Note
from pytest_crashlab.records.outcome import Decision, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from pytest_crashlab.store import StoredRun

FEWEST_OF_ONE_LABEL = 10
FAR_BELOW = 0.5
_LIMIT_WORDS = "(?i)timed?[ _-]?out|wall_clock|deadline|exhausted|horizon"


def anomalies(run: StoredRun, *, scanned: bool = False) -> tuple[Note, ...]:
    """Everything about ``run`` that asks for a look at the instrument rather than at the target.

    ``scanned``: a comparison has looked for clusters in time already, and has its own reason for them.
    """
    import polars as pl

    deciding = run.trials.filter(pl.col("deciding") & pl.col("kind").is_not_null()).with_columns(
        pl.col("kind").cast(pl.String)
    )
    return (
        *_clustered(run, deciding, scanned=scanned),
        *_replayed(run),
        *cache_notes(run),
        *_early_limits(deciding),
        *_one_label(deciding),
        *_judges(run),
        *_units(deciding),
        *_free_tokens(run),
    )


def _clustered(run: StoredRun, deciding: pl.DataFrame, *, scanned: bool) -> Iterator[Note]:
    import polars as pl

    failures = deciding.filter(pl.col("decision").cast(pl.String) == Decision.FAIL.value)
    if failures.is_empty():
        return
    if run.manifest.trial_order != "rounds":
        if failures["case"].n_unique() > 1 and deciding["trial"].max() != 1:
            yield Note(
                code="clusters_untestable",
                text=f"Whether the {count(failures.height, 'failure')} cluster in time cannot be tested: the "
                "trials of a case ran one after another, or in an order that is not known.",
            )
        return
    cluster = None if scanned else failure_cluster(run)
    if cluster is not None:
        yield Note(
            code="clustered_failures",
            text=f"Failures cluster in time: from {cluster.when}, {cluster.failures} of {cluster.trials} "
            f"trials failed, over {count(cluster.cases, 'case')} that have nothing in common.",
        )


def _replayed(run: StoredRun) -> Iterator[Note]:
    if run.manifest.replayed:
        yield Note(
            code="replayed",
            text="The provider's answers were replayed from a recording: trials repeat each other.",
        )


def _early_limits(deciding: pl.DataFrame) -> Iterator[Note]:
    """Trials that a limit stopped long before their declared horizon: another limit came first."""
    import polars as pl

    early = deciding.filter(
        pl.col("outcome").cast(pl.String).str.contains(_LIMIT_WORDS)
        & (pl.col("horizon") > 0)
        & (pl.col("t") < FAR_BELOW * pl.col("horizon"))
    )
    if early.is_empty():
        return
    worst = early.sort(pl.col("t") / pl.col("horizon"), "case").row(0, named=True)
    unit = worst["t_unit"] or "units"
    labels = several(sorted(early["outcome"].unique()))
    yield Note(
        code="limit_below_horizon",
        text=f"{count(early.height, 'trial')} ended as {labels} far below the horizon, at {worst['t']:g} of "
        f"{worst['horizon']:g} {unit} in {worst['case']}: another limit came first.",
    )


def _one_label(deciding: pl.DataFrame) -> Iterator[Note]:
    """Every trial of several cases in one label that is no pass: the vocabulary may tell nothing apart."""
    import polars as pl

    tried = deciding.filter(pl.col("kind") != Kind.EXCLUDED.value)
    if tried.height < FEWEST_OF_ONE_LABEL or tried["case"].n_unique() < 2 or tried["outcome"].n_unique() > 1:
        return
    if tried["kind"][0] != Kind.PASS.value:
        yield Note(
            code="one_label",
            text=f"All {tried.height} trials of {count(tried['case'].n_unique(), 'case')} ended as "
            f"{tried['outcome'][0]}: look whether something other than the cases fails.",
        )


def _units(deciding: pl.DataFrame) -> Iterator[Note]:
    """A case whose trials say in different units how far the target got."""
    import polars as pl

    mixed = (
        deciding.group_by("case")
        .agg(pl.col("t_unit").drop_nulls().unique().sort())
        .filter(pl.col("t_unit").list.len() > 1)
        .sort("case")
    )
    if mixed.height:
        case, units = mixed.row(0)
        yield Note(
            code="t_units",
            text=f"The trials of {count(mixed.height, 'case')} say in different units how far the target got "
            f"({case}: {', '.join(units)}), so they cannot be compared.",
        )


def _judges(run: StoredRun) -> Iterator[Note]:
    """A check that two judges scored: its rate mixes them."""
    import polars as pl

    if run.checks.is_empty() or run.checks["judge"].null_count() == run.checks.height:
        return
    judged = (
        run.checks.filter(pl.col("ok").is_not_null())
        .group_by("name")
        .agg(pl.col("judge").fill_null("the test itself").unique().sort())
        .filter(pl.col("judge").list.len() > 1)
        .sort("name")
    )
    for name, judges in judged.iter_rows():
        yield Note(
            code="several_judges",
            text=f"Check {name} was judged by {several(judges)}: its rate mixes them.",
        )


def _free_tokens(run: StoredRun) -> Iterator[Note]:
    free = int(usage_rows(run)["zero_cost"].sum())
    if free:
        yield Note(
            code="zero_cost",
            text=f"{count(free, 'trial')} reported a cost of 0 beside tokens that were used: their cost is "
            "taken as not known.",
        )
