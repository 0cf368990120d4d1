"""Trials of other tools become runs, whole or not at all."""

from __future__ import annotations

import gzip
import json
import math
import zipfile

import polars as pl
import pytest

from pytest_crashlab import Store, load_run
from pytest_crashlab.cli import main
from pytest_crashlab.compare import compare_runs, run_numbers
from pytest_crashlab.errors import StoreError, UsageError
from pytest_crashlab.store.export import export_run
from tests.acceptance.importing_builders import bring_in, json_lines, trials


@pytest.fixture
def refused(tmp_path, capsys):
    """The one sentence of an import that ends with 4 and leaves nothing behind."""

    def run(*args):
        assert main(["--store", str(tmp_path / "store"), "import", *map(str, args)]) == 4
        said = capsys.readouterr()
        assert said.out == ""
        (sentence,) = said.err.splitlines()
        assert not (tmp_path / "store").exists()
        return sentence.removeprefix("crashlab: ")

    return run


def counts(run):
    return {k: v for k, v in run.manifest.counts.items() if v}


# ---- JSON lines and Parquet


def test_two_arms_become_two_runs_and_the_next_command_compares_them(tmp_path, capsys):
    rows = trials({"a": "PPF", "b": "PPP"}, arm="old") + trials({"a": "PPP", "b": "PFP"}, arm="new")
    runs = bring_in(tmp_path, json_lines(tmp_path / "t.jsonl", rows), "--release", "2.3")
    old, new = runs["old"].manifest, runs["new"].manifest
    assert f"Next: crashlab diff {old.id} {new.id}" in capsys.readouterr().out
    assert (old.status, old.k, old.planned_cases, old.release, old.name) == ("completed", 3, 2, "2.3", "old")
    assert old.summary["pass_rate"] == pytest.approx(5 / 6)
    assert (old.imported["format"], old.imported["source"]) == ("JSON lines", "t.jsonl")
    assert old.recorded_for == []
    assert old.git is None
    assert compare_runs(runs["old"], runs["new"]).delta == pytest.approx(0)


def timed(order, cases="ab"):
    """A letter of ``order`` is the arm of one trial, a second apart; cases take turns within an arm."""
    seen = {}
    rows = []
    for second, arm in enumerate(order):
        n = seen[arm] = seen.get(arm, -1) + 1
        case, trial = cases[n % len(cases)], n // len(cases) + 1
        rows.append({"case": case, "trial": trial, "passed": True, "arm": arm, "start": 1000.0 + second})
    return rows


@pytest.mark.parametrize(
    ("order", "in_turn"),
    [
        ("xyxyxyxyxyxy", True),
        ("xyyxyxxyyxxy", True),
        ("xxxxxxyyyyyy", False),
        ("xxxyyyxxxyyy", True),
        ("xxxxxxxyyyyyxy", False),
        ("xyzxyzxyzxyz", True),
        ("xyxyxyxyzzzz", False),
    ],
)
def test_arms_that_took_turns_are_interleaved(tmp_path, order, in_turn):
    """Six and six trials change the arm six times by chance: three changes are asked for."""
    runs = bring_in(tmp_path, json_lines(tmp_path / "t.jsonl", timed(order)))
    x, y = runs["x"], runs["y"]
    assert compare_runs(x, y).interleaved is in_turn
    if in_turn:
        assert x.manifest.interleaved == x.manifest.imported["sha256"]


def test_arms_that_are_imported_one_by_one_are_interleaved_too(tmp_path):
    path = json_lines(tmp_path / "t.jsonl", timed("xyxyxyxy"))
    x = bring_in(tmp_path, path, "--arm", "x")["x"]
    y = bring_in(tmp_path, path, "--arm", "y")["y"]
    assert compare_runs(x, y).interleaved


def test_without_every_start_nobody_knows_whether_arms_took_turns(tmp_path):
    rows = timed("xyxyxyxy")
    del rows[3]["start"]
    runs = bring_in(tmp_path, json_lines(tmp_path / "t.jsonl", rows))
    assert not compare_runs(runs["x"], runs["y"]).interleaved


