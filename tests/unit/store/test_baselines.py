"""The choice of a baseline by itself: a drawn history, manifests, no git and no store."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from pytest_crashlab.errors import BaselineError
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store.baselines import resolve
from pytest_crashlab.store.candidates import Target, short_run
from pytest_crashlab.store.explicit import near_name
from pytest_crashlab.store.git import Commit, Head
from pytest_crashlab.store.schema import Manifest


@dataclass
class Drawn:
    """main is m0 ... m4; the change c1 begins at m3."""

    shallow: bool = False
    main: list[str] = field(default_factory=lambda: ["m4", "m3", "m2", "m1", "m0"])
    base: list[str] = field(default_factory=lambda: ["m3"])

    def tips(self, name):
        return self.main[:1] if name == "main" else []

    def merge_bases(self, a, b):
        return self.base

    def first_parents(self, commit, limit):
        if commit not in self.main:
            return [Commit(id=commit, tree=None)]
        line = self.main[self.main.index(commit) :][:limit]
        return [Commit(id=c, tree=f"tree-{c}") for c in line]

    def count(self, since, until):
        return {("c1", "m4"): 1, ("m3", "c1"): 1}.get((since, until))


HEAD = Head(commit="c1", tree="tree-c1", branch="change", parents=("m3",))
MAIN = Target(name="main")


def run(name, commit="m3", *, branch="main", **fields):
    git = {"commit": commit, "tree": f"tree-{commit}", "branch": branch, "dirty": False}
    git.update(fields.pop("git", {}))
    values = {
        "id": name,
        "status": RunStatus.COMPLETED,
        "planned_cases": 3,
        "total_cases": 3,
        "created": "2026-11-29T00:00:00Z",
        "git": git,
    }
    return Manifest(**{**values, **fields})


def test_the_run_at_the_branch_point_is_chosen():
    found = resolve(Drawn(), [run("at", "m3"), run("before", "m2"), run("after", "m4")], HEAD, MAIN)
    assert (found.run.id, found.distance, found.base) == ("at", 0, "m3")
    assert [m.id for m in found.alternatives] == ["before"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"status": RunStatus.RUNNING}, "it has not finished"),
        ({"status": RunStatus.CANCELLED}, "it did not finish (cancelled)"),
        ({"status": RunStatus.FAILED}, "it did not finish (failed)"),
        ({"partial": True}, "it ran a part of its plan (3 of 3 cases)"),
        ({"total_cases": 5}, "it ran a part of its plan (3 of 5 cases)"),
        ({"replayed": True}, "its provider calls were replayed"),
        ({"cached": 1}, "answers of its provider came from a cache"),
        ({"dataset": "orders"}, "it is of another dataset (orders, not refunds)"),
        ({"dataset": None}, "it is of another dataset (none, not refunds)"),
        ({"split": "holdout"}, "it is of another split (holdout, not dev)"),
        ({"git": {"branch": "change"}}, "it is of this branch (change)"),
        ({"git": {"dirty": True}}, "its files had changes that are not committed"),
        ({"id": "own"}, "it is this run itself"),
    ],
)
def test_a_run_that_may_not_be_used_is_passed_over_with_its_reason(fields, why):
    target = replace(MAIN, dataset="refunds", split="dev", own_run="own")
    good = run("good", "m2", dataset="refunds", split="dev")
    bad = run(
        fields.get("id", "bad"),
        "m3",
        **{"dataset": "refunds", "split": "dev", **{k: v for k, v in fields.items() if k != "id"}},
    )
    found = resolve(Drawn(), [bad, good], HEAD, target)
    assert (found.run.id, found.distance) == ("good", 1)
    assert [(r.run_id, r.why) for r in found.walk[0].refused] == [(bad.id, why)]
    assert found.walk[1].candidates == ("good",)


def test_dataset_and_split_that_are_not_known_are_not_asked_for():
    found = resolve(Drawn(), [run("any", dataset="refunds", split="holdout")], HEAD, MAIN)
    assert found.run.id == "any"


def test_a_run_of_another_branch_counts_where_its_files_are_main_s():
    other = run("other", "x9", branch="feature", git={"tree": "tree-m3"})
    stranger = run("stranger", "x8", branch="feature")
    found = resolve(Drawn(), [other, stranger], HEAD, MAIN)
    assert found.run.id == "other"
    assert found.alternatives == ()


def test_promoted_by_the_manifest_alone_comes_before_not_promoted():
    runs = [run("marked", recorded_for=["main"]), run("later", created="2026-11-30T00:00:00Z")]
    assert resolve(Drawn(), runs, HEAD, MAIN).run.id == "marked"


def test_the_last_promotion_wins_over_later_runs_and_earlier_promotions():
    runs = [run(name, created=f"2026-11-{day}T00:00:00Z") for name, day in (("a", 1), ("b", 2), ("c", 3))]
    runs = [r.model_copy(update={"created": r.created.replace("-1T", "-01T")}) for r in runs]
    target = replace(MAIN, promotions=("a", "b"))
    found = resolve(Drawn(), runs, HEAD, target)
    assert found.run.id == "a"
    assert [m.id for m in found.alternatives] == ["b", "c"]


def test_what_is_recorded_elsewhere_is_listed_with_why():
    found = resolve(Drawn(), [run("at", "m3"), run("after", "m4"), run("lost", "zz")], HEAD, MAIN)
    last = found.walk[-1]
    assert last.commit is None
    assert {r.run_id: r.why for r in last.refused} == {
        "after": "its commit m4 is not on the way back from here",
        "lost": "its commit zz is not on the way back from here",
    }


def test_nothing_found_falls_back_to_the_newest_promotion_that_may_be_used():
    runs = [run("newest", "m4", replayed=True), run("usable", "m4"), run("older", "zz")]
    target = replace(MAIN, promotions=("newest", "usable", "older"))
    found = resolve(Drawn(), runs, HEAD, target)
    assert (found.run.id, found.distance) == ("usable", None)
    assert [n.text for n in found.notes] == [
        "The baseline is not an ancestor of this change (1 commit ahead)."
    ]
    assert [m.id for m in found.alternatives] == ["older"]


def test_missing_never_recorded():
    found = resolve(Drawn(), [], HEAD, MAIN)
    assert (found.run, found.missing) == (None, "never recorded")
    assert found.reason == (
        "No baseline main yet: nothing was recorded for it; '--save-baseline=main' records it."
    )
    with pytest.raises(BaselineError, match="nothing was recorded"):
        found.load()


def test_missing_with_a_run_that_may_not_be_used_says_why():
    found = resolve(Drawn(), [run("bad", status=RunStatus.CANCELLED)], HEAD, MAIN)
    assert found.missing == "never recorded"
    assert "bad cannot be it, as it did not finish (cancelled)" in found.reason


@pytest.mark.parametrize("runs", [[], [run("plain", "m4")], [run("bad", status=RunStatus.CANCELLED)]])
def test_missing_where_this_run_becomes_it(runs):
    found = resolve(Drawn(), runs, HEAD, replace(MAIN, saving=True))
    assert found.missing == "never recorded"
    assert found.reason == "No baseline main yet; this run becomes it."


def test_missing_with_a_plain_run_of_this_very_commit():
    here = Head(commit="m3", tree="tree-m3", branch="main", parents=("m2",))
    found = resolve(Drawn(), [run("plain", "m3")], here, MAIN)
    assert found.reason == (
        "No baseline main yet: no run before this commit, and none was promoted; "
        "'crashlab baseline promote main plain' would make its newest run the baseline."
    )
    (refusal,) = found.walk[-1].refused
    assert refusal.why == "it is of this very commit; the search starts at the commit before"


@pytest.mark.parametrize(
    ("gate", "text"),
    [
        (
            {
                "word": "Regressed",
                "exit_code": 1,
                "because": ["The pass rate regressed.", "It is worse."],
            },
            "The baseline's own gate failed (Regressed; It is worse).",
        ),
        (
            {"word": "No change", "exit_code": 1, "because": ["1 case is proven worse: t."]},
            "The baseline's own gate failed (1 case is proven worse: t).",
        ),
        (
            {"word": "Regressed", "exit_code": 0, "because": ["The policy report never fails a session."]},
            "The baseline was itself judged (Regressed).",
        ),
        ({"word": "Regressed"}, "The baseline was itself judged (Regressed)."),
        ({"word": "No change", "exit_code": 0, "because": []}, None),
        (None, None),
    ],
)
def test_a_baseline_whose_own_gate_failed_is_taken_and_says_so(gate, text):
    found = resolve(Drawn(), [run("at", gate=gate)], HEAD, MAIN)
    assert found.run.id == "at"
    assert [n.text for n in found.notes if n.code == "baseline_gate_failed"] == ([text] if text else [])


def test_missing_expired_or_deleted_with_its_date():
    gone = {"20261101T000000Z-aaaaaa": "2026-11-20T10:00:00.000Z", "20261001T000000Z-bbbbbb": ""}
    found = resolve(Drawn(), [], HEAD, replace(MAIN, gone=gone))
    assert found.missing == "expired or deleted"
    assert "expired or deleted (20261101-aaaaaa on 2026-11-20)" in found.reason


def test_missing_no_access():
    found = resolve(Drawn(), [], HEAD, replace(MAIN, no_access="runs: permission denied"))
    assert found.missing == "no access"
    assert "no access to the store (runs: permission denied)" in found.reason


def test_missing_not_in_this_clone():
    found = resolve(Drawn(shallow=True, base=[]), [run("r", "m3")], HEAD, MAIN)
    assert found.missing == "not in this clone"
    assert "fetch-depth: 0" in found.reason


def test_no_git_and_no_promotion():
    found = resolve(None, [run("r", "m3")], None, MAIN)
    assert found.missing == "not in this clone"
    assert "no git repository here" in found.reason
    assert resolve(None, [], None, MAIN).missing == "never recorded"


NOW = datetime(2026, 12, 14, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("created", "texts"),
    [
        ("2026-11-29T13:00:00Z", []),
        ("2026-11-29T11:00:00Z", ["The baseline is 15 days old."]),
    ],
)
def test_an_old_baseline_is_a_note(created, texts):
    found = resolve(Drawn(), [run("r", created=created)], HEAD, replace(MAIN, now=NOW))
    assert [n.text for n in found.notes] == texts


def test_another_model_price_list_or_platform_are_notes():
    was = {"model": "m-1", "price_list": "2026-10", "platform": "linux", "python": "3.11"}
    now = {"model": "m-2", "price_list": "2026-11", "platform": "darwin", "python": "3.12"}
    found = resolve(Drawn(), [run("r", environment=was)], HEAD, replace(MAIN, environment=now))
    assert [n.text for n in found.notes] == [
        "The baseline ran with another model (m-1, now m-2).",
        "The baseline ran with another price list (2026-10, now 2026-11).",
        "The baseline ran with another platform (linux, now darwin).",
    ]
    same = resolve(Drawn(), [run("r", environment=was)], HEAD, replace(MAIN, environment=was))
    assert same.notes == ()


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("mian", ["main", "nightly"], "main"),
        ("Main", ["main"], "main"),
        ("man", ["main"], "main"),
        ("nightyl", ["main", "nightly"], "nightly"),
        ("release/2.4", ["release/2.3"], None),
        ("relaese/2.3", ["release/2.3"], "release/2.3"),
        ("weekly", ["main", "nightly"], None),
        ("dev", ["main"], None),
        ("x", [], None),
    ],
)
def test_a_slip_and_a_new_name_are_told_apart(name, known, near):
    assert near_name(name, known) == near


def test_run_ids_in_sentences_are_short():
    assert short_run("20261129T063300Z-k3v9q2") == "20261129-k3v9q2"
    assert short_run("imported-7") == "imported-7"
