"""The verbs that keep a store in order, on real stores: cancel, delete, history, doctor."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_crashlab.cli import main
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store import Store
from tests.stories import record, row

OLD, NEW, KILLED = (
    f"2026112{day}T063300Z-{name}" for day, name in ((1, "older2"), (2, "newer2"), (3, "killed"))
)
CASE = "test_a.py::test_refund[order-42]"


@pytest.fixture
def store(tmp_path, monkeypatch):
    for name in ("CRASHLAB_STORE", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    store = Store.open(tmp_path / ".crashlab", create=True)
    record(
        store,
        {CASE: "PPFP", "t.py::b": "PP"},
        run_id=OLD,
        created="2026-11-21T06:33:00.000Z",
        release="2.3.0",
    )
    record(
        store,
        {CASE: "FCE."},
        run_id=NEW,
        created="2026-11-22T06:33:00.000Z",
        plans={CASE: {"content": "other"}},
        dataset="refunds",
        split="holdout",
    )
    return store


@pytest.fixture
def crashlab(capsys):
    def run(*arguments):
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def make_old(store, run_id, hours):
    then = time.time() - hours * 3600
    for path in store.paths.run(run_id).folder.rglob("*"):
        os.utime(path, (then, then))


def test_only_a_run_that_rests_for_a_day_is_cancelled(store, crashlab):
    record(store, {"t.py::a": "PP.."}, run_id=KILLED, status=RunStatus.RUNNING)
    make_old(store, KILLED, 23)
    code, _, error = crashlab("cancel", KILLED)
    assert code == 4
    assert "changed 23.0 hours ago; only a run that has not changed for 24 hours" in error
    assert f"'crashlab recover {KILLED}'" in error
    make_old(store, KILLED, 25)
    code, said, _ = crashlab("cancel", KILLED)
    assert code == 0
    assert "is sealed as cancelled: 2 trials decided, 0 undecided, 2 missing of 4 scheduled." in said
    assert store.manifest(KILLED).status is RunStatus.CANCELLED
    assert store.load(KILLED).trials.height == 2
    assert [entry["run"] for entry in store.ledger.read("cancellation")] == [KILLED]


def test_a_sealed_run_is_not_cancelled(store, crashlab):
    code, _, error = crashlab("cancel", OLD)
    assert code == 4
    assert error == f"crashlab: Run {OLD} is completed already; there is nothing to cancel.\n"


def test_a_deleted_run_is_gone_and_its_look_at_a_holdout_counts_on(store, crashlab):
    code, said, _ = crashlab("delete", NEW, "--reason", "no network")
    assert (code, said) == (0, f"Run {NEW} is deleted; the ledger keeps that it was there.\n")
    assert store.run_ids() == [OLD]
    (entry,) = store.ledger.read("deletion")
    assert (entry["run"], entry["reason"], entry["dataset"], entry["split"]) == (
        NEW,
        "no network",
        "refunds",
        "holdout",
    )


def test_a_baseline_is_deleted_only_by_force(store, crashlab):
    store.refs.promote("main", OLD, expected=None)
    code, _, error = crashlab("delete", OLD)
    assert code == 4
    assert "is the baseline main; promote another one first" in error
    assert OLD in store.run_ids()
    code, said, _ = crashlab("delete", OLD, "--force")
    assert code == 0
    assert "The baseline main has no run now." in said
    assert OLD not in store.run_ids()


def test_history_shows_a_case_over_runs(store, crashlab):
    code, said, _ = crashlab("history", CASE)
    assert code == 0
    lines = said.splitlines()
    assert lines[0] == CASE
    assert lines[1] == "  ▇▁  (oldest to newest)"
    assert lines[2].split() == [NEW, "FC?.", "0/2", "0.0", "%", "asks", "something", "else"]
    assert lines[3].split() == [OLD, "PPFP", "3/4", "75.0", "%", "release", "2.3.0"]


def test_history_as_json_and_cut(store, crashlab):
    code, said, _ = crashlab("history", CASE, "--limit", "1", "--json")
    assert code == 0
    data = json.loads(said)
    assert data["more"] == 1
    assert [(run["run"], run["marks"], run["share"]) for run in data["runs"]] == [(NEW, "FC?.", 0.0)]


def test_history_where_nothing_was_decided_is_a_dash(store, crashlab):
    record(store, {"t.py::e": "EE"}, run_id=KILLED)
    code, said, _ = crashlab("history", "t.py::e")
    assert code == 0
    assert said.splitlines()[1] == f"  {KILLED}  ??      0/0         -"


def test_history_of_an_unknown_case_names_what_comes_close(store, crashlab):
    code, _, error = crashlab("history", "test_a.py::test_refund[order-4]")
    assert code == 4
    assert f"did you mean {CASE}?" in error


def test_doctor_says_what_works(store, crashlab):
    code, said, _ = crashlab("doctor")
    assert code == 0
    assert f"ok  store     {store.root}: 2 runs" in said
    assert "ok  store     can be written" in said
    assert "ok  package   pytest-xdist 3." in said
    if sys.platform == "linux":
        assert "ok  sandbox   local: private folder" in said
    assert "sandbox   docker: " in said


def test_doctor_names_what_is_broken_and_ends_with_1(store, crashlab):
    store.paths.run(OLD).manifest.write_text("{")
    record(store, {"t.py::a": "P."}, run_id=KILLED, status=RunStatus.RUNNING)
    with (store.root / "ledger.jsonl").open("a") as ledger:
        ledger.write("torn\n")
    code, said, _ = crashlab("doctor", "--json")
    assert code == 1
    findings = json.loads(said)["findings"]
    assert [f["about"] for f in findings if f["works"] is False] == ["run"]
    assert any(f["what"] == f"{KILLED} is not finished" and KILLED in f["remedy"] for f in findings)
    assert any("line 1 holds no entry" in f["what"] for f in findings)


def test_doctor_without_a_store_goes_on(tmp_path, monkeypatch, crashlab):
    monkeypatch.delenv("CRASHLAB_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    code, said, _ = crashlab("doctor")
    assert code == 0
    assert "-   store" in said


def test_diff_of_one_class_and_a_copy_that_pytest_takes(store, crashlab, tmp_path):
    cases = {f"test_it.py::test_n[{n}]": "PPP" for n in range(4)}
    record(store, cases, run_id="20261124T063300Z-diff22")
    tagged = [
        row("test_it.py::test_n[0]", 1, "F", failure_class="fabrication"),
        row("test_it.py::test_n[1]", 1, "F", failure_class="fabrication"),
    ]
    worse = {case: ".FF" if n < 2 else "FFF" if n == 2 else "PPP" for n, case in enumerate(cases)}
    record(store, worse, run_id="20261125T063300Z-diff23", rows=tagged)
    code, said, _ = crashlab("diff", "diff22", "diff23", "--show", "worse")
    assert code == 0
    assert "Cases that got worse: 3\n  They failed as failed (3), fabrication (2); --class shows" in said
    code, said, _ = crashlab(
        "diff", "diff22", "diff23", "--show", "worse", "--class", "fabrication", "--copy", "cases.txt"
    )
    assert "Cases that got worse: 3\n  2 of 3 cases failed as fabrication in a trial of this run.\n" in said
    assert said.endswith("2 cases copied; 'pytest @cases.txt' runs them.\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_n(n): pass\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "@cases.txt"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "2 passed" in done.stdout


def test_a_copy_of_no_case_is_refused(store, crashlab, tmp_path):
    record(store, {"t.py::a": "PP"}, run_id="20261124T063300Z-diff22")
    record(store, {"t.py::a": "PP"}, run_id="20261125T063300Z-diff23")
    code, _, error = crashlab("diff", "diff22", "diff23", "--show", "worse", "--copy", "cases.txt")
    assert code == 4
    assert "There is no case to copy" in error
    assert not (tmp_path / "cases.txt").exists()
    code, _, error = crashlab("diff", "diff22", "diff23", "--show", "all", "--copy", "no/where.txt")
    assert code == 4
    assert "cannot be written" in error


BASH = """
eval "$(crashlab completion bash)"
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 COMP_WORDBREAKS=$' \\t\\n'
read -ra COMP_WORDS <<< "$1"
_python_argcomplete crashlab
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("crashlab hist", {"history"}),
        ("crashlab diff --sh", {"--show"}),
        ("crashlab view ma", {"main"}),
        ("crashlab view 2026112", {OLD, NEW}),
    ],
)
def test_bash_completes_verbs_options_and_runs(store, typed, offered):
    store.refs.promote("main", OLD, expected=None)
    folder = Path(sys.executable).parent
    done = subprocess.run(
        ["bash", "-c", BASH, "bash", typed],
        cwd=store.root.parent,
        env=os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert {word.strip() for word in done.stdout.splitlines()} == offered, done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_code_too(store, crashlab, shell):
    code, said, error = crashlab("completion", shell)
    assert (code, error) == (0, "")
    assert "crashlab" in said