def test_values_that_are_not_given_are_null(tmp_path):
    (run,) = bring_in(tmp_path, json_lines(tmp_path / "t.jsonl", trials({"a": "P"}))).values()
    row = run.trials.row(0, named=True)
    empty = (
        "t",
        "horizon",
        "start",
        "duration",
        "run_duration",
        "tokens_in",
        "tokens_out",
        "cost_usd",
        "site",
    )
    assert {name: row[name] for name in empty} == dict.fromkeys(empty)


def test_columns_can_have_other_names_and_all_of_them_are_kept(tmp_path):
    row = {
        "task_id": "a",
        "epoch": 0,
        "ok": 1,
        "secs": 2.5,
        "in": 10,
        "out": 3,
        "usd": 0.01,
        "basis": "billed",
    }
    row |= {"steps": 4, "max": 20, "unit": "turns", "when": "2026-11-30T06:33:00+00:00"}
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(row).encode()))
    names = "case=task_id trial=epoch passed=ok latency=secs tokens_in=in tokens_out=out cost_usd=usd"
    names += " cost_basis=basis t=steps horizon=max t_unit=unit start=when"
    (run,) = bring_in(tmp_path, path, *(f"--map={text}" for text in names.split())).values()
    kept = run.trials.row(0, named=True)
    assert (kept["case"], kept["trial"], kept["outcome"], kept["run_duration"]) == ("a", 1, "passed", 2.5)
    assert (kept["tokens_in"], kept["tokens_out"], kept["cost_usd"], kept["cost_basis"]) == (
        10,
        3,
        0.01,
        "billed",
    )
    assert (kept["t"], kept["horizon"], kept["t_unit"], kept["start"]) == (4, 20, "turns", 1_796_020_380)


def test_a_parquet_table_gives_what_its_json_lines_give(tmp_path):
    rows = trials({"a": "PF", "b": "PP"}, latency=1.5)
    pl.DataFrame(rows).write_parquet(tmp_path / "t.parquet")
    (one,) = bring_in(tmp_path, tmp_path / "t.parquet").values()
    (other,) = bring_in(tmp_path, json_lines(tmp_path / "t.jsonl", rows)).values()
    assert one.trials.equals(other.trials)
    assert one.trials["run_duration"].to_list() == [1.5] * 4


def test_an_unknown_label_is_asked_for_with_its_count(tmp_path, refused):
    rows = [{"case": "a", "trial": n, "outcome": label} for n, label in enumerate(["ok", "oom", "oom"])]
    said = refused(json_lines(tmp_path / "t.jsonl", rows), "--passed", "ok")
    assert "oom (2)" in said
    assert "ok (1)" not in said
    assert said.endswith("for example --instrument oom.")


def test_labels_become_the_kinds_they_were_given(tmp_path):
    labels = ["ok", "bad", "boom", "oom", "skip", "provider_error"]
    rows = [{"case": "a", "trial": n, "outcome": label} for n, label in enumerate(labels)]
    path = json_lines(tmp_path / "t.jsonl", rows)
    options = "--passed ok --failed bad --crashed boom --instrument oom --excluded skip"
    (run,) = bring_in(tmp_path, path, *options.split()).values()
    kinds = dict(run.trials.select("outcome", pl.col("kind").cast(pl.String)).iter_rows())
    assert kinds == {
        "ok": "pass",
        "bad": "fail",
        "boom": "crash",
        "oom": "instrument",
        "skip": "excluded",
        "provider_error": "instrument",
    }
    assert run.manifest.imported["kinds"]["oom"] == "instrument"


