"""For pytest-randomly: every trial is seeded, and no two alike."""

from __future__ import annotations

import random

import pytest

DRAWN: dict[str, set[float]] = {}


@pytest.mark.parametrize("case", ["a", "b", "c"])
def test_draws_anew(case: str) -> None:
    number = random.random()
    assert number not in DRAWN.setdefault(case, set())
    DRAWN[case].add(number)
