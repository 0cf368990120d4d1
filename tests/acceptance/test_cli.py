"""The real command on real stores: what it prints and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from pytest_crashlab import __version__
from pytest_crashlab.cli import main
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store import Store
from pytest_crashlab.store.export import export_run
from tests.stories import record, row

COMMAND = Path(sys.executable).parent / "crashlab"
BASE, SAME, WORSE, LOST, HOLDOUT, KILLED = (
    f"2026112{day}T063300Z-{name}"
    for day, name in enumerate(("base22", "same22", "worse2", "lost22", "holdo2", "killed"), 1)
)


def ids(count, letters="PPPPP"):
    return {f"test_agent.py::test_refund[case-{i}]": letters for i in range(count)}


def fill(root):
    """A store with a baseline ``main``, runs that are the same, worse and lost, and one that was killed."""
    store = Store.open(root, create=True)
    days = iter(range(1, 9))

    def run(run_id, cases, **fields):
        created = f"2026-11-2{next(days)}T06:33:00.000Z"
        record(store, cases, run_id=run_id, created=created, **fields)

    run(BASE, ids(10), release="2.3.0", summarise=True)
    run(SAME, ids(10), release="2.4.0", summarise=True)
    run(WORSE, {**ids(10), "test_agent.py::test_refund[case-3]": "FFFFF"}, summarise=True, policy="strict")
    run(LOST, {**ids(8), **dict.fromkeys(list(ids(10))[8:], "EEEEE")}, summarise=True)
    run(HOLDOUT, ids(3), split="holdout", summarise=True, plans={k: {"min_passes": 4} for k in ids(3)})
    run(KILLED, ids(2, "PP..."), status=RunStatus.RUNNING)
    store.refs.promote("main", BASE, expected=None)
    store.set_fields(BASE, recorded_for=["main"])
    return store


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A folder with a store that no test changes."""
    folder = tmp_path_factory.mktemp("project")
    fill(folder / ".crashlab")
    return folder


@pytest.fixture
def own(tmp_path):
    """A folder with a store of the test's own."""
    fill(tmp_path / ".crashlab")
    return tmp_path


def command(folder, *args, encoding="utf-8"):
    """The installed command in a process of its own."""
    quiet = ("CRASHLAB", "FORCE_", "NO_", "CI", "GIT")
    env = {k: v for k, v in os.environ.items() if not k.startswith(quiet)}
    env |= {"COLUMNS": "80", "PYTHONIOENCODING": encoding, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    return subprocess.run(
        [COMMAND, *args], cwd=folder, env=env, capture_output=True, encoding=encoding, check=False
    )


@pytest.fixture
def crashlab(monkeypatch, capsys):
    """The same within this process: ``crashlab(folder, *args, **environment)`` gives code, out, err."""

    def run(folder, *args, **env):
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            for name in ("CRASHLAB_STORE", "FORCE_COLOR", "NO_COLOR", "GIT_DIR"):
                patch.delenv(name, raising=False)
            patch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))
            for name, value in {"COLUMNS": "80", **env}.items():
                patch.setenv(name, value)
            code = main(args)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def ok(crashlab):
    """What a command prints that ends with ``code`` and says nothing on standard error."""

    def run(folder, *args, code=0, **env):
        ended, out, err = crashlab(folder, *args, **env)
        assert (ended, err) == (code, ""), out + err
        return out

    return run


@pytest.fixture
def refused(crashlab):
    """The one sentence of a command that ends with 4."""

    def run(folder, *args, **env):
        code, out, err = crashlab(folder, *args, **env)
        assert (code, out) == (4, "")
        (sentence,) = err.splitlines()
        assert sentence.startswith("crashlab: ")
        assert sentence.endswith((".", "?"))
        return sentence.removeprefix("crashlab: ")

    return run


# ---- the installed command


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("runs",), 0, "release 2.3.0, baseline main"),
        (("diff", "main", WORSE), 0, "(± 6.7"),
        (("gate", WORSE, "--baseline", "main"), 1, "The gate fails (exit code 1, policy strict)."),
        (("gate", LOST, "--baseline", "main", "-q"), 10, "(exit code 10, policy regressions)"),
        (("baseline", "list"), 0, BASE),
    ],
)
def test_the_installed_command(shared, args, code, says):
    done = command(shared, *args)
    assert (done.returncode, done.stderr) == (code, "")
    assert says in done.stdout


