"""``kill -9`` at any moment: what was reported is in the recovered run, once, and nothing passes by it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import psutil
import pytest

from pytest_crashlab.errors import StoreError
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store import Store
from pytest_crashlab.store.promotion import promotable

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_crashlab.store import Manifest

K, CASES = 4, 10
SUITE = f"""
import time, pytest

@pytest.mark.parametrize("i", range({CASES}))
def test_case(i):
    time.sleep(0.01)
    assert i != 3
"""
# A witness of its own: the hook is called when a row has been written, and it writes past every buffer.
WITNESS = """
import os, pathlib

def pytest_crashlab_trial_recorded(row):
    handle = os.open(pathlib.Path(__file__).with_name("reported.txt"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{row.case} {row.trial} {row.attempt} {row.outcome}\\n".encode())
    os.close(handle)
"""
# How long after the run's folder is there, in seconds: trials, then seal, numbers, gate and cache.
LATEST = 2.0


def session(folder: Path, workers: str) -> subprocess.Popen[bytes]:
    load = ("-p", "pytest_crashlab.plugin", "-p", "xdist.plugin", workers)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "CRASHLAB_"))}
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *load, f"--trials={K}", "--min-pass-rate=80%", "-q"],
        cwd=folder,
        env={**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def begun(process: subprocess.Popen[bytes], runs: Path) -> bool:
    """Wait until the run is there; False where the session ended before."""
    end = time.monotonic() + 60
    while not (runs.is_dir() and any(p for p in runs.iterdir() if not p.name.startswith("."))):
        if process.poll() is not None:
            return False
        assert time.monotonic() < end
        time.sleep(0.005)
    return True


def kill(process: subprocess.Popen[bytes], target: str) -> None:
    """End the controller, or one of its workers if there is one, without a word."""
    victim = process.pid
    if target == "worker":
        try:
            children = psutil.Process(process.pid).children()
        except psutil.NoSuchProcess:
            return
        if not children:
            return
        victim = children[-1].pid
    with contextlib.suppress(ProcessLookupError):
        os.kill(victim, signal.SIGKILL)


def recover(store: Store, run_id: str) -> Manifest:
    """Recover; where the kill came during the session's end, the process that seals the run goes on."""
    end = time.monotonic() + 60
    while True:
        try:
            return store.recover(run_id)
        except StoreError as error:
            if "being written by another process" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.05)


def one_kill(folder: Path, draw: random.Random, *, workers: str, target: str) -> RunStatus:
    """Run, kill, recover; hold what must be true. The status the killed session left."""
    folder.mkdir()
    (folder / "test_it.py").write_text(SUITE)
    (folder / "conftest.py").write_text(WITNESS)
    process = session(folder, workers)
    try:
        assert begun(process, folder / ".crashlab" / "runs")
        time.sleep(draw.uniform(0, LATEST))
        kill(process, target)
        code = process.wait(timeout=120)
    finally:
        with contextlib.suppress(ProcessLookupError):  # workers whose controller is gone
            os.killpg(process.pid, signal.SIGKILL)
    path = folder / "reported.txt"
    reported = path.read_text().splitlines() if path.exists() else []
    store = Store.open(folder / ".crashlab")
    [run_id] = store.run_ids()
    left = store.manifest(run_id).status
    recovered = recover(store, run_id)
    run = store.load(run_id)

    rows = run.trials.select("case", "trial", "attempt", "outcome").rows()
    kept = [f"{case} {trial} {attempt} {outcome}" for case, trial, attempt, outcome in rows]
    assert set(reported) <= set(kept), "a reported row is lost"
    assert len(kept) - len(reported) in (0, 1), "at most the row that was being told is kept and unwitnessed"
    assert max(Counter((case, trial, attempt) for case, trial, attempt, _ in rows).values(), default=1) == 1
    assert run.trials.filter(run.trials["deciding"]).select("case", "trial").is_duplicated().sum() == 0

    planned = {(f"test_it.py::test_case[{i}]", trial) for i in range(CASES) for trial in range(1, K + 1)}
    seen = {(case, trial) for case, trial, *_ in rows}
    assert seen <= planned
    for case, _, _, outcome in rows:
        assert outcome in {"failed" if "[3]" in case else "passed", "worker_lost"}
    counts = recovered.counts
    assert counts is not None
    assert counts["passed"] + counts["failed"] + counts["undecided"] + counts["missing"] == counts["planned"]
    if recovered.status is RunStatus.COMPLETED:
        assert seen == planned
    else:
        assert promotable(recovered) != []
    if code == 0:
        assert recovered.status is RunStatus.COMPLETED
        assert counts["passed"] + counts["failed"] >= 0.9 * len(planned)
    if recovered.gate is not None and recovered.gate["exit_code"] == 0:
        assert recovered.status is RunStatus.COMPLETED
    return left


KINDS = [("-n0", "controller"), ("-n2", "controller"), ("-n2", "worker")]


@pytest.mark.skipif(os.name == "nt", reason="kill -9 is a POSIX signal")
@pytest.mark.parametrize(
    ("workers", "target"),
    [*KINDS[:2], pytest.param(*KINDS[2], marks=pytest.mark.slow)],
    ids=" ".join,
)
def test_a_few_kills(tmp_path: Path, workers: str, target: str) -> None:
    draw = random.Random(f"few {workers} {target}")
    for number in range(2):
        one_kill(tmp_path / str(number), draw, workers=workers, target=target)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="kill -9 is a POSIX signal")
@pytest.mark.parametrize(
    ("workers", "target", "kills"), [(*k, n) for k, n in zip(KINDS, (80, 70, 50), strict=True)]
)
def test_two_hundred_kills(tmp_path: Path, workers: str, target: str, kills: int) -> None:
    """Among that many, some come while trials run and some after the seal."""
    draw = random.Random(f"many {workers} {target}")
    left = [one_kill(tmp_path / str(i), draw, workers=workers, target=target) for i in range(kills)]
    if target == "controller":
        assert RunStatus.RUNNING in left
    else:
        assert RunStatus.COMPLETED in left
