"""Going on with a run that ended early: one run, its attempts kept, nothing run that has a decision."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from pytest_crashlab.records.run import RunStatus

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

# Each trial that runs leaves a line in ran.txt. STOP: the session ends with its fifth trial, by the
# named way. DOWN: the first two cases lose the network.
SUITE = """
import os, pathlib, pytest

RAN = pathlib.Path(__file__).with_name("ran.txt")

@pytest.mark.parametrize("i", range(3))
def test_case(i, request):
    with RAN.open("a") as file:
        file.write(request.node.nodeid + "\\n")
    if os.environ.get("STOP") and len(RAN.read_text().splitlines()) >= 5:
        if os.environ["STOP"] == "kill":
            os.kill(os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid(), 9)
        raise KeyboardInterrupt
    if i < int(os.environ.get("DOWN", 0)):
        raise ConnectionError("provider away")
"""
ALL = {(i, trial) for i in range(3) for trial in (1, 2, 3)}


@pytest.fixture
def suite(served: Suite) -> Suite:
    """How many workers there are makes no difference here."""
    return served


def ran(suite: Suite) -> list[tuple[int, int]]:
    """The trials that ran since the last look."""
    path = suite.root / "ran.txt"
    names = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return [(int(name.split("[")[1][0]), int(name.removesuffix("@g")[-2])) for name in names]


def attempts(suite: Suite, run_id: str) -> dict[tuple[int, int], list[str | None]]:
    """``(case, trial)`` -> the outcomes of its attempts."""
    rows = suite.store.load(run_id).trials.sort("case", "trial", "attempt")
    found: dict[tuple[int, int], list[str | None]] = {}
    for case, trial, outcome in rows.select("case", "trial", "outcome").iter_rows():
        found.setdefault((int(case.partition("[")[2][0]), trial), []).append(outcome)
    return found


@pytest.mark.parametrize("stop", ["kill", "interrupt"])
def test_a_stopped_run_goes_on(suite: Suite, monkeypatch: pytest.MonkeyPatch, stop: str) -> None:
    """Only what has no decision runs, the run is one run, and it is judged as if it had never stopped."""
    suite.files(test_it=SUITE)
    assert suite.run("--trials=3", "--baseline=main", "--save-baseline=main").ret == 0
    first = suite.runs()[0].id
    ran(suite)
    monkeypatch.setenv("STOP", stop)
    suite.run("--baseline=main", subprocess=True)
    monkeypatch.delenv("STOP")
    ran(suite)
    [stopped] = [m for m in suite.runs() if m.id != first]
    assert stopped.status == (RunStatus.RUNNING if stop == "kill" else RunStatus.CANCELLED)
    before = attempts(suite, stopped.id)
    decided = {key for key, labels in before.items() if labels == ["passed"]}
    assert decided
    assert decided < ALL

    result = suite.run(f"--crashlab-resume={stopped.id[:-2]}")
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(
        [f"crashlab: goes on with run {stopped.id}: {9 - len(decided)} of 9 trials are left", "*No change*"]
    )
    assert sorted(ran(suite)) == sorted(ALL - decided)
    assert len(suite.runs()) == 2
    whole = suite.store.manifest(stopped.id)
    assert whole.status == RunStatus.COMPLETED
    assert whole.gate is not None
    assert (whole.gate["exit_code"], whole.seed) == (0, stopped.seed)
    after = attempts(suite, stopped.id)
    assert after == {key: [*before.get(key, []), *([] if key in decided else ["passed"])] for key in ALL}


def test_undecided_trials_of_a_completed_run(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an outage: the undecided trials run again, and their second attempts decide."""
    suite.files(test_it=SUITE)
    monkeypatch.setenv("DOWN", "2")
    assert suite.run("--trials=3", "--min-pass-rate=1").ret == 10
    monkeypatch.delenv("DOWN")
    ran(suite)
    result = suite.run("--crashlab-resume=latest", "--min-pass-rate=1")
    assert result.ret == 0, result.stdout.str()
    assert sorted(ran(suite)) == sorted(key for key in ALL if key[0] < 2)
    [run] = suite.runs()
    assert run.outcomes == {"passed": 9}
    assert attempts(suite, run.id)[1, 2] == ["network_error", "passed"]

    # Nothing is left: the run is judged as it is.
    known = attempts(suite, run.id)
    again = suite.run(f"--crashlab-resume={run.id}", "--min-pass-rate=1")
    assert again.ret == 0, again.stdout.str()
    again.stdout.fnmatch_lines(["*0 of 9 trials are left*"])
    assert ran(suite) == []
    assert attempts(suite, run.id) == known
    assert suite.runs()[0].status == RunStatus.COMPLETED


