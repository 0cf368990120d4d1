"""What evidence costs a comparison: ``python benchmarks/evidence_scale.py [TRIALS]``.

Two stored runs of 25,600 trials with about 9.7 KB of evidence each. In turns, each in a process of its
own: comparing the runs, and reading their evidence in the fastest way there is (one query, every document
decoded and kept). Prints seconds and peak memory of both, without and with starting Python and importing,
and one trial's evidence read alone. Comparing has to take at most 1/20 of the time and 1/5 of the memory,
both beyond what starting and importing take.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

TRIALS, PER_CASE, ROUNDS = 25_600, 20, 3
RUNS = ("20261201T000000Z-base22", "20261202T000000Z-cand22")
TIME_LIMIT, MEMORY_LIMIT = 1 / 20, 1 / 5


def make(folder: Path, trials: int) -> None:
    """Two sealed runs with evidence, written as sessions write them."""
    from pytest_crashlab.records.case import CasePlan
    from pytest_crashlab.records.outcome import Kind
    from pytest_crashlab.records.run import RunStatus
    from pytest_crashlab.records.trial import TrialRow
    from pytest_crashlab.store import Manifest, Plan, Store
    from pytest_crashlab.store.evidence_writer import EvidenceWriter

    rng = random.Random(5)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 10))) for _ in range(3000)]
    store = Store.open(folder, create=True)
    cases = [f"test_agent.py::test_it[case-{i}]" for i in range(trials // PER_CASE)]
    for run_id in RUNS:
        writer = store.begin(Manifest(id=run_id, k=PER_CASE, case_ids=cases))
        writer.write_plan(Plan(cases=[CasePlan(id=c, planned=PER_CASE) for c in cases]))
        evidence = EvidenceWriter(writer.path, "main")
        for number, case in enumerate(cases):
            for trial in range(1, PER_CASE + 1):
                passed = rng.random() < 0.8
                start = 1_796_000_000.0 + number * PER_CASE + trial
                label, kind = ("passed", Kind.PASS) if passed else ("failed", Kind.FAIL)
                row = TrialRow(
                    case=case, trial=trial, outcome=label, kind=kind, start=start, duration=0.5, site="t.py:7"
                )
                writer.append(row)
                steps = [" ".join(rng.choices(words, k=60)) for _ in range(20)]
                evidence.write(case, trial, start, {"format": 1, "input": {"n": number}, "output": steps})
        evidence.close()
        writer.seal(RunStatus.COMPLETED)


def compare(folder: Path) -> str:
    """The verdict of the two runs."""
    from pytest_crashlab.compare import compare_runs
    from pytest_crashlab.store import Store

    store = Store.open(folder)
    return compare_runs(*(store.load(run) for run in RUNS)).word.value


def read_all(folder: Path) -> str:
    """Every document of both runs, decoded and in memory."""
    kept = []
    for run in RUNS:
        with contextlib.closing(sqlite3.connect(folder / "runs" / run / "evidence.db")) as database:
            rows = database.execute("SELECT document FROM evidence")
            kept.append([json.loads(zlib.decompress(blob)) for [blob] in rows])
    return f"{sum(map(len, kept))} documents"


def read_one(folder: Path) -> str:
    """One trial's evidence, as ``crashlab view --trial`` reads it."""
    from pytest_crashlab.store.evidence import read_evidence
    from pytest_crashlab.store.layout import StorePaths

    found = read_evidence(StorePaths(folder).run(RUNS[0]), "test_agent.py::test_it[case-7]", 3, 1)
    return "found" if found else "missing"


TASKS = {"compare": compare, "read_all": read_all, "read_one": read_one}


def child(name: str, folder: Path) -> None:
    """One task in this process, its imports done before the clock starts."""
    if name == "compare":
        for module in (
            "polars",
            "scipy.special",
            "pytest_crashlab.compare.compare",
            "pytest_crashlab.store.runs",
        ):
            importlib.import_module(module)
    before = _peak()
    start = time.perf_counter(), time.process_time()
    answer = TASKS[name](folder)
    wall, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
    print(json.dumps({"answer": answer, "wall": wall, "cpu": cpu, "before": before, "peak": _peak()}))


def _peak() -> float:
    """Peak resident memory in MB since this program was started (Linux; ``ru_maxrss`` knows its parent's)."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def measure(name: str, folder: Path) -> dict[str, float]:
    """One run of a task in a new process; ``whole`` seconds include its start."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, __file__, "--child", name, str(folder)], capture_output=True, text=True, check=True
    )
    return {**json.loads(done.stdout), "whole": time.perf_counter() - start}


def main(trials: int) -> int:
    """Prints the table; 1 when a limit is missed."""
    folder = Path(tempfile.mkdtemp(prefix="evidence-scale-"))
    try:
        command = [sys.executable, __file__, "--make", str(trials), str(folder / "store")]
        subprocess.run(command, check=True)
        size = (folder / "store" / "runs" / RUNS[0] / "evidence.db").stat().st_size / 1e6
        print(f"2 runs x {trials:,} trials, {size:.0f} MB of compressed evidence each")
        found: dict[str, list[dict[str, float]]] = {name: [] for name in TASKS}
        for _ in range(ROUNDS):
            for name in TASKS:
                found[name].append(measure(name, folder / "store"))
    finally:
        shutil.rmtree(folder)
    median = {
        name: {
            key: statistics.median(run[key] for run in runs)
            for key in ("wall", "cpu", "before", "peak", "whole")
        }
        for name, runs in found.items()
    }
    for name, m in median.items():
        grown = m["peak"] - m["before"]
        print(
            f"{name:9} {m['wall']:7.3f} s ({m['cpu']:.3f} s CPU), {grown:7.1f} MB more, "
            f"peak {m['peak']:.0f} MB; with start and imports {m['whole']:.2f} s   {found[name][0]['answer']}"
        )
    a, b = median["compare"], median["read_all"]
    seconds = a["wall"] / b["wall"]
    memory = (a["peak"] - a["before"]) / (b["peak"] - b["before"])
    print(f"comparing / reading: time {seconds:.3f} (limit {TIME_LIMIT:.3f})")
    print(f"comparing / reading: memory {memory:.3f} (limit {MEMORY_LIMIT:.3f})")
    return 0 if seconds <= TIME_LIMIT and memory <= MEMORY_LIMIT else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], Path(sys.argv[3]))
    elif sys.argv[1:2] == ["--make"]:
        make(Path(sys.argv[3]), int(sys.argv[2]))
    else:
        sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS))