def test_bad_rows_are_named_by_line_and_counted(tmp_path, refused):
    path = tmp_path / "t.jsonl"
    good = '{"case": "a", "trial": 1, "passed": true}\n'
    path.write_text(
        good + '{"case": "a", "tr\n' + '{"trial": 2}\n[]\n{"case": "b", "passed": "yes"}\n', "utf-8"
    )
    said = refused(path)
    assert "4 bad rows (line 2: no JSON; line 3: case is not given; line 4: not an object and 1 more)" in said


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([{"case": "a", "passed": True}], "--number-trials"),
        (trials({"a": "P"}) * 2, "line 2: trial 1 of a is there already"),
        ([{"case": "a", "trial": -1, "passed": True}], "out of range"),
        ([{"case": "a", "trial": 1, "passed": True, "outcome": "crashed"}], "it passed and 'crashed'"),
        ([{"case": "a", "trial": 1, "score": 0.4}], "--pass-at 0.5"),
        ([{"id": "a", "trial": 1}], "--map case=NAME (it has id, trial)"),
        ([], "holds no row"),
    ],
)
def test_what_cannot_be_known_is_said(tmp_path, refused, rows, says):
    assert says in refused(json_lines(tmp_path / "t.jsonl", rows))


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--map", "case"), "write FIELD=COLUMN"),
        (("--map", "t=steps"), "has no column of that name"),
        (("--passed", "x", "--failed", "x"), "'x' is given as pass and as fail"),
        (("--arm", "z"), "has no arm 'z'"),
        (("--trials", "many"), "write a number"),
    ],
)
def test_options_that_cannot_be_followed_are_refused(tmp_path, refused, args, says):
    assert says in refused(json_lines(tmp_path / "t.jsonl", trials({"a": "P"})), *args)


def test_a_later_attempt_is_an_attempt_where_the_source_says_so(tmp_path):
    rows = [
        {"case": "a", "trial": 1, "attempt": 1, "outcome": "provider_error"},
        {"case": "a", "trial": 1, "attempt": 2, "passed": True},
    ]
    (run,) = bring_in(tmp_path, json_lines(tmp_path / "t.jsonl", rows)).values()
    assert run.trials["deciding"].to_list() == [False, True]
    assert counts(run) == {"planned": 1, "passed": 1, "scheduled": 1, "healthy": 1}


def test_what_a_case_lacks_is_missing_unless_each_plans_its_own(tmp_path):
    path = json_lines(tmp_path / "t.jsonl", trials({"a": "PPP", "b": "P"}))
    (run,) = bring_in(tmp_path, path).values()
    assert run.manifest.counts["missing"] == 2
    (own,) = bring_in(tmp_path, path, "--trials", "own").values()
    assert (own.manifest.counts["missing"], own.manifest.counts["planned"]) == (0, 4)


def test_zero_tokens_beside_work_are_not_measured(tmp_path, capsys):
    rows = trials({"a": "PF"}, tokens_in=0, tokens_out=7, cost_usd=0)
    (run,) = bring_in(tmp_path, json_lines(tmp_path / "t.jsonl", rows)).values()
    assert run.trials.select("tokens_in", "tokens_out", "cost_usd").rows() == [(None, 7, None)] * 2
    assert "tokens_in is 0 in 2 of 2 trials: read as not measured" in capsys.readouterr().out
    assert len(run.manifest.warnings) == 2


def test_a_dry_run_says_what_would_come_and_stores_nothing(tmp_path, capsys):
    path = json_lines(tmp_path / "t.jsonl", trials({"a": "PF"}))
    assert main(["--store", str(tmp_path / "store"), "import", str(path), "--dry-run"]) == 0
    assert "Would import 1 case, 2 of 2 trials decided, 1 passed" in capsys.readouterr().out
    assert not (tmp_path / "store").exists()


def test_an_imported_run_can_be_promoted_viewed_and_exported(tmp_path, capsys):
    (run,) = bring_in(tmp_path, json_lines(tmp_path / "t.jsonl", trials({"a": "PPP"}))).values()
    store = str(tmp_path / "store")
    assert main(["--store", store, "baseline", "promote", "main", run.manifest.id]) == 0
    assert main(["--store", store, "view", "main"]) == 0
    assert "100" in capsys.readouterr().out
    assert load_run("main", store).manifest.recorded_for == ["main"]
    file = export_run(Store.open(store), run.manifest.id, tmp_path / "main.crashrun")
    assert load_run(file).trials.equals(run.trials)


