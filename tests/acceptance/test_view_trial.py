"""``crashlab view RUN --case ID --trial N``: what was kept of one trial, and nothing it printed is obeyed."""

from __future__ import annotations

import json

import pytest

from pytest_crashlab.cli import main
from pytest_crashlab.records.check import CheckRow
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store import Store
from pytest_crashlab.store.evidence_writer import EvidenceWriter
from pytest_crashlab.store.export import export_run
from tests.stories import START, record, row

RUN = "20261130T063300Z-seen22"
CASE = "test_agent.py::test_refund[42]"
DOCUMENT = {
    "format": 1,
    "why": "check 'amount': read from the order row",
    "input": {"order": 42},
    "output": "Refunded.\x1b[2J\x1b]0;owned\x07\u202e done",
    "checks": {"amount": {"expected": 30, "observed": {"a": [20]}}},
    "exceptions": [{"phase": "call", "type": "ValueError", "message": "m", "traceback": ">  raise\nE  m"}],
    "captured": [{"name": "Captured stdout call", "text": "".join(f"line {i}\n" for i in range(100))}],
    "attachments": [
        {"name": "orders", "kind": "json", "media_type": "application/json", "size": 2, "data": {"a": 1}},
        {"name": "screen", "kind": "binary", "media_type": "image/png", "size": 3, "data": "AAAA"},
        {
            "name": "big",
            "kind": "binary",
            "media_type": "x/y",
            "size": 9,
            "note": "not kept: 9 bytes are more",
        },
        {"name": "log", "kind": "text", "media_type": "text/plain", "size": 9000, "data": "z" * 9000},
    ],
}


