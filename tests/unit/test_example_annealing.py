"""The bundled example: its answers are the shortest tours, and its solver is what it says."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from itertools import pairwise, permutations
from pathlib import Path

import pytest

from examples.annealing.solver import SCHEDULES, Round, anneal, late_pickups, length

HERE = Path(__file__).parents[2] / "examples" / "annealing"
ROUNDS = json.loads((HERE / "rounds.json").read_text("utf-8"))


def closed_length(stops, tour):
    return sum(math.dist(stops[a], stops[b]) for a, b in pairwise([0, *tour, 0]))


def shortest_by_search(stops):
    """Every order that picks up before it delivers, cut off as soon as it is no shorter than the best."""
    count = len(stops) - 1
    best = math.inf

    def go_on(last, left, so_far):
        nonlocal best
        if not left:
            best = min(best, so_far + math.dist(stops[last], stops[0]))
            return
        # The way home is at least as long as over the farthest stop still to visit.
        if (
            so_far + max(math.dist(stops[last], stops[s]) + math.dist(stops[s], stops[0]) for s in left)
            >= best
        ):
            return
        for stop in sorted(left, key=lambda s: math.dist(stops[last], stops[s])):
            if stop % 2 == 1 or stop - 1 not in left:
                go_on(stop, left - {stop}, so_far + math.dist(stops[last], stops[stop]))

    go_on(0, frozenset(range(1, count + 1)), 0.0)
    return best


@pytest.mark.parametrize("row", ROUNDS, ids=lambda row: row["name"])
def test_committed_optimum_is_the_shortest_tour(row):
    assert row["optimum"] == pytest.approx(shortest_by_search(row["stops"]), rel=1e-12)
    assert row["optimum"] == pytest.approx(closed_length(row["stops"], row["tour"]), rel=1e-12)
    assert sorted(row["tour"]) == list(range(1, len(row["stops"])))
    assert all(row["tour"].index(stop) < row["tour"].index(stop + 1) for stop in row["tour"] if stop % 2)


def test_search_of_this_test_agrees_with_trying_every_order():
    stops = ROUNDS[0]["stops"][:7]
    tours = [t for t in permutations(range(1, 7)) if all(t.index(s) < t.index(s + 1) for s in (1, 3, 5))]
    assert len(tours) == 90  # 6! / 2**3
    assert shortest_by_search(stops) == pytest.approx(min(closed_length(stops, tour) for tour in tours))


def test_rounds_are_24_different_ones():
    assert len({json.dumps(row["stops"]) for row in ROUNDS}) == 24
    assert len({row["name"] for row in ROUNDS}) == 24


def test_make_rounds_gives_the_committed_file(tmp_path):
    script = tmp_path / "make_rounds.py"
    script.write_bytes((HERE / "make_rounds.py").read_bytes())
    subprocess.run([sys.executable, script], check=True)
    made = json.loads((tmp_path / "rounds.json").read_text("utf-8"))
    assert [row["stops"] for row in made] == [row["stops"] for row in ROUNDS]
    assert [row["optimum"] for row in made] == pytest.approx([row["optimum"] for row in ROUNDS], rel=1e-12)


def test_late_pickups_and_length_by_hand():
    square = Round(stops=((0, 0), (0, 3), (4, 3)))
    assert length(square, (1, 2)) == 3 + 4 + 5
    assert late_pickups((1, 2)) == 0
    assert late_pickups((2, 1)) == 1
    assert late_pickups((2, 4, 1, 3)) == 2


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_solver_visits_every_stop_and_repeats_itself_with_the_same_seed(name):
    task = Round(stops=tuple(map(tuple, ROUNDS[0]["stops"])))
    one = anneal(task, SCHEDULES[name], seed=5, max_steps=4500)
    assert one == anneal(task, SCHEDULES[name], seed=5, max_steps=4500)
    assert sorted(one.tour) == list(range(1, 13))
    assert len({anneal(task, SCHEDULES[name], seed=seed, max_steps=4500).tour for seed in range(5)}) > 1


def test_solver_that_runs_out_of_steps_says_so():
    task = Round(stops=tuple(map(tuple, ROUNDS[0]["stops"])))
    answer = anneal(task, SCHEDULES["slow"], seed=1, max_steps=10)
    assert (answer.steps, answer.settled) == (10, False)


def test_example_runs_as_plain_tests_without_trials(tmp_path):
    """Somebody who tries the example with bare pytest sees ordinary tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "CRASHLAB"))}
    environment = {
        **kept,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": "pytest_crashlab.plugin",
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", str(HERE)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sum("::test_round[" in line for line in done.stdout.splitlines()) == 24
