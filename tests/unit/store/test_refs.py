from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from store_builders import record

from pytest_crashlab.errors import PromotionConflict, StoreError
from pytest_crashlab.store.lock import FileLock

A, B, C = (f"20261130T06330{n}Z-aaaaaa" for n in range(3))


def test_a_name_is_a_file_with_a_run_id(store):
    store.refs.promote("release/2.3.0", A, expected=None)
    store.refs.promote("main", B, expected=None)
    assert (store.root / "refs/release/2.3.0").read_text() == f"{A}\n"
    assert store.refs.read("release/2.3.0") == A
    assert store.refs.all() == {"main": B, "release/2.3.0": A}
    assert store.refs.read("other") is None
    assert store.refs.read("release") is None
    assert store.refs.read("main/deeper") is None


def test_the_second_of_two_promotions_learns_of_the_first(store):
    store.refs.promote("main", A, expected=None)
    store.refs.promote("main", B, expected=A)
    with pytest.raises(PromotionConflict) as caught:
        store.refs.promote("main", C, expected=A)
    assert B in str(caught.value)
    assert C in str(caught.value)
    with pytest.raises(PromotionConflict):
        store.refs.promote("main", C, expected=None)
    assert store.refs.read("main") == B


@pytest.mark.parametrize(
    "name", ["", "/main", "a//b", "../x", "a/../b", ".hidden", "a/.b", "x" * 201, "a\nb", "a\x00b", "\ud800"]
)
def test_what_cannot_be_a_name_is_refused(store, name):
    with pytest.raises(StoreError, match="cannot be a baseline's name"):
        store.refs.promote(name, A, expected=None)
    with pytest.raises(StoreError, match="cannot be a baseline's name"):
        store.refs.read(name)
    assert store.refs.all() == {}


@pytest.mark.parametrize(
    "name", ["fix#12", "a b", "ü/ß", "user@host", 'a"<>|*?:b', "con%20", "a\\b", "UPPER"]
)
def test_any_name_of_a_branch_is_a_portable_file(store, name):
    store.refs.promote(name, A, expected=None)
    assert store.refs.all() == {name: A}
    files = [p for p in (store.root / "refs").rglob("*") if p.is_file()]
    assert len(files) == 1
    assert not set('"<>|*?:\\ ') & set(files[0].name)


def test_a_name_below_another_is_refused_as_in_git(store):
    store.refs.promote("release", A, expected=None)
    with pytest.raises(StoreError, match="'release/2' cannot be a name beside 'release'"):
        store.refs.promote("release/2", B, expected=None)
    store.refs.promote("v/2", A, expected=None)
    with pytest.raises(StoreError, match="'v' cannot be a name beside 'v/2'"):
        store.refs.promote("v", B, expected=None)
    assert store.refs.all() == {"release": A, "v/2": A}


def test_a_folder_that_is_left_empty_is_no_obstacle(store):
    (store.root / "refs" / "release").mkdir()
    store.refs.promote("release", A, expected=None)
    assert store.refs.read("release") == A


@pytest.mark.parametrize("content", [b"", b"two words\n", b"\xff\xfe", b"../../etc\n"])
def test_a_file_that_holds_no_run_id_is_named(store, content):
    (store.root / "refs" / "main").write_bytes(content)
    with pytest.raises(StoreError, match=r"refs/main (holds no run id|cannot be read)"):
        store.refs.read("main")
    assert store.refs.all() == {}


def test_history_is_newest_first_and_passes_over_what_never_happened(store):
    for new, old in ((A, None), (B, A), (A, B), (C, A)):
        store.refs.promote("main", new, expected=old, note=f"to {new}")
    store.refs.promote("other", B, expected=None)
    # the ledger's entry of a process that was killed before it changed the name
    store.ledger.append("promotion", name="main", run=B, previous=C)
    assert [e["run"] for e in store.refs.history("main")] == [C, A, B, A]
    assert store.refs.history("main")[0]["note"] == f"to {C}"
    assert store.refs.history("none") == []


