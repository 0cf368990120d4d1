"""What is kept of a trial besides its row: who writes it, what is in it, how much of it, and no secrets."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crashlab.store.evidence import read_evidence

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite


@pytest.fixture
def suite(served: Suite) -> Suite:
    """How many workers there are makes no difference here."""
    return served


def evidence(suite: Suite, case: str, trial: int = 1, attempt: int = 1) -> dict[str, Any] | None:
    """One attempt's evidence in the newest run."""
    return read_evidence(suite.store.paths.run(suite.runs()[0].id), case, trial, attempt)


def documents(suite: Suite) -> list[bytes]:
    """Every document of the newest run, unpacked."""
    path = suite.store.paths.run(suite.runs()[0].id).evidence
    with closing(sqlite3.connect(path)) as database:
        return [zlib.decompress(blob) for [blob] in database.execute("SELECT document FROM evidence")]


STORY = """
import logging, pathlib, sys
import pytest

@pytest.mark.parametrize("order", [42])
def test_refund(trial, order):
    with trial.run(horizon=20, unit="turns") as target:
        print("asking the shop")
        print("slow", file=sys.stderr)
        logging.getLogger("agent").warning("a retry")
        target.output = {"state": "paid", "steps": ("look", "ask"), "cost": float("nan")}
        target.t = 2
    trial.attach("orders.json", {"42": {"total": 30}})
    trial.attach("screen", b"\\x89PNG\\r\\n\\x1a\\n\\x00\\xff")
    trial.attach("this file", pathlib.Path(__file__))
    trial.attach("bytes that are text", "naïve".encode())
    trial.attach("page", "<p>", media_type="text/html")
    trial.check("amount", 20 == 30, expected=30, observed={20}, why="read from the order row")
    trial.check("other", True, expected=1, observed=1)

def test_raises():
    raise ValueError("it broke")

@pytest.fixture
def broken():
    yield
    raise OSError("no way back")

def test_ends_badly(broken):
    pass

def test_quiet():
    pass

@pytest.mark.parametrize("i", range(3))
def test_quiet_too(i, trial):
    trial.check("fine", True, expected=i, observed=i)

def test_left_out():
    pytest.skip("not today")
"""


def test_what_is_kept_of_a_trial(suite: Suite) -> None:
    suite.files(test_it=STORY)
    suite.run("--trials=2")
    found = evidence(suite, "test_it.py::test_refund[42]", 2)
    assert found is not None
    captured = {part["name"]: part["text"] for part in found.pop("captured")}
    assert captured["Captured stdout call"] == "asking the shop\n"
    assert captured["Captured stderr call"] == "slow\n"
    assert captured["Captured log call"].endswith("a retry")
    attached = {entry.pop("name"): entry for entry in found.pop("attachments")}
    source = attached.pop("this file")
    assert source["data"] == (suite.root / "test_it.py").read_text("utf-8")
    assert attached == {
        "orders.json": {
            "kind": "json",
            "media_type": "application/json",
            "size": 21,
            "data": {"42": {"total": 30}},
        },
        "screen": {"kind": "binary", "media_type": "image/png", "size": 10, "data": "iVBORw0KGgoA/w=="},
        "bytes that are text": {"kind": "text", "media_type": "text/plain", "size": 5, "data": "naïve"},
        "page": {"kind": "text", "media_type": "text/html", "size": 3, "data": "<p>"},
    }
    assert found == {
        "format": 1,
        "why": "check 'amount': read from the order row",
        "input": {"order": 42},
        "output": {"state": "paid", "steps": ["look", "ask"], "cost": "nan"},
        "checks": {"amount": {"expected": 30, "observed": [20]}},
    }
    raised = evidence(suite, "test_it.py::test_raises")
    assert raised is not None
    [exception] = raised["exceptions"]
    assert (exception["phase"], exception["type"], exception["message"]) == ("call", "ValueError", "it broke")
    assert '>       raise ValueError("it broke")' in exception["traceback"]
    torn = evidence(suite, "test_it.py::test_ends_badly")
    assert torn is not None
    assert [(e["phase"], e["message"]) for e in torn["exceptions"]] == [("teardown", "no way back")]
    assert len(documents(suite)) == 6  # two trials each: nothing of those that passed in silence


