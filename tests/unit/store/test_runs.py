from __future__ import annotations

import json
import os

import pytest
from store_builders import plan_of, record, trial_row

from pytest_crashlab.errors import CorruptRun, FormatTooNew, StoreError
from pytest_crashlab.records.case import CasePlan
from pytest_crashlab.records.check import CheckRow
from pytest_crashlab.records.outcome import Kind
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.records.trial import Phase, TrialRow
from pytest_crashlab.store.heads import RunHead
from pytest_crashlab.store.runs import Store
from pytest_crashlab.store.schema import Manifest


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / ".crashlab", create=True)


def test_a_new_store_is_hidden_from_git_and_says_its_format(store):
    assert (store.root / ".gitignore").read_text() == "*\n"
    assert json.loads((store.root / "store.json").read_text())["format"] == 1
    assert Store.open(store.root).manifests() == []


def test_a_store_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(StoreError, match=r"There is no store at .*none"):
        Store.open(tmp_path / "none")


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_file_in_the_place_of_a_store_is_refused(tmp_path, create, below):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="is a file or lies below one"):
        Store.open(tmp_path / "file" / below if below else tmp_path / "file", create=create)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_with_other_things_is_not_made_a_store(tmp_path):
    (tmp_path / "src").mkdir()
    with pytest.raises(StoreError, match=r"holds other things \(src\)"):
        Store.open(tmp_path, create=True)
    assert not (tmp_path / ".gitignore").exists()


def test_a_store_of_a_later_format_is_left_alone(store):
    (store.root / "store.json").write_text('{"format": 2}')
    with pytest.raises(FormatTooNew, match="has format 2 and this version reads format 1"):
        Store.open(store.root, create=True)


@pytest.mark.parametrize("text", ["", "[]", '{"format": "1"}', '{"format": true}', "\x00", "{}"])
def test_a_store_without_a_readable_format_is_refused(store, text):
    (store.root / "store.json").write_text(text)
    with pytest.raises(StoreError, match="does not say which format"):
        Store.open(store.root)


def test_what_is_recorded_is_read_back_before_and_after_the_seal(store):
    writer = store.begin(Manifest(id="20261130T063300Z-k3v9q2", name="first", k=2))
    writer.write_plan(plan_of("t.py::test_a", "t.py::test_b", k=2))
    full = TrialRow(
        case="t.py::test_a",
        trial=1,
        outcome="refunded",
        kind=Kind.PASS,
        phase=Phase.VERIFY,
        infra_healthy=True,
        target_completed=True,
        t=7,
        horizon=20.5,
        t_unit="turns",
        start=1_764_484_380.25,
        duration=2.5,
        run_duration=2.25,
        prepare_s=0.125,
        verify_s=0.0625,
        record_s=0.03125,
        worker="gw1",
        site="t.py:12",
        failure_class="fabrication",
        message="says \u00e4 \U0001f600",
        record_error="tear-down failed",
        tokens_in=1200,
        tokens_out=80,
        cost_usd=0.0125,
        cost_basis="estimated",
        judge_calls=2,
        judge_tokens_in=900,
        judge_tokens_out=60,
        judge_s=1.5,
        judge_cost_usd=0.005,
        judge_cost_basis="billed",
        judge_models="openai:strict",
        judge_voted=1,
        judge_split=0,
        replayed=True,
        answers="kQ1Zp0Yx7bAt =Vm3uR8nW2sLd",
        cached=True,
    )
    checks = [
        CheckRow(name="amount", required=True, ok=True, why="read", site="t.py:9", kind="code"),
        CheckRow(name="style", required=False, ok=None),
    ]
    assert writer.append(full, checks)
    assert writer.append(trial_row("t.py::test_b", 2, None))
    running = store.load(writer.run_id)
    assert running.manifest.status is RunStatus.RUNNING
    manifest = writer.seal(RunStatus.CANCELLED, summary={"pass_rate": 0.5})
    sealed = store.load(manifest.id)
    assert sealed.trials.equals(running.trials)
    assert sealed.checks.equals(running.checks)
    assert sealed.cases.equals(running.cases)
    assert sealed.trials.row(0, named=True) == {
        "case": "t.py::test_a",
        "trial": 1,
        "attempt": 1,
        "outcome": "refunded",
        "kind": "pass",
        "decision": "pass",
        "deciding": True,
        "phase": "verify",
        "infra_healthy": True,
        "target_completed": True,
        "t": 7.0,
        "horizon": 20.5,
        "t_unit": "turns",
        "start": 1_764_484_380.25,
        "duration": 2.5,
        "run_duration": 2.25,
        "prepare_s": 0.125,
        "verify_s": 0.0625,
        "record_s": 0.03125,
        "worker": "gw1",
        "site": "t.py:12",
        "failure_class": "fabrication",
        "message": "says \u00e4 \U0001f600",
        "record_error": "tear-down failed",
        "tokens_in": 1200,
        "tokens_out": 80,
        "cost_usd": 0.0125,
        "cost_basis": "estimated",
        "prompt": None,
        "models": None,
        "judge_calls": 2,
        "judge_tokens_in": 900,
        "judge_tokens_out": 60,
        "judge_s": 1.5,
        "judge_cost_usd": 0.005,
        "judge_cost_basis": "billed",
        "judge_models": "openai:strict",
        "judge_voted": 1,
        "judge_split": 0,
        "replayed": True,
        "answers": "kQ1Zp0Yx7bAt =Vm3uR8nW2sLd",
        "cached": True,
    }
    assert sealed.manifest.replayed
    unmeasured = (None,) * 4  # judge, value, at_least, at_most
    assert sealed.checks.rows() == [
        ("t.py::test_a", 1, 1, "amount", True, True, "read", "t.py:9", *unmeasured, "code", None, None),
        ("t.py::test_a", 1, 1, "style", False, None, None, None, *unmeasured, None, None, None),
    ]
    assert sealed.cases["case"].to_list() == ["t.py::test_a", "t.py::test_b"]
    assert sealed.cases["planned"].to_list() == [2, 2]
    assert manifest.summary == {"pass_rate": 0.5}
    assert manifest.case_ids == ["t.py::test_a", "t.py::test_b"]
    assert manifest.outcomes == {"no_outcome": 1, "refunded": 1}
    assert manifest.counts == {
        "planned": 4,
        "passed": 1,
        "failed": 0,
        "undecided": 0,
        "excluded": 0,
        "missing": 3,
        "scheduled": 4,
        "healthy": 1,
    }
    assert manifest.finished is not None
    assert sorted(p.name for p in writer.path.iterdir()) == [
        "cases.parquet",
        "checks.parquet",
        "manifest.json",
        "trials.parquet",
    ]


