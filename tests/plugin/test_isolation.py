"""``--crashlab-isolation=round``: no two trials of a case share a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

ROUND = "--crashlab-isolation=round"

# Every trial after the first in a process fails, and the hash seed of each process is kept.
POISON = """
import os, pytest
RAN = []

@pytest.mark.parametrize("case", range(3))
def test_poisoned(case, request):
    name = request.node.nodeid.partition("[")[2].split("-")[0]
    RAN.append(name)
    assert RAN.count(name) == 1
    with open("hashes", "a") as file:
        file.write(f"{os.getpid()} {hash('a word')}\\n")

@pytest.mark.trials(2, fixed=True)
def test_twice(): pass
"""


@pytest.fixture
def workers(pytester: pytest.Pytester) -> Suite:
    """A suite whose sessions have two workers."""
    from tests.plugin.conftest import Suite

    return Suite(pytester, "-n2")


def processes_of_cases(suite: Suite) -> pl.DataFrame:
    """case -> number of trials, number of processes."""
    return (
        suite.last()
        .trials.with_columns(pl.col("case").cast(pl.String))
        .group_by("case")
        .agg(trials=pl.len(), processes=pl.col("worker").n_unique())
        .sort("case")
    )


def test_no_two_trials_of_a_case_share_a_process(workers: Suite) -> None:
    workers.files(test_it=POISON)
    result = workers.run("--trials=3", ROUND)
    assert result.ret == 0
    result.assert_outcomes(passed=11)
    result.stdout.fnmatch_lines(["crashlab: fresh worker processes for each round of trials"])
    assert processes_of_cases(workers).rows() == [
        ("test_it.py::test_poisoned[0]", 3, 3),
        ("test_it.py::test_poisoned[1]", 3, 3),
        ("test_it.py::test_poisoned[2]", 3, 3),
        ("test_it.py::test_twice", 2, 2),
    ]
    assert workers.runs()[0].isolation == "round"
    hashes = dict(line.split() for line in (workers.root / "hashes").read_text().splitlines())
    assert len(hashes) >= 3
    assert len(set(hashes.values())) == len(hashes)


def test_without_it_they_do(workers: Suite) -> None:
    """The suite above tells: in shared processes its later trials fail."""
    workers.files(test_it=POISON)
    assert workers.run("--trials=3").ret == 1


def test_a_fixed_hash_seed_is_told(workers: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    workers.files(test_it="def test_a(): pass")
    workers.run("--trials=2", ROUND).stdout.fnmatch_lines(
        ["crashlab: fresh worker processes *; all have the hash seed 7 (PYTHONHASHSEED)"]
    )


def test_a_worker_that_dies_is_replaced_within_its_round(workers: Suite) -> None:
    workers.files(
        test_it="""
        import os, pytest
        @pytest.mark.parametrize("case", range(4))
        def test_a(case, request):
            if case == 1 and "trial2" in request.node.nodeid: os._exit(1)
        """
    )
    workers.run("--trials=3", ROUND, "--min-pass-rate=0.5")
    outcomes = workers.outcomes()
    assert outcomes.pop("test_it.py::test_a[1]") == ["passed", "worker_lost", "passed"]
    assert len(outcomes) == 3
    assert set(map(tuple, outcomes.values())) == {("passed",) * 3}
    assert processes_of_cases(workers)["processes"].to_list() == [3, 3, 3, 3]
    assert workers.runs()[0].status == "completed"


def test_the_last_trial_of_a_round_may_kill_its_worker(pytester: pytest.Pytester) -> None:
    from tests.plugin.conftest import Suite

    single = Suite(pytester, "-n1")
    single.files(test_it="import os\ndef test_a(request): 'trial1' in request.node.nodeid and os._exit(1)")
    single.run("--trials=3", ROUND, "--min-pass-rate=0.5")
    assert list(single.outcomes().values()) == [["worker_lost", "passed", "passed"]]


def test_no_restart_leaves_missing_trials_and_no_pass(workers: Suite) -> None:
    workers.files(
        test_it="""
        import os, pytest
        @pytest.mark.parametrize("case", range(4))
        def test_a(case, request):
            if "trial1" in request.node.nodeid: os._exit(1)
        """
    )
    result = workers.run("--trials=3", ROUND, "--max-worker-restart=0", "--min-pass-rate=0.5")
    assert result.ret not in (0, 3)
    counts = workers.runs()[0].counts
    assert counts is not None
    assert counts["passed"] == 0
    assert counts["missing"] > 0


def test_the_session_stops_where_it_is_told_to(workers: Suite) -> None:
    workers.files(test_it="def test_a(): pass\ndef test_b(): assert 0")
    result = workers.run("--trials=3", ROUND, "-x")
    assert result.ret == 2
    assert workers.runs()[0].status == "cancelled"
    left = workers.runs()[0].id
    refused = workers.run(f"--crashlab-resume={left}")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: run {left} was made with {ROUND}; give it again to go on with the run" in refused.errlines
    workers.run(f"--crashlab-resume={left}", ROUND)
    assert workers.runs()[0].status == "completed"
    assert workers.outcomes() == {
        "test_it.py::test_a": ["passed"] * 3,
        "test_it.py::test_b": ["failed"] * 3,
    }


def test_workers_that_collect_differently_are_told(workers: Suite) -> None:
    workers.files(
        test_it="""
        import os, pytest
        @pytest.mark.parametrize("pid", [os.getpid()])
        def test_a(pid): pass
        """
    )
    result = workers.run("--trials=2", ROUND)
    assert result.ret not in (0, 5)
    result.stdout.fnmatch_lines(["*Different tests were collected between*"])


def test_a_later_round_that_collects_differently_ends_the_session_in_order(workers: Suite) -> None:
    workers.files(
        test_it="""
        import os, pathlib, pytest
        count = 3 if pathlib.Path("ran").exists() else 2
        @pytest.mark.parametrize("case", range(count))
        def test_a(case): pathlib.Path("ran").touch()
        """
    )
    result = workers.run("--trials=3", ROUND)
    assert result.ret not in (0, 3, 5)
    result.stdout.fnmatch_lines(["*Different tests were collected between the first round and*"])
    counts = workers.runs()[0].counts
    assert counts is not None
    assert (counts["passed"], counts["missing"]) == (2, 4)


@pytest.mark.slow
def test_workers_of_a_round_that_is_over_are_gone(workers: Suite) -> None:
    """Their memory is not kept to the end of the session."""
    workers.files(
        test_it="""
        import psutil, pytest
        @pytest.mark.parametrize("case", range(4))
        def test_a(case, request):
            if "trial4" in request.node.nodeid:
                siblings = psutil.Process().parent().children()
                with open("alive", "a") as file:
                    file.write(f"{sum(p.status() != psutil.STATUS_ZOMBIE for p in siblings)}\\n")
        """
    )
    workers.run("--trials=4", ROUND, subprocess=True)
    alive = [int(line) for line in (workers.root / "alive").read_text().split()]
    assert len(alive) == 4
    assert max(alive) <= 3  # of eight: two, and one that may still be on its way out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["-n0"], "gives each round of trials worker processes of its own; add -n 1 or more"),
        (["--dist=loadfile"], "leave --dist loadfile out"),
        (["--dist=worksteal"], "leave --dist worksteal out"),
        (["--trial-order=cases"], "leave --trial-order=cases, --sw, --ff and --nf out"),
        (["--ff"], "leave --trial-order=cases, --sw, --ff and --nf out"),
        (["--crashlab-isolation=process"], "process"),
    ],
)
def test_what_has_no_rounds_is_refused(workers: Suite, arguments: list[str], why: str) -> None:
    workers.files(test_it="def test_a(): pass")
    result = workers.run("--trials=2", ROUND, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [line for line in result.errlines if line.startswith("ERROR: ")]
    assert len(errors) == 1
    assert why in errors[0]
    assert not (workers.root / ".crashlab").exists()


def test_workers_of_several_kinds_are_refused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_a(): pass")
    load = ("-p", "pytest_crashlab.plugin", "-p", "xdist.plugin")
    kinds = ("--tx=2*popen", "--tx=popen//env:KIND=other", "--dist=load")
    result = pytester.runpytest_inprocess(*load, "--trials=2", ROUND, *kinds)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*starts the same workers again for each round; give --tx of one kind"])


def test_the_ini_key_alone_changes_no_session_without_trials(workers: Suite) -> None:
    workers.files(test_it="def test_a(): pass\ndef test_b(): pass")
    workers.pytester.makeini("[pytest]\ncrashlab_isolation = round")
    result = workers.run()
    result.assert_outcomes(passed=2)
    assert not (workers.root / ".crashlab").exists()
