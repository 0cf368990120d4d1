from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_builders import plan_of, record, trial_row

from pytest_crashlab.errors import CorruptRun, StoreError
from pytest_crashlab.records.check import CheckRow
from pytest_crashlab.records.outcome import Kind
from pytest_crashlab.records.run import RunStatus, new_run_id
from pytest_crashlab.records.trial import Phase, TrialRow
from pytest_crashlab.store.journal import JournalWriter, decode, encode, read_journal
from pytest_crashlab.store.runs import Store
from pytest_crashlab.store.schema import Manifest


def started(store, *rows, plan=None):
    """A running run as a killed process leaves it, and its journal's path."""
    writer = store.begin(Manifest(id=new_run_id()))
    if plan is not None:
        writer.write_plan(plan)
    for row in rows:
        writer.append(row)
    writer.close()
    return writer.run_id, writer.path / "journal.jsonl"


def keys(run):
    return run.trials.select("case", "trial", "attempt").rows()


texts = st.text(max_size=30)
numbers = st.floats(allow_nan=False, allow_infinity=False)
rows = st.builds(
    TrialRow,
    case=texts,
    trial=st.integers(1, 2**31 - 1),
    attempt=st.integers(1, 100),
    outcome=st.none() | texts,
    kind=st.none() | st.sampled_from(Kind),
    phase=st.none() | st.sampled_from(Phase),
    infra_healthy=st.none() | st.booleans(),
    start=numbers,
    duration=numbers,
    **dict.fromkeys(
        [
            *("t", "horizon", "run_duration", "prepare_s", "verify_s", "record_s", "cost_usd"),
            *("judge_s", "judge_cost_usd"),
        ],
        st.none() | numbers,
    ),
    worker=texts,
    message=st.none() | texts,
)
checks = st.lists(
    st.builds(
        CheckRow, name=texts, required=st.booleans(), ok=st.none() | st.booleans(), why=st.none() | texts
    ),
    max_size=3,
)


@given(row=rows, its_checks=checks)
def test_a_line_holds_the_whole_attempt(row, its_checks):
    line = encode(row, its_checks)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode(line) == (row, tuple(its_checks))


def test_a_line_without_checks_is_the_row_s_own_json():
    row = trial_row("t.py::test_a", 1, t=3)
    assert encode(row) == row.to_json().encode() + b"\n"


def test_what_json_tables_cannot_hold_is_made_storable(store):
    writer = store.begin(Manifest(id=new_run_id()))
    writer.append(
        trial_row(
            "a", 1, t=float("nan"), horizon=float("inf"), message="half \ud800 pair, whole \U0001f600 NaN"
        ),
        [CheckRow(name="c", required=True, ok=True, why="\udfff")],
    )
    run = store.load(writer.seal(RunStatus.COMPLETED).id)
    assert run.trials.select("t", "horizon", "message").rows() == [
        (None, None, "half \ufffd pair, whole \U0001f600 NaN")
    ]
    assert run.checks["why"].to_list() == ["\ufffd"]


def test_a_second_report_of_an_attempt_is_not_written(store):
    with store.begin(Manifest(id=new_run_id())) as writer:
        assert writer.append(trial_row("a", 1, "passed")) is True
        assert writer.append(trial_row("a", 1, "failed")) is False
        assert writer.append(trial_row("a", 1, "failed", attempt=2)) is True
    run = store.load(writer.run_id)
    assert keys(run) == [("a", 1, 1), ("a", 1, 2)]


def test_an_attempt_that_is_in_the_journal_twice_counts_once(store):
    run_id, path = started(store, trial_row("a", 1, "passed"), plan=plan_of("a", k=1))
    path.write_bytes(path.read_bytes() + encode(trial_row("a", 1, "failed")))
    assert store.recover(run_id).outcomes == {"passed": 1}


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_torn_last_line_is_dropped_and_counted(store, cut):
    run_id, path = started(store, trial_row("a", 1), trial_row("a", 2), plan=plan_of("a", k=2))
    path.write_bytes(path.read_bytes()[: -1 - cut])
    manifest = store.recover(run_id)
    assert (manifest.dropped_lines, manifest.status) == (1, RunStatus.CANCELLED)
    assert keys(store.load(run_id)) == [("a", 1, 1)]
    assert manifest.warnings == ["recovered from its journal"]


