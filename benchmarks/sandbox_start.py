"""What a sandbox costs: ``python benchmarks/sandbox_start.py [--rounds N] [--sequence N]``.

A plain subprocess that runs ``true`` in a new folder which is removed, and a sandbox that opens, runs
``true`` and closes, in turns in one process; the median of each. One backend after the other: the kernel
takes down the namespaces of bubblewrap while the next variant starts. Then ``--sequence`` sandboxes in
sequence, and what is held afterwards: open files, memory, mounts, control groups, processes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_crashlab.sandbox.bubblewrap import Bubblewrap
from pytest_crashlab.sandbox.limits import Limits
from pytest_crashlab.sandbox.local import Local
from pytest_crashlab.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_crashlab.sandbox.base import Backend


def plain() -> None:
    """A folder of its own, a process in it, and the folder is gone."""
    folder = tempfile.mkdtemp()
    subprocess.run(["true"], cwd=folder, check=True, capture_output=True)
    shutil.rmtree(folder)


def sandboxed(backend: Backend) -> None:
    """The same in a sandbox."""
    sandbox = Sandbox(backend, Limits())
    sandbox.run(["true"], check=True)
    sandbox.close()


def held() -> dict[str, int]:
    """What this process and the machine hold now."""
    status = Path("/proc/self/status").read_text("ascii")
    memory = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return {
        "open files": sum(1 for _ in Path("/proc/self/fd").iterdir()),
        "KB of memory": int(memory.split()[1]),
        "mounts": len(Path("/proc/self/mounts").read_text("utf-8").splitlines()),
        "control groups": sum(
            name.startswith("crashlab-") for _, names, _ in os.walk("/sys/fs/cgroup") for name in names
        ),
        "processes": sum(path.name.isdigit() for path in Path("/proc").iterdir()),
        "folders": sum(1 for _ in Path(tempfile.gettempdir()).iterdir()),
    }


def in_turns(one: Callable[[], None], other: Callable[[], None], rounds: int) -> tuple[float, float]:
    """The median of each, in milliseconds."""
    taken: tuple[list[float], list[float]] = ([], [])
    for round_ in range(rounds + 5):
        for variant, times in zip((one, other), taken, strict=True):
            start = time.perf_counter()
            variant()
            if round_ >= 5:
                times.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken[0]), statistics.median(taken[1])


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--sequence", type=int, default=1000)
    args = parser.parse_args()
    backends = [backend for backend in (Local(), Bubblewrap()) if backend.unavailable() is None]
    print("| | ms | plain subprocess, ms | ratio | ms more |\n|---|---|---|---|---|")
    for backend in backends:
        own, base = in_turns(lambda backend=backend: sandboxed(backend), plain, args.rounds)
        print(f"| {backend.name} | {own:.1f} | {base:.1f} | {own / base:.1f} | {own - base:.1f} |")
    print(f"\n| after {args.sequence} sandboxes, more | " + " | ".join(b.name for b in backends) + " |")
    print("|---" * (len(backends) + 1) + "|")
    grown: list[dict[str, int]] = []
    for backend in backends:
        before = held()
        for _ in range(args.sequence):
            sandboxed(backend)
        after = held()
        grown.append({name: after[name] - before[name] for name in before})
    for name in grown[0]:
        print(f"| {name} | " + " | ".join(str(found[name]) for found in grown) + " |")
    for backend in backends:
        backend.close()


if __name__ == "__main__":
    main()
