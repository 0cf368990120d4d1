"""The names of the markers that a test author writes: all that a session without trials has to know."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

MARKERS = {
    "trials": "trials(k, fixed=False, min_passes=None): run this test k times; fixed: --trials does not "
    "change k; min_passes: the test fails when fewer trials pass",
    "outcomes": "outcomes(vocabulary): the labels that a trial of this test may end with",
    "checks": "checks(*checks): the criteria by which a trial of this test is judged",
    "crashlab": "crashlab(**settings): where the test's data, model and sandbox come from; also trials=k, "
    "fixed=, min_passes= where a project has a trials marker of its own",
}


def register_markers(config: pytest.Config) -> None:
    """Add our lines to the ``markers`` ini; call once, when pytest is configured."""
    for line in MARKERS.values():
        config.addinivalue_line("markers", line)


def may_ask_for_trials(items: Iterable[pytest.Item]) -> bool:
    """Whether an item has a marker that asks for trials, if it is ours."""
    return any(mark.name in {"trials", "crashlab"} for item in items for mark in item.iter_markers())
