"""pytest's own cache of failures, in terms of cases: what --lf, --ff, --sw and --nf read next time.

pytest's plugins see reports of trials and would keep ids that exist only in a session with trials.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from pytest_crashlab.plugin.compat import cache_id, case_id_of, is_grouped

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    import pytest

_LAST_FAILED = "cache/lastfailed"
_NODE_IDS = "cache/nodeids"
_STEPWISE = "cache/stepwise"


def rewrite(config: pytest.Config, *, failed: Iterable[str], ran: Collection[str]) -> None:
    """Write case ids to the cache, at session end, in a single process or on the xdist controller.

    ``failed``: ids of the cases that --lf should run again, in the order --sw should meet them;
    ``ran``: ids of the cases that ran. What the cache knows of other cases stays. It does not matter
    whether pytest's own plugins write before or after. Does nothing without a cache, in a worker or
    when nothing was run.
    """
    cache = getattr(config, "cache", None)
    skips = ("collectonly", "cacheshow")
    if cache is None or hasattr(config, "workerinput") or any(config.getoption(name, None) for name in skips):
        return
    failed = list(dict.fromkeys(failed))
    ran = {*ran, *failed}
    to_case = _ToCase(config)
    _last_failed(config, cache, failed, ran, to_case)
    _node_ids(config, cache, ran, to_case)
    if config.getoption("stepwise", None):
        _stepwise(config, cache, failed, ran, to_case)


class _ToCase:
    """Turns the id of a case or of one of its trials into the case's."""

    def __init__(self, config: pytest.Config) -> None:
        self._grouped = is_grouped(config)

    def __call__(self, nodeid: object, ran: Collection[str]) -> str:
        text = str(nodeid)
        if text in ran:  # also a user's own id that reads like a trial's
            return text
        case_id, _ = case_id_of(text, grouped=self._grouped)
        return case_id if case_id in ran else text


def _last_failed(
    config: pytest.Config, cache: pytest.Cache, failed: list[str], ran: set[str], to_case: _ToCase
) -> None:
    plugin: Any = config.pluginmanager.get_plugin("lfplugin")
    old = cache.get(_LAST_FAILED, {}) if plugin is None else plugin.lastfailed
    kept = [str(nodeid) for nodeid in old if to_case(nodeid, ran) not in ran]
    entries = [*kept, *failed]
    if plugin is not None:
        plugin.lastfailed.clear()
        plugin.lastfailed.update((cache_id(nodeid), True) for nodeid in entries)
    new = dict.fromkeys(entries, True)
    if cache.get(_LAST_FAILED, {}) != new:
        cache.set(_LAST_FAILED, new)


def _node_ids(config: pytest.Config, cache: pytest.Cache, ran: set[str], to_case: _ToCase) -> None:
    plugin: Any = config.pluginmanager.get_plugin("nfplugin")
    old = cache.get(_NODE_IDS, []) if plugin is None else plugin.cached_nodeids
    new = {to_case(nodeid, ran) for nodeid in old} | ran
    if plugin is not None:
        plugin.cached_nodeids = {cache_id(nodeid) for nodeid in new}
    cache.set(_NODE_IDS, sorted(new))


def _stepwise(
    config: pytest.Config, cache: pytest.Cache, failed: list[str], ran: set[str], to_case: _ToCase
) -> None:
    """Keep the case at which --sw goes on: the one it stopped at, else the first that failed."""
    plugin: Any = config.pluginmanager.get_plugin("stepwiseplugin")
    stored: dict[str, Any] = cache.get(_STEPWISE, None) or {}
    stored = {"last_failed": None, "last_test_count": None, **stored}
    if plugin is not None:
        stored["last_failed"] = plugin.cached_info.last_failed
        stored["last_test_count"] = plugin.cached_info.last_test_count
    last = None if stored["last_failed"] is None else to_case(stored["last_failed"], ran)
    if last not in failed and (last is None or last in ran):
        last = failed[0] if failed else None
    stored["last_failed"] = last
    stored["last_cache_date_str"] = dt.datetime.now().isoformat()  # noqa: DTZ005 - pytest compares local times
    if plugin is not None:
        plugin.cached_info.last_failed = None if last is None else cache_id(last)
    cache.set(_STEPWISE, stored)
