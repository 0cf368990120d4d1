"""A store of many runs with some large ones, made by the functions that imports and sessions use.

``python benchmarks/large_store.py FOLDER`` makes FOLDER/.crashlab, ids.json with the ids of the runs that
``store_size.py`` asks for, and rows.jsonl, a file to import.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from simulated_runs import draw, stored_run

from pytest_crashlab.compare import run_numbers, summary_fields
from pytest_crashlab.records.comparison import Word
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store import Store
from pytest_crashlab.store.imported import add_sealed
from pytest_crashlab.store.seal import count_outcomes, count_trials

if TYPE_CHECKING:
    from pytest_crashlab.store import StoredRun

RUNS, CASES, TRIALS, KINDS = 2_000, 100, 5, 10
LARGE = {"2,000 x 50": (2_000, 50), "20,000 x 5": (20_000, 5)}
ROWS = 100_000
SEED = 20261207
_AT_ONCE = 16
_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_ENDED = {20: RunStatus.CANCELLED, 40: RunStatus.FAILED}  # of every forty runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A run, and what the end of a session computes for its manifest."""

    run: StoredRun
    fields: dict[str, Any]


def drawn(rng: np.random.Generator, cases: int, trials: int) -> Drawn:
    """A run of so many cases and trials of each."""
    run = stored_run(rng, draw(rng, "95 % on average", cases), trials, run_id="drawn")
    counts = {"counts": count_trials(run.cases, run.trials), "outcomes": count_outcomes(run.trials)}
    counted = replace(run, manifest=run.manifest.with_fields(**counts))
    return Drawn(run=run, fields={**counts, "summary": summary_fields(run_numbers(counted))})


def add(store: Store, number: int, what: Drawn) -> str:
    """Store it as the run ``number``: of a commit, a branch and a release, every twentieth ended early."""
    created = (_FIRST + timedelta(hours=4 * number)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    stamp = created.replace("-", "").replace(":", "").replace(".000", "")
    run_id = f"{stamp}-{number:06d}"
    manifest = what.run.manifest.with_fields(
        **what.fields,
        id=run_id,
        created=created,
        updated=created,
        finished=created,
        status=_ENDED.get(number % 40 + 1, RunStatus.COMPLETED),
        name="nightly" if number % 10 == 0 else None,
        release=f"2.{number // 100}.0",
        prompt=f"support-v{number // 200}",
        dataset="refunds",
        dataset_version="3",
        split="dev",
        git={
            "commit": f"{number:040x}",
            "tree": f"{number // 3:040x}",
            "branch": "main" if number % 4 == 0 else f"change-{number // 8}",
            "dirty": False,
        },
        environment={"python": "3.11.7", "platform": "Linux", "packages": {"pytest": "9.2.0"}},
        target_digest=f"{number // 3:064x}",
        evaluation_digest="e" * 64,
        sources={"target": {f"src/agent/part_{i}.py": f"{i:064x}" for i in range(20)}},
        baseline={"id": "20260101T000000Z-000000", "reference": "main", "reason": "named"},
        gate={
            "word": Word.REGRESSED if number % 5 == 0 else Word.NO_CHANGE,
            "exit_code": int(number % 5 == 0),
        },
    )
    add_sealed(store, replace(what.run, manifest=manifest))
    return run_id


def make(folder: Path) -> None:
    """The store, the ids and the rows."""
    rng = np.random.default_rng(SEED)
    store = Store.open(folder / ".crashlab", create=True)
    kinds = [drawn(rng, CASES, TRIALS) for _ in range(KINDS)]
    large = [(f"{side} {name}", drawn(rng, *size)) for name, size in LARGE.items() for side in "AB"]
    whats = [kinds[number % KINDS] for number in range(RUNS - len(large))] + [what for _, what in large]
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # storing a run waits for the disk most of its time
        ids = list(pool.map(add, repeat(store), range(RUNS), whats))
    names = ("before", "small", *(name for name, _ in large))
    known = dict(zip(names, ids[-len(names) :], strict=True))
    store.refs.promote("main", known["small"], expected=None)
    (folder / "ids.json").write_text(json.dumps(known), "utf-8")
    write_rows(rng, folder / "rows.jsonl")


def write_rows(rng: np.random.Generator, path: Path) -> None:
    """Trials as another tool might write them, two arms in turn, ten trials a case."""
    passed = rng.random(ROWS) < 0.8
    with path.open("w", encoding="utf-8") as file:
        for number in range(ROWS):
            row = {
                "case": f"test_agent.py::test_case[{number // 20}]",
                "trial": number // 2 % 10 + 1,
                "arm": "ab"[number % 2],
                "passed": bool(passed[number]),
                "start": 1_796_020_380.0 + number,
                "duration": 0.5,
                "tokens_in": 900 + number % 100,
                "tokens_out": 100 + number % 10,
                "cost_usd": 0.001,
                "cost_basis": "billed",
                "input": {"question": number // 20},
            }
            if not passed[number]:
                row |= {"outcome": "failed", "message": "the amount differs", "site": "test_agent.py:12"}
            file.write(f"{json.dumps(row)}\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
