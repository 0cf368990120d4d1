"""A session that ends badly: the run says so, keeps what was reported and is never a pass by accident."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import polars as pl
import pytest

from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store.promotion import promotable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.plugin.conftest import Suite

# A background job's children ignore Ctrl-C; these sessions are to hear it wherever they are started.
# xdist's controller gives its workers ten seconds to end, which the one that waits uses up.
START = (
    "import signal, sys, pytest; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from xdist.workermanage import NodeManager; NodeManager.EXIT_TIMEOUT = 1; "
    "sys.exit(pytest.main(sys.argv[1:]))"
)

# Trial 2 of case 1 says that it runs and then waits; WAIT names the file it makes.
WAITING = """
import os, pathlib, time, pytest

@pytest.mark.parametrize("i", range(3))
def test_case(i, request):
    if i == 1 and "trial2]" in request.node.nodeid and os.environ.get("WAIT"):
        pathlib.Path(os.environ["WAIT"]).touch()
        time.sleep(60)
"""

# TROUBLE names what happens in trial 2 of case 1.
TROUBLED = """
import os, time, pytest

TROUBLE = os.environ.get("TROUBLE")

def here(request):
    return "[1-trial2]" in request.node.nodeid

@pytest.fixture(autouse=True)
def around(request):
    yield
    if here(request) and TROUBLE == "exit-in-teardown":
        os._exit(7)

@pytest.mark.parametrize("i", range(3))
def test_case(i, request):
    if here(request):
        if TROUBLE == "os-exit":
            os._exit(7)
        if TROUBLE == "pytest-exit":
            pytest.exit("enough", returncode=9)
        if TROUBLE == "interrupt":
            raise KeyboardInterrupt
        if TROUBLE == "hang":
            time.sleep(60)
"""


@pytest.fixture
def suite(served: Suite) -> Suite:
    """How many workers there are makes no difference here."""
    return served


def labels(suite: Suite) -> dict[tuple[int, int], str | None]:
    """``(case, trial)`` -> the outcome of its only attempt; fails where one was counted twice."""
    rows = suite.last().trials.select("case", "trial", "outcome").rows()
    found = {(int(case.partition("[")[2][:-1]), trial): outcome for case, trial, outcome in rows}
    assert len(found) == len(rows)
    return found


def launch(suite: Suite, *args: str, **env: str) -> subprocess.Popen[str]:
    """A session in a process group of its own, which signals can be sent to."""
    load = ("-p", "pytest_crashlab.plugin", "-p", "xdist.plugin", suite.workers, "--trials=3")
    return subprocess.Popen(
        [sys.executable, "-c", START, *load, *args],
        cwd=suite.root,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name)
def test_a_session_that_is_told_to_stop_is_sealed_as_cancelled(suite: Suite, stop: signal.Signals) -> None:
    """What was reported stays, and the trial that ran is named, wherever it ran."""
    suite.files(test_it=WAITING)
    process = launch(suite, WAIT="runs")
    wait_for(suite.root / "runs", process)
    process.send_signal(stop)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 2, said
    assert "(cancelled)" in said
    assert suite.runs()[0].status == RunStatus.CANCELLED
    assert promotable(suite.runs()[0]) != []
    found = labels(suite)
    assert found.pop((1, 2), None) == "interrupted"
    row = suite.last().trials.filter(pl.col("outcome") == "interrupted").row(0, named=True)
    assert row["worker"] == ("main" if suite.workers == "-n0" else "unknown")
    assert row["duration"] > 0
    assert set(found.values()) == {"passed"}
    assert len(found) < 8


def test_ctrl_c_at_a_terminal_reaches_the_workers_too(pytester: pytest.Pytester) -> None:
    from tests.plugin.conftest import Suite

    suite = Suite(pytester, "-n2")
    suite.files(test_it=WAITING)
    process = launch(suite, WAIT="runs")
    wait_for(suite.root / "runs", process)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 2, said
    assert suite.runs()[0].status == RunStatus.CANCELLED
    assert labels(suite).get((1, 2)) in ("worker_lost", "interrupted")


@pytest.mark.parametrize("pause", [0.0, pytest.param(0.1, marks=pytest.mark.slow)])
def test_ctrl_c_twice_loses_nothing(single: Suite, pause: float) -> None:
    """An impatient second Ctrl-C ends pytest where it is; the run is cancelled, now or when recovered."""
    single.files(test_it=WAITING)
    process = launch(single, WAIT="runs")
    wait_for(single.root / "runs", process)
    reported = len(single.store.load(single.runs()[0].id).trials)
    process.send_signal(signal.SIGINT)
    time.sleep(pause)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert single.runs()[0].status in (RunStatus.RUNNING, RunStatus.CANCELLED)
    assert single.store.recover(single.runs()[0].id).status == RunStatus.CANCELLED
    found = labels(single)
    assert list(found.values()).count("passed") == reported
    assert found.get((1, 2)) in (None, "interrupted")


def test_ctrl_c_in_the_last_trial_is_no_completed_run(single: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    single.files(test_it="def test_last(): raise KeyboardInterrupt")
    assert single.run("--trials=1", subprocess=True).ret == 2
    assert single.runs()[0].status == RunStatus.CANCELLED
    assert single.outcomes() == {"test_it.py::test_last": ["interrupted"]}


def test_ctrl_c_in_tear_down_leaves_the_decision(single: Suite) -> None:
    single.files(
        test_it="""
        import pytest

        @pytest.fixture
        def held():
            yield
            raise KeyboardInterrupt

        def test_held(held): pass
        """
    )
    assert single.run("--trials=2", subprocess=True).ret == 2
    assert single.runs()[0].status == RunStatus.CANCELLED
    assert single.last().trials.select("outcome", "decision", "record_error").rows() == [
        ("passed", "pass", "the session was stopped in this trial's tear-down")
    ]


def test_pytest_exit(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own exit code in a single process; under xdist, which takes it for an internal error, 3."""
    suite.files(test_it=TROUBLED)
    monkeypatch.setenv("TROUBLE", "pytest-exit")
    result = suite.run("--trials=3", "--baseline=main", subprocess=True)
    single = suite.workers == "-n0"
    assert result.ret == (9 if single else 3), result.stdout.str()
    assert suite.runs()[0].status == (RunStatus.CANCELLED if single else RunStatus.FAILED)
    if single:
        assert labels(suite)[1, 2] == "interrupted"


