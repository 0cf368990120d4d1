"""Makes the trials of a Hypothesis test independent of each other and of earlier runs."""

from __future__ import annotations

import hashlib
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crashlab.plugin.keys import trial_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

_SEED = "_hypothesis_internal_use_seed"
_SETTINGS = "_hypothesis_internal_use_settings"


class HypothesisTrials:
    """Gives each trial its own examples while it runs.

    ``seed_for`` (case id, trial) gives the seed. Without this, an example that failed once is tried
    first in every later trial, and under Hypothesis's ``ci`` profile all trials draw the same ones.
    """

    def __init__(self, seed_for: Callable[[str, int], int]) -> None:
        self._seed_for = seed_for

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Prepare the test before Hypothesis's own plugin reads its settings."""
        of = trial_of(item)
        function = getattr(item, "obj", None)
        function = getattr(function, "__func__", function)
        if (
            of is None
            or "hypothesis" not in sys.modules
            or not getattr(function, "is_hypothesis_test", False)
        ):
            return (yield)
        with _own_examples(
            item, function, lambda: self._seed_for(of.case.id, of.trial), of.case.id, of.trial
        ):
            return (yield)


@contextmanager
def _own_examples(
    item: pytest.Item, function: Any, seed: Callable[[], int], case_id: str, trial: int
) -> Iterator[None]:
    """No database, a seed per trial, and no objection to the second instance of the class."""
    machine = getattr(function, "_hypothesis_state_machine_class", None)
    seeded = function if machine is None else machine
    configured, name = (
        (function, _SETTINGS) if machine is None else (getattr(item, "instance", None), "settings")
    )
    fixed = getattr(seeded, _SEED, None)
    if fixed is None:
        fixed = getattr(sys.modules.get("hypothesis.core"), "global_force_seed", None)
    with (
        _set(seeded, _SEED, seed() if fixed is None else _derived(fixed, case_id, trial)),
        _set(configured, name, _independent(getattr(configured, name, None))),
    ):
        yield


def _independent(settings: Any) -> Any:
    from hypothesis import HealthCheck
    from hypothesis import settings as Settings  # noqa: N812 - a class by another name

    settings = Settings.default if settings is None else settings
    suppressed = {*settings.suppress_health_check, HealthCheck.differing_executors}
    return Settings(settings, database=None, derandomize=False, suppress_health_check=suppressed)


def _derived(fixed: object, case_id: str, trial: int) -> int:
    """A seed from the one that the user fixed, so that it still decides what is drawn."""
    data = f"{fixed!r}\0{case_id}\0{trial}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(data).digest()[:16])


@contextmanager
def _set(target: Any, name: str, value: object) -> Iterator[None]:
    """Set an attribute and put back what ``target`` itself had."""
    had = name in vars(target)
    old = vars(target).get(name)
    setattr(target, name, value)
    try:
        yield
    finally:
        if had:
            setattr(target, name, old)
        else:
            delattr(target, name)