def test_a_last_line_that_lacks_its_end_alone_is_kept(store):
    run_id, path = started(store, trial_row("a", 1), trial_row("a", 2), plan=plan_of("a", k=2))
    path.write_bytes(path.read_bytes()[:-1])
    manifest = store.recover(run_id)
    assert (manifest.dropped_lines, manifest.status) == (0, RunStatus.COMPLETED)
    assert keys(store.load(run_id)) == [("a", 1, 1), ("a", 2, 1)]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"hello", "Expecting value"),
        (b"[]", "not an object"),
        (b"\x00\x00\x00", "Expecting value"),
        (b"\xff\xfe", "can't decode"),
        (b'{"case":"a","trial":"one","start":1,"duration":1}', "trial is 'one'"),
        (b'{"case":"a","trial":true,"start":1,"duration":1}', "trial is True"),
        (b'{"trial":1,"start":1,"duration":1}', "case is None"),
        (b'{"case":"a","trial":1,"start":1,"duration":1,"kind":"odd"}', "'odd' is not a valid Kind"),
        (
            b'{"case":"a","trial":1,"start":1,"duration":1,"checks":[{"name":"x"}]}',
            "required of a check is None",
        ),
        (b'{"case":"a","trial":1,"start":1,"duration":1,"checks":[7]}', "a check is 7"),
        (b'{"case":"a","trial":1,"start":1,"duration":1}{"case":"a"}', "Extra data"),
    ],
)
def test_a_damaged_line_before_the_last_is_named(store, line, why):
    run_id, path = started(store, trial_row("a", 1), trial_row("a", 2), plan=plan_of("a", k=2))
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + line + b"\n" + second)
    for act in (store.load, store.recover, store.reopen):
        with pytest.raises(CorruptRun, match=r"Line 2 of .*journal\.jsonl holds no trial") as caught:
            act(run_id)
        assert why in str(caught.value)
    assert path.exists()
    manifest = store.recover(run_id, skip_damaged=True)
    assert manifest.dropped_lines == 1
    assert "line 2 of the journal was damaged and dropped" in manifest.warnings
    assert keys(store.load(run_id)) == [("a", 1, 1), ("a", 2, 1)]


def test_fields_of_a_later_version_are_passed_over(store):
    run_id, path = started(store, trial_row("a", 1), plan=plan_of("a", k=1))
    data = {**json.loads(path.read_bytes()), "colour": "green"}
    path.write_text(json.dumps(data) + "\n")
    assert store.recover(run_id).outcomes == {"passed": 1}


def test_a_missing_journal_is_an_empty_one(tmp_path):
    assert read_journal(tmp_path / "none").whole == b""


def test_a_run_without_a_plan_is_recovered_from_its_trials(store):
    run_id, _ = started(store, trial_row("a", 1), trial_row("b", 2), trial_row("a", 3))
    manifest = store.recover(run_id)
    assert store.load(run_id).cases.select("case", "planned").rows() == [("a", 3), ("b", 2)]
    assert "the plan was lost; the cases are those that have a trial" in manifest.warnings


def test_a_damaged_plan_is_named(store):
    run_id, path = started(store, trial_row("a", 1), plan=plan_of("a"))
    (path.parent / "plan.json").write_text('{"cases": [{"planned": 3}]}')
    with pytest.raises(CorruptRun, match=r"plan\.json is no plan of a run"):
        store.recover(run_id)


def test_trials_of_cases_that_were_not_planned_are_kept_and_told(store):
    run_id, _ = started(store, trial_row("a", 1), trial_row("stray", 1), plan=plan_of("a", k=1))
    manifest = store.recover(run_id)
    assert keys(store.load(run_id)) == [("a", 1, 1), ("stray", 1, 1)]
    assert manifest.counts["passed"] == 1
    assert manifest.warnings == ["trials of cases that were not planned (1, the first stray)"]


def test_a_recovered_run_ended_with_its_last_trial(store):
    run_id, _ = started(
        store,
        trial_row("a", 1, start=1_764_484_380.0, duration=20.5),
        trial_row("a", 2, start=1_764_484_390.0, duration=1.0),
        plan=plan_of("a", k=2),
    )
    manifest = store.recover(run_id)
    assert manifest.finished == "2025-11-30T06:33:20.500Z"
    assert manifest.status is RunStatus.COMPLETED
    assert store.recover(run_id) == manifest


