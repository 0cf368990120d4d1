"""``crashlab diff A B --case ID``: one case in two runs, trial beside trial, on real stores."""

from __future__ import annotations

import json
import shlex

import pytest

from pytest_crashlab.cli import main
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store import Store
from pytest_crashlab.store.evidence_writer import EvidenceWriter
from pytest_crashlab.store.export import export_run
from tests.stories import START, record, row

A, B = "20261129T063300Z-before", "20261130T063300Z-behind"
CASE, OTHER, NEW = "t.py::test_refund[42]", "t.py::test_other", "t.py::test_new"


def keep(store, run, documents, cases, **fields):
    writer = EvidenceWriter(store.paths.run(run).folder, "main")
    for trial, document in documents.items():
        writer.write(CASE, trial, START + trial, {"format": 1, **document})
    record(store, cases, run_id=run, status=RunStatus.RUNNING, **fields)
    writer.close()
    store.recover(run)


@pytest.fixture
def store(tmp_path, monkeypatch):
    for name in ("CRASHLAB_STORE", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    store = Store.open(tmp_path / ".crashlab", create=True)
    say = "The refund of \x1b[2J{} is {}.\nBye.".format
    keep(
        store,
        A,
        {
            1: {"input": {"order": 42}, "expected": "granted", "output": say(42, "granted")},
            2: {"output": say(42, "granted")},
            3: {"output": {"refund": 30}},
        },
        {CASE: "PPP", OTHER: "PPP"},
    )
    keep(
        store,
        B,
        {
            1: {"input": {"order": 42}, "output": say(42, "denied"), "why": "it was\ndenied"},
            2: {"output": say(42, "granted")},
            3: {"output": {"refund": 20}},
        },
        {CASE: "FFE", OTHER: "FFF", NEW: "P"},
    )
    return store


@pytest.fixture
def crashlab(capsys, store):
    def run(*arguments):
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def block(said, title):
    return next(part for part in said.split("\n\n") if part.startswith(title)).splitlines()


def test_a_case_stands_trial_beside_trial_with_its_words_marked(crashlab):
    code, said, _ = crashlab("diff", A, B, "--show", "worse", "--case", CASE)
    assert code == 0
    head = said.split("\n\n")[0].splitlines()
    assert head[0] == CASE
    assert head[1].startswith("  3/3 -> 0/2, not proven (p = ")
    assert " ".join(" ".join(head).split()).split("), ")[1].startswith("case 2 of 2 of '--show worse'")
    assert block(said, "Input") == ["Input", "  {", '    "order": 42', "  }"]
    assert block(said, "Expected") == ["Expected", "  granted"]
    table = [line.split() for line in block(said, "  trial")]
    assert table[1:] == [
        ["1", "passed", "failed", "at", "test_agent.py:11"],
        ["2", "passed", "failed", "at", "test_agent.py:11"],
        ["3", "passed", "provider_error", "at", "test_agent.py:14"],
    ]
    assert block(said, "Trial 1, output") == [
        "Trial 1, output: [-baseline-] {+this run+}",
        "  The refund of \\x1b[2J42 is [-granted-] {+denied+}.",
        "  Bye.",
    ]
    assert block(said, "Trial 1, why") == ["Trial 1, why of this run", "  it was", "  denied"]
    assert block(said, "Trial 2, output")[0] == "Trial 2, output: the same words"
    assert '"refund": [-30-] {+20+}' in block(said, "Trial 3, output")[2]


def test_the_list_and_each_case_name_the_command_to_the_next(crashlab):
    _, said, _ = crashlab("diff", A, B, "--show", "worse")
    seen = []
    command = said.splitlines()[-1].removeprefix("one by one  ")
    while command:
        words = shlex.split(command)
        seen.append(words[-1])
        code, said, _ = crashlab(*words[1:])
        assert code == 0
        command = next(
            (line.removeprefix("next      ") for line in said.splitlines() if line.startswith("next ")), None
        )
    assert seen == [OTHER, CASE]


def test_one_trial_beside_another_and_without_marks(crashlab):
    code, said, _ = crashlab("diff", A, B, "--case", CASE, "--trial", "1", "--beside", "2", "--no-words")
    assert code == 0
    assert [line.split() for line in block(said, "  trial")][1][:4] == ["1", "(beside", "2)", "passed"]
    assert "[-" not in said
    assert "{+" not in said
    assert "Trial 1 (beside 2), output of the baseline\n  The refund of \\x1b[2J42 is granted.\n" in said
    assert "Trial 1 (beside 2), output of this run\n  The refund of \\x1b[2J42 is denied.\n" in said


def test_trials_in_a_row_that_say_the_same_are_said_once(crashlab, store):
    record(store, {"t.py::x": "PPPPP"}, run_id="20261129T063300Z-before2")
    said = ["broken", "broken", "broken", "away", "broken"]
    rows = [row("t.py::x", n, "F", message=why) for n, why in enumerate(said, 1)]
    record(store, {"t.py::x": "....."}, run_id="20261130T063300Z-behind2", rows=rows)
    _, out, _ = crashlab("diff", "20261129T063300Z-before2", "20261130T063300Z-behind2", "--case", "t.py::x")
    parts = [part.splitlines() for part in out.split("\n\n") if part.startswith("Trial")]
    assert parts == [
        ["Trials 1 to 3, why of this run", "  broken"],
        ["Trial 4, why of this run", "  away"],
        ["Trial 5, why of this run", "  broken"],
    ]


def test_colour_says_nothing_that_marks_do_not(crashlab, monkeypatch):
    plain = crashlab("diff", A, B, "--case", CASE)[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = crashlab("diff", A, B, "--case", CASE)[1]
    assert "\x1b[31m[-granted-]\x1b[0m" in coloured
    assert "\x1b[32m{+denied+}\x1b[0m" in coloured
    for code in ("\x1b[31m", "\x1b[32m", "\x1b[2m", "\x1b[0m"):
        coloured = coloured.replace(code, "")
    assert coloured == plain


def test_a_baseline_in_a_file_is_read_and_named(store, crashlab, tmp_path):
    export_run(store, A, tmp_path / "base line.crashrun", evidence=True)
    _, listed, _ = crashlab("diff", "base line.crashrun", B, "--show", "worse")
    command = shlex.split(listed.splitlines()[-1].removeprefix("one by one  "))
    assert command[2] == "base line.crashrun"
    code, said, _ = crashlab(*command[1:-1], CASE)
    assert code == 0
    assert "[-granted-] {+denied+}" in said


def test_a_case_of_one_run_says_why_it_is_not_compared(crashlab):
    code, said, _ = crashlab("diff", A, B, "--case", NEW)
    assert code == 0
    assert said.splitlines()[1] == "  - -> 1/1"
    assert "Not part of the comparison: " in said
    assert [line.split() for line in block(said, "  trial")][1] == ["1", "-", "(no", "report)", "passed"]


def test_json_has_the_words(crashlab):
    _, said, _ = crashlab("diff", A, B, "--case", CASE, "--json")
    told = json.loads(said)
    assert (told["schema"], told["version"]) == ("crashlab.case_diff", 1)
    assert [told[name] for name in ("a_pass", "a_n", "b_pass", "b_n")] == [3, 3, 0, 2]
    first = told["pairs"][0]
    assert [(w["mark"], w["text"]) for w in first["output"][1:3]] == [
        ("removed", " granted"),
        ("added", " denied"),
    ]
    assert first["b"]["said"] == "it was\ndenied"
    assert told["pairs"][2]["b"]["outcome"] == "provider_error"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--case", "t.py::test_refund"), "Neither run has a case t.py::test_refund; did you mean"),
        (("--case", "nothing-like-it"), "Neither run has a case nothing-like-it; 'crashlab diff A B --show"),
        (("--case", CASE, "--trial", "9"), f"Neither run has a report of these trials of {CASE}"),
        (("--case", CASE, "--trial", "x"), "--trial"),
        (("--case", CASE, "--copy", "f"), "--copy writes a list of cases, and --case names one"),
        (("--trial", "1"), "--trial is about the trials of one case; name it with --case."),
        (("--no-words",), "--no-words is about the trials of one case"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_a_sentence(crashlab, arguments, sentence):
    code, said, error = crashlab("diff", A, B, *arguments)
    assert (code, said) == (4, "")
    assert error.startswith(f"crashlab: {sentence}")
    assert error.count("\n") == 1


def test_a_holdouts_trials_are_sealed(store, crashlab):
    sealed = "20261201T063300Z-sealed"
    for run_id, name in ((sealed, "one"), ("20261202T063300Z-hidden", "two")):
        keep(store, run_id, {1: {"output": name}}, {CASE: "P"}, dataset="refunds", split="holdout")
    code, _, error = crashlab("diff", sealed, "20261202T063300Z-hidden", "--case", CASE)
    assert code == 4
    assert "measured a holdout, so what its trials said is sealed" in error
    code, said, _ = crashlab("diff", sealed, "20261202T063300Z-hidden", "--case", CASE, "--look")
    assert code == 0
    assert "\n  [-one-]{+two+}\n" in said
    assert said.splitlines()[1] == "  1/1 -> 1/1"