def test_a_run_without_a_trial_can_be_sealed_and_loaded(store):
    manifest = record(store, {}, status=RunStatus.FAILED)
    run = store.load(manifest.id)
    assert (run.cases.height, run.trials.height, run.checks.height) == (0, 0, 0)
    assert run.manifest.status is RunStatus.FAILED


def test_runs_are_listed_newest_first(store):
    for day in ("27", "29", "28"):
        record(store, {"a": ["passed"]}, id=f"202611{day}T000000Z-aaaaaa", created=f"2026-11-{day}T00:00:00Z")
    assert [m.id[6:8] for m in store.manifests()] == ["29", "28", "27"]
    assert store.problems == []


def test_a_run_that_cannot_be_listed_is_a_problem_and_hides_no_other(store):
    good = record(store, {"a": ["passed"]})
    bad = record(store, {"a": ["passed"]})
    (store.paths.run(bad.id).manifest).write_text('{"id": "x", "status": "resting"}')
    later = record(store, {"a": ["passed"]})
    (store.paths.run(later.id).manifest).write_text('{"format": 9, "id": 5}')
    assert [m.id for m in store.manifests()] == [good.id]
    texts = {p.run_id: p.text for p in store.problems}
    assert "is no manifest of a run (status: Input should be" in texts[bad.id]
    assert "has format 9 and this version reads format 1" in texts[later.id]
    with pytest.raises(CorruptRun, match="is no manifest of a run"):
        store.manifest(bad.id)
    with pytest.raises(FormatTooNew):
        store.load(later.id)


def test_a_head_is_what_the_manifest_says(store):
    git = {"branch": "fix", "commit": "1f26568", "dirty": True}
    fields = {"name": "nightly", "release": "2.4.0", "prompt": "v3", "dataset": "d", "dataset_version": "3"}
    gate = {"word": "Regressed", "exit_code": 1, "because": ["t is worse."]}
    summary = {"pass_rate": 0.5, "undecided": 1, "missing": None, "ratios": {}}
    record(store, {"a": ["passed", "failed"]}, split="dev", git=git, **fields)
    full = store.set_fields(store.run_ids()[0], gate=gate, summary=summary, amendments=[{"note": "x"}])
    record(store, {"a": ["passed"]}, created="2020-01-01T00:00:00Z")
    head, bare = store.heads()
    assert [head.id, bare.id] == [m.id for m in store.manifests()]
    told = head.model_dump()
    assert told["git"] == {"branch": "fix", "commit": "1f26568"}
    assert told["gate"] == {"word": "Regressed", "exit_code": 1}
    assert told["summary"] == {"pass_rate": 0.5, "undecided": 1, "missing": None}
    manifest = full.model_dump()
    assert {n: v for n, v in told.items() if n not in ("git", "gate", "summary")} == {
        n: manifest[n] for n in told if n not in ("git", "gate", "summary")
    }
    assert (bare.git, bare.gate, bare.summary, bare.amendments) == (None, None, None, [])


