"""Runs as a store gives them back, made from pass probabilities; the benchmarks share them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pytest_crashlab.records.outcome import Kind
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store import Manifest, StoredRun
from pytest_crashlab.store.schema import case_columns, check_columns, trial_columns
from pytest_crashlab.store.seal import mark_deciding

if TYPE_CHECKING:
    from numpy.typing import NDArray

START = 1_796_020_380.0
SUITES = {
    "95 % on average": "beta(20, 1): most cases near 100 %, a few worse",
    "all at 99 %": "every case passes 99 % of its trials",
    "all at 50 %": "every case is a coin",
    "good or bad": "beta(0.5, 0.5): most cases near 0 % or near 100 %",
    "4 of 5 sure": "80 % of the cases always pass, the others between 20 % and 80 %",
}


def draw(rng: np.random.Generator, suite: str, cases: int) -> NDArray[np.float64]:
    """The pass probability of each case of one of ``SUITES``."""
    match suite:
        case "95 % on average":
            return rng.beta(20, 1, cases)
        case "all at 99 %":
            return np.full(cases, 0.99)
        case "all at 50 %":
            return np.full(cases, 0.5)
        case "good or bad":
            return rng.beta(0.5, 0.5, cases)
        case "4 of 5 sure":
            return np.where(rng.random(cases) < 0.8, 1.0, rng.uniform(0.2, 0.8, cases))
    raise ValueError(suite)


def stored_run(
    rng: np.random.Generator,
    p: NDArray[np.float64],
    trials: int,
    *,
    run_id: str,
    instrument: float = 0.0,
) -> StoredRun:
    """A completed run of ``trials`` rounds over cases with pass probabilities ``p``.

    Rounds one after the other, each in an order of its own, as a session runs them; ``instrument`` is the
    share of trials that end by an error of a provider.
    """
    cases = p.size
    number = np.concatenate([rng.permutation(cases) for _ in range(trials)])
    kind = np.where(rng.random(number.size) < p[number], Kind.PASS.value, Kind.FAIL.value).astype(object)
    kind[rng.random(number.size) < instrument] = Kind.INSTRUMENT.value
    names = np.array([f"test_agent.py::test_case[{i}]" for i in range(cases)], dtype=object)
    label = {"pass": "passed", "fail": "failed", "instrument": "provider_error"}
    table = _frame(
        {n: t for n, t in trial_columns().items() if n not in ("decision", "deciding")},
        {
            "case": names[number],
            "trial": np.repeat(np.arange(1, trials + 1), cases),
            "attempt": np.ones(number.size, dtype=np.int64),
            "outcome": [label[k] for k in kind],
            "kind": kind,
            "infra_healthy": kind != Kind.INSTRUMENT.value,
            "target_completed": kind != Kind.INSTRUMENT.value,
            "start": START + np.arange(number.size),
            "duration": rng.gamma(2.0, 0.2, number.size),
            "run_duration": rng.gamma(2.0, 0.2, number.size),
        },
    )
    plan = _frame(
        case_columns(),
        {
            "case": names,
            "planned": np.full(cases, trials),
            "content": [""] * cases,
            "pass_rule": ["rule"] * cases,
            "uses_trial": np.zeros(cases, dtype=bool),
        },
    )
    manifest = Manifest(
        id=run_id,
        status=RunStatus.COMPLETED,
        k=trials,
        planned_cases=cases,
        total_cases=cases,
        planned_trials=number.size,
        case_ids=list(names),
        trial_order="rounds",
    )
    return StoredRun(
        manifest=manifest,
        cases=plan,
        trials=mark_deciding(table),
        checks=pl.DataFrame(schema=check_columns()),
    )


def _frame(columns: dict[str, Any], known: dict[str, Any]) -> pl.DataFrame:
    """A table of ``columns`` of which only ``known`` have values."""
    height = len(known["case"])
    return pl.DataFrame(
        {
            name: pl.Series(name, known[name], strict=False).cast(kind)
            if name in known
            else pl.Series(name, [None], dtype=kind).new_from_index(0, height)
            for name, kind in columns.items()
        }
    )
