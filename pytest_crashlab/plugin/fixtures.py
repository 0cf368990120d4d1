"""The fixtures that tests ask for by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_crashlab.plugin.author import Trial
    from pytest_crashlab.records.dataset import Row


@pytest.fixture
def trial(request: pytest.FixtureRequest) -> Trial:
    """The trial in progress: its run phase, checks, outcome, number and seed.

    Works in a plain session too, where a trial that fails, or that gives no decision, fails the test.
    """
    from pytest_crashlab.plugin.lifecycle import trial_for

    return trial_for(request)


@pytest.fixture
def row(request: pytest.FixtureRequest) -> Row:
    """The row of the data set that this case is made of: ``id``, ``input``, ``expected``, ``metadata``.

    For tests marked ``crashlab(dataset=...)``. Each trial gets values of its own.
    """
    from pytest_crashlab.plugin.datasets import fresh_row

    return fresh_row(request)
