"""What the trials of a run took: time, tokens and money, each with how much of it is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_crashlab.compare.sentences import count
from pytest_crashlab.records.outcome import Kind
from pytest_crashlab.stats import paired_t
from pytest_crashlab.stats.quantiles import quantile

if TYPE_CHECKING:
    import polars as pl

    from pytest_crashlab.store import StoredRun

BILLED, ESTIMATED, MIXED = "billed", "estimated", "billed and estimated"
_FEWEST_DIFFERENT = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """One number of a run that is no rate: ``value`` in ``unit`` a trial.

    ``low, high`` its 95 % interval for new cases of this kind; ``n`` of ``trials`` trials of ``cases``
    cases have it; ``total`` over every attempt of ``attempts`` that has it. ``basis`` what the number
    rests on. All that is None is not known, and ``why`` says so in words; nothing is 0 for it.
    """

    name: str
    unit: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    trials: int
    cases: int
    total: float | None = None
    attempts: int = 0
    basis: str | None = None
    why: str | None = None


def run_amounts(run: StoredRun) -> tuple[tuple[Amount, ...], tuple[str, ...]]:
    """Latency, tokens and cost of ``run``, and warnings about reported numbers that cannot be.

    A trial that did not run (skipped, or stopped before its target) takes no time and is in no
    denominator of latency; tokens and cost count in every trial that reported an outcome.
    """
    import polars as pl

    planned = run.trials.join(run.cases.select("case", "planned"), on="case").filter(
        pl.col("trial").is_between(1, pl.col("planned"))
    )
    impossible = (pl.col("cost_usd") == 0) & (
        (pl.col("tokens_in").fill_null(0) > 0) | (pl.col("tokens_out").fill_null(0) > 0)
    )
    warnings = []
    if free := planned.filter(impossible).height:
        warnings.append(
            f"{count(free, 'attempt')} reported a cost of 0 beside tokens: taken as not known, since "
            "nothing is free that uses tokens."
        )
    planned = planned.with_columns(
        cost_usd=pl.when(impossible.fill_null(value=False)).then(None).otherwise(pl.col("cost_usd"))
    )
    deciding = planned.filter(pl.col("deciding") & (pl.col("kind").cast(pl.String) != Kind.EXCLUDED.value))
    basis = _basis(planned)
    return (
        (
            _latency("latency p50", deciding, 0.5),
            _latency("latency p95", deciding, 0.95),
            _mean("tokens in", "tokens", "tokens_in", planned, deciding),
            _mean("tokens out", "tokens", "tokens_out", planned, deciding),
            _mean("cost", "US dollars", "cost_usd", planned, deciding, basis=basis),
        ),
        tuple(warnings),
    )


def _latency(name: str, deciding: pl.DataFrame, q: float) -> Amount:
    import polars as pl

    known = deciding.filter(pl.col("run_duration").is_finite() & (pl.col("run_duration") >= 0))
    found = quantile(
        known["run_duration"].to_numpy(), known["case"].rank("dense").cast(pl.Int64).to_numpy(), q
    )
    return Amount(
        name=name,
        unit="seconds",
        value=found.value,
        low=found.low,
        high=found.high,
        n=found.n,
        trials=deciding.height,
        cases=found.cases,
        basis="time of the target itself" if found.n else None,
        why=None if found.n else "no trial says how long its target ran",
    )


def _mean(
    name: str,
    unit: str,
    column: str,
    planned: pl.DataFrame,
    deciding: pl.DataFrame,
    *,
    basis: str | None = None,
) -> Amount:
    """The mean over cases of the mean of their trials: each case counts once, as in the pass rate."""
    import polars as pl

    known = deciding.filter(pl.col(column).is_not_null())
    paid = planned.filter(pl.col(column).is_not_null())
    if known.is_empty():
        return Amount(
            name=name,
            unit=unit,
            value=None,
            low=None,
            high=None,
            n=0,
            trials=deciding.height,
            cases=0,
            why=f"no trial reported {'a cost' if column == 'cost_usd' else 'tokens'}",
        )
    means = known.group_by("case", maintain_order=True).agg(pl.col(column).mean())[column]
    found = paired_t(means.to_numpy())
    spread = math.isfinite(found.low) and found.high - found.low > _FEWEST_DIFFERENT * max(1, abs(found.mean))
    return Amount(
        name=name,
        unit=unit,
        value=found.mean,
        low=max(0.0, found.low) if spread else None,
        high=found.high if spread else None,
        n=known.height,
        trials=deciding.height,
        cases=means.len(),
        total=float(paid[column].sum()),
        attempts=paid.height,
        basis=basis,
    )


def _basis(planned: pl.DataFrame) -> str | None:
    """What the costs rest on; a cost without a basis has one nobody told."""
    import polars as pl

    found = set(planned.filter(pl.col("cost_usd").is_not_null())["cost_basis"].fill_null("not stated"))
    if not found:
        return None
    return MIXED if found == {BILLED, ESTIMATED} else " and ".join(sorted(found))
