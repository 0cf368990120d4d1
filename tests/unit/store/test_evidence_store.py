"""Evidence: written by processes that may be killed, found by attempt, read alone, trusted with nothing."""

from __future__ import annotations

import json
import pickle
import signal
import sqlite3
import subprocess
import sys
import textwrap
import zipfile
import zlib
from contextlib import closing

import pytest

from pytest_crashlab.errors import StoreError
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store import Manifest, Plan
from pytest_crashlab.store.evidence import read_evidence, read_exported_evidence
from pytest_crashlab.store.evidence_writer import EvidenceWriter, log_path
from tests.stories import START, record, row

RUN = "20261130T063300Z-aaaaaa"


@pytest.fixture
def running(store):
    """A run of one case with three trials that has not ended."""
    record(store, {"a": "PFP"}, run_id=RUN, status=RunStatus.RUNNING)
    return store.paths.run(RUN)


def write(run, worker, *documents):
    """``(case, trial, start, document)`` each."""
    writer = EvidenceWriter(run.folder, worker)
    for document in documents:
        writer.write(*document)
    writer.close()


def test_what_a_killed_process_wrote_is_read(store, running):
    code = f"""
        import os
        from pathlib import Path
        from pytest_crashlab.store.evidence_writer import EvidenceWriter
        writer = EvidenceWriter(Path({str(running.folder)!r}), "gw0")
        for trial in (1, 2):
            writer.write("a", trial, {START} + trial, {{"output": f"said {{trial}}"}})
        os.kill(os.getpid(), 9)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert read_evidence(running, "a", 2, 1, start=START + 2) == {"output": "said 2"}
    store.recover(RUN)
    assert [read_evidence(running, "a", trial, 1) for trial in (1, 2, 3)] == [
        {"output": "said 1"},
        {"output": "said 2"},
        None,
    ]
    assert sorted(p.name for p in running.folder.glob("evidence*")) == ["evidence.db"]


def test_attempts_of_a_resumed_run_each_keep_their_own(store, running):
    """Both attempts of trial 2 were written under the same names: their starts tell them apart."""
    write(running, "main", ("a", 2, START + 2, {"output": "first"}))
    store.recover(RUN)
    with store.reopen(RUN) as writer:
        writer.append(row("a", 2, "P", attempt=2, start=START + 60.000001))
        write(running, "main", ("a", 2, START + 60.000001, {"output": "second"}))
        writer.seal(RunStatus.COMPLETED)
    assert read_evidence(running, "a", 2, 1) == {"output": "first"}
    assert read_evidence(running, "a", 2, 2) == {"output": "second"}


def test_several_processes_and_any_text(store):
    """Case ids and texts that neither SQLite nor UTF-8 takes as they are, from three processes."""
    cases = {"plain": "PP", "t[\ud800]": "P", "naïve '; DROP TABLE log": "P"}
    record(store, cases, run_id=RUN, status=RunStatus.RUNNING)
    run = store.paths.run(RUN)
    for number, case in enumerate(cases):
        write(run, f"gw{number}", (case, 1, START + 1, {"output": f"{case}\x00\ud800"}))
    assert store.recover(RUN).warnings == []
    for case in cases:
        assert read_evidence(run, case, 1, 1) == {"output": f"{case}\x00\ud800"}
    assert read_evidence(run, "plain", 2, 1) is None


def test_evidence_of_a_lost_worker_belongs_to_the_row_that_says_so(store):
    lost = row("a", 1, "E", outcome="worker_lost", start=START + 9)
    record(store, {"a": "."}, run_id=RUN, rows=[lost], status=RunStatus.RUNNING)
    run = store.paths.run(RUN)
    write(run, "gw0", ("a", 1, START + 1, {"output": "before it died"}), ("b", 1, START, {"output": "?"}))
    assert store.recover(RUN).warnings == ["evidence of 1 attempts without a row was dropped"]
    assert read_evidence(run, "a", 1, 1) == {"output": "before it died"}


def test_documents_wait_for_the_runs_folder(store, tmp_path):
    """A worker whose marker asked for trials is faster than its controller."""
    run = store.paths.run(RUN)
    writer = EvidenceWriter(run.folder, "gw0")
    writer.write("a", 1, START + 1, {"output": 1})
    assert writer.waits_for_folder
    with store.begin(Manifest(id=RUN)) as begun:
        begun.write_plan(Plan(cases=[]))
        assert not writer.waits_for_folder
        writer.write("a", 2, START + 2, {"output": 2})
        assert read_evidence(run, "a", 1, 1, start=START + 1) == {"output": 1}
        writer.close()
    with pytest.raises(StoreError, match="cannot be written"):
        write(store.paths.run("never-begun"), "gw0", ("a", 1, START, {}))


def test_one_trial_is_read_without_the_others(store):
    """The pages of 399 other documents are damaged, and this one is read all the same."""
    record(store, {"a": "P" * 400}, run_id=RUN, status=RunStatus.RUNNING)
    run = store.paths.run(RUN)
    texts = [zlib.compress(str(i).encode() * 2000).hex() * 40 for i in range(401)]
    write(run, "main", *(("a", i, START + i, {"output": texts[i]}) for i in range(1, 401)))
    store.recover(RUN)
    # read through a file whose other documents have been emptied on disk
    with closing(sqlite3.connect(run.evidence)) as database, database:
        database.execute("UPDATE evidence SET document = x'00' WHERE trial <> 200")
    assert read_evidence(run, "a", 200, 1) == {"output": texts[200]}
    with pytest.raises(StoreError, match="cannot be read"):
        read_evidence(run, "a", 199, 1)


class Bomb:
    """Would leave a file behind if anything ever unpickled it."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def bomb_files(tmp_path):
    bomb = pickle.dumps(Bomb(tmp_path / "executed"))
    view = tmp_path / "view.db"
    with closing(sqlite3.connect(view)) as database, database:
        database.execute("CREATE VIEW evidence AS SELECT 'a' case_id, 1 trial, 1 attempt, x'00' document")
    huge = tmp_path / "huge.db"
    with closing(sqlite3.connect(huge)) as database, database:
        database.execute("CREATE TABLE evidence (case_id, trial, attempt, document)")
        packer = zlib.compressobj(1)
        zeros = b"".join([*(packer.compress(bytes(2**20)) for _ in range(65)), packer.flush()])
        database.execute("INSERT INTO evidence VALUES ('a', 1, 1, ?)", (zeros,))
    strange = {}
    for name, text in (
        ("NaN", '{"output": NaN}'),
        ("deep", '{"a":' * 150 + "1" + "}" * 150),
        ("a list", "[]"),
    ):
        path = tmp_path / f"{name}.db"
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("CREATE TABLE evidence (case_id, trial, attempt, document)")
            database.execute("INSERT INTO evidence VALUES ('a', 1, 1, ?)", (zlib.compress(text.encode()),))
        strange[name] = path.read_bytes()
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as database, database:
        database.execute("CREATE TABLE evidence (case_id, trial, attempt, document)")
        database.execute("INSERT INTO evidence VALUES ('a', 1, 1, ?)", (zlib.compress(bomb),))
    return {
        "garbage": b"\x00\xff" * 5000,
        "empty": b"",
        "pickle": bomb,
        "pickle inside": other.read_bytes(),
        "a view": view.read_bytes(),
        "a zip bomb": huge.read_bytes(),
        "cut off": other.read_bytes()[:4096],
        **strange,
    }