@pytest.mark.parametrize(
    ("attempts", "deciding"),
    [
        (["passed"], 1),
        (["failed", "passed"], 1),
        (["setup_error", "failed", "passed"], 2),
        (["skipped", "passed"], 2),
        (["setup_error", "skipped", "xfailed"], 2),
        (["setup_error", "network_error"], 2),
        (["setup_error", None], 2),
        ([None, "network_error"], 2),
        (["network_error", "crashed", "passed"], 2),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_the_attempt_that_decides(store, attempts, deciding, order):
    rows_ = [trial_row("a", 1, label, attempt=n) for n, label in enumerate(attempts, 1)]
    run_id, _ = started(store, *rows_[::order], plan=plan_of("a", k=1))
    store.recover(run_id)
    trials = store.load(run_id).trials
    assert trials.filter(trials["deciding"])["attempt"].to_list() == [deciding]


def test_counts_are_by_the_deciding_attempts(store):
    manifest = record(
        store,
        {
            "a": ["passed", "failed", "crashed"],
            "b": ["network_error", "skipped", None],
            "c": ["passed"],
        },
        k=3,
    )
    assert manifest.counts == {
        "planned": 9,
        "passed": 2,
        "failed": 2,
        "undecided": 1,
        "excluded": 1,
        "missing": 3,
        "scheduled": 8,
        "healthy": 4,
    }


def test_a_cancelled_run_goes_on_where_it_stopped(store):
    first = record(
        store, {"a": ["passed", "network_error"], "b": ["failed"]}, k=2, status=RunStatus.CANCELLED
    )
    before = store.load(first.id)
    writer = store.reopen(first.id)
    assert store.manifest(first.id).status is RunStatus.RUNNING
    assert store.load(first.id).trials.equals(before.trials)
    assert store.load(first.id).cases.equals(before.cases)
    assert writer.append(trial_row("a", 1, "failed")) is False
    writer.append(trial_row("a", 2, "failed", attempt=2))
    writer.append(trial_row("b", 2, "passed"))
    manifest = writer.seal(RunStatus.COMPLETED)
    assert manifest.counts["failed"] == 2
    assert keys(store.load(first.id)) == [("a", 1, 1), ("a", 2, 1), ("b", 1, 1), ("a", 2, 2), ("b", 2, 1)]


def test_checks_survive_a_reopening(store):
    writer = store.begin(Manifest(id=new_run_id()))
    writer.write_plan(plan_of("a", k=1))
    writer.append(trial_row("a", 1), [CheckRow(name="c", required=True, ok=False, why="w", site="t.py:1")])
    before = store.load(writer.seal(RunStatus.CANCELLED).id)
    again = store.reopen(writer.run_id).seal(RunStatus.CANCELLED)
    assert store.load(again.id).checks.equals(before.checks)


def test_a_torn_line_does_not_spoil_what_is_appended_after_it(store):
    run_id, path = started(store, trial_row("a", 1), trial_row("a", 2), plan=plan_of("a", k=3))
    path.write_bytes(path.read_bytes()[:-9])
    writer = store.reopen(run_id)
    writer.append(trial_row("a", 3))
    manifest = writer.seal(RunStatus.CANCELLED)
    assert keys(store.load(run_id)) == [("a", 1, 1), ("a", 3, 1)]
    assert manifest.dropped_lines == 1


@pytest.mark.parametrize("keep", [("journal", "plan"), ("journal",), ()])
def test_a_process_killed_while_it_tidied_leaves_a_sealed_run(store, keep):
    run_id, path = started(store, trial_row("a", 1), plan=plan_of("a", k=1))
    contents = {name: (path.parent / name).read_bytes() for name in ("journal.jsonl", "plan.json")}
    sealed = store.recover(run_id)
    for name in keep:
        suffix = "jsonl" if name == "journal" else "json"
        (path.parent / f"{name}.{suffix}").write_bytes(contents[f"{name}.{suffix}"])
    assert store.load(run_id).trials.height == 1
    assert store.recover(run_id) == sealed
    assert not path.exists()


def test_a_process_killed_between_tables_and_manifest_is_recovered(store):
    run_id, path = started(store, trial_row("a", 1), plan=plan_of("a", k=1))
    files = {p: p.read_bytes() for p in path.parent.iterdir()}
    sealed = store.recover(run_id)
    for file, content in files.items():
        file.write_bytes(content)
    assert store.manifest(run_id).status is RunStatus.RUNNING
    again = store.recover(run_id)
    assert again.counts == sealed.counts
    assert store.load(run_id).trials.height == 1


# Each line on stdin is a run to write, in a process of its own: forked, so that imports are paid once.
_WRITERS = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from store_builders import plan_of, trial_row
from pytest_crashlab.records.check import CheckRow
from pytest_crashlab.store.runs import Store
from pytest_crashlab.store.schema import Manifest
from pytest_crashlab.records.run import RunStatus

def tell(what):
    os.write(1, f"{what}\\n".encode())  # in one piece, or not at all

def write(run_id, seals):
    if seals:
        import polars
    writer = Store.open(Path(sys.argv[1])).begin(Manifest(id=run_id))
    writer.write_plan(plan_of("case", k=400))
    tell(os.getpid())
    for trial in range(1, 401):
        row = trial_row("case", trial, message="m" * (trial % 97))
        writer.append(row, [CheckRow(name="c", required=True, ok=True)])
        tell(trial)
    writer.seal(RunStatus.COMPLETED)

for line in sys.stdin:
    run_id, seals = line.split()
    child = os.fork()
    if not child:
        write(run_id, seals == "seals")
        signal.pause()
    os.waitpid(child, 0)
    tell("ended")
"""


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL")
def test_nothing_is_lost_and_nothing_twice_when_the_writer_is_killed(store):
    generator = random.Random(20_261_130)
    found = set()
    with subprocess.Popen(
        [sys.executable, "-c", _WRITERS, str(store.root), str(Path(__file__).parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as writers:
        for number in range(40):
            run_id = f"20261130T{number:06d}Z-kkkkkk"
            seals = number % 7 == 0
            stop_after = 400 if seals else generator.randint(1, 399)
            writers.stdin.write(f"{run_id} {'seals' if seals else 'dies'}\n")
            writers.stdin.flush()
            pid = int(writers.stdout.readline())
            told = 0
            while told < stop_after:
                told = int(writers.stdout.readline())
            time.sleep(generator.uniform(0, 0.2 if seals else 0.001))
            os.kill(pid, signal.SIGKILL)
            while (line := writers.stdout.readline()) != "ended\n":
                told = int(line)
            found.add(_recovered(store, run_id, told))
        writers.stdin.close()
    assert found == {RunStatus.COMPLETED, RunStatus.CANCELLED}
    assert len(store.manifests()) == 40
    assert store.problems == []


def _recovered(store, run_id, told):
    """Recover a killed run of which ``told`` trials are known to be written; its status."""
    manifest = store.recover(run_id)
    run = store.load(run_id)
    trials = run.trials["trial"].to_list()
    # a trial may have been written in the moment before it would have been told
    assert trials in (list(range(1, told + 1)), list(range(1, told + 2)))
    assert run.trials["message"].to_list() == ["m" * (t % 97) for t in trials]
    assert run.checks["trial"].to_list() == trials
    assert run.cases["planned"].to_list() == [400]
    assert manifest.status is (RunStatus.COMPLETED if len(trials) == 400 else RunStatus.CANCELLED)
    # the kill may tear the line that was being written: never one that was told
    assert manifest.dropped_lines in (0, 1)
    assert not store.paths.run(run_id).journal.exists()
    return manifest.status


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file that is always full")
def test_a_full_disk_is_said_so():
    writer = JournalWriter(Path("/dev/full"))
    with pytest.raises(StoreError, match=r"/dev/full cannot be written \(No space left"):
        writer.append(encode(trial_row("a", 1)))


@pytest.mark.skipif(sys.platform == "win32", reason="needs file size limits")
def test_half_a_line_on_a_full_disk_is_taken_back(store):
    import resource

    run_id, path = started(store, trial_row("a", 1), plan=plan_of("a", k=3))
    size = path.stat().st_size
    writer = store.reopen(run_id)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, limits[1]))
    try:
        with pytest.raises(StoreError, match="cannot be written"):
            writer.append(trial_row("a", 2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.stat().st_size == size
    assert writer.append(trial_row("a", 3)) is True
    writer.seal(RunStatus.CANCELLED)
    assert keys(store.load(run_id)) == [("a", 1, 1), ("a", 3, 1)]


def test_a_run_cannot_be_sealed_as_running(store):
    with store.begin(Manifest(id=new_run_id())) as writer, pytest.raises(ValueError, match="completed"):
        writer.seal(RunStatus.RUNNING)


def test_fields_set_while_it_runs_are_kept_by_the_seal(store):
    writer = store.begin(Manifest(id=new_run_id(), warnings=["early"]))
    writer.update(seed=99, baseline={"ref": "main"})
    store.set_fields(writer.run_id, prompt="p2")
    manifest = writer.seal(RunStatus.COMPLETED, policy="strict", warnings=["early", "late"])
    assert (manifest.seed, manifest.prompt, manifest.policy) == (99, "p2", "strict")
    assert manifest.warnings == ["early", "late"]


def test_a_store_is_opened_by_a_path_as_text_too(tmp_path):
    assert Store.open(str(tmp_path / "s"), create=True).root == tmp_path / "s"