def test_a_run_of_passing_trials_has_no_file_for_it(single: Suite) -> None:
    single.files(test_it="def test_it(): pass")
    single.run("--trials=2")
    assert [p.name for p in single.store.paths.run(single.runs()[0].id).folder.glob("evidence*")] == []


def test_a_marker_is_enough(suite: Suite) -> None:
    """The run begins with a worker's first report, which its evidence is faster than."""
    suite.files(test_it="import pytest\n@pytest.mark.trials(3)\ndef test_it(): print('seen')")
    suite.run()
    assert len(suite.last().trials) == 3
    for trial in (1, 2, 3):
        found = evidence(suite, "test_it.py::test_it", trial)
        assert found == {"format": 1, "captured": [{"name": "Captured stdout call", "text": "seen\n"}]}


def test_each_attempt_of_a_resumed_run_has_its_own(single: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    single.files(
        test_it="""
        import os
        def test_it():
            if os.environ.get("DOWN"):
                raise ConnectionError("away")
            print("there again")
        """
    )
    monkeypatch.setenv("DOWN", "1")
    single.run("--trials=2")
    monkeypatch.delenv("DOWN")
    single.run("--crashlab-resume=latest")
    first, second = (evidence(single, "test_it.py::test_it", 2, attempt) for attempt in (1, 2))
    assert first is not None
    assert first["exceptions"][0]["message"] == "away"
    assert second == {"format": 1, "captured": [{"name": "Captured stdout call", "text": "there again\n"}]}


def test_a_killed_session_keeps_what_was_written(single: Suite) -> None:
    single.files(
        test_it="""
        import os
        def test_it(trial):
            trial.attach("number", trial.number)
            if trial.number == 3:
                os.kill(os.getpid(), 9)
        """
    )
    single.run("--trials=3", subprocess=True)
    single.store.recover(single.runs()[0].id)
    for trial, kept in ((1, 1), (2, 2), (3, None)):
        found = evidence(single, "test_it.py::test_it", trial)
        assert (None if found is None else found["attachments"][0]["data"]) == kept


def test_a_disk_that_takes_nothing_is_told_and_costs_no_trial(single: Suite) -> None:
    single.files(
        test_it="""
        import pathlib
        def test_it():
            [run] = (pathlib.Path(__file__).parent / ".crashlab" / "runs").iterdir()
            (run / "evidence-main.db").mkdir(exist_ok=True)
            print("lost")
        """
    )
    assert single.run("--trials=2").ret == 0
    trials = single.last().trials
    assert trials["outcome"].to_list() == ["passed", "passed"]
    for error in trials["record_error"]:
        assert error.startswith("evidence_error: ")
        assert "cannot be written" in error


BAD = {
    "('', 1)": "got the name ''",
    "('two\\nlines', 1)": "one printable line",
    "('x' * 101, 1)": "at most 100 characters",
    "(7, 1)": "got the name 7",
    "('once', 1), trial.attach('once', 2)": "'once' a second time",
    "('what', object())": "got object; give it text",
    "('what', {1: 2})": "got dict; give it text",
    "('what', {'a': {2}})": "got dict; give it text",
    "('file', pathlib.Path('gone'))": "gone cannot be read",
    "('file', pathlib.Path('.'))": "cannot be read|no ordinary file",
    "('file', pathlib.Path('pipe'))": "pipe is no ordinary file",
}


def test_what_cannot_be_attached_is_the_tests_error(single: Suite) -> None:
    """One sentence in the row, whether or not a run is recorded; the trial is no failure of the target."""
    if hasattr(os, "mkfifo"):
        os.mkfifo(single.root / "pipe")
    tests = [
        f"def test_{i}(trial, monkeypatch):\n    monkeypatch.chdir(HERE)\n    trial.attach{call}\n"
        for i, call in enumerate(BAD)
    ]
    single.files(test_it="import pathlib\nHERE = pathlib.Path(__file__).parent\n" + "\n".join(tests))
    single.run("--trials=1")
    rows = single.last().trials
    for i, sentence in enumerate(BAD.values()):
        [row] = rows.filter(rows["case"] == f"test_it.py::test_{i}").to_dicts()
        assert row["outcome"] == "misdeclared"
        assert any(part in row["message"] for part in sentence.split("|")), row["message"]
    plain = single.run("--trials=off")
    plain.stdout.fnmatch_lines(["*got the name '';*"])


def test_what_is_too_large_is_cut_and_says_so(single: Suite) -> None:
    single.pytester.makeini("[pytest]\ncrashlab_attachment_limit = 1k")
    single.files(
        test_it="""
        import pathlib, sys
        def test_it(trial, tmp_path):
            (tmp_path / "log").write_text("l" * 50_000)
            (tmp_path / "zip").write_bytes(bytes(50_000))
            trial.attach("fits", "x" * 1024)
            trial.attach("text", "x" * 5_000)
            trial.attach("list", [1] * 5_000)
            trial.attach("file", tmp_path / "log")
            trial.attach("binary file", tmp_path / "zip")
            trial.attach("binary", bytes(1025))
            for i in range(10):
                trial.attach(f"more {i}", "m" * 1000)
            print("begin" + "o" * 5_000 + "end")
            with trial.run() as target:
                target.output = list(range(60_000)) + ["never"]
        """
    )
    single.run("--trials=1")
    found = evidence(single, "test_it.py::test_it")
    assert found is not None
    kept = {entry["name"]: entry for entry in found["attachments"]}
    assert kept["fits"]["data"] == "x" * 1024
    assert "note" not in kept["fits"]
    for name, size in (("text", 5000), ("list", 15_000), ("file", 50_000)):
        assert len(kept[name]["data"]) < 1100
        assert kept[name]["note"] == f"cut: 1,024 of {size:,} characters are kept"
        assert f"[... cut: 1,024 of {size:,} characters are kept ...]" in kept[name]["data"]
    for name, size in (("binary", 1025), ("binary file", 50_000)):
        assert "data" not in kept[name]
        note = f"not kept: {size:,} bytes are more than crashlab_attachment_limit, 1,024"
        assert kept[name]["note"] == note
    assert [("data" in kept[f"more {i}"]) for i in range(10)] == [True] * 6 + [False] * 4
    assert kept["more 9"]["note"] == "not kept: the attachments of this trial have reached 10,240"
    [out] = [part["text"] for part in found["captured"]]
    assert out.startswith("begino")
    assert out.endswith("end\n")
    assert "characters are kept ...]" in out
    assert len(out) < 1100
    assert found["output"][-1] == "[... cut: 50,000 of 60,001 are kept ...]"


@pytest.mark.parametrize("value", ["0", "big", "-1k", "65M"])
def test_a_limit_that_is_none_is_refused(single: Suite, value: str) -> None:
    single.pytester.makeini(f"[pytest]\ncrashlab_attachment_limit = {value}")
    single.files(test_it="def test_it(): pass")
    result = single.run("--trials=1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*crashlab_attachment_limit={value} is no size from 1 to 64M*"])


