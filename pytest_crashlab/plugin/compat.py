"""Everything that depends on how pytest keeps ids, requests and fixtures; nothing else may.

Up to 9.1 a node's id is the string ``_nodeid``; since 9.2 it is the frozen ``NodeId`` in ``_id``, and
writing ``_nodeid`` has no effect.
"""
# ruff: noqa: SLF001 - this module is where the package touches what pytest keeps to itself

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.fixtures import TopRequest, get_scope_package
from _pytest.mark.structures import NodeKeywords
from _pytest.stash import Stash

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from _pytest.fixtures import FixtureDef

_TRIAL = re.compile(r"(?:\[|-)trial([1-9][0-9]*)\]\Z")
_GROUP = re.compile(r"@[^@\[\]]*\Z")


def case_id_of(nodeid: str, *, grouped: bool = False) -> tuple[str, int | None]:
    """Split a trial's node id into its case id and its trial; the trial is None for any other id.

    ``grouped``: the session runs under ``--dist loadgroup``, where xdist adds ``@group`` to ids.
    """
    if grouped and "@" in nodeid:
        nodeid = _GROUP.sub("", nodeid)
    if not nodeid.endswith("]"):
        return nodeid, None
    found = _TRIAL.search(nodeid)
    if found is None:
        return nodeid, None
    head = nodeid[: found.start()]
    return (head if found[0][0] == "[" else f"{head}]"), int(found[1])


def is_grouped(config: pytest.Config) -> bool:
    """Tell whether xdist adds group names to ids, in the controller and in a worker."""
    return (
        bool(getattr(config.option, "loadgroup", False))
        or getattr(config.option, "dist", "no") == "loadgroup"
    )


def collected_id(item: pytest.Item, *, grouped: bool) -> str:
    """The id of a case that was collected, without the group that xdist may have added by now."""
    group = xdist_group(item) if grouped else ""
    return item.nodeid.removesuffix(group) if group else item.nodeid


def xdist_group(item: pytest.Item) -> str:
    """Return the group suffix that xdist gives ``item`` under ``--dist loadgroup``, or ""."""
    names = {
        str(mark.args[0] if mark.args else mark.kwargs.get("name", "default"))
        for mark in item.iter_markers("xdist_group")
    }
    return f"@{'_'.join(sorted(names))}" if names else ""


def set_trial_id(item: pytest.Item, trial: int, *, case_id: str | None = None, group: str = "") -> None:
    """Give ``item`` the id of a trial of its case: ``t[b-trial2]``, or ``t[trial2]`` without parameters.

    The name stays, because a TestCase looks its method up by it. ``case_id`` is the item's id unless
    given; ``group`` is xdist's suffix, put behind the trial so that its scheduler finds it.
    """
    set_id(item, trial_id(item.nodeid if case_id is None else case_id, trial) + group)


def trial_id(case_id: str, trial: int) -> str:
    """Return the id of a case's trial without any group."""
    return f"{case_id[:-1]}-trial{trial}]" if case_id.endswith("]") else f"{case_id}[trial{trial}]"


def set_id(item: pytest.Item, nodeid: str) -> None:
    """Make ``nodeid`` the id of ``item``."""
    old = getattr(item, "_id", None)
    if old is None:
        item._nodeid = nodeid  # type: ignore[attr-defined]
    else:
        item._id = type(old).parse(nodeid)


def without_group(report: pytest.TestReport) -> None:
    """Take the group that xdist adds to an id off a trial's report: it is no part of what is shown or kept.

    pytest 9.2 would take all behind the bracket for parameters and close it again: ``t[trial1]@g]``.
    """
    nodeid = _GROUP.sub("", report.nodeid)
    if case_id_of(nodeid)[1] is not None:
        report.nodeid = nodeid


def cache_id(nodeid: str) -> Any:
    """Return ``nodeid`` in the form that pytest's own cache plugins keep in memory."""
    try:
        from _pytest.nodeid import NodeId
    except ImportError:
        return nodeid
    return NodeId.parse(nodeid)


def renewal(old: pytest.Item) -> Callable[[pytest.Item], None]:
    """Return what gives a copy of ``old`` its own of all that a node keeps of itself and a run changes.

    What ``old`` holds when this is called is what every copy starts with, its id included.
    """
    ids = [(name, getattr(old, name)) for name in ("_id", "_nodeid") if hasattr(old, name)]
    before: Any = old.keywords
    keywords, stash = dict(before._markers), dict(old.stash._storage)
    markers, matches = list(old.own_markers), set(old.extra_keyword_matches)
    sections, properties = list(old._report_sections), list(old.user_properties)

    def renew(new: pytest.Item) -> None:
        own = NodeKeywords(new)
        own._markers = keywords.copy()
        kept = Stash()
        kept._storage = stash.copy()
        for name, value in ids:
            object.__setattr__(new, name, value)
        fields = vars(new)
        fields["keywords"] = own
        fields["own_markers"] = markers.copy()
        fields["extra_keyword_matches"] = matches.copy()
        fields["_report_sections"] = sections.copy()
        fields["user_properties"] = properties.copy()
        fields["stash"] = new._store = kept

    return renew