@pytest.mark.parametrize("args", [("gate", "nonsense"), ("nonsense",), ("view", "x\x1b[31m")])
def test_the_installed_command_has_one_sentence_for_what_it_cannot_do(shared, args):
    done = command(shared, *args)
    assert (done.returncode, done.stdout) == (4, "")
    assert len(done.stderr.splitlines()) == 1
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_output_that_is_not_utf8_gets_ascii(shared, encoding):
    done = command(shared, "gate", WORSE, "--baseline", "main", encoding=encoding)
    assert (done.returncode, done.stderr) == (1, "")
    assert "(+/- 6.7" in done.stdout


# ---- runs


def test_runs_lists_the_newest_first(shared, ok):
    lines = ok(shared, "runs").splitlines()
    assert lines[0] == "  6 runs: 5 completed, 1 running"
    assert lines[1].split() == ["run", "age", "cases", "passed", "verdict", "gate"]
    runs = [line.split() for line in lines[2:] if line[0] != " "]
    assert [r[0] for r in runs] == [KILLED, HOLDOUT, LOST, WORSE, SAME, BASE]
    assert runs[0][2:] == ["2", "x", "5", "-", "running", "-"]
    assert runs[3][2:] == ["10", "x", "5", "90.0", "%", "-", "-"]
    assert "  undecided 10\n" in "\n".join(lines)
    assert max(len(line) for line in lines) <= 80
    assert lines[-1] == "  release 2.3.0, baseline main"


def test_runs_can_be_filtered_and_cut(shared, ok):
    assert SAME in ok(shared, "runs", "--release", "2.4.0")
    assert BASE not in ok(shared, "runs", "--release", "2.4.0")
    cut = ok(shared, "runs", "--limit", "2")
    assert cut.splitlines()[-1] == "  4 older runs: --page 2 shows the next, --limit 0 all."
    last = ok(shared, "runs", "--limit", "4", "--page", "2")
    assert [run in last for run in (WORSE, SAME, BASE)] == [False, True, True]
    assert "older run" not in last
    data = json.loads(ok(shared, "runs", "--status", "running", "--json"))
    assert (data["schema"], data["version"], [r["id"] for r in data["runs"]]) == (
        "crashlab.runs",
        1,
        [KILLED],
    )


def test_a_run_that_has_not_moved_for_a_day_is_not_finished(own, ok):
    yesterday = 1_600_000_000
    for path in (own / ".crashlab" / "runs" / KILLED).iterdir():
        os.utime(path, (yesterday, yesterday))
    head, _, line, *_ = ok(own, "runs").splitlines()
    assert head == "  6 runs: 5 completed, 1 not finished"
    assert line.startswith(f"{KILLED} ")
    assert " not finished " in line


def test_a_damaged_run_is_named_and_the_others_are_listed(own, ok):
    (own / ".crashlab" / "runs" / SAME / "manifest.json").write_text("{")
    out = ok(own, "runs", COLUMNS="400")
    assert f"Not readable: {own}" in out
    assert BASE in out