_PROMOTER = """
import sys, time
from pathlib import Path
from pytest_crashlab.errors import PromotionConflict
from pytest_crashlab.store.runs import Store
store = Store.open(Path(sys.argv[1]))
won = []
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    expected = store.refs.read("main")
    time.sleep(0.001)
    new = f"20261130T{number:06d}Z-{sys.argv[2] * 6}"
    try:
        store.refs.promote("main", new, expected=expected)
        won.append(f"{expected} {new}")
    except PromotionConflict as conflict:
        assert new in str(conflict), conflict
print("\\n".join(won))
"""


def test_of_parallel_promotions_one_wins_each_time(store):
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _PROMOTER, str(store.root), letter, "40"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for letter in "abcd"
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    steps = []
    for process in processes:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        steps += [tuple(line.split()) for line in out.splitlines() if line]  # one that won none
    # every success replaced the run that it expected: together they are one chain
    following = dict(steps)
    assert len(following) == len(steps)
    chain = ["None"]
    while chain[-1] in following:
        chain.append(following[chain[-1]])
    assert len(chain) == len(steps) + 1
    assert store.refs.read("main") == chain[-1]
    assert [e["run"] for e in store.refs.history("main")] == chain[:0:-1]
    assert store.ledger.damaged() == []


_HOLDER = """
import sys, time
from pathlib import Path
from pytest_crashlab.store.lock import FileLock
lock = FileLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL")
def test_a_killed_holder_gives_its_lock_back(tmp_path):
    path = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    lock = FileLock(path)
    assert lock.try_acquire() is False
    with pytest.raises(StoreError, match=r"has held .* for 0\.05 seconds"):
        lock.acquire(timeout=0.05)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    began = time.monotonic()
    lock.acquire(timeout=10)
    assert time.monotonic() - began < 5
    lock.release()


def test_a_lock_whose_file_is_removed_is_one_lock_still(tmp_path):
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.try_acquire()
    assert not second.try_acquire()
    first.release(remove=True)
    assert not (tmp_path / "lock").exists()
    assert second.try_acquire()
    assert not first.try_acquire()
    second.release()
    first.release()


def test_a_lock_that_cannot_be_opened_is_said_so(tmp_path):
    (tmp_path / "lock").mkdir()
    with pytest.raises(StoreError, match="cannot be opened"):
        FileLock(tmp_path / "lock").try_acquire()


def test_the_ledger_keeps_entries_in_order(store):
    first = store.ledger.append("look", run=A, split="holdout")
    store.ledger.append("deletion", run=A)
    assert store.ledger.read("look") == [first]
    assert [e["kind"] for e in store.ledger.read()] == ["look", "deletion"]
    assert first["at"].endswith("Z")


def test_a_line_that_a_killed_process_left_spoils_no_other(store):
    store.ledger.append("look", run=A)
    with store.paths.ledger.open("ab") as file:
        file.write(b'{"kind": "look", "ru')
    store.ledger.append("look", run=B)
    assert [e["run"] for e in store.ledger.read()] == [A, B]
    assert store.ledger.damaged() == [2]
    lines = store.paths.ledger.read_text().splitlines()
    assert json.loads(lines[2])["run"] == B


def test_an_empty_ledger(store):
    assert store.ledger.read() == []
    assert store.ledger.damaged() == []


_CHANGER = """
import sys
from pathlib import Path
from pytest_crashlab.store.runs import Store
store = Store.open(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    fields = store.manifest(sys.argv[2]).environment
    store.set_fields(sys.argv[2], **{sys.argv[3]: str(number)})
"""


def test_processes_that_change_one_manifest_do_not_undo_each_other(store):
    run = record(store, {"a": ["passed"]})
    names = ["name", "prompt", "release"]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _CHANGER, str(store.root), run.id, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=120)
        assert process.returncode == 0
    manifest = store.manifest(run.id)
    assert [getattr(manifest, name) for name in names] == ["19", "19", "19"]