def test_poisoned_evidence_is_one_sentence_and_runs_nothing(store, tmp_path):
    record(store, {"a": "P"}, run_id=RUN)
    run = store.paths.run(RUN)
    for name, content in bomb_files(tmp_path).items():
        run.evidence.write_bytes(content)
        with pytest.raises(StoreError, match=r"evidence in .* cannot be read \(.*\); the run's numbers"):
            read_evidence(run, "a", 1, 1)
        exported = tmp_path / "it.crashrun"
        with zipfile.ZipFile(exported, "w") as archive:
            archive.writestr("evidence.db", content)
        with pytest.raises(StoreError, match=r"evidence in .*it\.crashrun cannot be read"):
            read_exported_evidence(exported, "a", 1, 1)
        assert not (tmp_path / "executed").exists(), name


def test_a_run_is_sealed_beside_damaged_evidence(store, running):
    """What cannot be merged stays where it is and is named; the tables are those of the journal."""
    write(running, "gw0", ("a", 1, START + 1, {"output": "kept"}))
    log_path(running.folder, "gw1").write_bytes(b"\x00\xff" * 5000)
    manifest = store.recover(RUN)
    [warning] = manifest.warnings
    assert warning.startswith("the evidence in evidence-gw1.db could not be kept (")
    assert manifest.counts["passed"] == 2
    assert log_path(running.folder, "gw1").exists()
    assert read_evidence(running, "a", 1, 1) == {"output": "kept"}


def test_documents_are_readable_without_the_package(store, running):
    """The format is what docs/store-format.md says: a table, zlib, JSON."""
    write(running, "main", ("a", 1, START + 1, {"output": ["x", None]}))
    store.recover(RUN)
    with closing(sqlite3.connect(running.evidence)) as database:
        [[case, trial, attempt, blob]] = database.execute("SELECT * FROM evidence").fetchall()
    assert (case, trial, attempt) == ("a", 1, 1)
    assert json.loads(zlib.decompress(blob)) == {"output": ["x", None]}
