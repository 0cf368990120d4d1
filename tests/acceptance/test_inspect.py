"""``crashlab inspect``: what a run's trials came to, one a line, for people and for programs."""

from __future__ import annotations

import csv
import io
import json

import pytest

from pytest_crashlab.cli import main
from pytest_crashlab.store import Store
from tests.stories import record, row


@pytest.fixture
def inspect(tmp_path, monkeypatch, capsys):
    """``inspect(*options)``: exit code, standard output and standard error, of a run with five ends."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CRASHLAB_STORE", raising=False)
    store = Store.open(tmp_path / ".crashlab", create=True)
    told = [
        row("t.py::b", 1, "F", message="41 is not 42 \x1b[2J", failure_class="arithmetic", site="t.py:7"),
        row("t.py::b", 2, "E", attempt=1),
        row("t.py::b", 2, "P", attempt=2, tokens_in=10, cost_usd=0.5, cost_basis="billed", worker="gw1"),
    ]
    record(store, {"t.py::a": "PP.", "t.py::b": ".."}, rows=told, run_id="20261201T000000Z-aaaaaa")

    def run(*options):
        code = main(["inspect", "latest", *options])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_every_trial_is_one_line_and_escapes_are_shown(inspect):
    code, out, _ = inspect()
    assert code == 0
    lines = [line for line in out.splitlines() if " trial " in line]
    assert lines == [
        "  t.py::a trial 1: passed at test_agent.py:10 in 0.5 s (run, main)",
        "  t.py::a trial 2: passed at test_agent.py:10 in 0.5 s (run, main)",
        "  t.py::a trial 3: missing",
        "  t.py::b trial 1: failed [arithmetic] at t.py:7 in 0.5 s (run, main)",
        "  t.py::b trial 2: passed at test_agent.py:10 in 0.5 s (run, gw1)",
    ]
    assert "    41 is not 42 \\x1b[2J\n" in out
    assert "\x1b" not in out


def test_trials_are_chosen_by_label_and_case(inspect):
    _, out, _ = inspect("--outcome", "failed,missing")
    assert [line.split()[2] for line in out.splitlines() if " trial " in line] == ["3:", "1:"]
    _, out, _ = inspect("--case", "::b", "--limit", "1")
    assert "and 1 more; --limit 0 shows all." in out
    _, out, _ = inspect("--case", "nowhere")
    assert "No trial of the run is as asked for." in out


def test_programs_get_what_is_known_and_nothing_else(inspect):
    _, out, _ = inspect("--csv", "--limit", "0")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(r["case"], r["trial"], r["kind"], r["cost_usd"]) for r in rows] == [
        ("t.py::a", "1", "pass", ""),
        ("t.py::a", "2", "pass", ""),
        ("t.py::a", "3", "missing", ""),
        ("t.py::b", "1", "fail", ""),
        ("t.py::b", "2", "pass", "0.5"),
    ]
    data = json.loads(inspect("--json", "--outcome", "missing")[1])
    assert (data["schema"], data["trials"], data["found"]) == ("crashlab.inspect", 5, 1)
    assert data["lines"][0]["duration"] is None
    assert data["assigned"][0]["label"] == "passed"


def test_an_outcome_that_the_run_has_not_is_named(inspect):
    code, out, err = inspect("--outcome", "pased")
    assert (code, out) == (4, "")
    assert "has no outcome pased; it has failed, missing, passed." in err