@pytest.mark.parametrize(
    "spoil",
    [
        b"",
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b"[" * 200_000,
        lambda text: text[: len(text) // 2],
        lambda text: text + b"x",
        lambda text: text.replace(b'"case_ids": [', b'"case_ids": [,'),
        {"format": 99},
        {"format": "one"},
        {"id": None},
        {"status": "resting"},
        {"name": ["a"]},
        {"release": 2.4},
        {"created": 5},
        {"k": "five"},
        {"planned_cases": None},
        {"git": "main"},
        {"git": {"branch": 7, "commit": "1f26568"}},
        {"git": {"commit": {}}},
        {"summary": []},
        {"summary": {"pass_rate": "most"}},
        {"summary": {"pass_rate": float("nan")}},
        {"summary": {"undecided": 0.5}},
        {"gate": {"word": 3}},
        {"gate": {"exit_code": "fails"}},
        {"amendments": "some"},
    ],
    ids=lambda spoil: "cut" if callable(spoil) else repr(spoil)[:40],
)
def test_whatever_is_wrong_with_a_manifest_its_run_is_named_and_the_others_are_listed(own, ok, spoil):
    path = own / ".crashlab" / "runs" / SAME / "manifest.json"
    whole = path.read_bytes()
    if callable(spoil):
        path.write_bytes(spoil(whole))
    else:
        path.write_bytes(
            spoil if isinstance(spoil, bytes) else json.dumps(json.loads(whole) | spoil).encode()
        )
    lines = ok(own, "runs", COLUMNS="400").splitlines()
    assert lines[0] == "  5 runs: 4 completed, 1 running"
    assert [line.split()[0] for line in lines[2:] if line[0] != " "] == [KILLED, HOLDOUT, LOST, WORSE, BASE]
    assert [line for line in lines if SAME in line] == [lines[-1]]
    assert lines[-1].startswith(f"  Not readable: {path} ")
    data = json.loads(ok(own, "runs", "--release", "2.3.0", "--json"))
    assert [run["id"] for run in data["runs"]] == [BASE]
    (problem,) = data["problems"]
    assert str(path) in problem
    assert ok(own, "view", "latest", "--json")


def test_a_manifest_that_is_away_or_a_folder_is_named_too(own, ok):
    runs = own / ".crashlab" / "runs"
    (runs / SAME / "manifest.json").unlink()
    (runs / LOST / "manifest.json").unlink()
    (runs / LOST / "manifest.json").mkdir()
    (runs / "not a run's name").mkdir()
    (runs / "a file").write_text("{}")
    data = json.loads(ok(own, "runs", "--json"))
    assert [run["id"] for run in data["runs"]] == [KILLED, HOLDOUT, WORSE, BASE]
    (name, lost, same) = data["problems"]
    assert name.startswith('"not a run\'s name" cannot be a run id')
    assert lost.startswith(f"{runs / LOST / 'manifest.json'} cannot be read")
    assert same.startswith(f"{runs / SAME / 'manifest.json'} is missing")


@pytest.mark.parametrize("created", ["", "yesterday", "0001-01-01T00:00:00", "9999-12-31T23:59:59-23:59"])
def test_a_run_of_an_unlikely_time_is_listed(own, ok, created):
    Store.open(own / ".crashlab").set_fields(SAME, created=created)
    assert f"\n{SAME} " in ok(own, "runs")


def test_runs_needs_no_table_library(shared):
    program = (
        "import sys; from pytest_crashlab.cli import main; assert main(['runs']) == 0; "
        "print([m for m in ('polars', 'numpy', 'scipy', 'pytest') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=shared, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


# ---- view


def test_view_shows_everything_of_a_run(shared, ok):
    out = ok(shared, "view", "worse2")
    for heading in ("Outcomes", "Pass rate 90.0 %", "Rates", "Repeats", "Cases (passed of decided trials)"):
        assert heading in out
    assert "  Never     0/5  test_agent.py::test_refund[case-3]\n" in out
    assert "45 of 50 scheduled" in out


def test_runs_say_what_the_gate_said_and_where_they_were_made(own, ok):
    git = {"branch": "fix", "commit": "1f26568aaaa"}
    gate = {"word": "No change", "exit_code": 1, "because": ["1 case is proven worse: t."]}
    baseline = {"ref": "main", "id": BASE, "reason": "baseline 20261121-base22 (main)"}
    Store.open(own / ".crashlab").set_fields(SAME, git=git, gate=gate, baseline=baseline)
    out = ok(own, "runs", "--release", "2.4.0")
    assert "  No change     1 fails\n  branch fix, commit 1f26568, release 2.4.0\n" in out
    shown = ok(own, "view", SAME)
    assert "  baseline 20261121-base22 (main)\n" in shown
    assert f"  judged No change (exit code 1) against {BASE}\n" in shown
    assert "  1 case is proven worse: t.\n" in shown
    assert "Name a baseline" not in shown


def test_view_of_a_case_says_what_each_trial_said(own, ok, refused):
    failed = row("t.py::t", 2, "F", message="AssertionError: 41 is not 42\nassert 41 == 42", site="t.py:7")
    store = Store.open(own / ".crashlab")
    record(store, {"t.py::t": "PPPPP"}, run_id="20261128T063300Z-right2")
    record(store, {"t.py::t": "P.FFF"}, rows=[failed], run_id="20261129T063300Z-wrong2")
    out = ok(own, "view", "wrong2", "--case", "t.py::t")
    failed_at = "  trial 2: failed at t.py:7 in 0.50 s\n    The target failed while it ran.\n"
    assert failed_at + "    AssertionError: 41 is not 42\n    assert 41" in out
    assert out.count("trial ") == 5
    assert "has no case t.py; did you mean t.py::t?" in refused(own, "view", "wrong2", "--case", "t.py")
    assert refused(own, "view", "wrong2", "--case", "t.py::t[trial2]").endswith(
        "t.py::t[trial2] is a trial: name it with --case t.py::t --trial 2."
    )
    assert "\n    trial 2: failed at t.py:7: AssertionError: 41 is not 42\n" in ok(
        own, "diff", "right2", "wrong2"
    )


def test_view_as_json(shared, ok):
    data = json.loads(ok(shared, "view", WORSE, "--json"))
    assert (data["schema"], data["run"]["id"], data["verdict"]) == ("crashlab.session", WORSE, None)
    assert data["pass_rate"]["value"] == pytest.approx(0.9)


def test_view_of_a_run_that_is_still_running(shared, ok):
    out = ok(shared, "view", "latest")
    assert f"crashlab run {KILLED} (running)" in out
    assert "6 missing of 10 scheduled trials" in out


def test_view_of_an_exported_run_and_by_a_name(shared, tmp_path, ok):
    path = export_run(Store.open(shared / ".crashlab"), SAME, tmp_path / "same.crashrun")
    assert SAME in ok(shared, "view", str(path))
    assert BASE in ok(shared, "view", "main")


# ---- diff


def test_diff_lists_the_cases_that_got_worse_after_a_regression(shared, ok):
    out = ok(shared, "diff", "main", WORSE)
    assert "\nRegressed\n  Pass rate 100.0 % -> 90.0 % (-10.0 points).\n" in out
    assert "\n  Pass rate 10.0 points lower than the baseline. Outside the noise (± 6.7\n" in out
    assert out.endswith(
        f"'crashlab gate {WORSE} --baseline {BASE}' would end with 1.\n"
        "\n"
        "Cases that got worse: 1\n"
        "  5/5 -> 0/5      -100.0  proven worse       test_agent.py::test_refund[case-3]\n"
        "    trial 1: failed at test_agent.py:11\n"
        "\n"
        f"one by one  crashlab diff {BASE} {WORSE} --show worse "
        "--case 'test_agent.py::test_refund[case-3]'\n"
    )


def test_diff_shows_what_is_asked_for(shared, ok):
    assert ok(shared, "diff", BASE, WORSE, "--show", "better").endswith("Cases that got better: 0\n")
    out = ok(shared, "diff", BASE, WORSE, "--show", "all", "--limit", "2")
    assert "\n  and 8 more; --limit 0 shows all.\n\none by one  crashlab diff " in out
    data = json.loads(ok(shared, "diff", BASE, WORSE, "--show", "never", "--json"))
    assert data["schema"] == "crashlab.diff"
    assert [c["case"] for c in data["cases"]] == ["test_agent.py::test_refund[case-3]"]
    assert (data["verdict"]["word"], data["verdict"]["worse"]) == ("Regressed", 1)


def test_diff_refuses_what_cannot_be_compared(shared, refused):
    assert refused(shared, "diff", WORSE, WORSE) == (
        f"{WORSE} and {WORSE} are the same run, {WORSE}, so there is nothing to compare; name another one "
        "('crashlab runs' lists them)."
    )
    sentence = refused(shared, "diff", "main", BASE)
    assert sentence.startswith(f"main and {BASE} are the same run, {BASE}, so there is nothing")
    assert refused(shared, "diff", BASE, HOLDOUT) == (
        "The runs are of different splits (none and holdout) and cannot be compared."
    )
    assert "No baseline nothing" in refused(shared, "diff", "nothing", WORSE)


# ---- gate: every exit code


@pytest.mark.parametrize(
    ("run", "policy", "code"),
    [
        (SAME, "strict", 0),
        (SAME, "regressions", 0),
        (WORSE, "strict", 1),
        (WORSE, "regressions", 1),
        (WORSE, "report", 0),
        (LOST, "strict", 10),
        (LOST, "regressions", 10),
        (LOST, "report", 0),
    ],
)
def test_gate_ends_as_the_policy_says(shared, run, policy, code, ok):
    """docker-agent PR 3946 and the like: 1 on a regression, 0 on none, 10 without a verdict."""
    out = ok(shared, "gate", run, "--baseline", "main", "--policy", policy, "-q", code=code)
    assert len(out.splitlines()) == 3
    assert f"(exit code {code}, policy {policy})" in out


@pytest.mark.parametrize(
    ("margin", "policy", "code"), [("1", "strict", 10), ("1", "regressions", 0), ("20", "strict", 0)]
)
def test_gate_with_a_margin_in_points(shared, margin, policy, code, ok):
    args = ("gate", SAME, "--baseline", "main", "--policy", policy, "--margin", margin)
    ok(shared, *args, code=code)


def test_gate_asks_as_the_run_was_recorded(shared, ok):
    assert "policy strict" in ok(shared, "gate", WORSE, "--baseline", "main", "-q", code=1)


def test_gate_by_thresholds_alone(shared, ok):
    ok(shared, "gate", HOLDOUT, code=0)
    ok(shared, "gate", SAME, "--min-pass-rate", "100%", code=0)
    assert "at least 95.0 % is asked for" in ok(shared, "gate", WORSE, "--min-pass-rate", "0.95", code=1)
    ok(shared, "gate", LOST, "--min-pass-rate", "0.9", code=10)


def test_gate_without_a_baseline_yet(shared, ok):
    out = ok(shared, "gate", SAME, "--baseline", "release/9", code=10)
    assert "\n  No baseline release/9 yet: nothing was recorded for it;\n" in out


def test_gate_and_diff_apply_what_the_session_was_asked_for(own, ok):
    Store.open(own / ".crashlab").set_fields(SAME, min_pass_rate=0.9)
    Store.open(own / ".crashlab").set_fields(WORSE, min_pass_rate=0.95, policy="regressions")
    ok(own, "gate", SAME, code=0)
    assert "at least 95.0 % is asked for" in ok(own, "gate", WORSE, code=1)
    assert "would end with 1." in ok(own, "diff", BASE, WORSE)


def test_diff_promises_what_gate_gives_for_a_case_s_own_threshold(own, ok):
    store = Store.open(own / ".crashlab")
    cases = {**ids(10), "test_agent.py::test_refund[case-3]": "PPPFF"}
    plans = {"test_agent.py::test_refund[case-3]": {"min_passes": 4}}
    record(store, cases, run_id="20261128T063300Z-least2", plans=plans)
    ok(own, "gate", "least2", "--baseline", BASE, code=1)
    assert "would end with 1.\n" in ok(own, "diff", BASE, "least2")


def test_gate_wants_a_holdout(shared, ok):
    ok(shared, "gate", SAME, "--baseline", "main", "--holdout", code=10)


def test_gate_by_the_simple_rule_wants_20_cases(shared, ok):
    out = ok(shared, "gate", WORSE, "--baseline", "main", "--method", "normal", code=10)
    assert "Fewer than 20 cases can be compared between the two runs (10)." in out


def test_gate_as_json_and_junit(shared, tmp_path, ok):
    junit = tmp_path / "out" / "junit.xml"
    out = ok(shared, "gate", WORSE, "--baseline", "main", "--json", "--junit", str(junit), code=1)
    data = json.loads(out)
    assert data["gate"]["exit_code"] == 1
    assert data["gate"]["failed_cases"] == ["test_agent.py::test_refund[case-3]"]
    (suite,) = ET.parse(junit).getroot()  # noqa: S314  written a line before
    assert (suite.get("tests"), suite.get("failures")) == ("10", "1")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("gate", SAME), "There is nothing to judge run"),
        (("gate", "nonsense", "--baseline", "main"), "There is no run nonsense in"),
        (("gate", "2026", "--baseline", "main"), "2026 fits 6 runs"),
        (("gate", SAME, "--baseline", "mian"), "Nothing was recorded for 'mian'; did you mean 'main'?"),
        (("gate", SAME, "--baseline", "release:9"), "No run has the release '9'"),
        (("gate", SAME, "--baseline", KILLED), "may not be the baseline: it has not finished"),
        (("gate", SAME, "--baseline", SAME), "may not be the baseline: it is this run itself"),
        (("gate", SAME, "--baseline", "main", "--margin", "0"), "--margin=0 is out of range"),
        (("gate", SAME, "--baseline", "main", "--margin", "wide"), "--margin=wide is out of range"),
        (("gate", SAME, "--min-pass-rate", "90"), "--min-pass-rate=90 is out of range"),
        (("gate", SAME, "--min-pass-rate", "nan"), "--min-pass-rate=nan is out of range"),
        (("gate", SAME, "--policy", "lenient"), "argument --policy: invalid choice"),
        (("gate",), "the following arguments are required: RUN"),
        (("nonsense",), "invalid choice: 'nonsense'"),
        ((), "the following arguments are required: VERB"),
        (("runs", "--limit", "few"), "--limit=few is no whole number from 0 to 1000000"),
        (("view", "../../etc/passwd"), "cannot be a run id"),
        (("view", "missing.crashrun"), "missing.crashrun cannot be read"),
        (("view", "x\x1b[31m"), r"'x\x1b[31m' cannot be a run id"),
        (("baseline",), "the following arguments are required: ACTION"),
        (("baseline", "promote", "../x", SAME), "cannot be a baseline's name"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(shared, args, sentence, refused):
    assert sentence in refused(shared, *args)


# ---- baseline


def test_baseline_promote_and_list(own, ok):
    out = ok(own, "baseline", "promote", "main", SAME)
    assert out == f"main stands for {SAME} now (before: {BASE}).\n"
    lines = ok(own, "baseline", "list").splitlines()
    assert lines[0].split() == ["name", "run", "commit", "passed", "drift"]
    assert lines[1].split() == ["main", SAME, "-", "100.0", "%", "0.0", "points", "in", "1", "promotion"]
    data = json.loads(ok(own, "baseline", "list", "--json"))
    assert [(b["name"], b["run"], b["drift"]) for b in data["baselines"]] == [("main", SAME, 0.0)]


def test_baseline_promote_refuses_with_its_reasons(own, ok, refused):
    assert "it has not finished" in refused(own, "baseline", "promote", "main", KILLED)
    assert "under 90 %" in refused(own, "baseline", "promote", "main", LOST)
    Store.open(own / ".crashlab").set_fields(WORSE, gate={"word": "Regressed", "exit_code": 1})
    assert "it was judged Regressed" in refused(own, "baseline", "promote", "main", WORSE)
    accepted = ("--accept-regression", "--reason", "the old answers were wrong")
    ok(own, "baseline", "promote", "main", WORSE, *accepted)
    assert Store.open(own / ".crashlab").refs.read("main") == WORSE


def test_baseline_export_is_a_file_that_works_elsewhere(own, ok):
    out = ok(own, "baseline", "export", "main", "main.crashrun")
    assert out.startswith(f"Run {BASE} is in main.crashrun (")
    ok(own, "gate", WORSE, "--baseline", "./main.crashrun", code=1)


def test_baseline_explain(own, ok):
    out = ok(own, "baseline", "explain", "main")
    assert out.splitlines()[0].startswith("baseline 20261121-base22 (main, ")
    assert "nothing was recorded for it" in ok(own, "baseline", "explain", "release/9")


def test_baseline_explain_lists_the_commits_it_walked(own, ok):
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"]

    def commit():
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=own, check=True)
        head = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=own, check=True, capture_output=True, text=True
        )
        return head.stdout.strip()

    subprocess.run([*git, "init", "-q"], cwd=own, check=True)
    first = commit()
    store = Store.open(own / ".crashlab")
    store.set_fields(BASE, git={"commit": first, "branch": "main"})
    store.set_fields(KILLED, git={"commit": first, "branch": "main"})
    second = commit()
    commit()
    out = ok(own, "baseline", "explain", "main")
    assert f"{second[:7]}  no run there" in out
    assert f"{first[:7]}  {BASE}  chosen" in out
    assert f"{first[:7]}  {KILLED}  refused: it has not finished" in out


