"""Answers that came more than once: which trials are marked, at the seal and after a run went on."""

from __future__ import annotations

import pytest
from store_builders import plan_of, trial_row

from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store import Manifest, Store
from pytest_crashlab.store.repeats import count_cached, count_shared


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / ".crashlab", create=True)


def sealed(store, *rows, run_id="20261130T063300Z-aaaaaa"):
    writer = store.begin(Manifest(id=run_id, k=len(rows)))
    writer.write_plan(plan_of("t", k=len(rows)))
    for number, row in enumerate(rows, 1):
        given = {"start": 1_000.0 + 10 * number, "cached": False if row.get("answers") else None, **row}
        writer.append(trial_row("t", given.pop("trial", number), **given))
    writer.seal(RunStatus.COMPLETED)
    return store.load(run_id)


def marks(run):
    return run.trials.sort("trial", "attempt")["cached"].to_list()


@pytest.mark.parametrize(
    ("answers", "expected", "cached"),
    [
        (("a", "b", "c"), [False, False, False], 0),
        (("a", "a", "a"), [False, True, True], 2),
        (("a b", "c b", "d"), [False, True, False], 1),
        (("a b", "c", "b"), [False, False, True], 1),
        (("~a", "~a", "~b"), [False, True, False], 1),
        (("=a", "=a", "a"), [False, True, False], 1),
        ((None, "a", "a"), [None, False, True], 1),
        ((None, None, None), [None, None, None], None),
    ],
)
def test_the_first_trial_with_an_answer_is_not_marked(store, answers, expected, cached):
    run = sealed(store, *({"answers": a} for a in answers))
    assert marks(run) == expected
    assert run.manifest.cached == cached
    assert count_cached(run.trials) == cached


def test_the_first_is_the_one_that_began_first_wherever_it_stands(store):
    run = sealed(store, {"answers": "a", "start": 30.0}, {"answers": "a", "start": 20.0})
    assert marks(run) == [True, False]


def test_of_trials_side_by_side_the_first_is_the_one_that_says_no_cache(store):
    """The one that began first may well have asked last: what its answer says of itself decides."""
    rows = ({"answers": "a", "start": 20.0, "cached": True}, {"answers": "a", "start": 20.1, "cached": False})
    assert marks(sealed(store, *rows)) == [True, False]


@pytest.mark.parametrize(("start", "expected"), [(1_000.2, False), (1_002.4, False), (1_002.6, True)])
def test_a_time_counts_only_where_the_other_trial_is_long_over(store, start, expected):
    rows = ({"answers": "~a", "start": 1_000.0, "duration": 0.5}, {"answers": "~a", "start": start})
    assert marks(sealed(store, *rows)) == [False, expected]


def test_what_a_trial_said_of_itself_stays(store):
    run = sealed(store, {"answers": "a", "cached": True}, {"cached": True}, {"answers": "b"})
    assert marks(run) == [True, True, False]
    assert run.manifest.cached == 2


def test_a_run_that_goes_on_is_looked_at_again_as_a_whole(store):
    run = sealed(store, {"answers": "a"}, {"answers": "b", "outcome": "judge_error"})
    assert marks(run) == [False, False]
    writer = store.reopen(run.manifest.id)
    writer.append(trial_row("t", 2, attempt=2, start=2_000.0, answers="a", cached=False))
    assert marks(store.load(run.manifest.id)) == [False, False, True], "while it runs, too"
    writer.seal(RunStatus.COMPLETED)
    again = store.load(run.manifest.id)
    assert marks(again) == [False, False, True]
    assert again.manifest.cached == 1


def test_an_attempt_that_does_not_count_is_not_counted(store):
    rows = (
        {"trial": 1, "answers": "a"},
        {"trial": 2, "answers": "a", "outcome": "judge_error"},
        {"trial": 2, "attempt": 2, "answers": "b"},
    )
    run = sealed(store, *rows)
    assert marks(run) == [False, True, False]
    assert run.manifest.cached == 0


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (("a", "b"), ("c", "d"), 0),
        (("a", "b"), ("b", "c"), 1),
        (("a", "b"), ("a b", "b"), 2),
        (("~a",), ("~a",), 0),
        (("a",), (None,), 0),
        ((None,), ("a",), 0),
    ],
)
def test_answers_that_two_runs_share(store, a, b, expected):
    one = sealed(store, *({"answers": x} for x in a))
    other = sealed(store, *({"answers": x} for x in b), run_id="20261130T063300Z-bbbbbb")
    assert count_shared(one.trials, other.trials) == expected


@pytest.mark.parametrize(("start", "expected"), [(990.0, 1), (1_011.0, 0), (1_100.0, 1)])
def test_runs_share_an_answer_by_its_time_where_their_trials_are_apart(store, start, expected):
    one = sealed(store, {"answers": "~a"})  # 1010.0 to 1010.5
    other = sealed(store, {"answers": "~a", "start": start}, run_id="20261130T063300Z-bbbbbb")
    assert count_shared(one.trials, other.trials) == expected