def test_imports_that_read_a_label_differently_get_no_verdict(tmp_path):
    rows = [
        {"case": f"c{i}", "trial": t, "outcome": "late" if t > 2 else "ok"}
        for i in range(4)
        for t in (1, 2, 3)
    ]
    path = json_lines(tmp_path / "t.jsonl", rows)
    (failing,) = bring_in(tmp_path / "a", path, "--passed", "ok", "--failed", "late").values()
    (undecided,) = bring_in(tmp_path / "b", path, "--passed", "ok", "--instrument", "late").values()
    codes = {reason.code: reason.text for reason in compare_runs(failing, undecided).reasons}
    assert "(late as fail in the baseline, as instrument in this run)" in codes["kinds_differ"]
    (same,) = bring_in(tmp_path / "c", path, "--passed", "ok", "--failed", "late").values()
    assert "kinds_differ" not in {reason.code for reason in compare_runs(failing, same).reasons}


def test_no_session_goes_on_with_an_imported_run(tmp_path):
    (run,) = bring_in(tmp_path, json_lines(tmp_path / "t.jsonl", trials({"a": "P"}))).values()
    with pytest.raises(StoreError, match="was imported: there is no session to go on with"):
        Store.open(tmp_path / "store").reopen(run.manifest.id)


def test_load_run_takes_a_prefix_a_file_and_the_nearest_store(tmp_path, monkeypatch):
    (run,) = bring_in(tmp_path, json_lines(tmp_path / "t.jsonl", trials({"a": "PPP"}))).values()
    (tmp_path / "store").rename(tmp_path / ".crashlab")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    monkeypatch.delenv("CRASHLAB_STORE", raising=False)
    assert load_run(run.manifest.id[:12]).cases.equals(run.cases)
    assert load_run("latest", Store.open(tmp_path / ".crashlab")).manifest.id == run.manifest.id
    with pytest.raises(StoreError, match="There is no run zebra"):
        load_run("zebra")
    bring_in(tmp_path, json_lines(tmp_path / "t.jsonl", trials({"a": "PPP"})))


# ---- JUnit


JUNIT = """<testsuites><testsuite name="s">
<testcase classname="t" name="a" time="0.5"/>
<testcase classname="t" name="b" time="1.5">{b}</testcase>
</testsuite></testsuites>"""


def test_each_junit_file_is_a_trial_of_every_case(tmp_path, refused):
    folder = tmp_path / "reports"
    folder.mkdir()
    for n, inner in enumerate(["", '<failure message="no"/>', '<error message="fixture"/>', "<skipped/>"]):
        (folder / f"{n}.xml").write_text(JUNIT.format(b=inner), "utf-8")
    assert "error (1)" in refused(folder)
    (run,) = bring_in(tmp_path, folder, "--instrument", "error").values()
    b = run.trials.filter(pl.col("case") == "t::b")
    assert b["trial"].to_list() == [1, 2, 3, 4]
    assert b["outcome"].to_list() == ["passed", "failed", "error", "skipped"]
    assert b["message"].to_list() == [None, "no", "fixture", None]
    assert b["duration"].to_list() == [1.5] * 4
    assert (run.manifest.counts["passed"], run.manifest.counts["undecided"]) == (5, 1)


def test_a_case_that_a_junit_file_lacks_is_missing_there(tmp_path):
    (tmp_path / "1.xml").write_text(JUNIT.format(b=""), "utf-8")
    (tmp_path / "2.xml").write_text('<testsuite><testcase classname="t" name="a"/></testsuite>', "utf-8")
    (run,) = bring_in(tmp_path, tmp_path / "1.xml", tmp_path / "2.xml").values()
    assert run.manifest.counts["missing"] == 1