def fill(root, status=RunStatus.COMPLETED):
    store = Store.open(root, create=True)
    checks = [
        CheckRow(name="amount", required=True, ok=False, why="from the row", site="test_agent.py:9"),
        CheckRow(
            name="speed",
            must="is quick",
            required=False,
            ok=False,
            value=9.5,
            at_most=2.0,
            failure_class="slow",
        ),
    ]
    failed = row(CASE, 2, "F", t=3.0, horizon=20.0, t_unit="turns", message="it is cut he…")
    again = row(CASE, 3, "E", start=START + 50, record_error="teardown_error: x")
    decided = row(CASE, 3, "P", attempt=2, start=START + 60)
    writer = EvidenceWriter(store.paths.run(RUN).folder, "main")
    writer.write(CASE, 2, START + 2, DOCUMENT)  # waits in memory for the folder
    record(
        store,
        {CASE: "P.."},
        run_id=RUN,
        checks=[(failed, checks), (again, []), (decided, [])],
        status=RunStatus.RUNNING,
    )
    writer.close()
    if status is RunStatus.COMPLETED:
        store.recover(RUN)
    return store


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("CRASHLAB_STORE", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return fill(tmp_path / ".crashlab")


@pytest.fixture
def view(capsys):
    """Runs the command on trial arguments; returns what it printed, or with ``code`` its complaint."""

    def run(*args, reference="latest", code=0):
        capsys.readouterr()
        assert main(["view", reference, "--case", CASE, *args]) == code
        done = capsys.readouterr()
        return done.err if code else done.out

    return run


def test_a_trial_is_shown_with_what_was_kept(store, view):
    shown = view("--trial", "2")
    lines = shown.splitlines()
    assert lines[:4] == [
        f"{CASE}, trial 2",
        "  failed (fail) at test_agent.py:11, decided in run",
        "  2026-11-30 06:33:02 UTC, 0.50 s in all, process main",
        "  3 of 20 turns",
    ]
    parts = [line for line in lines if line and not line.startswith(" ")]
    assert parts[1:] == [
        "Why",
        "Check amount (required): does not hold at test_agent.py:9",
        "Check speed (not required): does not hold",
        "Input",
        "Output",
        "Exception in call",
        "Captured stdout call",
        "Attachment orders (application/json, 2 bytes)",
        "Attachment screen (image/png, 3 bytes)",
        "Attachment big (x/y, 9 bytes)",
        "Attachment log (text/plain, 9,000 characters)",
    ]
    for line in (
        "  check 'amount': read from the order row",
        "  from the row",
        "  must: is quick",
        "  measured 9.5; asked at most 2",
        "  failure class slow",
        "  expected: 30",
        "  observed: {",
        '    "order": 42',
        "  >  raise",
        "  line 59",
        "  ... 40 more lines (--raw shows all)",
        "  binary; --raw shows it in base64",
        "  not kept: 9 bytes are more",
    ):
        assert line in lines


def test_terminal_escapes_are_shown_and_never_obeyed(store, view):
    shown = view("--trial", "2")
    assert r"Refunded.\x1b[2J\x1b]0;owned\x07\u202e done" in shown
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert "\x1b" not in view("--trial", "2", "--json")


def test_json_is_bounded_and_raw_is_whole(store, view):
    data = json.loads(view("--trial", "2", "--json"))
    assert (data["schema"], data["version"], data["run"], data["trial"]) == ("crashlab.trial", 1, RUN, 2)
    assert data["row"]["outcome"] == "failed"
    assert data["checks"][0]["seen"] == {"expected": 30, "observed": {"a": [20]}}
    assert data["evidence"]["input"] == {"order": 42}
    assert data["evidence"]["attachments"][3]["data"].endswith("[... 2,000 of 9,000 characters are shown]")
    raw = json.loads(view("--trial", "2", "--raw"))
    assert raw["evidence"] == DOCUMENT
    assert {**raw, "evidence": None} == {**data, "evidence": None}


def test_the_attempt_that_counts_is_shown_unless_another_is_named(store, view):
    assert view("--trial", "3").startswith(f"{CASE}, trial 3, attempt 2 of 2\n  passed (pass)")
    first = view("--trial", "3", "--attempt", "1")
    assert first.startswith(f"{CASE}, trial 3, attempt 1 of 2 (another attempt counts)\n  provider_error")
    assert "  beside the outcome: teardown_error: x" in first
    assert "Nothing was kept of this trial besides its row." in first


def test_a_run_that_has_not_ended_is_looked_into_as_well(tmp_path, monkeypatch, view):
    monkeypatch.chdir(tmp_path)
    fill(tmp_path / ".crashlab", status=RunStatus.RUNNING)
    assert "  line 59" in view("--trial", "2").splitlines()


def test_an_export_has_evidence_only_when_asked_to(store, tmp_path, view):
    with_it = export_run(store, RUN, tmp_path / "with.crashrun", evidence=True)
    without = export_run(store, RUN, tmp_path / "without.crashrun")
    assert without.stat().st_size < with_it.stat().st_size
    assert json.loads(view("--trial", "2", "--raw", reference=str(with_it)))["evidence"] == DOCUMENT
    assert "Nothing was kept" in view("--trial", "2", reference=str(without))


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--trial", "0"), "--trial=0 is no whole number"),
        (("--trial", "9"), "no row of trial 9 of"),
        (("--trial", "9"), "there are rows of trials 1 to 3"),
        (("--trial", "2", "--attempt", "4"), "no row of attempt 4 of trial 2"),
        (("--raw",), "name it with --case and --trial"),
        (("--attempt", "1"), "name it with --case and --trial"),
        (("--case", "test_agent.py", "--trial", "1"), f"did you mean {CASE}?"),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(store, view, args, sentence):
    complaint = view(*args, code=4)
    assert sentence in complaint
    assert complaint.count("\n") == 1


def test_damaged_evidence_is_said_beside_the_row(store, view):
    store.paths.run(RUN).evidence.write_bytes(b"\x00\xff" * 4096)
    shown = view("--trial", "2")
    assert "  failed (fail) at test_agent.py:11, decided in run" in shown
    assert "cannot be read (" in shown
    assert "the run's numbers do not need it." in shown
    assert json.loads(view("--trial", "2", "--json"))["problem"].startswith("The evidence in ")
