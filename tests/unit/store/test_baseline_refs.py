"""What users write after --baseline=, in a real store and repository."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from store_builders import record

from pytest_crashlab.errors import BaselineError, CorruptRun, StoreError
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store.baseline_refs import explain
from pytest_crashlab.store.export import export_run


@pytest.fixture
def three(repository):
    """A repository with a run on each of three commits of main, by the names one, two, three."""
    runs = {}
    for name in ("one", "two", "three"):
        repository.commit(name)
        runs[name] = repository.record(name, release=f"2.{len(runs)}.0")
    repository.runs = runs
    return repository


def refused(repository, ref, **fields):
    with pytest.raises(BaselineError) as caught:
        repository.resolve(ref, **fields)
    return str(caught.value)


@pytest.mark.parametrize("form", ["{id}", "20261129-oneaaa", "20261129-one", "oneaaa", "20261129T000000Z"])
def test_a_run_by_its_id_or_the_beginning_of_it(three, form):
    run = three.runs["one"]
    found = three.resolve(form.format(id=run.id))
    assert found.run.id == run.id
    assert found.reason == "baseline 20261129-oneaaa (named by its id)"
    assert found.load().manifest.id == run.id


def test_a_beginning_that_fits_several_runs_lists_them(three):
    text = refused(three, "20261129")
    assert text.startswith("Baseline 20261129 fits 3 runs, ")
    assert all(run.id in text for run in three.runs.values())


def test_an_id_that_does_not_exist_has_near_misses(three):
    assert "did you mean 20261129T000000Z-oneaaa" in refused(three, "20261129T000000Z-oneaab")
    assert refused(three, "20240101").startswith("No run's id begins with 20240101; there are ")


def test_a_name_comes_before_the_beginning_of_an_id(three):
    three.store.refs.promote("20261129", three.runs["two"].id, expected=None)
    assert three.resolve("20261129").run.id == three.runs["two"].id


def test_a_release_is_its_newest_run(three):
    again = three.record("again", release="2.0.0")
    three.record("undone", release="2.0.0", status=RunStatus.CANCELLED)
    assert three.resolve("release:2.0.0").run.id == again.id
    assert three.resolve("release:2.1.0").run.id == three.runs["two"].id
    assert "No run has the release '2.1'; did you mean 2.1.0" in refused(three, "release:2.1")


@pytest.mark.parametrize("length", [7, 12, 40])
def test_a_commit(three, length):
    commit = three.runs["two"].git["commit"]
    found = three.resolve(f"commit:{commit[:length]}")
    assert found.run.id == three.runs["two"].id
    assert found.reason == f"baseline 20261129-twoaaa (commit {commit[:7]})"


def test_a_commit_by_another_name_of_git_s(three):
    assert three.resolve("commit:HEAD~2").run.id == three.runs["one"].id
    three.git("tag", "v1", "HEAD~1")
    assert three.resolve("commit:v1").run.id == three.runs["two"].id


@pytest.mark.parametrize("revision", ["0000000", "HEAD~99", "--help", ""])
def test_a_commit_without_a_run(three, revision):
    assert f"No run was recorded at commit {revision}; there are " in refused(three, f"commit:{revision}")


def test_a_commit_whose_only_run_had_changes_is_refused(three):
    three.commit("four")
    (three.folder / "agent.py").write_text("changing")
    run = three.record("dirty")
    assert "had changes that are not committed; name that run by its id" in refused(three, "commit:HEAD")
    assert three.resolve(run.id).run.id == run.id


def test_the_newest_run_of_a_name_wherever_it_is(three):
    three.git("switch", "-q", "-c", "change", "HEAD~2")
    assert three.resolve("main").run.id == three.runs["one"].id
    assert three.resolve("main@newest").run.id == three.runs["three"].id
    assert "No run was recorded for 'mian'; did you mean main" in refused(three, "mian@newest")


def test_earlier_promotions(three):
    previous = None
    for name in ("one", "three", "two"):
        three.store.refs.promote("main", three.runs[name].id, expected=previous)
        previous = three.runs[name].id
    assert [three.resolve(f"main@{{{n}}}").run.id for n in range(3)] == [
        three.runs[name].id for name in ("two", "three", "one")
    ]
    assert three.resolve("main@{1}").reason == "baseline 20261129-threea (main, 1 promotion ago)"
    assert "further back than the 3 promotions of 'main'" in refused(three, "main@{3}")
    assert "Nothing was promoted as 'man'; did you mean main" in refused(three, "man@{0}")
    three.store.delete(three.runs["three"].id)
    assert f"Run {three.runs['three'].id} was deleted on 20" in refused(three, "main@{1}")


def test_a_file_or_folder(three, tmp_path):
    run = three.runs["one"]
    path = export_run(three.store, run.id, three.folder / "main.crashrun")
    three.store.delete(run.id)
    for ref in ("main.crashrun", "./main.crashrun", str(path)):
        found = three.resolve(ref)
        assert found.run.id == run.id
        assert found.load().trials.height == 3
    assert found.reason == "baseline 20261129-oneaaa (file main.crashrun)"
    folder = three.store.paths.run(three.runs["two"].id).folder
    found = three.resolve(str(folder))
    assert found.load().manifest.id == three.runs["two"].id


def test_a_path_without_a_run(three):
    export_run(three.store, three.runs["one"].id, three.folder / "main.crashrun")
    assert "did you mean main.crashrun?" in refused(three, "./mian.crashrun")
    assert "is a folder without a run" in refused(three, ".")
    assert "There is no run at " in refused(three, "/nowhere/at/all")
    (three.folder / "text.crashrun").write_text("hello")
    with pytest.raises(CorruptRun, match="is no exported run"):
        three.resolve("text.crashrun")


@pytest.mark.parametrize(
    ("fields", "asked", "why"),
    [
        ({"status": RunStatus.CANCELLED}, {}, "it did not finish (cancelled)"),
        ({"partial": True}, {}, "it ran a part of its plan"),
        ({"total_cases": 4}, {}, "it ran a part of its plan (1 of 4 cases)"),
        ({"dataset": "orders"}, {"dataset": "refunds"}, "it is of another dataset (orders, not refunds)"),
        ({"split": "dev"}, {"split": "holdout"}, "it is of another split (dev, not holdout)"),
        ({}, {"own_run": "this"}, "it is this run itself"),
    ],
)
@pytest.mark.parametrize("form", ["id", "release", "newest", "promotion", "commit", "file"])
def test_an_explicit_run_that_may_be_no_baseline_is_refused(repository, fields, asked, why, form):
    run = repository.record("only", release="9.9", **fields)
    repository.store.refs.promote("kept", run.id, expected=None)
    path = repository.folder / "only.crashrun"
    export_run(repository.store, run.id, path)
    asked = {k: run.id if v == "this" else v for k, v in asked.items()}
    ref = {
        "id": run.id,
        "release": "release:9.9",
        "newest": "kept@newest",
        "promotion": "kept@{0}",
        "commit": "commit:HEAD",
        "file": "only.crashrun",
    }[form]
    text = refused(repository, ref, **asked)
    assert text.startswith(f"Run {run.id} may not be the baseline: {why}")
    assert text.endswith("; choose another.")


def test_a_run_that_is_going_on_is_refused(repository):
    from pytest_crashlab.store.schema import Manifest

    with repository.store.begin(Manifest(id="20261130T063300Z-k3v9q2")):
        assert "it has not finished" in refused(repository, "20261130-k3v9q2")


def test_a_slip_of_a_name_is_an_error_and_a_new_name_is_not(three):
    text = refused(three, "mian")
    assert text.startswith("Nothing was recorded for 'mian'; did you mean 'main'?")
    assert "--save-baseline=mian" in text
    assert three.resolve("mian", saving="mian").missing == "never recorded"
    assert three.resolve("weekly").missing == "never recorded"
    three.git("branch", "mian")
    three.git("switch", "-q", "-c", "change")
    assert three.resolve("mian").run.id == three.runs["three"].id


@pytest.mark.parametrize("ref", ["", "  "])
def test_an_empty_reference_is_refused(three, ref):
    assert "--baseline is empty" in refused(three, ref)


@pytest.mark.parametrize("ref", ["a//b", "main\n", "x" * 300])
def test_what_can_be_no_name_is_refused_or_read_without_its_blanks(three, ref):
    if ref == "main\n":
        assert three.resolve(ref).run.id == three.runs["two"].id
    else:
        assert "cannot be a baseline's name" in refused(three, ref)


def test_a_deleted_baseline_is_missing_with_its_date(repository):
    run = repository.record("first")
    repository.store.refs.promote("main", run.id, expected=None)
    repository.store.delete(run.id)
    repository.git("switch", "-q", "-c", "change")
    found = repository.resolve()
    assert found.missing == "expired or deleted"
    date = repository.store.ledger.read("deletion")[0]["at"][:10]
    assert f"(20261129-firsta on {date})" in found.reason


def test_a_baseline_whose_folder_vanished_is_missing_too(repository):
    run = repository.record("first")
    repository.store.refs.promote("main", run.id, expected=None)
    repository.store.paths.run(run.id).folder.rename(repository.folder / "moved")
    assert repository.resolve().missing == "expired or deleted"


def test_a_damaged_store_is_an_error_and_never_no_baseline(repository):
    run = repository.record("first")
    repository.store.paths.run(run.id).manifest.write_text("{")
    with pytest.raises(StoreError, match="cannot be told, as run 20261129-firsta is damaged"):
        repository.resolve()


def test_another_damaged_run_is_a_note(three):
    damaged = three.store.paths.run(three.runs["one"].id)
    damaged.manifest.write_text("{")
    found = three.resolve()
    assert found.run.id == three.runs["two"].id
    assert [n.code for n in found.notes] == ["runs_unreadable"]
    assert "Run 20261129-oneaaa could not be read" in found.notes[0].text


def test_a_damaged_table_is_told_when_the_baseline_is_loaded(three):
    found = three.resolve()
    three.store.paths.run(found.run.id).trials.write_bytes(b"hello")
    with pytest.raises(CorruptRun, match=r"trials\.parquet cannot be read"):
        found.load()


_AS_NOBODY = """
import os, sys
from pathlib import Path
from pytest_crashlab.store.runs import Store
from pytest_crashlab.store.baseline_refs import resolve_baseline
os.setgid(65534); os.setuid(65534)
found = resolve_baseline(Store(Path(sys.argv[1])), "main", cwd="/", env={"PATH": os.environ["PATH"]})
print(found.missing, "|", found.reason)
"""


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no POSIX permissions")
def test_a_store_that_may_not_be_read_is_no_access(store):
    record(store, {"a": ["passed"]})
    store.paths.runs.chmod(0)
    if os.getuid() == 0:
        for folder in (store.root, *store.root.parents[:3]):
            folder.chmod(0o755)
        code = _AS_NOBODY
    else:
        code = _AS_NOBODY.replace("os.setgid(65534); os.setuid(65534)", "")
    done = subprocess.run(
        [sys.executable, "-c", code, str(store.root)], capture_output=True, text=True, check=False
    )
    store.paths.runs.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no access | No baseline main: no access to the store (")


def test_explain_lists_the_walk(three):
    three.record("undone", status=RunStatus.CANCELLED, git=three.runs["two"].git)
    three.git("switch", "-q", "-c", "change")
    three.commit("changed")
    three.git("switch", "-q", "main")
    three.commit("later")
    later = three.record("later")
    three.git("switch", "-q", "change")
    steps = explain(three.store, "main", cwd=three.folder, env=three.env())
    ids = [three.runs[name].git["commit"] for name in ("three", "two", "one")]
    assert [s.commit for s in steps] == [*ids, None]
    assert [s.distance for s in steps] == [0, 1, 2, None]
    assert [s.candidates for s in steps] == [(three.runs[name].id,) for name in ("three", "two", "one")] + [
        ()
    ]
    assert [r.why for r in steps[1].refused] == ["it did not finish (cancelled)"]
    assert [r.run_id for r in steps[3].refused] == [later.id]


def test_a_repository_that_git_refuses_is_a_note(three):
    (three.folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n\n\nnonsense")
    (three.folder / ".git" / "config").write_text("[core\n")
    three.store.refs.promote("main", three.runs["one"].id, expected=None)
    found = three.resolve()
    assert found.run.id == three.runs["one"].id
    assert [n.code for n in found.notes] == ["git_unreadable"]
    assert "bad config line 1" in found.notes[0].text


def test_no_git_program_is_like_no_git(three):
    from pytest_crashlab.store.baseline_refs import resolve_baseline

    three.store.refs.promote("main", three.runs["one"].id, expected=None)
    found = resolve_baseline(three.store, "main", cwd=three.folder, env={"PATH": "/nowhere"})
    assert found.run.id == three.runs["one"].id
    assert "git cannot be run" in found.notes[0].text
