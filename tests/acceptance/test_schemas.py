"""What ``--json`` prints is what its JSON Schema says, and nothing else is."""

from __future__ import annotations

import copy
import importlib.util
import json
import sys
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from pytest_crashlab.cli import main
from pytest_crashlab.cli.schema import schemas
from pytest_crashlab.records.check import CheckRow
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store import Store
from pytest_crashlab.store.evidence_writer import EvidenceWriter
from tests.stories import START, record, row

DOCS = Path(__file__).parents[2] / "docs"
A, B, MANY_A, MANY_B, BARE, OPEN, NONE = (
    f"2026112{day}T063300Z-{name}"
    for day, name in enumerate(("before", "behind", "many22", "many33", "bare22", "open22", "none22"), 1)
)
CASE = "t.py::test_refund[42]"
MISSED = CheckRow(name="speed", must="is quick", required=False, ok=False, value=9.5, at_most=2.0)
# Each kind of output by the commands that print it: full, empty, with nulls, cut.
COMMANDS = {
    "baselines": ["baseline list"],
    "builtin_outcomes": ["outcomes"],
    "case_diff": [f"diff {A} {B} --case {CASE}", f"diff {A} {B} --show worse --case t.py::new"],
    "diff": [
        *(f"diff {A} {B} --show {show}" for show in ("worse", "all", "never")),
        f"diff {MANY_A} {MANY_B} --limit 0 --show all",
        f"diff {A} {BARE}",
        f"diff {A} {B} --outcome failed",
    ],
    "doctor": ["doctor"],
    "history": [f"history {CASE}", f"history {CASE} --limit 1"],
    "inspect": [f"inspect {B} --limit 0", f"inspect {BARE}", f"inspect {B} --case nowhere"],
    "outcomes": [f"outcomes {B}", f"outcomes {BARE}", f"outcomes {NONE}"],
    "plan": [
        "plan --cases 20 --trials 3",
        "plan --cases 1 --trials 1",
        f"plan --baseline {B} --drop 10",
        f"plan --baseline {A} --trials 5 --drop 1",
    ],
    "runs": ["runs", "runs --release nowhere", "runs --limit 1"],
    "session": [
        *(f"view {run}" for run in (A, B, MANY_B, BARE, NONE)),
        f"gate {B} --baseline {A} --min-pass-rate 0.9",
        f"gate {B} --baseline {A} --policy strict --margin 5",
        f"gate {BARE} --baseline {A}",
        f"gate {MANY_B} --baseline {MANY_A}",
        f"gate {B} --baseline {A} --method normal",
    ],
    "trial": [
        f"view {B} --case {CASE} --trial 1",
        f"view {B} --case {CASE} --trial 1 --raw",
        f"view {B} --case {CASE} --trial 2",
        f"view {BARE} --case {CASE} --trial 1",
    ],
}
EVERY = [(name, command) for name, commands in COMMANDS.items() for command in commands]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A project whose runs have everything, nothing, and more than is shown."""
    folder = tmp_path_factory.mktemp("project")
    store = Store.open(folder / ".crashlab", create=True)
    day = iter(range(1, 9))

    def run(run_id, cases, **fields):
        return record(store, cases, run_id=run_id, created=f"2026-11-2{next(day)}T06:33:00.000Z", **fields)

    run(A, {CASE: "PPPPP", "t.py::gone": "PPP", "t.py::same": "PFP"}, release="2.3.0", summarise=True)
    paid = row(
        CASE,
        1,
        "F",
        start=START + 1,
        t=3.0,
        horizon=20.0,
        t_unit="turns",
        message="no",
        tokens_in=100,
        tokens_out=10,
        cost_usd=0.5,
        cost_basis="billed",
        run_duration=2.0,
    )
    writer = EvidenceWriter(store.paths.run(B).folder, "main")
    kept = {"input": {"order": 42}, "output": "x " * 3000, "checks": {"speed": {"observed": [9.5] * 60}}}
    writer.write(CASE, 1, START + 1, {"format": 1, **kept})
    run(
        B,
        {CASE: ".FFEC", "t.py::new": "FNT", "t.py::same": "PFS"},
        checks=[(paid, [MISSED])],
        status=RunStatus.RUNNING,
        release="2.4.0",
        k=5,
    )
    writer.close()
    store.recover(B)
    run(MANY_A, {f"t.py::t{i}": "P" for i in range(300)})
    run(MANY_B, {f"t.py::t{i}": "F" if i % 7 == 0 else "P" for i in range(300)})
    run(BARE, {CASE: "EE", "t.py::same": ".."})
    run(OPEN, {CASE: "P."}, status=RunStatus.RUNNING)
    run(NONE, {})
    store.refs.promote("main", A, expected=None)
    store.refs.promote("old", NONE, expected=None)
    damaged = store.paths.run("20261110T063300Z-damage").folder
    damaged.mkdir()
    (damaged / "manifest.json").write_text("{")
    return folder


@pytest.fixture
def printed(folder, monkeypatch, capsys):
    """``printed("runs")``: what the command prints with ``--json``."""
    monkeypatch.chdir(folder)
    for name in ("CRASHLAB_STORE", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))

    def run(command):
        code = main([*command.split(), "--json"])
        said = capsys.readouterr()
        assert said.err == "", command
        assert code in {0, 1, 10}
        return json.loads(said.out)

    return run


@cache
def validator(name):
    return Draft202012Validator(json.loads(schemas()[name]))


def faults(name, data):
    return [f"{error.json_path}: {error.message[:200]}" for error in validator(name).iter_errors(data)]


def objects(value, path=()):
    """The path of every object inside ``value`` that has fields, of lists the first item."""
    if isinstance(value, dict):
        yield path
        for key, inner in value.items():
            yield from objects(inner, (*path, key))
    elif isinstance(value, list) and value:
        yield from objects(value[0], (*path, 0))


def at(value, path):
    for step in path:
        value = value[step]
    return value


# What a test kept, which no schema can know: any value, or an object with any fields.
ANYTHING, OBJECTS = {"input", "expected"}, {"evidence", "seen"}


@pytest.mark.parametrize(("name", "command"), EVERY, ids=[command for _, command in EVERY])
def test_what_is_printed_is_what_the_schema_says(printed, name, command):
    data = printed(command)
    assert data["schema"] == f"crashlab.{name}"
    assert faults(name, data) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_a_field_that_lacks_is_of_another_type_or_is_added_is_refused(printed, name):
    is_valid = validator(name).is_valid
    tried = 0
    for command in COMMANDS[name]:
        if MANY_B in command:
            continue  # the same fields 300 times
        data = printed(command)
        for path in objects(data):
            if (ANYTHING | OBJECTS) & set(path):
                continue
            for key in at(data, path):
                tried += 1
                lacking, wrong = copy.deepcopy(data), copy.deepcopy(data)
                del at(lacking, path)[key]
                assert not is_valid(lacking), (command, path, key, "lacks")
                if key not in ANYTHING:
                    at(wrong, path)[key] = 7.5 if key in OBJECTS else {"no": ["such", "value"]}
                    assert not is_valid(wrong), (command, path, key, "is of another type")
            more = copy.deepcopy(data)
            at(more, path)["added"] = None
            assert not is_valid(more), (command, path, "has one more")
    assert tried


def test_the_stories_hold_what_the_schemas_are_to_be_tried_on(printed):
    many = printed(f"view {MANY_B}")
    assert (len(many["cases"]), many["cases_total"]) == (200, 300)
    assert printed(f"view {NONE}")["cases"] == []
    assert printed(f"view {BARE}")["pass_rate"]["value"] is None
    assert printed("runs")["problems"]
    assert printed("runs --release nowhere")["runs"] == []
    whole = printed(f"view {B} --case {CASE} --trial 1")
    assert whole["evidence"]["input"] == {"order": 42}
    assert whole["checks"][0]["seen"]["observed"]
    assert whole["phases"] == [] or whole["phases"][0]["seconds"] >= 0
    assert printed(f"view {BARE} --case {CASE} --trial 1")["evidence"] is None


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_report_written_by_a_session_is_what_the_schema_says(pytester, workers):
    pytester.makepyfile(
        "import random\ndef test_a(): assert 1\ndef test_b(): assert 0\ndef test_c(): raise OSError('x')"
    )
    options = ("--trials=3", "-p", "no:randomly", "-n", workers)
    pytester.runpytest_subprocess(*options, "--save-baseline=main", "--crashlab-report=first.json")
    pytester.runpytest_subprocess(*options, "--baseline=main", "--crashlab-report=second.json")
    for name in ("first.json", "second.json"):
        data = json.loads((pytester.path / name).read_text())
        assert len(data["cases"]) == 3
        assert faults("session", data) == []


def test_the_files_are_what_the_views_say(monkeypatch):
    spec = importlib.util.spec_from_file_location("make_schemas", DOCS / "make_schemas.py")
    make_schemas = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, make_schemas)  # dataclasses look their module up
    spec.loader.exec_module(make_schemas)
    folder = files("pytest_crashlab.report").joinpath("schemas")
    written = {file.name: file.read_text("utf-8") for file in folder.iterdir()}
    assert {n: written.get(n) for n in make_schemas.files()} == make_schemas.files(), (
        "run python docs/make_schemas.py"
    )
    assert set(COMMANDS) == set(schemas())


def test_every_schema_is_one_and_names_itself():
    for name, text in schemas().items():
        schema = json.loads(text)
        Draft202012Validator.check_schema(schema)
        assert schema["properties"]["schema"]["const"] == f"crashlab.{name}"


def test_the_verb_lists_the_schemas_and_prints_one(capsys):
    assert main(["schema"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[::2]] == sorted(COMMANDS)
    for name in ("plan", "crashlab.plan"):
        assert main(["schema", name]) == 0
        assert capsys.readouterr().out == schemas()["plan"]


def test_a_schema_that_is_not_there_is_refused_in_one_sentence(capsys):
    assert main(["schema", "plna"]) == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("crashlab: There is no schema plna; there are baselines, ")
    assert len(said.err.splitlines()) == 1
