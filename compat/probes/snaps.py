"""For syrupy: two snapshots in one test, and one in a parametrized one."""

from __future__ import annotations

from typing import Any

import pytest


def test_two(snapshot: Any) -> None:
    assert {"name": "first"} == snapshot
    assert {"name": "second"} == snapshot


@pytest.mark.parametrize("size", [1, 2])
def test_sized(snapshot: Any, size: int) -> None:
    assert ["x"] * size == snapshot
