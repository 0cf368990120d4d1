"""Other plugins that run a test more than once: refused beside trials, with one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

# Plugins are known by their options: the name they go by depends on how they were loaded.
_RERUNFAILURES, _FLAKY = "force_reruns", "force_flaky"


def refuse(config: pytest.Config) -> None:
    """Raise ``pytest.UsageError`` when an option or ini key makes another plugin repeat tests.

    Reruns hide the failures that trials are there to count; copies of copies have no case; with
    ``--dist each`` every worker reports the same trials.
    """
    option = config.option
    forced = getattr(option, _RERUNFAILURES, None)
    if hasattr(option, _RERUNFAILURES) and not _is_zero(forced):
        if _number(forced):
            _refuse("--force-reruns", "it hides failures that trials count; leave it out")
        if _number(getattr(option, "reruns", None)):
            _refuse("--reruns", "it hides failures that trials count; leave it out, or pass --reruns=0")
        if getattr(option, "reruns", None) is None and _number(_ini(config, "reruns")):
            _refuse("the ini key reruns", "it hides failures that trials count; pass --reruns=0")
    if getattr(option, _FLAKY, False):
        _refuse("--force-flaky", "it hides failures that trials count; leave it out")
    # --flake-runs is 50 unless given: only --flake-finder switches it on.
    if getattr(option, "flake_finder_enable", False):
        _refuse(
            "pytest-flakefinder's --flake-finder", "it repeats tests itself; leave it out and use --trials"
        )
    if _has_repeat(config) and _number(getattr(option, "count", None)) > 1:
        _refuse("pytest-repeat's --count", "it repeats tests itself; leave it out and use --trials")
    if getattr(option, "dist", "no") == "each":
        _refuse("--dist each", "every worker would report the same trials; use --dist load")


def refuse_items(items: Iterable[pytest.Item]) -> None:
    """Raise ``pytest.UsageError`` for the first of ``items`` that its own marker makes rerun."""
    for item in items:
        reruns = any(hasattr(item.config.option, name) for name in (_RERUNFAILURES, _FLAKY))
        repeats = _has_repeat(item.config)
        if not (reruns or repeats):
            return
        mark = item.get_closest_marker("flaky") if reruns else None
        if mark is not None and _reruns(item.config, mark):
            raise pytest.UsageError(
                f"{_place(item)}: the marker flaky reruns this test and hides failures that trials count; "
                "take it away, or disable its plugin for runs with trials (-p no:rerunfailures, -p no:flaky)."
            )
        mark = item.get_closest_marker("repeat") if repeats else None
        if mark is not None and _number(mark.args[0] if mark.args else None) > 1:
            raise pytest.UsageError(
                f"{_place(item)}: the marker repeat makes several cases of this test, which trials would "
                "count as different ones; write trials instead of it, or disable pytest-repeat for runs with "
                "trials (-p no:repeat)."
            )


def _place(item: pytest.Item) -> str:
    path, line, _ = item.location
    return path if line is None else f"{path}:{line + 1}"


def _has_repeat(config: pytest.Config) -> bool:
    return any(config.pluginmanager.has_plugin(name) for name in ("repeat", "pytest_repeat"))


def _reruns(config: pytest.Config, mark: pytest.Mark) -> bool:
    if _is_zero(getattr(config.option, _RERUNFAILURES, None)):
        return False
    return not _is_zero(mark.kwargs.get("reruns", mark.args[0] if mark.args else None))


def _is_zero(value: object) -> bool:
    return isinstance(value, int) and value == 0


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return 0.0


def _ini(config: pytest.Config, name: str) -> object:
    try:
        return config.getini(name)
    except (KeyError, ValueError):
        return None


def _refuse(what: str, why: str) -> None:
    raise pytest.UsageError(f"{what} cannot be used in a session with trials: {why}.")