def test_the_process_dies_in_a_trial(single: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is left to seal the run: it is there as running, and recovering it loses nothing."""
    single.files(test_it=TROUBLED)
    monkeypatch.setenv("TROUBLE", "os-exit")
    assert single.run("--trials=3", "--trial-order=cases", subprocess=True).ret == 7
    assert single.runs()[0].status == RunStatus.RUNNING
    recovered = single.store.recover(single.runs()[0].id)
    assert (recovered.status, recovered.dropped_lines) == (RunStatus.CANCELLED, 0)
    assert recovered.counts is not None
    assert (recovered.counts["passed"], recovered.counts["missing"]) == (4, 5)
    assert (1, 2) not in labels(single)


@pytest.mark.parametrize("trouble", ["os-exit", "exit-in-teardown", "interrupt"])
def test_a_worker_dies_in_a_trial(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """That trial is lost and undecided, counted once; every other one is there; the gate is not passed."""
    from tests.plugin.conftest import Suite

    suite = Suite(pytester, "-n2")
    suite.files(test_it=TROUBLED)
    monkeypatch.setenv("TROUBLE", trouble)
    result = suite.run("--trials=3", "--min-pass-rate=95%")
    assert result.ret in ((10,) if trouble != "interrupt" else (2, 10)), result.stdout.str()
    found = labels(suite)
    if trouble == "interrupt":
        assert suite.runs()[0].status in (RunStatus.CANCELLED, RunStatus.COMPLETED)
        assert found.get((1, 2)) in ("worker_lost", "interrupted")
        return
    assert suite.runs()[0].status == RunStatus.COMPLETED
    assert found.pop((1, 2)) == "worker_lost"
    assert list(found.values()) == ["passed"] * 8


@pytest.mark.parametrize(
    "options",
    [["--dist=loadscope"], ["--max-worker-restart=0"]],
    ids=" ".join,
)
@pytest.mark.parametrize(
    "gate", [["--min-pass-rate=30%"], pytest.param([], marks=pytest.mark.slow)], ids=" ".join
)
def test_trials_that_never_ran_are_missing_and_no_pass(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: list[str], gate: list[str]
) -> None:
    from tests.plugin.conftest import Suite

    suite = Suite(pytester, "-n2" if "loadscope" not in str(options) else "-n1")
    suite.files(test_it=TROUBLED)
    monkeypatch.setenv("TROUBLE", "os-exit")
    result = suite.run("--trials=3", *options, *gate)
    counts = suite.runs()[0].counts
    assert counts is not None
    # The worker that is left may have run all that is left: then the threshold is met.
    allowed = (0, 1, 2, 10) if gate and not counts["missing"] else (1, 2, 10)
    assert result.ret in allowed, result.stdout.str()
    assert counts["planned"] == 9
    assert counts["missing"] > 0 or suite.runs()[0].status == RunStatus.COMPLETED
    assert counts["passed"] + counts["failed"] + counts["undecided"] + counts["missing"] == 9
    assert counts["passed"] < 9
    if counts["missing"]:
        assert suite.runs()[0].status in (RunStatus.CANCELLED, RunStatus.FAILED)
        assert promotable(suite.runs()[0]) != []


def test_a_plugin_that_swallows_trials_is_no_pass(single: Suite) -> None:
    """Nothing fails, nothing is gated, and still a run with missing trials does not end in 0."""
    single.files(test_it=TROUBLED)
    single.pytester.makeconftest(
        """
        import pytest

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_protocol(item):
            return True if "[1-trial2]" in item.nodeid else None
        """
    )
    result = single.run("--trials=3")
    assert result.ret == 10
    result.stdout.fnmatch_lines(["The run is failed: 1 of 9 planned trials never reported."])
    result = single.run("--trials=3", "--min-pass-rate=50%")
    assert result.ret == 10
    assert single.runs()[0].gate is not None
    assert single.runs()[0].gate["exit_code"] == 10


def test_a_hang_ended_by_a_signal_goes_on(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.files(test_it=TROUBLED)
    monkeypatch.setenv("TROUBLE", "hang")
    result = suite.run(
        "--trials=3",
        "--min-pass-rate=95%",
        "--timeout=0.5",
        "--timeout-method=signal",
        plugins=("pytest_timeout",),
        subprocess=True,
    )
    assert result.ret == 10, result.stdout.str()
    assert suite.runs()[0].status == RunStatus.COMPLETED
    assert labels(suite)[1, 2] == "wall_clock"


def test_a_hang_ended_by_a_thread_takes_the_process_with_it(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.files(test_it=TROUBLED)
    monkeypatch.setenv("TROUBLE", "hang")
    result = suite.run(
        "--trials=3",
        "--min-pass-rate=95%",
        "--timeout=1",
        "--timeout-method=thread",
        plugins=("pytest_timeout",),
        subprocess=True,
    )
    if suite.workers == "-n0":
        assert result.ret == 1
        assert suite.runs()[0].status == RunStatus.RUNNING
        assert suite.store.recover(suite.runs()[0].id).status == RunStatus.CANCELLED
        assert (1, 2) not in labels(suite)
    else:
        assert result.ret == 10, result.stdout.str()
        assert labels(suite)[1, 2] == "worker_lost"
    assert "passed" in labels(suite).values()


@pytest.mark.parametrize("hook", ["pytest_runtest_logreport(report)", "pytest_sessionfinish()"])
def test_another_plugin_s_internal_error(suite: Suite, hook: str) -> None:
    """The run is sealed as failed, whether or not every trial reported."""
    suite.files(test_it=TROUBLED)
    condition = 'if "[1-trial2]" in report.nodeid and report.when == "call":' if "report" in hook else "if 1:"
    suite.pytester.makeconftest(
        f"""
        import os

        def {hook}:
            if "PYTEST_XDIST_WORKER" not in os.environ:
                {condition}
                    raise RuntimeError("another plugin's fault")
        """
    )
    result = suite.run("--trials=3", "--baseline=main", "--save-baseline=main", subprocess=True)
    assert result.ret in (1, 3), result.stdout.str()
    assert suite.runs()[0].status == RunStatus.FAILED
    assert suite.store.refs.read("main") is None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB."""
    if os.name == "nt" or os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this system does not let a small file system be mounted")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


FILLING = """
import os, pathlib, pytest

@pytest.mark.parametrize("i", range(3))
def test_case(i, request):
    if "[1-trial2]" in request.node.nodeid:
        with pathlib.Path(os.environ["STORE"], "filler").open("wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(512))
            except OSError:
                pass
"""


@pytest.mark.parametrize("gate", ["--baseline=main", "--save-baseline=main", "--crashlab-release=1"])
def test_a_full_disk(small_disk: Path, single: Suite, monkeypatch: pytest.MonkeyPatch, gate: str) -> None:
    """The tests run to their end; the session says what is wrong, and is no pass."""
    single.files(test_it=FILLING)
    store = small_disk / "store"
    monkeypatch.setenv("STORE", str(small_disk))
    result = single.run("--trials=9", "--trial-order=cases", f"--crashlab-store={store}", gate)
    assert result.ret == (1 if "save" in gate else 10), result.stdout.str()
    result.stdout.fnmatch_lines(["crashlab: the run is not whole in the store: *cannot be written (*"])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    (small_disk / "filler").unlink()
    from pytest_crashlab.store import Store

    mended = Store.open(store)
    run = mended.recover(mended.run_ids()[0])
    assert run.status in (RunStatus.FAILED, RunStatus.CANCELLED)
    assert run.counts is not None
    assert 1 <= run.counts["passed"] < 27
    assert run.counts["missing"] == 27 - run.counts["passed"]
    assert mended.refs.all() == {}


def test_a_disk_that_is_full_from_the_start(
    small_disk: Path, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.files(test_it=TROUBLED)
    (small_disk / "filler").write_bytes(bytes(65536))
    result = suite.run("--trials=3", f"--crashlab-store={small_disk / 'store'}")
    assert result.ret == 4, result.stdout.str()
    assert "No space left on device" in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize("started_by", ["option", pytest.param("marker", marks=pytest.mark.slow)])
def test_a_store_that_cannot_be_written(suite: Suite, started_by: str) -> None:
    """Exit 4 with one sentence, before a trial is spent on it or as soon as the workers tell."""
    suite.files(test_it=f"import pytest\npytestmark = pytest.mark.trials(3)\n{TROUBLED}")
    suite.run("--trials=1", subprocess=True)
    known = suite.store.run_ids()
    runs = suite.root / ".crashlab" / "runs"
    if os.geteuid() == 0:  # permissions do not stop root: a read-only mount does
        if subprocess.run(["mount", "--bind", runs, runs], capture_output=True, check=False).returncode != 0:
            pytest.skip("this system does not let a folder be mounted read-only")
        subprocess.run(["mount", "-o", "remount,ro,bind", runs], check=True)
    else:
        runs.chmod(0o500)
    try:
        result = suite.run(*(["--trials=3"] if started_by == "option" else []), subprocess=True)
    finally:
        if os.geteuid() == 0:
            subprocess.run(["umount", "-l", runs], check=True)
        else:
            runs.chmod(0o700)
    said = result.stdout.str() + result.stderr.str()
    assert result.ret == 4, said
    assert "cannot be created (" in said
    assert "Traceback" not in said
    assert suite.store.run_ids() == known


def test_a_store_that_is_deleted_midway(suite: Suite) -> None:
    suite.files(
        test_it="""
        import pathlib, pytest, shutil

        @pytest.mark.parametrize("i", range(3))
        def test_case(i, request):
            if "[1-trial2]" in request.node.nodeid:
                shutil.rmtree(pathlib.Path(__file__).with_name(".crashlab"))
        """
    )
    result = suite.run("--trials=3", "--baseline=main")
    assert result.ret == 10, result.stdout.str()
    result.stdout.fnmatch_lines(["crashlab: the run is not whole in the store: *was removed while*"])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


def test_a_clock_that_jumps(suite: Suite) -> None:
    """Durations and order of trials do not come from the clock on the wall; nothing is lost over it."""
    suite.files(test_it=TROUBLED)
    suite.pytester.makeconftest(
        """
        import time, pytest

        wall, steady = time.time, time.perf_counter

        @pytest.fixture(autouse=True)
        def jump(request):
            jump = {"0": -86400.0, "1": 1e9, "2": 0.0}[request.node.nodeid.partition("[")[2][0]]
            time.time = lambda: wall() + jump
            time.perf_counter = lambda: None
            yield
            time.time, time.perf_counter = wall, steady

        def pytest_runtest_logreport(report):
            time.time = lambda: wall() - 1e6
        """
    )
    assert suite.run("--trials=3", "--min-pass-rate=1", subprocess=True).ret == 0
    run = suite.last()
    assert run.manifest.status == RunStatus.COMPLETED
    assert list(labels(suite).values()) == ["passed"] * 9
    assert 0 <= float(str(run.trials["duration"].min())) <= float(str(run.trials["duration"].max())) < 30


@pytest.mark.skipif(not hasattr(signal, "SIGTERM"), reason="no SIGTERM on this system")
def test_a_session_without_trials_keeps_its_signals(suite: Suite) -> None:
    """Neither alone nor as xdist's controller, which stands by for a marker that a worker may find."""
    suite.pytester.makeconftest(
        """
        import pathlib, signal

        def pytest_sessionfinish(session):
            if not hasattr(session.config, "workerinput"):
                own = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
                pathlib.Path("handler").write_text("default" if own else "taken")
        """
    )
    suite.files(test_it="def test_it(): pass")
    assert suite.run(subprocess=True).ret == 0
    assert (suite.root / "handler").read_text() == "default"
    assert suite.run("--trials=2", subprocess=True).ret == 0
    assert (suite.root / "handler").read_text() == "taken"
