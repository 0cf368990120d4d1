"""How many comparisons there were before, and what chance alone makes of them."""

from __future__ import annotations

from pytest_crashlab.compare import CompareOptions, compare_runs
from pytest_crashlab.compare.history import History, history
from pytest_crashlab.records.comparison import Word
from tests.stories import record

VERSION = {"target_digest": "t", "evaluation_digest": "e"}


def judged(store, run_id, word="No change", baseline="base", **fields):
    return record(
        store,
        {"t": "PPPP"},
        run_id=run_id,
        gate={"word": word, "exit_code": 0},
        baseline={"id": baseline},
        **fields,
    )


def test_words_are_counted_and_this_comparison_is_one(store):
    judged(store, "r1")
    judged(store, "r2", "Regressed")
    judged(store, "r3", "No verdict")
    record(store, {"t": "PPPP"}, run_id="r4")
    last = judged(store, "r5")
    assert history(store, last.manifest, "base") == History(comparisons=3, repeats=0)
    later = judged(store, "r6", created="2026-11-30T07:00:00.000Z")
    assert history(store, last.manifest, "base").comparisons == 3, "a later run is not before it"
    assert history(store, later.manifest, "base").comparisons == 4


def test_a_version_held_against_one_baseline_again_is_a_repeated_look(store):
    judged(store, "r1", "Regressed", **VERSION)
    judged(store, "r2", **VERSION)
    judged(store, "r3", baseline="another", **VERSION)
    judged(store, "r4", **{**VERSION, "target_digest": "other"})
    last = judged(store, "r5", **VERSION)
    known = history(store, last.manifest, "base")
    assert known == History(comparisons=5, repeats=2)
    comparison = compare_runs(
        record(store, {"t": "PPPP"}, run_id="base"), last, CompareOptions(history=known)
    )
    assert comparison.word is Word.NO_CHANGE
    assert comparison.comparisons == 5
    assert {n.code: n.text for n in comparison.notes} == {
        "repeated_looks": "Runs of this version were compared with this baseline 2 times before: who looks "
        "until a word comes will get one by chance."
    }


def test_without_digests_no_look_is_known_to_be_a_repeat(store):
    judged(store, "r1")
    assert history(store, judged(store, "r2").manifest, "base") == History(comparisons=2, repeats=0)


def test_a_run_that_cannot_be_read_counts_for_nothing(store):
    judged(store, "r1")
    (store.root / "runs" / "r1" / "manifest.json").write_text("{")
    assert history(store, judged(store, "r2").manifest, "base").comparisons == 1