# ---- recover


def test_recover_seals_what_a_killed_session_left(own, ok):
    out = ok(own, "recover", KILLED)
    assert out == (
        f"Run {KILLED} is sealed as cancelled: 4 trials decided, 0 undecided, 6 missing of 10 scheduled.\n"
    )
    assert Store.open(own / ".crashlab").manifest(KILLED).summary["missing"] == 6
    assert ok(own, "recover", KILLED) == f"Run {KILLED} was sealed already (cancelled).\n"


def test_recover_of_a_damaged_journal_says_what_to_do(own, ok, refused):
    journal = own / ".crashlab" / "runs" / KILLED / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([lines[0], b"{broken\n", *lines[1:]]))
    assert "Line 2 of " in refused(own, "recover", KILLED)
    out = ok(own, "recover", KILLED, "--skip-damaged")
    assert "1 line of its journal could not be read." in out


# ---- where the store is, and how it is printed


def test_the_store_is_found_from_below_by_flag_and_by_environment(shared, tmp_path, ok, refused):
    below = shared / "tests" / "deep"
    below.mkdir(parents=True, exist_ok=True)
    assert BASE in ok(below, "runs")
    assert BASE in ok(tmp_path, "runs", "--store", str(shared / ".crashlab"))
    assert BASE in ok(tmp_path, "--store", str(shared / ".crashlab"), "runs")
    assert BASE in ok(tmp_path, "runs", CRASHLAB_STORE=str(shared / ".crashlab"))
    assert "There is no store at" in refused(tmp_path, "runs")
    assert "There is no store at" in refused(shared, "runs", "--store", "elsewhere")


