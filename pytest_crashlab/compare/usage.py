"""What the target of a run and its judges took: time, tokens, money, each with how many trials told it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_crashlab.compare.codes import case_codes
from pytest_crashlab.stats import paired_t, quantile

if TYPE_CHECKING:
    import polars as pl

    from pytest_crashlab.stats import Quantile
    from pytest_crashlab.store import StoredRun

QUANTILES = (("latency p50", 0.5), ("latency p95", 0.95))
AMOUNTS = (
    ("tokens in", "tokens_in", "tokens"),
    ("tokens out", "tokens_out", "tokens"),
    ("cost", "cost_usd", "USD"),
)
OF_JUDGES = (("calls", "calls", "calls"), ("time", "seconds", "s"), *AMOUNTS)
NOT_REPORTED = "no trial reported it"
ZERO_COST = "a cost of 0 was reported beside tokens that were used, so it is not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One number of what the target or the judges took a trial: ``value`` with its 95 % interval.

    ``trials`` of ``of`` trials that ran told it, over ``cases``; ``total`` their sum where summing
    makes sense; ``basis`` of a cost; ``why`` a value, or a bound, is not known.
    """

    name: str
    unit: str
    value: float | None
    low: float | None
    high: float | None
    total: float | None
    trials: int
    of: int
    cases: int
    basis: str | None = None
    why: str | None = None


def usage_rows(run: StoredRun) -> pl.DataFrame:
    """The deciding trials that ran and were not excluded, with ``cost_usd`` null where it cannot be.

    A reported 0 beside tokens is no cost: ``zero_cost`` marks it.
    """
    return _without_free(
        _that_ran(run).select("case", "run_duration", "tokens_in", "tokens_out", "cost_usd", "cost_basis")
    )


def _that_ran(run: StoredRun) -> pl.DataFrame:
    import polars as pl

    return run.trials.filter(
        pl.col("deciding") & pl.col("kind").is_not_null() & (pl.col("kind") != "excluded")
    )


def _without_free(rows: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    tokens = pl.col("tokens_in").fill_null(0) + pl.col("tokens_out").fill_null(0)
    zero = ((pl.col("cost_usd") == 0) & (tokens > 0)).fill_null(value=False)
    return rows.with_columns(zero_cost=zero).with_columns(
        pl.when("zero_cost").then(None).otherwise(pl.col("cost_usd")).alias("cost_usd")
    )


def run_usage(run: StoredRun) -> tuple[Usage, ...]:
    """Latency p50 and p95, tokens and cost of the target. A judge's are never among them."""
    rows = usage_rows(run)
    found = [_latency(rows, name, found) for (name, _), found in zip(QUANTILES, latencies(rows), strict=True)]
    return (*found, *(_amount(rows, name, column, unit) for name, column, unit in AMOUNTS))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeUse:
    """What the judges of a run took, and how often one disagreed with itself.

    ``models`` those that answered; ``usage`` over the trials that asked a judge; ``split`` of ``voted``
    judgements of two readable votes or more had votes that disagree, None where there is no such one.
    """

    models: tuple[str, ...]
    usage: tuple[Usage, ...]
    split: int | None
    voted: int


def judge_use(run: StoredRun) -> JudgeUse | None:
    """What the judges took, apart from the target; None where no trial asked one."""
    import polars as pl

    rows = _that_ran(run).filter(pl.col("judge_calls").is_not_null())
    if rows.is_empty():
        return None
    voted = int(rows["judge_voted"].sum())
    said = rows["judge_models"].drop_nulls().unique().to_list()
    told = rows.select(
        "case",
        calls="judge_calls",
        seconds="judge_s",
        tokens_in="judge_tokens_in",
        tokens_out="judge_tokens_out",
        cost_usd="judge_cost_usd",
        cost_basis="judge_cost_basis",
    )
    told = _without_free(told)
    return JudgeUse(
        models=tuple(sorted({model for models in said for model in models.split(", ")})),
        usage=tuple(_amount(told, name, column, unit) for name, column, unit in OF_JUDGES),
        split=int(rows["judge_split"].sum()) if voted else None,
        voted=voted,
    )


def latencies(rows: pl.DataFrame) -> list[Quantile]:
    """The quantiles (:data:`QUANTILES`) of the seconds that the target itself took."""
    import polars as pl

    known = rows.filter(pl.col("run_duration").is_finite())
    seconds, codes = known["run_duration"].to_numpy(), case_codes(known["case"]).to_numpy()
    return [quantile(seconds, codes, q) for _, q in QUANTILES]


def _latency(rows: pl.DataFrame, name: str, found: Quantile) -> Usage:
    why = None
    if found.value is None:
        why = NOT_REPORTED
    elif found.low is None or found.high is None:
        why = "one case says nothing about others" if found.cases < 2 else "too few trials to bound it"
    return Usage(
        name=name,
        unit="s",
        value=found.value,
        low=found.low,
        high=found.high,
        total=None,
        trials=found.n,
        of=rows.height,
        cases=found.cases,
        why=why,
    )


def case_means(rows: pl.DataFrame, column: str) -> dict[str, float]:
    """The mean of a column in each case that has it."""
    import polars as pl

    known = rows.filter(pl.col(column).is_not_null())
    means = known.group_by("case", maintain_order=True).agg(pl.col(column).mean())
    return dict(means.iter_rows())


def basis_of(rows: pl.DataFrame) -> str | None:
    """How the costs are known: billed, estimated, or both where trials differ; None without a cost."""
    import polars as pl

    kinds = rows.filter(pl.col("cost_usd").is_not_null())["cost_basis"].drop_nulls().unique().sort().to_list()
    return " and ".join(kinds) or None


def _amount(rows: pl.DataFrame, name: str, column: str, unit: str) -> Usage:
    means = list(case_means(rows, column).values())
    interval = paired_t(means)
    bounded = bool(np.isfinite(interval.low)) and interval.low < interval.high
    trials = rows.height - rows[column].null_count()
    why = None
    if not means:
        why = ZERO_COST if column == "cost_usd" and rows["zero_cost"].any() else NOT_REPORTED
    elif not bounded:
        why = "one case says nothing about others" if len(means) < 2 else "the cases do not differ"
    return Usage(
        name=name,
        unit=unit,
        value=interval.mean if means else None,
        low=max(0.0, interval.low) if bounded else None,
        high=interval.high if bounded else None,
        total=float(rows[column].sum()) if means else None,
        trials=trials,
        of=rows.height,
        cases=len(means),
        basis=basis_of(rows) if column == "cost_usd" else None,
        why=why,
    )
