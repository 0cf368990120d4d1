from __future__ import annotations

import pytest

from pytest_crashlab.errors import BaselineError, PromotionConflict, StoreError
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store.promotion import judged_regressed, promotable, promote


def refused(repository, run, name="main", **fields):
    with pytest.raises(BaselineError) as caught:
        promote(repository.store, name, run.id, cwd=repository.folder, env=repository.env(), **fields)
    assert repository.store.refs.read(name) is None
    return str(caught.value)


def promoted(repository, run, name="main", **fields):
    promote(repository.store, name, run.id, cwd=repository.folder, env=repository.env(), **fields)
    assert repository.store.refs.read(name) == run.id
    return repository.store.refs.history(name)[0]


def test_a_full_run_of_main_is_promoted_and_says_so_itself(repository):
    run = repository.record("first")
    assert promotable(run) == []
    entry = promoted(repository, run)
    assert (entry["run"], entry["previous"], entry["commit"]) == (run.id, None, repository.id())
    assert repository.store.manifest(run.id).recorded_for == ["main"]
    promoted(repository, run, "release/1.0")
    assert repository.store.manifest(run.id).recorded_for == ["main", "release/1.0"]
    promoted(repository, run)
    assert repository.store.manifest(run.id).recorded_for == ["main", "release/1.0"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"status": RunStatus.CANCELLED}, "it did not finish (cancelled)"),
        ({"status": RunStatus.FAILED}, "it did not finish (failed)"),
        ({"partial": True}, "it ran a part of its plan"),
        ({"total_cases": 7}, "it ran a part of its plan (1 of 7 cases)"),
        ({"replayed": True}, "its provider calls were replayed"),
        ({"seal_fields": {"cached": 2}}, "answers of its provider came from a cache"),
        ({"outcomes": {}}, "it has no trial that counts"),
        ({"outcomes": {"a": ["skipped", "xfailed"]}}, "it has no trial that counts"),
        (
            {"outcomes": {"a": ["passed"] * 8 + ["network_error"] * 2}},
            "healthy in 8 of 10 trials, under 90 %",
        ),
        ({"outcomes": {"a": ["passed"] * 8 + [None] * 2}}, "healthy in 8 of 10 trials, under 90 %"),
        ({"outcomes": {"a": ["passed"], "b": ["passed"] * 9}}, "healthy in 10 of 18 trials"),
    ],
)
def test_a_run_that_is_not_whole_and_sound_is_refused(repository, fields, why):
    text = refused(repository, repository.record("bad", **fields))
    assert text.startswith("Run 20261129-badaaa was not promoted as main: ")
    assert why in text


def test_ninety_percent_are_enough_and_excluded_trials_do_not_count(repository):
    labels = ["passed"] * 6 + ["failed"] * 2 + ["crashed"] + ["network_error"] + ["skipped"] * 5
    assert promotable(repository.record("good", outcomes={"a": labels})) == []


def test_undecided_for_another_reason_than_the_infrastructure(repository):
    run = repository.record("odd")
    counts = {**run.counts, "scheduled": 10, "healthy": 10, "passed": 5, "failed": 3, "undecided": 2}
    assert promotable(run.model_copy(update={"counts": counts})) == [
        "8 of 10 trials were decided, under 90 %"
    ]


def test_a_run_whose_trials_were_never_counted(repository):
    run = repository.record("odd").model_copy(update={"counts": None})
    assert promotable(run) == ["its trials were never counted"]


def test_a_run_that_is_not_there(repository):
    with pytest.raises(StoreError, match="There is no run"):
        promote(repository.store, "main", "20200101T000000Z-aaaaaa", cwd=repository.folder)


def test_a_run_of_another_branch_needs_a_word(repository):
    repository.git("switch", "-q", "-c", "feature")
    repository.commit("changed")
    run = repository.record("first")
    assert "it is of branch feature and its files are those of no commit of main" in refused(repository, run)
    entry = promoted(repository, run, from_branch=True)
    assert entry["from_branch"] == "feature"


def test_a_run_of_a_pull_request_needs_a_word_even_if_its_branch_is_called_main(repository):
    repository.git("switch", "-q", "--detach")
    repository.commit("changed")
    run = repository.record("first", ci={"GITHUB_BASE_REF": "main", "GITHUB_HEAD_REF": "main"})
    assert "it is of a pull request" in refused(repository, run)


