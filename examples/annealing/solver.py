"""A courier's round: parcels are picked up and delivered on the shortest closed tour.

The system under test of this example. Simulated annealing with a random start and random moves, so
that the same instance is solved well in one run and less well in another. Standard library only.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from itertools import pairwise

Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A depot (stop 0) and pairs of stops: parcel ``p`` goes from stop ``2p + 1`` to stop ``2p + 2``."""

    stops: tuple[Point, ...]

    @property
    def parcels(self) -> int:
        """How many parcels there are."""
        return (len(self.stops) - 1) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How the search cools: from ``hot`` map widths, by the factor ``cooling`` every 20 steps.

    It has settled when ``patience`` steps in a row changed nothing.
    """

    hot: float
    cooling: float
    patience: int


SCHEDULES = {
    "slow": Schedule(hot=0.30, cooling=0.974, patience=300),
    "fast": Schedule(hot=0.02, cooling=0.50, patience=150),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The tour that the solver stopped with, after how many steps, and whether it had settled by then."""

    tour: tuple[int, ...]
    steps: int
    settled: bool


def length(task: Round, tour: tuple[int, ...] | list[int]) -> float:
    """How long the closed tour from the depot through ``tour`` and back is."""
    path = [task.stops[0], *(task.stops[stop] for stop in tour), task.stops[0]]
    return sum(math.dist(a, b) for a, b in pairwise(path))


def late_pickups(tour: tuple[int, ...] | list[int]) -> int:
    """How many parcels the tour would deliver before it has picked them up."""
    when = {stop: position for position, stop in enumerate(tour)}
    return sum(when[stop] > when[stop + 1] for stop in tour if stop % 2 == 1)


def neighbour(tour: list[int], rng: random.Random) -> list[int]:
    """A tour beside ``tour``: a stretch turned round, one stop moved, or one parcel's two stops moved."""
    i, j = sorted(rng.sample(range(len(tour)), 2))
    move = rng.random()
    if move < 0.3:
        return tour[:i] + tour[i : j + 1][::-1] + tour[j + 1 :]
    if move < 0.45:
        return [*tour[:i], *tour[i + 1 : j + 1], tour[i], *tour[j + 1 :]]
    if move < 0.6:
        return [*tour[:i], tour[j], *tour[i:j], *tour[j + 1 :]]
    pickup = tour[i] - (tour[i] % 2 == 0)
    rest = [stop for stop in tour if stop not in (pickup, pickup + 1)]
    i, j = sorted((rng.randint(0, len(rest)), rng.randint(0, len(rest))))
    return [*rest[:i], pickup, *rest[i:j], pickup + 1, *rest[j:]]


def anneal(task: Round, schedule: Schedule, *, seed: int, max_steps: int) -> Answer:
    """Look for a short tour that delivers no parcel before it is picked up.

    A late pickup costs 0.6 map widths, so that the search may pass through impossible tours and,
    when it is cooled too fast, may end in one. It stops when it has settled, or after ``max_steps``.
    """
    rng = random.Random(seed)
    count = len(task.stops) - 1
    width = max(math.dist(a, b) for a in task.stops for b in task.stops)
    between = [[math.dist(a, b) for b in task.stops] for a in task.stops]
    fine = width * 0.6

    def cost(tour: list[int]) -> float:
        total = between[0][tour[0]] + between[tour[-1]][0]
        for a, b in pairwise(tour):
            total += between[a][b]
        return total + fine * late_pickups(tour)

    tour = list(range(1, count + 1))
    rng.shuffle(tour)
    energy = cost(tour)
    temperature = schedule.hot * width
    unchanged = 0
    for step in range(1, max_steps + 1):
        candidate = neighbour(tour, rng)
        change = cost(candidate) - energy
        if change <= 0 or rng.random() < math.exp(-change / temperature):
            unchanged = unchanged + 1 if change == 0 else 0
            tour, energy = candidate, energy + change
        else:
            unchanged += 1
        if unchanged >= schedule.patience:
            return Answer(tour=tuple(tour), steps=step, settled=True)
        if step % 20 == 0:
            temperature = max(temperature * schedule.cooling, 1e-9)
    return Answer(tour=tuple(tour), steps=max_steps, settled=False)