def test_a_head_has_the_defaults_of_a_manifest():
    assert set(RunHead.model_fields) <= set(Manifest.model_fields)
    created = "2026-11-30T00:00:00Z"
    manifest = Manifest(id="x", created=created).model_dump()
    assert RunHead(id="x", created=created).model_dump() == {n: manifest[n] for n in RunHead.model_fields}


def test_heads_tell_what_manifests_tell_of_runs_that_cannot_be_read(store):
    record(store, {"a": ["passed"]})
    for content in (
        '{"id": "x", "status": "resting"}',
        '{"format": 9, "id": 5}',
        '{"format": 9, "id": "x"}',
        "{",
    ):
        bad = record(store, {"a": ["passed"]})
        store.paths.run(bad.id).manifest.write_text(content)
    store.manifests()
    problems = store.problems
    assert len(problems) == 4
    assert len(store.heads()) == 1
    assert store.problems == problems


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"null", b"[]", b"{}"])
def test_a_corrupt_manifest_is_named(store, content):
    manifest = record(store, {"a": ["passed"]})
    store.paths.run(manifest.id).manifest.write_bytes(content)
    with pytest.raises(CorruptRun, match=r"manifest\.json is no manifest of a run"):
        store.load(manifest.id)


@pytest.mark.parametrize("table", ["cases", "trials", "checks"])
def test_a_missing_table_is_named(store, table):
    manifest = record(store, {"a": ["passed"]})
    getattr(store.paths.run(manifest.id), table).unlink()
    with pytest.raises(CorruptRun, match=rf"{table}\.parquet is missing"):
        store.load(manifest.id)


@pytest.mark.parametrize("table", ["cases", "trials", "checks"])
@pytest.mark.parametrize("damage", ["empty", "text", "cut", "middle"])
def test_a_corrupt_table_is_named(store, table, damage):
    manifest = record(store, {"a": ["passed", "failed"]})
    path = getattr(store.paths.run(manifest.id), table)
    content = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "text": b"hello, hello, hello",
            "cut": content[: len(content) // 2],
            "middle": content[:-40] + b"\xff" * 32 + content[-8:],
        }[damage]
    )
    with pytest.raises(CorruptRun, match=rf"{table}\.parquet cannot be read"):
        store.load(manifest.id)


@pytest.mark.parametrize(("table", "column"), [("trials", "kind"), ("checks", "ok"), ("cases", "planned")])
def test_a_table_that_lacks_a_column_is_named(store, table, column):
    manifest = record(store, {"a": ["passed"]})
    path = getattr(store.paths.run(manifest.id), table)
    getattr(store.load(manifest.id), table).drop(column).write_parquet(path)
    with pytest.raises(CorruptRun, match=rf"{table}\.parquet has no column '{column}'"):
        store.load(manifest.id)


def test_a_run_of_before_tokens_and_cost_were_columns_is_read_with_nulls(store):
    manifest = record(store, {"t.py::test_a": ["passed"]})
    path = store.paths.run(manifest.id).trials
    new = ["tokens_in", "tokens_out", "cost_usd", "cost_basis", "prompt", "models"]
    store.load(manifest.id).trials.drop(new).write_parquet(path)
    trials = store.load(manifest.id).trials
    assert trials.select(new).rows() == [(None,) * len(new)]
    assert trials["outcome"].to_list() == ["passed"]


def test_an_unknown_run_is_answered_with_near_misses(store):
    record(store, {"a": ["passed"]}, id="20261130T063300Z-k3v9q2")
    with pytest.raises(StoreError, match="did you mean 20261130T063300Z-k3v9q2"):
        store.load("20261130T063300Z-k3v9q7")
    with pytest.raises(StoreError, match=r"'crashlab runs' lists those there are \(1\)"):
        store.load("zebra")


@pytest.mark.parametrize("run_id", ["../refs", "", ".", "a/b", "..", "a\\b", "x" * 500])
def test_an_id_that_leaves_the_store_is_refused(store, run_id):
    with pytest.raises(StoreError, match="cannot be a run id"):
        store.load(run_id)


