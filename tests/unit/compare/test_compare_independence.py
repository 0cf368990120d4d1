"""Whether failures follow the process is found where they do, and rarely where they do not."""

from __future__ import annotations

import random

import pytest

from pytest_crashlab.compare.independence import with_warning, worker_cluster
from pytest_crashlab.records.case import CasePlan
from pytest_crashlab.records.outcome import Kind
from pytest_crashlab.records.run import RunStatus, new_run_id
from pytest_crashlab.records.trial import TrialRow
from pytest_crashlab.store import Manifest, Plan


def stored(store, cells, isolation="none"):
    """A run from ``(case, trial, worker, failed)``."""
    writer = store.begin(Manifest(id=new_run_id(), isolation=isolation))
    planned = {}
    for case, trial, *_ in cells:
        planned[case] = max(trial, planned.get(case, 0))
    writer.write_plan(Plan(cases=[CasePlan(id=case, planned=k) for case, k in planned.items()]))
    for case, trial, worker, failed in cells:
        kind = Kind.FAIL if failed else Kind.PASS
        label = "failed" if failed else "passed"
        writer.append(
            TrialRow(case=case, trial=trial, outcome=label, kind=kind, start=0.0, duration=1.0, worker=worker)
        )
    return store.load(writer.seal(RunStatus.COMPLETED).id)


def grid(fails, *, cases=10, k=6, workers=2):
    """``fails(case, trial, worker)`` over cases whose trials take turns on the workers."""
    return [
        (f"t::c{c}", t + 1, f"gw{(c + t) % workers}", fails(c, t, (c + t) % workers))
        for c in range(cases)
        for t in range(k)
    ]


def test_a_worker_that_fails_everything_is_named(store):
    found = worker_cluster(stored(store, grid(lambda _c, _t, w: w == 1)))
    assert found is not None
    assert (found.worker, found.failures, found.trials, found.expected) == ("gw1", 30, 30, 15.0)
    assert (found.cases, found.workers) == (10, 2)
    assert found.p == pytest.approx(1 / 10_000)
    assert "gw1 failed 30 of 30 trials where 15.0 are expected (p = 0.0001)" in found.sentence


def test_fresh_processes_are_not_recommended_to_a_run_that_had_them(store):
    cells = grid(lambda _c, _t, w: w == 1)
    shared, fresh = (worker_cluster(stored(store, cells, isolation=i)).sentence for i in ("none", "round"))
    assert "--crashlab-isolation=round, fresh processes for each round," in shared
    assert "--crashlab-isolation" not in fresh
    assert "The processes were fresh in each round" in fresh


def test_a_broken_case_is_no_cluster_wherever_it_ran(store):
    """All of a case's trials on one worker, as loadscope deals them out: the case explains it."""
    cells = [(f"t::c{c}", t + 1, f"gw{c % 2}", c % 2 == 1) for c in range(10) for t in range(6)]
    assert worker_cluster(stored(store, cells)) is None


def test_cases_of_different_difficulty_are_no_cluster(store):
    """Hard cases mostly on one worker, easy ones on the other, each by its own rate on both."""
    cells = []
    for c in range(8):
        mostly = c % 2
        for t in range(10):
            worker = mostly if t < 8 else 1 - mostly
            cells.append((f"t::c{c}", t + 1, f"gw{worker}", (t % 2 == 0) if mostly else t in (3, 9)))
    assert worker_cluster(stored(store, cells)) is None


@pytest.mark.parametrize("fails", [lambda *_: False, lambda *_: True], ids=["all pass", "all fail"])
def test_nothing_can_be_told_without_a_mixed_case(store, fails):
    assert worker_cluster(stored(store, grid(fails))) is None


def test_one_process_can_tell_nothing(store):
    assert worker_cluster(stored(store, grid(lambda _c, t, _w: t % 2 == 0, workers=1))) is None


def test_too_few_trials_prove_nothing(store):
    """Two cases of two trials: the most extreme table has a chance of a half."""
    assert worker_cluster(stored(store, grid(lambda _c, _t, w: w == 1, cases=2, k=2))) is None


def test_chance_is_rarely_called_a_cluster(store):
    """At p < .01, at most 3 of 40 independent runs (Binomial(40, .01) exceeds 3 once in 1,400)."""
    draw = random.Random(7)
    found = 0
    for _ in range(40):
        run = stored(store, grid(lambda *_: draw.random() < 0.3, cases=12, k=6, workers=3))
        found += worker_cluster(run) is not None
    assert found <= 3


def test_a_flaky_worker_is_found(store):
    """Failing 70 % on one of three workers and 20 % elsewhere: found in most of 10 runs."""
    draw = random.Random(3)
    found = [
        worker_cluster(
            stored(
                store,
                grid(lambda _c, _t, w: draw.random() < (0.7 if w == 2 else 0.2), cases=12, k=6, workers=3),
            )
        )
        for _ in range(10)
    ]
    named = [cluster.worker for cluster in found if cluster is not None]
    assert len(named) >= 8
    assert set(named) == {"gw2"}


def test_the_warning_replaces_an_earlier_one(store):
    run = stored(store, grid(lambda _c, _t, w: w == 1))
    once = with_warning(["something else"], run)
    assert once[0] == "something else"
    assert once[1].startswith("Failures follow the process: gw1")
    assert with_warning(once, run) == once
    assert with_warning(once, stored(store, grid(lambda *_: False))) == ["something else"]
