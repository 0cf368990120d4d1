"""How often the gate fails a session in which nothing changed: ``python benchmarks/gate_false_alarms.py``.

Both runs of a pair are drawn from the same pass probabilities. They go the way of a session: comparison with
all its reasons for No verdict, the test of the mean, the tests of the single cases, then the exit code. Five
trials a case. One line a suite: the share of pairs that end with exit 1 (by the mean, by a single case), 10
and 0. Exit 1 has to stay within 5 % on every suite and 3 % on average. A few minutes; ``--runs N`` pairs a
suite, ``--processes N``.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

TRIALS = 5
CASES = (5, 10, 20, 50, 200)
WORST, MEAN = 0.05, 0.03
SEED = 20261201
PROVIDER_ERRORS = 0.03


class Cell(NamedTuple):
    """One suite: its kind, how many cases, and the share of trials that a provider's errors end."""

    suite: str
    cases: int
    instrument: float


def cells() -> list[Cell]:
    """Every kind of suite in every size, and each once with errors of a provider."""
    from simulated_runs import SUITES

    return [
        *(Cell(suite, n, 0.0) for suite in SUITES for n in CASES),
        *(Cell(suite, 20, PROVIDER_ERRORS) for suite in SUITES),
    ]


def tally(cell: Cell, seed: list[int], pairs: int) -> Counter[str]:
    """Exit codes of ``pairs`` sessions, with what made each of them."""
    import numpy as np
    from simulated_runs import draw, stored_run

    from pytest_crashlab.compare import compare_runs, judge
    from pytest_crashlab.records.comparison import Word

    rng = np.random.default_rng(seed)
    seen: Counter[str] = Counter()
    for _ in range(pairs):
        p = draw(rng, cell.suite, cell.cases)
        a, b = (
            stored_run(rng, p, TRIALS, run_id=f"20261201T00000{i}Z-aaaaaa", instrument=cell.instrument)
            for i in (0, 1)
        )
        comparison = compare_runs(a, b)
        _, gate = judge(b, comparison)
        seen[f"exit {gate.exit_code}"] += 1
        if gate.exit_code == 1:
            seen["mean" if comparison.word is Word.REGRESSED else "case"] += 1
        for reason in comparison.reasons:
            seen[f"no verdict: {reason.code}"] += 1
    return seen


def main() -> int:
    """Prints the table; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=600, help="pairs of runs a suite")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    found = cells()
    print("| suite | cases | exit 1 % | by the mean | by a case | exit 10 % | exit 0 % |")
    print("|---|---|---|---|---|---|---|")
    rates, reasons = [], Counter[str]()
    # A table library has threads of its own: processes are begun afresh, and each takes one thread.
    os.environ["POLARS_MAX_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(args.processes, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(tally, cell, [SEED, i], args.runs) for i, cell in enumerate(found)]
        for cell, job in zip(found, jobs, strict=True):
            seen = job.result()
            shares = [seen[name] / args.runs for name in ("exit 1", "mean", "case", "exit 10", "exit 0")]
            rates.append(shares[0])
            reasons.update({name: n for name, n in seen.items() if name.startswith("no verdict")})
            more = f", {100 * cell.instrument:g} % provider errors" if cell.instrument else ""
            numbers = " | ".join(f"{100 * share:.1f}" for share in shares)
            print(f"| {cell.suite}{more} | {cell.cases} | {numbers} |", flush=True)
    worst, mean = max(rates), sum(rates) / len(rates)
    error = 100 * math.sqrt(WORST * (1 - WORST) / args.runs)
    print(f"\nexit 1: worst {100 * worst:.2f} % (bar 5), mean {100 * mean:.2f} % (bar 3); ", end="")
    print(f"{args.runs} pairs a suite, standard error {error:.1f} points at 5 %")
    for name, n in reasons.most_common():
        print(f"{name}: {n} of {args.runs * len(found)}")
    return 0 if worst <= WORST and mean <= MEAN else 1


if __name__ == "__main__":
    sys.exit(main())