def test_two_runs_of_one_id_are_refused(store):
    record(store, {"a": ["passed"]}, id="20261130T063300Z-k3v9q2")
    with pytest.raises(StoreError, match=r"There is a run 20261130T063300Z-k3v9q2 in .* already"):
        store.begin(Manifest(id="20261130T063300Z-k3v9q2"))
    assert store.run_ids() == ["20261130T063300Z-k3v9q2"]


def test_fields_of_a_later_version_survive_a_change(store):
    manifest = record(store, {"a": ["passed"]})
    path = store.paths.run(manifest.id).manifest
    path.write_text(json.dumps({**json.loads(path.read_text()), "colour": "green"}))
    store.set_fields(manifest.id, summary={"pass_rate": 1.0})
    assert json.loads(path.read_text())["colour"] == "green"
    assert store.manifest(manifest.id).summary == {"pass_rate": 1.0}


def test_a_field_that_does_not_exist_cannot_be_set(store):
    manifest = record(store, {"a": ["passed"]})
    with pytest.raises(TypeError, match="no field 'sumary'"):
        store.set_fields(manifest.id, sumary={})


def test_comparisons_are_kept_and_read_back(store):
    a, b = record(store, {"a": ["passed"]}), record(store, {"a": ["failed"]})
    store.save_comparison(b.id, a.id, {"word": "Regressed"})
    store.save_comparison(b.id, a.id, {"word": "No change"})
    assert store.comparisons(b.id) == {a.id: {"format": 1, "word": "No change"}}
    rows = {"word": "No change", "cases": (CasePlan(id="t.py::a", planned=2),)}
    store.save_comparison(b.id, a.id, rows)
    (case,) = store.comparisons(b.id)[a.id]["cases"]
    assert (case["id"], case["planned"], case["min_passes"]) == ("t.py::a", 2, None)
    (store.paths.run(b.id).comparisons / f"{a.id}.json").write_text("{")
    with pytest.raises(CorruptRun, match="delete it and compare again"):
        store.comparisons(b.id)


def test_a_deleted_run_is_in_the_ledger(store):
    manifest = record(store, {"a": ["passed"]}, dataset="refunds", split="holdout", git={"branch": "main"})
    store.refs.promote("main", manifest.id, expected=None)
    store.delete(manifest.id, reason="too old")
    assert store.run_ids() == []
    entry = store.ledger.read("deletion")[0]
    assert {k: entry[k] for k in ("run", "recorded_for", "branch", "dataset", "split", "reason")} == {
        "run": manifest.id,
        "recorded_for": ["main"],
        "branch": "main",
        "dataset": "refunds",
        "split": "holdout",
        "reason": "too old",
    }


def test_a_damaged_run_can_be_deleted(store):
    manifest = record(store, {"a": ["passed"]})
    store.paths.run(manifest.id).manifest.write_text("{")
    store.delete(manifest.id)
    assert store.run_ids() == []


def test_a_run_that_is_being_written_is_left_alone(store):
    with store.begin(Manifest(id="20261130T063300Z-k3v9q2")) as writer:
        for act in (store.recover, store.reopen, store.delete):
            with pytest.raises(StoreError, match="is being written by another process"):
                act(writer.run_id)
    assert store.recover(writer.run_id).status is RunStatus.CANCELLED


def test_a_listing_does_not_depend_on_files_that_are_no_runs(store):
    (store.paths.runs / "notes.txt").write_text("x")
    (store.paths.runs / ".tmp-1-ab-x").mkdir()
    assert store.manifests() == []
    assert store.problems == []


@pytest.mark.skipif(os.name == "nt", reason="no POSIX permissions")
def test_a_run_is_not_there_half(store, monkeypatch):
    (store.paths.runs).rmdir()
    (store.paths.runs).write_text("a file in the way")
    with pytest.raises(StoreError, match="cannot be created"):
        store.begin(Manifest(id="20261130T063300Z-k3v9q2"))


def test_half_a_surrogate_pair_does_not_keep_a_run_from_being_stored(store):
    odd = "t.py::t[\ud800]"
    head = Manifest(id="20261129T063300Z-odd222", name=odd, case_ids=[odd], git={"branch": odd})
    writer = store.begin(head)
    assert store.manifest("20261129T063300Z-odd222").case_ids == ["t.py::t[\ufffd]"]
    writer.write_plan(plan_of(odd, k=1))
    writer.append(trial_row(odd, 1))
    manifest = writer.seal(RunStatus.COMPLETED)
    assert (manifest.name, manifest.case_ids) == ("t.py::t[\ufffd]", ["t.py::t[\ufffd]"])
    assert manifest.status is RunStatus.COMPLETED