def test_trials_that_a_junit_file_names_itself(tmp_path):
    cases = "".join(f'<testcase classname="t" name="x[b-trial{n}]"/>' for n in (1, 2, 3))
    (tmp_path / "1.xml").write_text(f"<testsuite>{cases}</testsuite>", "utf-8")
    (run,) = bring_in(tmp_path, tmp_path / "1.xml").values()
    assert run.manifest.case_ids == ["t::x[b]"]
    assert run.trials["trial"].to_list() == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<a", "is no XML"),
        ("<html/>", "is no JUnit report"),
        ("<testsuite/>", "holds no test case"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><testsuite/>', "declares entities"),
        ('<testsuite><testcase name="a"/><testcase name="a"/></testsuite>', "a is in the file twice"),
    ],
)
def test_a_file_that_is_no_report_is_refused(tmp_path, refused, text, says):
    (tmp_path / "1.xml").write_text(text, "utf-8")
    assert says in refused(tmp_path / "1.xml")


# ---- Inspect


def sample(case, epoch, value, **fields):
    scores = {} if value is None else {"match": {"value": value}}
    return {"id": case, "epoch": epoch, "input": f"q{case}", "target": "x", "scores": scores, **fields}


HEADER = {
    "version": 2,
    "status": "success",
    "eval": {
        "task": "refunds",
        "model": "openai/gpt-4o",
        "dataset": {"name": "orders", "sample_ids": [1, 2]},
        "config": {"epochs": 2},
    },
}
SAMPLES = [
    sample(
        1,
        1,
        "C",
        total_time=3.0,
        working_time=2.5,
        started_at="2026-11-30T06:33:00+00:00",
        model_usage={
            "openai/gpt-4o": {"input_tokens": 60, "input_tokens_cache_read": 40, "output_tokens": 2}
        },
    ),
    sample(1, 2, "I", limit={"type": "message", "limit": 5}),
    sample(2, 1, "I", error={"message": "Timeout\nof the host", "traceback": ""}),
]


def archive(path, samples, header=HEADER):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.json", json.dumps(header))
        for one in samples:
            file.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
    return path


def test_epochs_of_an_inspect_log_are_trials(tmp_path, refused):
    path = archive(tmp_path / "log.eval", SAMPLES)
    assert "error (1)" in refused(path)
    (run,) = bring_in(tmp_path, path, "--instrument", "error").values()
    assert run.trials["outcome"].to_list() == ["passed", "failed", "error"]
    assert run.trials["target_completed"].to_list() == [True, False, False]
    assert run.trials["message"].to_list() == [None, None, "Timeout of the host"]
    first = run.trials.row(0, named=True)
    assert (first["tokens_in"], first["tokens_out"], first["cost_usd"]) == (100, 2, None)
    assert (first["duration"], first["run_duration"], first["start"]) == (3.0, 2.5, 1_796_020_380)
    manifest = run.manifest
    assert (manifest.name, manifest.dataset, manifest.k) == ("refunds", "orders", 2)
    assert manifest.environment == {"model": "openai/gpt-4o"}
    assert counts(run) == {
        "planned": 4,
        "passed": 1,
        "failed": 1,
        "undecided": 1,
        "missing": 1,
        "scheduled": 4,
        "healthy": 2,
    }
    assert run.cases["content"].n_unique() == 2


def test_an_inspect_log_as_json_gives_the_same_trials(tmp_path):
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**HEADER, "samples": SAMPLES}), "utf-8")
    (one,) = bring_in(tmp_path, path, "--instrument", "error").values()
    (other,) = bring_in(tmp_path, archive(tmp_path / "log.eval", SAMPLES), "--instrument", "error").values()
    assert one.trials.equals(other.trials)


def test_an_inspect_log_that_did_not_end_well_is_no_completed_run(tmp_path):
    path = archive(tmp_path / "log.eval", SAMPLES[:1], {**HEADER, "status": "started"})
    (run,) = bring_in(tmp_path, path).values()
    assert run.manifest.status == "cancelled"


