"""Whether the arms of a source were measured in turn, as far as the starts of their trials tell."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crashlab.importing.rows import SourceRow

LEAST_OF_CHANCE = 0.5


def taken_in_turn(rows: Sequence[SourceRow]) -> bool:
    """Whether the trials of all arms were mixed in time, so that a change of the day hits them alike.

    Every row needs an arm and a start. In a random order of ``n`` and ``m`` trials the arm changes
    ``2 n m / (n + m)`` times (Wald and Wolfowitz 1940); at least half of that is asked for of every
    two arms, which blocks of one arm after the other do not reach.
    """
    starts: dict[str, list[float]] = {}
    for row in rows:
        if row.arm is None or row.start is None:
            return False
        starts.setdefault(row.arm, []).append(row.start)
    return len(starts) > 1 and all(_mixed(a, b) for a, b in combinations(starts.values(), 2))


def _mixed(a: Sequence[float], b: Sequence[float]) -> bool:
    # Trials that began at the same moment are no change of the arm: sorted, those of one arm are together.
    order = sorted([(start, 0) for start in a] + [(start, 1) for start in b])
    changes = sum(before[1] != after[1] for before, after in pairwise(order))
    return changes >= LEAST_OF_CHANCE * 2 * len(a) * len(b) / (len(a) + len(b))