LOCALS = "def test_it():\n    seen = 'a local'\n    raise ValueError(len(seen))"


def test_values_of_locals_are_kept_only_when_asked_for(single: Suite) -> None:
    """Whatever --showlocals and --tb make of the terminal."""
    single.files(test_it=LOCALS)
    for arguments, ini, kept in (
        ((), "", False),
        (("--showlocals",), "", False),
        (("--tb=no",), "", False),
        (("--tb=no",), "crashlab_evidence_locals = true", True),
    ):
        single.pytester.makeini(f"[pytest]\n{ini}")
        single.run("--trials=1", *arguments)
        found = evidence(single, "test_it.py::test_it")
        assert found is not None
        text = found["exceptions"][0]["traceback"]
        assert "raise ValueError(len(seen))" in text
        assert ("seen       = 'a local'" in text) is kept


def test_no_secret_reaches_the_store(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real-looking keys in arguments, output, logs, tracebacks, outcomes, attachments, the command."""
    mixed = "a1B2c3D4e5F6g7H8i9J0"
    keys = {
        "parameter": "sk-proj-" + mixed + "p" * 20,
        "printed": "ghp_" + mixed + "q" * 16,
        "logged": "AKIA" + "IOSFODNN7EXAMPLE",
        "raised": "sk-ant-api03-" + mixed + "r" * 30,
        "text": "xoxb-123456789012-" + mixed,
        "json": "AIza" + mixed + "s" * 15,
        "bytes": "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
        "file": "-----BEGIN PRIVATE KEY-----\nMIIEow" + mixed + "\n-----END PRIVATE KEY-----",
        "output": "postgres://ann:hunter2hunter2@db/x",
        "environment": "an ordinary looking sentence",
        "for one test": "another quite ordinary one",
        "why": "glpat-" + mixed,
        "hook": "customer 4711",
        "command": "sk-or-v1-" + "0123456789abcdef" * 2,
        "local": "gsk_" + mixed * 2,
    }
    monkeypatch.setenv("SHOP_TOKEN", keys["environment"])
    suite.pytester.makeini("[pytest]\ncrashlab_evidence_locals = true")
    suite.pytester.makeconftest(
        "def pytest_crashlab_redact(text): return text.replace('customer 4711', 'customer X')"
    )
    suite.files(
        test_it=f"""
        import logging, os, pathlib
        import pytest
        KEYS = {keys!r}

        @pytest.mark.parametrize("key", [KEYS["parameter"], KEYS["parameter"][::-1] * 0 + KEYS["text"]])
        def test_it(key, trial, tmp_path, monkeypatch):
            monkeypatch.setenv("OTHER_PASSWORD", KEYS["for one test"])
            local = KEYS["local"]
            (tmp_path / "pem").write_text(KEYS["file"])
            print(KEYS["printed"], os.environ["SHOP_TOKEN"], KEYS["hook"], key)
            logging.warning("with %s", KEYS["logged"])
            with trial.run() as target:
                target.output = [KEYS["output"], KEYS["for one test"], {{"api_key": "short"}}]
            trial.attach("text", KEYS["text"])
            trial.attach("json", {{"x": [KEYS["json"]], "password": "in a key"}})
            trial.attach("bytes", KEYS["bytes"].encode())
            trial.attach("file", tmp_path / "pem")
            trial.check("a", False, why="with " + KEYS["why"] + KEYS["hook"])
            trial.check("b", False, expected=KEYS["json"], observed=KEYS["environment"])
            raise ValueError(KEYS["raised"] + KEYS["hook"])
        """
    )
    result = suite.run("--trials=2", f"--crashlab-run-name={keys['command']}")
    assert result.ret == 1
    assert sorted(suite.outcomes()) == ["test_it.py::test_it[redacted0]", "test_it.py::test_it[redacted1]"]
    run = suite.store.paths.run(suite.runs()[0].id).folder
    stored = [*documents(suite), *(p.read_bytes() for p in run.rglob("*") if p.is_file())]
    assert len(documents(suite)) == 4
    found = evidence(suite, "test_it.py::test_it[redacted0]")
    assert found is not None
    assert len(found["attachments"]) == 4
    said = json.dumps(found).encode()
    assert b"customer X" in said
    assert said.count(b"[redacted]") > 12
    tables = suite.last()
    stored += [json.dumps(tables.trials.to_dicts()).encode(), json.dumps(tables.checks.to_dicts()).encode()]
    for name, key in keys.items():
        for part in (key, key[8:20], "hunter2hunter2"):
            assert not any(json.dumps(part)[1:-1].encode() in content for content in stored), name
    assert b"in a key" not in said


def test_a_hook_that_fails_keeps_the_text_out(single: Suite) -> None:
    single.pytester.makeconftest("def pytest_crashlab_redact(text): raise RuntimeError(text)")
    single.files(test_it="def test_it():\n    print('plain')\n    raise ValueError('plain')")
    assert single.run("--trials=1").ret == 1
    assert single.last().trials["outcome"].to_list() == ["crashed"]
    assert single.last().trials["message"].to_list() == [
        "[not kept: the project's pytest_crashlab_redact failed]"
    ]
    assert not any(b"plain" in document for document in documents(single))