def fresh_request(item: pytest.Item) -> Any:
    """Return a fixture request bound to ``item``."""
    return TopRequest(item, _ispytest=True)  # type: ignore[arg-type]


def is_request(value: object) -> bool:
    """Tell whether ``value`` is a fixture request."""
    return isinstance(value, pytest.FixtureRequest)


def fixture_closure(item: pytest.Item) -> dict[str, Sequence[FixtureDef[Any]]]:
    """Return the fixtures that ``item`` is known to use, by name, each with its overridden ones."""
    info = getattr(item, "_fixtureinfo", None)
    defs: dict[str, Sequence[FixtureDef[Any]]] = getattr(info, "name2fixturedefs", None) or {}
    return defs


def package_of(item: pytest.Item, fixturedef: FixtureDef[Any]) -> pytest.Collector | pytest.Session:
    """Return the node with which a package-scoped fixture of ``item`` ends."""
    node = get_scope_package(item, fixturedef)
    return node if isinstance(node, pytest.Collector) else item.session


def high_scope_params(item: pytest.Item) -> list[tuple[str, str, object]]:
    """Return name, scope and value of each parameter of ``item`` above function scope."""
    callspec: Any = getattr(item, "callspec", None)
    scopes = getattr(callspec, "_arg2scope", None)
    if not scopes:
        return []
    return [
        (name, scope.value, callspec.params[name])
        for name, scope in scopes.items()
        if scope.value != "function" and name in callspec.params
    ]


def uses_own_fixture(item: pytest.Item, name: str) -> bool:
    """Tell whether ``item`` gets this package's fixture ``name``, and not only one of the same name.

    A project's fixture that overrides it and asks for it uses it too.
    """
    for definition in reversed(fixture_closure(item).get(name, ())):
        if definition.func.__module__.startswith("pytest_crashlab."):
            return True
        if name not in definition.argnames:
            return False
    return False


@contextmanager
def remembered_proxies(session: pytest.Session) -> Iterator[None]:
    """Look the hooks of a path up once, not for each phase of each trial of its tests.

    pytest compares the conftests of a path with all there are whenever an item calls a hook. Only a
    conftest that is loaded meanwhile can change what comes of it.
    """
    found: dict[tuple[object, int], Any] = {}
    look_up, conftests = session.gethookproxy, session.config.pluginmanager._conftest_plugins

    def gethookproxy(fspath: os.PathLike[str]) -> Any:
        key = (fspath, len(conftests))
        proxy = found.get(key)
        if proxy is None:
            proxy = found[key] = look_up(fspath)
        return proxy

    session.gethookproxy = gethookproxy  # type: ignore[method-assign]
    try:
        yield
    finally:
        del session.gethookproxy


def spare_terminal(config: pytest.Config) -> None:
    """Keep from the terminal what it shows nothing of: reports of set-ups and tear-downs that passed.

    It would ask every plugin for their letter and keep them all to the end, two of three reports of a
    session. Left alone: a terminal reporter that is not pytest's own, ``--durations``, which reads
    them, and a plugin that has a word on their letter.
    """
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if type(reporter) is not pytest.TerminalReporter or config.option.durations is not None:
        return
    if any(
        not impl.plugin_name.startswith("crashlab") and _module_of(impl.plugin) not in _KNOWN_LETTERS
        for impl in config.hook.pytest_report_teststatus.get_hookimpls()
    ):
        return
    for impl in config.hook.pytest_runtest_logreport.get_hookimpls():
        if impl.plugin is reporter:
            impl.function = _only_what_shows(impl.function)  # type: ignore[misc]


_KNOWN_LETTERS = {f"_pytest.{name}" for name in ("terminal", "skipping", "subtests", "runner")}


def _module_of(plugin: object) -> str:
    return str(getattr(plugin, "__name__", type(plugin).__module__))


def _only_what_shows(logreport: Callable[..., object]) -> Callable[..., object]:
    def selected(report: pytest.TestReport) -> object:
        if report.outcome == "passed" and report.when in {"setup", "teardown"}:
            return None
        return logreport(report=report)

    return selected
