"""How comparing two stored runs grows: ``python benchmarks/compare_scale.py``.

Runs of 10,000, 100,000 and 1,000,000 trials each, ten a case, in a store of their own; each comparison in a
process of its own: seconds of the comparison with loading the tables, processor time, and peak memory beyond
what the libraries take. ``--trials N`` trials of a run (repeatable), ``--per-case K``, ``--repeats N``: the
fastest of as many.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

IDS = ("20261201T000000Z-aaaaaa", "20261201T000001Z-bbbbbb")
SEED = 20261201
CHILD = """
import json, resource, sys, time
from pathlib import Path
import numpy, polars, scipy.special
import pytest_crashlab.stats.suite
from pytest_crashlab.compare import compare_runs
from pytest_crashlab.store import Store

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

store, before = Store.open(Path(sys.argv[1])), peak()
wall, cpu = time.perf_counter(), time.process_time()
baseline, candidate = (store.load(i) for i in sys.argv[2:4])
loaded = time.perf_counter() - wall
word = compare_runs(baseline, candidate).word
print(json.dumps({"load": loaded, "all": time.perf_counter() - wall, "cpu": time.process_time() - cpu,
                  "mb": peak() - before, "libraries": before, "word": word}))
"""


def record(root: Path, trials: int, per_case: int) -> None:
    """A store with two runs of ``trials`` trials of the same cases."""
    import numpy as np
    from simulated_runs import draw, stored_run

    from pytest_crashlab.store import Store
    from pytest_crashlab.store.imported import add_sealed

    rng = np.random.default_rng(SEED)
    p = draw(rng, "95 % on average", trials // per_case)
    store = Store.open(root, create=True)
    for run_id in IDS:
        add_sealed(store, stored_run(rng, p, per_case, run_id=run_id))


def compare(root: Path) -> dict[str, float]:
    """One comparison in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(root), *IDS], check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(json.loads(done.stdout))


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, action="append", help="trials of each run")
    parser.add_argument("--per-case", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    print("| trials of each run | cases | s | of it loading | CPU s | more MB at the peak | KB a trial |")
    print("|---|---|---|---|---|---|---|")
    for trials in args.trials or (10_000, 100_000, 1_000_000):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / ".crashlab"
            record(root, trials, args.per_case)
            best = min((compare(root) for _ in range(args.repeats)), key=lambda found: found["all"])
        print(
            f"| {trials:,} | {trials // args.per_case:,} | {best['all']:.2f} | {best['load']:.2f} "
            f"| {best['cpu']:.2f} | {best['mb']:.0f} | {1024 * best['mb'] / trials / 2:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