def test_nothing_left_ends_by_the_gate(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.files(test_it=SUITE.replace('raise ConnectionError("provider away")', "assert False"))
    monkeypatch.setenv("DOWN", "2")
    assert suite.run("--trials=3", "--min-pass-rate=1").ret == 1
    ran(suite)
    assert suite.run("--crashlab-resume=latest", "--min-pass-rate=1").ret == 1
    assert suite.run("--crashlab-resume=latest", "--min-pass-rate=0.3").ret == 0
    assert ran(suite) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda s: s.replace("range(3)", "range(4)"), "1 new (test_it.py::test_case?3?)"),
        (lambda s: s.replace("range(3)", "range(2)"), "1 gone (test_it.py::test_case?2?)"),
        (lambda s: f"{s}    assert i >= 0\n", "3 with another test source or check (*)"),
    ],
    ids=["new case", "gone case", "pass rule"],
)
def test_a_changed_plan_is_refused(suite: Suite, monkeypatch: pytest.MonkeyPatch, change, says: str) -> None:
    """Exit 4 with what changed; the run stays as it was and nothing of it runs."""
    suite.files(test_it=SUITE)
    monkeypatch.setenv("DOWN", "2")
    suite.run("--trials=3")
    monkeypatch.delenv("DOWN")
    ran(suite)
    [before] = suite.runs()
    suite.files(test_it=change(SUITE))
    result = suite.run("--crashlab-resume=latest", subprocess=True)
    said = result.stdout.str() + result.stderr.str()
    assert result.ret == 4, said
    pytest.LineMatcher(said.splitlines()).fnmatch_lines([f"*cannot be resumed, its cases changed: {says}*"])
    assert ran(suite) == []
    assert suite.runs() == [before]


def test_changed_files_under_test_are_refused(single: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*args: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *args], cwd=single.root, check=True, capture_output=True)

    single.files(test_it=SUITE, target="ANSWER = 1")
    (single.root / ".gitignore").write_text("ran.txt\n.pytest_cache\n__pycache__\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    monkeypatch.setenv("DOWN", "1")
    single.run("--trials=3")
    monkeypatch.delenv("DOWN")
    [before] = single.runs()
    ran(single)
    single.files(target="ANSWER = 2")
    result = single.run("--crashlab-resume=latest")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*cannot be resumed: the files under test changed*"])
    assert ran(single) == []
    assert single.runs() == [before]
    single.files(target="ANSWER = 1")
    assert single.run("--crashlab-resume=latest").ret == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--crashlab-resume=20990101T000000Z-aaaaaa"], "*There is no run 20990101T000000Z-aaaaaa*"),
        (["--crashlab-resume=latest", "--trials=5"], "*with --trials=5: it was planned with 3*"),
        (["--crashlab-resume=2"], "*may be any of 2 runs*"),
    ],
    ids=["unknown", "trials", "several"],
)
def test_what_cannot_be_resumed(single: Suite, options: list[str], says: str) -> None:
    single.files(test_it=SUITE)
    single.run("--trials=3")
    single.run("--trials=3")
    result = single.run(*options)
    assert result.ret == 4
    result.stderr.fnmatch_lines([says])


def test_a_run_that_another_process_writes_is_left_alone(suite: Suite) -> None:
    suite.files(test_it=SUITE)
    suite.run("--trials=3", "-k", "case and (0 or 1)")
    writer = suite.store.reopen(suite.runs()[0].id)
    try:
        result = suite.run("--crashlab-resume=latest", subprocess=True)
    finally:
        writer.close()
    said = result.stdout.str() + result.stderr.str()
    assert result.ret == 4, said
    assert "is being written by another process" in said


def test_a_selection_stays_one(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed run of selected cases leaves the others out, and is still partial."""
    suite.files(test_it=SUITE)
    monkeypatch.setenv("DOWN", "2")
    suite.run("--trials=3", "-k", "case and (0 or 2)")
    monkeypatch.delenv("DOWN")
    ran(suite)
    assert suite.run("--crashlab-resume=latest").ret == 0
    assert sorted(ran(suite)) == [(0, 1), (0, 2), (0, 3)]
    [run] = suite.runs()
    assert (run.partial, run.outcomes, run.planned_cases) == (True, {"passed": 6}, 2)


def test_groups_of_xdist_are_no_part_of_a_case(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under --dist loadgroup workers add ``@group`` to ids."""
    from tests.plugin.conftest import Suite

    suite = Suite(pytester, "-n1")
    grouped = '@pytest.mark.xdist_group("g")\n@pytest.mark.parametrize'
    suite.files(test_it=SUITE.replace("@pytest.mark.parametrize", grouped))
    monkeypatch.setenv("DOWN", "2")
    first = suite.run("--trials=3", "--dist=loadgroup", "-k", "case and (0 or 2)", "-rA", "--junitxml=j.xml")
    shown = [line.split()[1] for line in first.outlines if line.startswith(("PASSED ", "FAILED "))]
    assert sorted(shown) == [f"test_it.py::test_case[{i}-trial{t}]" for i in (0, 2) for t in (1, 2, 3)]
    assert "@g" not in (suite.root / "j.xml").read_text()
    monkeypatch.delenv("DOWN")
    ran(suite)
    assert suite.run("--crashlab-resume=latest", "--dist=loadgroup").ret == 0
    assert len(ran(suite)) == 3
    [run] = suite.runs()
    assert (run.outcomes, run.planned_cases) == ({"passed": 6}, 2)


def test_a_failure_of_the_first_part_still_fails_the_session(suite: Suite) -> None:
    """An ungated failure counts in the session that goes on as in the one that found it."""
    suite.files(test_a="def test_a(): assert 0", test_b="def test_b(): pass")
    assert suite.run("--trials=2", "-x", "--trial-order=cases").ret in (1, 2)
    assert suite.run(f"--crashlab-resume={suite.runs()[0].id}").ret == 1
    assert suite.run(f"--crashlab-resume={suite.runs()[0].id}").ret == 1