def test_a_detached_run_that_is_no_commit_of_main(repository):
    repository.git("switch", "-q", "--detach")
    repository.commit("changed")
    assert "it is of no branch" in refused(repository, repository.record("first"))


def test_a_run_whose_files_are_main_s_is_promoted_from_any_branch(repository):
    repository.git("switch", "-q", "-c", "feature")
    repository.commit("part one")
    repository.commit("part two")
    run = repository.record("paid")
    repository.git("switch", "-q", "main")
    repository.git("merge", "-q", "--squash", "feature")
    repository.git("commit", "-q", "-m", "squashed")
    repository.commit("and more")
    promoted(repository, run)


def test_files_with_changes_are_not_main_s(repository):
    repository.git("switch", "-q", "-c", "feature")
    (repository.folder / "agent.py").write_text("changing")
    assert "it is of branch feature" in refused(repository, repository.record("dirty"))


def test_a_name_that_is_no_branch_takes_a_run_of_any(repository):
    repository.git("switch", "-q", "-c", "feature")
    repository.commit("changed")
    run = repository.record("first")
    promoted(repository, run, "nightly")
    assert repository.resolve("nightly").run.id == run.id


def test_a_run_without_git_is_promoted(repository):
    promoted(repository, repository.record("first", git=None))


@pytest.mark.parametrize("where", ["gate", "comparison"])
def test_a_run_judged_regressed_needs_two_words(repository, where):
    run = repository.record("worse", **({"gate": {"word": "Regressed"}} if where == "gate" else {}))
    if where == "comparison":
        repository.store.save_comparison(run.id, "20261128T000000Z-aaaaaa", {"word": "Regressed"})
    assert judged_regressed(repository.store, run)
    for fields in ({}, {"accept_regression": True}, {"reason": "new rules"}):
        assert "it was judged Regressed (--accept-regression with --reason" in refused(
            repository, run, **fields
        )
    entry = promoted(repository, run, accept_regression=True, reason="new rules")
    assert entry["accepted_regression"] == "new rules"


@pytest.mark.parametrize("kept", [True, False])
def test_a_run_whose_gate_failed_for_a_case_proven_worse_needs_them_too(repository, kept):
    because = ["The gate failed."] if kept else ["1 case is proven worse: a."]
    run = repository.record("worse", gate={"word": "No change", "exit_code": 1, "because": because})
    if kept:
        comparison = {"word": "No change", "cases": [{"case": "a", "proven": -1}]}
        repository.store.save_comparison(run.id, "20261128T000000Z-aaaaaa", comparison)
    assert "it has cases proven worse (--accept-regression with --reason" in refused(repository, run)
    entry = promoted(repository, run, accept_regression=True, reason="new rules")
    assert entry["accepted_regression"] == "new rules"


def test_a_threshold_that_was_missed_is_no_regression(repository):
    gate = {"word": "No change", "exit_code": 1, "because": ["The pass rate is 80.0 %."]}
    promoted(repository, repository.record("low", gate=gate))


@pytest.mark.parametrize("word", ["No change", "Improved", "No verdict"])
def test_other_words_need_none(repository, word):
    promoted(repository, repository.record("fine", gate={"word": word}))


def test_all_reasons_are_said_at_once(repository):
    run = repository.record("bad", replayed=True, status=RunStatus.CANCELLED, gate={"word": "Regressed"})
    text = refused(repository, run)
    assert text.count(";") >= 2
    assert "replayed" in text
    assert "cancelled" in text
    assert "Regressed" in text


def test_of_two_sessions_that_began_together_the_second_conflicts(repository):
    old, first, second = (repository.record(name) for name in ("old", "first", "second"))
    promoted(repository, old)
    seen = repository.store.refs.read("main")
    promoted(repository, first, expected=seen)
    with pytest.raises(PromotionConflict) as caught:
        promote(
            repository.store,
            "main",
            second.id,
            cwd=repository.folder,
            env=repository.env(),
            expected=seen,
        )
    assert first.id in str(caught.value)
    assert second.id in str(caught.value)
    assert repository.store.refs.read("main") == first.id
    assert repository.store.manifest(second.id).recorded_for == []