def test_exported_runs_need_no_store_and_make_none(shared, tmp_path, ok, refused):
    store = Store.open(shared / ".crashlab")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name, run_id in (("a", BASE), ("b", WORSE), ("h", HOLDOUT)):
        export_run(store, run_id, folder / f"{name}.crashrun")
    case = "test_agent.py::test_refund[case-3]"
    assert "(± 6.7" in ok(folder, "diff", "a.crashrun", "b.crashrun")
    case_diff = ok(folder, "diff", "a.crashrun", "b.crashrun", "--case", case)
    assert "5/5 -> 0/5" in case_diff
    gate = ok(folder, "gate", "b.crashrun", "--baseline", "a.crashrun", code=1)
    # What they say to type next names the files: no store knows their ids.
    assert f"crashlab view b.crashrun --case '{case}' --trial 1\n" in case_diff
    assert "crashlab diff a.crashrun b.crashrun --show worse\n" in gate
    assert f"crashlab view b.crashrun --case '{case}'\n" in ok(folder, "view", "b.crashrun")
    assert "'crashlab gate b.crashrun --baseline a.crashrun'" in ok(
        folder, "diff", "a.crashrun", "b.crashrun"
    )
    assert BASE in ok(folder, "view", "a.crashrun")
    assert "trial 1" in ok(folder, "view", "a.crashrun", "--case", case, "--trial", "1")
    for verb in ("inspect", "outcomes"):
        assert BASE in ok(folder, verb, "a.crashrun")
    assert BASE in ok(folder, "plan", "--baseline", "a.crashrun", "--trials", "5")
    # A look that cannot be counted is none, and a store that was named has to be there.
    look = ("view", "h.crashrun", "--case", "test_agent.py::test_refund[case-1]", "--look")
    assert "ledger.jsonl cannot be written: there is no store at" in refused(folder, *look)
    for args in (
        ("view", "latest"),
        ("diff", "a.crashrun", WORSE),
        ("gate", "b.crashrun", "--baseline", "main"),
        ("view", "a.crashrun", "--store", "nowhere"),
    ):
        assert "There is no store at" in refused(folder, *args)
    assert sorted(path.name for path in folder.iterdir()) == ["a.crashrun", "b.crashrun", "h.crashrun"]


