"""An exclusion after the fact: before any comparison, with its reason, rows kept."""

from __future__ import annotations

import pytest

from pytest_crashlab.compare import compare_runs
from pytest_crashlab.compare.counts import count_cases
from pytest_crashlab.errors import UsageError
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store import Store
from pytest_crashlab.store.amendments import amend, amendment_lines, note_comparison
from pytest_crashlab.store.export import export_run, load_export
from tests.stories import record, row

RUN, OTHER = "20261130T063300Z-aaaaaa", "20261129T063300Z-bbbbbb"


@pytest.fixture
def store(tmp_path):
    found = Store.open(tmp_path / ".crashlab", create=True)
    retried = [row("b", 3, "C"), row("b", 3, "P", attempt=2)]
    record(found, {"a": "PPC", "b": "CF."}, rows=retried, run_id=RUN)
    return found


def counted(run):
    return [(c.case, c.passes, c.decided, c.excluded) for c in count_cases(run)]


def test_a_label_is_excluded_and_its_rows_stay(store):
    assert counted(store.load(RUN)) == [("a", 2, 3, 0), ("b", 0, 3, 0)]
    manifest = amend(store, RUN, ["crashed"], " no balance ")
    run = store.load(RUN)
    # b's third trial was decided by its first attempt; without it the second one decides.
    assert counted(run) == [("a", 2, 2, 1), ("b", 1, 2, 1)]
    assert run.trials["outcome"].to_list().count("crashed") == 3
    assert manifest.amendments[0]["exclude"] == {"crashed": 3}
    assert manifest.amendments[0]["reason"] == "no balance"
    assert manifest.counts["excluded"] == 2
    (line,) = amendment_lines(manifest)
    assert line.endswith("trials of crashed (3) are excluded: no balance")
    (entry,) = store.ledger.read("amendment")
    assert (entry["run"], entry["exclude"], entry["reason"]) == (RUN, {"crashed": 3}, "no balance")


def test_a_line_is_excluded_alone(store):
    site = next(s for s, o in store.load(RUN).trials.select("site", "outcome").iter_rows() if o == "failed")
    amend(store, RUN, [site], "wrong verifier")
    assert counted(store.load(RUN)) == [("a", 2, 3, 0), ("b", 0, 2, 1)]


def test_two_amendments_add_up_and_an_export_keeps_them(store, tmp_path):
    amend(store, RUN, ["crashed"], "no balance")
    amend(store, RUN, ["failed"], "the verifier was wrong")
    exported = load_export(export_run(store, RUN, tmp_path / "x.crashrun"))
    assert counted(exported) == counted(store.load(RUN)) == [("a", 2, 2, 1), ("b", 1, 1, 2)]


def test_every_later_comparison_says_so(store):
    record(store, {"a": "PPP", "b": "PPP"}, run_id=OTHER)
    amend(store, RUN, ["crashed"], "no balance")
    notes = [n.text for n in compare_runs(store.load(OTHER), store.load(RUN)).notes if n.code == "amended"]
    assert len(notes) == 1
    assert notes[0].startswith("This run was amended before it was compared. Amended 20")
    notes = [n.text for n in compare_runs(store.load(RUN), store.load(OTHER)).notes if n.code == "amended"]
    assert notes[0].startswith("The baseline was amended before it was compared.")


@pytest.mark.parametrize("how", ["own", "as_baseline", "seen", "seen_as_baseline"])
def test_after_a_comparison_it_is_refused(store, how):
    record(store, {"a": "PPP"}, run_id=OTHER)
    if how == "own":
        store.save_comparison(RUN, OTHER, {})
    elif how == "as_baseline":
        store.save_comparison(OTHER, RUN, {})
    elif how == "seen":
        note_comparison(store, RUN, OTHER)
    else:
        note_comparison(store, OTHER, RUN)
    with pytest.raises(UsageError, match=rf"{OTHER}, so it cannot be amended any more: .* choose its result"):
        amend(store, RUN, ["crashed"], "no balance")
    assert store.manifest(RUN).amendments == []
    assert store.ledger.read("amendment") == []


def test_a_comparison_is_noted_once(store):
    note_comparison(store, RUN, OTHER)
    note_comparison(store, RUN, OTHER)
    assert len(store.ledger.read("comparison")) == 1


@pytest.mark.parametrize(
    ("exclude", "reason", "words"),
    [
        (["crashed"], "  ", "needs its reason"),
        (["crashd"], "why", "no label and no line crashd; did you mean crashed"),
        (["nothing_like_it"], "why", "'crashlab outcomes RUN' lists them"),
    ],
)
def test_what_cannot_be_amended(store, exclude, reason, words):
    with pytest.raises(UsageError, match=words):
        amend(store, RUN, exclude, reason)


def test_a_running_run_is_not_amended(store):
    record(store, {"a": "PC"}, run_id=OTHER, status=RunStatus.RUNNING)
    with pytest.raises(UsageError, match=f"crashlab recover {OTHER}"):
        amend(store, OTHER, ["crashed"], "no balance")
