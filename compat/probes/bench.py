"""For pytest-benchmark: a function under measurement, in a plain and in a parametrized test."""

from __future__ import annotations

from typing import Any

import pytest


def test_sum(benchmark: Any) -> None:
    assert benchmark(sum, range(100)) == 4950


@pytest.mark.parametrize("size", [10, 20])
def test_sorted(benchmark: Any, size: int) -> None:
    assert benchmark(sorted, range(size)) == list(range(size))