def test_an_empty_store(tmp_path, ok, refused):
    Store.open(tmp_path / ".crashlab", create=True)
    assert ok(tmp_path, "runs") == "No runs. Record one with 'pytest --trials=5'.\n"
    assert "no run yet" in refused(tmp_path, "view", "latest")
    assert ok(tmp_path, "baseline", "list").startswith("No names.")


def test_colour_only_where_it_is_wanted(shared, ok):
    args = ("gate", WORSE, "--baseline", "main")
    assert "\x1b" not in ok(shared, *args, code=1)
    assert "\x1b[1;31mRegressed\x1b[0m" in ok(shared, *args, code=1, FORCE_COLOR="1")
    assert "\x1b" not in ok(shared, *args, code=1, FORCE_COLOR="1", NO_COLOR="1")


def test_width_follows_the_terminal(shared, ok):
    wide = ok(shared, "gate", SAME, "--baseline", "main", COLUMNS="200")
    assert "(± 6" not in wide
    assert max(len(line) for line in wide.splitlines()) > 100
    narrow = ok(shared, "gate", SAME, "--baseline", "main", COLUMNS="60")
    assert all(len(line) <= 60 for line in narrow.splitlines() if "crashlab" not in line)


def test_a_reader_that_goes_away_is_no_error(shared):
    command = subprocess.Popen(
        [COMMAND, "gate", WORSE, "--baseline", "main"],
        cwd=shared,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    command.stdout.close()
    err = command.stderr.read()
    command.stderr.close()
    assert (command.wait(), err) == (1, b"")


@pytest.mark.parametrize(
    "verb",
    [
        (),
        ("runs",),
        ("view",),
        ("diff",),
        ("gate",),
        ("baseline",),
        ("baseline", "list"),
        ("baseline", "promote"),
        ("baseline", "export"),
        ("baseline", "explain"),
        ("recover",),
    ],
    ids=lambda v: "-".join(v) or "crashlab",
)
def test_every_help_has_an_example(verb, capsys):
    assert main([*verb, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"example:\n  crashlab {' '.join(verb)}".rstrip() in out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pytest-crashlab {__version__}\n"


def test_diff_names_the_file_in_the_gate_that_it_announces(shared, ok, tmp_path):
    """No store holds the run of a file by its id alone."""
    path = tmp_path / "main.crashrun"
    ok(shared, "baseline", "export", "main", str(path))
    out = ok(shared, "diff", str(path), WORSE)
    assert f"--baseline {path}' would end with 1." in out


def test_an_outcome_named_after_the_run_is_exploratory(shared, ok):
    card = json.loads(ok(shared, "diff", BASE, WORSE, "--outcome", "failed,crashed", "--json"))["verdict"]
    found = {d["name"]: d for d in card["deltas"] if d["group"] == "outcome"}
    assert {name: d["exploratory"] for name, d in found.items()} == {"failed": True, "crashed": True}
    assert found["failed"]["b"] == pytest.approx(0.1)
    assert found["crashed"]["why"] == "assigned in neither run"
    drawn = ok(shared, "gate", WORSE, "--baseline", BASE, "--outcome", "failed", code=1)
    assert "outcome failed: 0.0 % -> 10.0 %" in drawn


def test_outcomes_without_a_run_are_the_built_in_ones(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    assert main(["outcomes"]) == 0
    said = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "builtins.ConnectionError network_error" in said
    assert "verifier_error instrument The code that judges the target failed itself." in said
    assert main(["outcomes", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == "crashlab.builtin_outcomes"
    assert data["exceptions"]["socket.gaierror"] == "network_error"
    kinds = {outcome["label"]: outcome["kind"] for outcome in data["outcomes"]}
    assert (kinds["crashed"], kinds["wall_clock"], kinds["skipped"]) == ("crash", "instrument", "excluded")


def test_outcomes_of_a_run_by_the_line_that_assigned_them(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    store = Store.open(tmp_path / "s", create=True)
    words = {
        "key": "v",
        "where": "t.py::t",
        "outcomes": [
            {"label": "passed", "kind": "pass", "definition": "Solved or not refused."},
            {"label": "gave_up", "kind": "fail", "definition": "The agent said that it cannot."},
        ],
        "silence": {"or_in_definition:passed": "no way to tell"},
    }
    plans = {"t.py::t[0]": {"vocabulary": "v"}}
    cases = {"t.py::t[0]": "PPFC.", "t.py::t[1]": "PPPFE"}
    extra = [row("t.py::t[0]", 5, "C", site="agent.py:3")]
    record(store, cases, rows=extra, plans=plans, vocabularies=[words], run_id=BASE)
    assert main(["--store", str(tmp_path / "s"), "outcomes", BASE]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"crashlab run {BASE}: 10 trials"
    assert [line.split() for line in said[3:8]] == [
        ["passed", "pass", "5", "test_agent.py:10"],
        ["crashed", "crash", "1", "agent.py:3"],
        ["crashed", "crash", "1", "test_agent.py:13"],
        ["failed", "fail", "2", "test_agent.py:11"],
        ["provider_error", "instrument", "1", "test_agent.py:14"],
    ]
    assert "  passed          Solved or not refused." in said
    assert "  Declared and never assigned: gave_up" in said
    assert any("crashed is assigned at 2 places in t.py::t" in line for line in said)
    assert any("Silenced: no way to tell" in line for line in said)
    assert main(["--store", str(tmp_path / "s"), "outcomes", BASE, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["unused"] == ["gave_up"]
    assert data["assignments"][1] == {
        "label": "crashed",
        "kind": "crash",
        "site": "agent.py:3",
        "trials": 1,
        "before": None,
        "definition": "The target raised an exception of its own.",
    }


def test_diff_shows_the_labels_of_both_runs_by_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    store = Store.open(tmp_path / "s", create=True)
    record(store, ids(3), run_id=BASE)
    worse = {**ids(3), "test_agent.py::test_refund[case-0]": "CCC.."}
    extra = [row("test_agent.py::test_refund[case-0]", n, "C", site="agent.py:3") for n in (4, 5)]
    record(store, worse, rows=extra, run_id=WORSE)
    assert main(["--store", str(tmp_path / "s"), "diff", BASE, WORSE]) == 0
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    at = said.index(["Outcomes", "by", "the", "line", "that", "assigned", "them"])
    assert said[at + 1 : at + 5] == [
        ["label", "kind", "before", "now", "assigned", "at"],
        ["passed", "pass", "15", "10", "test_agent.py:10"],
        ["crashed", "crash", "0", "2", "agent.py:3"],
        ["crashed", "crash", "0", "3", "test_agent.py:13"],
    ]
    assert main(["--store", str(tmp_path / "s"), "diff", BASE, WORSE, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["assignments"][1]["before"] == 0


def test_amend_before_and_not_after_a_comparison(tmp_path, capsys):
    store = Store.open(tmp_path / "s", create=True)
    record(store, ids(3), run_id=BASE)
    record(store, {**ids(3), "test_agent.py::test_refund[case-0]": "CCPPP"}, run_id=WORSE, summarise=True)
    command = ["--store", str(tmp_path / "s")]
    amend = [*command, "amend", WORSE, "--exclude", "crashed", "--reason", "no balance"]
    assert main(amend) == 0
    assert "13 of 13 scheduled trials are decided now." in capsys.readouterr().out
    assert main([*command, "runs"]) == 0
    assert [line.strip() for line in capsys.readouterr().out.splitlines()].count("amended") == 1
    assert store.manifest(WORSE).summary["excluded"] == 2
    assert main([*command, "view", WORSE]) == 0
    assert "trials of crashed (2) are excluded: no balance" in capsys.readouterr().out
    assert main([*command, "diff", BASE, WORSE]) == 0
    assert "Note: This run was amended before it was compared." in " ".join(capsys.readouterr().out.split())
    assert main([*command, "amend", BASE, "--exclude", "passed", "--reason", "too good"]) == 4
    said = capsys.readouterr().err
    assert f"Run {BASE} has been compared with {WORSE}, so it cannot be amended any more" in said
