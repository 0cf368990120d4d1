"""Makes the trials of a Hypothesis test independent of each other and of earlier runs."""

from __future__ import annotations

import hashlib
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pytest_crashlab.plugin.author import derive_seed
from pytest_crashlab.plugin.keys import TRIAL_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from pytest_crashlab.plugin.keys import TrialOf

_SEED = "_hypothesis_internal_use_seed"
_SETTINGS = "_hypothesis_internal_use_settings"


def draws_examples(item: pytest.Item) -> bool:
    """Tell whether ``item`` is a trial of a Hypothesis test."""
    return (
        "hypothesis" in sys.modules
        and getattr(_function(item), "is_hypothesis_test", False)
        and TRIAL_KEY in item.stash
    )


def _function(item: pytest.Item) -> object:
    function = getattr(item, "obj", None)
    return getattr(function, "__func__", function)


@contextmanager
def own_examples(item: pytest.Item) -> Iterator[None]:
    """Give a trial of a Hypothesis test (see ``draws_examples``) its own examples while it runs.

    Without this, an example that failed once is tried first in every later trial, and under
    Hypothesis's ``ci`` profile all trials draw the same ones. So: no database, the trial's seed, and
    no objection to the second instance of the class. Must surround Hypothesis's own plugin, which
    reads the settings when the test is called.
    """
    of = item.stash[TRIAL_KEY]
    function: Any = _function(item)
    machine = getattr(function, "_hypothesis_state_machine_class", None)
    if machine is None:
        seeded, configured, name = function, function, _SETTINGS
    else:
        seeded, configured, name = machine, getattr(item, "instance", None), "settings"
    with (
        _set(seeded, _SEED, _seed(of, getattr(seeded, _SEED, None))),
        _set(configured, name, _independent(getattr(configured, name, None))),
    ):
        yield


def _seed(of: TrialOf, fixed: object) -> int:
    """The trial's seed; one that the user fixed still decides what is drawn."""
    if fixed is None:
        fixed = getattr(sys.modules.get("hypothesis.core"), "global_force_seed", None)
    if fixed is None:
        return derive_seed(of.run_seed, of.case.id, of.trial)
    data = f"{fixed!r}\0{of.case.id}\0{of.trial}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(data).digest()[:16])


def _independent(settings: Any) -> Any:
    from hypothesis import HealthCheck
    from hypothesis import settings as Settings  # noqa: N812 - a class by another name

    settings = Settings.default if settings is None else settings
    suppressed = {*settings.suppress_health_check, HealthCheck.differing_executors}
    return Settings(settings, database=None, derandomize=False, suppress_health_check=suppressed)


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
