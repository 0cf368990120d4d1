"""What the collect side leaves on a trial's item for the rest of the session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_crashlab.records.case import CasePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOf:
    """Which trial of which case an item is; ``trial`` counts from 1, ``run_seed`` is the run's seed."""

    case: CasePlan
    trial: int
    run_seed: int = 0


TRIAL_KEY = pytest.StashKey[TrialOf]()
# On the session's configuration: where the run is kept.
RUN_FOLDER_KEY: pytest.StashKey[Path] = pytest.StashKey()


def trial_of(item: pytest.Item) -> TrialOf | None:
    """Return which trial ``item`` is, or None for an item that was not expanded."""
    return item.stash.get(TRIAL_KEY, None)


# Under this name the data sets of a session are registered, from the first test that asks for one.
DATASETS_NAME = "crashlab-datasets"