@pytest.mark.parametrize(
    ("samples", "args", "says"),
    [
        ([sample(1, 1, "P"), sample(2, 1, "N")], (), "P (1), N (1)"),
        ([sample(1, 1, 0.7)], (), "--pass-at"),
        (
            [{**sample(1, 1, 1), "scores": {"a": {"value": 1}, "b": {"value": 0}}}],
            (),
            "choose one with --score",
        ),
        ([sample(1, 1, "C")], ("--score", "zebra"), "it has no score 'zebra', but match"),
        ([sample(1, 1, None, limit={"type": "time", "limit": 1})], (), "limit (1)"),
        ([], (), "holds no sample"),
    ],
)
def test_what_an_inspect_log_leaves_open_is_asked_for(tmp_path, refused, samples, args, says):
    assert says in refused(archive(tmp_path / "log.eval", samples), *args)


# ---- small inputs that such tools got wrong


def test_ten_percent_without_a_decision_still_allow_a_verdict_and_eleven_do_not(tmp_path):
    def run(errors):
        letters = "P" * 80 + "F" * (20 - errors)
        rows = [{"case": f"c{n}", "trial": 1, "passed": x == "P"} for n, x in enumerate(letters)]
        rows += [{"case": f"e{n}", "trial": 1, "outcome": "provider_error"} for n in range(errors)]
        (found,) = bring_in(tmp_path, json_lines(tmp_path / "t.jsonl", rows)).values()
        return found

    ten, eleven = run(10), run(11)
    ratios = {r.name: (r.numerator, r.denominator) for r in run_numbers(ten).ratios}
    assert ratios["end-to-end success"] == (80, 100)
    assert ratios["behavioural success"] == (80, 90)
    assert ratios["infrastructure availability"] == (90, 100)
    assert not [r for r in compare_runs(ten, ten).reasons if r.code.startswith("too_many")]
    assert [r.code for r in compare_runs(eleven, eleven).reasons if r.code.startswith("too_many")] != []


def test_an_error_that_also_carries_a_score_gives_no_decision(tmp_path):
    rows = [
        {"case": "a", "trial": 1, "passed": True},
        {"case": "a", "trial": 2, "passed": False, "outcome": "provider_error"},
    ]
    (run,) = bring_in(tmp_path, json_lines(tmp_path / "t.jsonl", rows)).values()
    summary = run.manifest.summary
    assert (summary["passes"], summary["decided"], summary["scheduled"]) == (1, 1, 2)


def test_scores_of_nan_and_null_give_no_decision_and_others_are_refused(tmp_path, refused):
    rows = [{"case": "a", "trial": n, "passed": value} for n, value in enumerate([1, 0, math.nan, None, 1.7])]
    said = refused(json_lines(tmp_path / "t.jsonl", rows))
    assert "line 5: passed is 1.7, neither true, false, 1 nor 0" in said
    (run,) = bring_in(tmp_path, json_lines(tmp_path / "t.jsonl", rows[:4])).values()
    assert (run.manifest.summary["decided"], run.manifest.counts["missing"]) == (2, 2)


def test_three_trials_of_which_the_verifier_lost_two(tmp_path):
    rows = [{"case": "a", "trial": 1, "passed": False}]
    rows += [{"case": "a", "trial": n, "outcome": "verifier_error"} for n in (2, 3)]
    (run,) = bring_in(tmp_path, json_lines(tmp_path / "t.jsonl", rows)).values()
    summary = run.manifest.summary
    assert (summary["passes"], summary["decided"], summary["undecided"]) == (0, 1, 2)


def test_a_word_that_fits_several_runs_is_refused(tmp_path):
    path = json_lines(tmp_path / "t.jsonl", trials({"a": "P"}))
    bring_in(tmp_path, path)
    bring_in(tmp_path, path)
    with pytest.raises(UsageError, match="fits 2 runs"):
        load_run(Store.open(tmp_path / "store").run_ids()[0][:4], tmp_path / "store")
