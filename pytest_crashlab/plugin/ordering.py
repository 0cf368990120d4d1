"""The order in which the trials of a session run.

``cases``: the trials of a case together, cases in the order they came in. ``rounds``: trial 1 of
every case, then trial 2, ..., so that an outage does not hit all trials of one case; nowhere with a
set-up of a fixture that a plain run would not make.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

import pytest

from pytest_crashlab.plugin import compat

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import CodeType

Order = Literal["rounds", "cases"]
_T = TypeVar("_T")

_MODULE_HOOKS = ("setup_module", "setUpModule", "teardown_module", "tearDownModule")


def effective_order(config: pytest.Config, wanted: Order) -> Order:
    """Return the order that can be followed: --sw, --ff and --nf name an order of cases themselves."""
    asked = any(config.getoption(name, default=None) for name in ("stepwise", "failedfirst", "newfirst"))
    return "cases" if asked else wanted


def arrange(cases: Sequence[tuple[pytest.Item, Sequence[_T]]], *, order: Order, seed: int) -> list[_T]:
    """Put the trials of ``cases`` (the collected item, its trials) into the order they run in.

    The same items and seed give the same order in every process.
    """
    rounds = max((len(trials) for _, trials in cases), default=0)
    if order == "cases" or rounds <= 1:
        return [trial for _, trials in cases for trial in trials]
    fixtures = _Fixtures()
    free: list[Sequence[_T]] = []
    groups: list[_Group] = []
    grouped: list[list[Sequence[_T]]] = []
    for item, trials in cases:
        need = fixtures.need(item)
        if need.free:
            free.append(trials)
            continue
        if not groups or not groups[-1].admits(need):
            groups.append(_Group())
            grouped.append([])
        groups[-1].add(need)
        grouped[-1].append(trials)
    ordered: list[_T] = []
    for number in range(rounds):
        this_round = [trials[number] for trials in free if number < len(trials)]
        random.Random(f"{seed}:{number}").shuffle(this_round)
        ordered += this_round
    for members in grouped:
        ordered += _in_turn(members)
    return ordered


def _in_turn(members: Sequence[Sequence[_T]]) -> Iterable[_T]:
    for number in range(max(len(trials) for trials in members)):
        yield from (trials[number] for trials in members if number < len(trials))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Need:
    """What an item keeps alive between items.

    ``anchors``: the nodes whose end tears down something it uses; ``params``: the value of each
    parametrized fixture above function scope; ``chain``: all nodes the item is in.
    """

    anchors: frozenset[pytest.Collector] = frozenset()
    params: tuple[tuple[str, object], ...] = ()
    chain: frozenset[pytest.Collector] = frozenset()

    @property
    def free(self) -> bool:
        return not self.anchors and not self.params


@dataclass(slots=True)
class _Group:
    """Neighbouring items that can run round after round without a further set-up.

    That holds when no item leaves a node that another needs, and no parametrized fixture changes
    its value.
    """

    anchors: frozenset[pytest.Collector] = frozenset()
    inside: frozenset[pytest.Collector] | None = None
    params: dict[str, object] = field(default_factory=dict)

    def admits(self, need: _Need) -> bool:
        if self.inside is None:
            return True
        if not (self.anchors <= need.chain and need.anchors <= self.inside):
            return False
        return all(name not in self.params or _same(self.params[name], value) for name, value in need.params)

    def add(self, need: _Need) -> None:
        self.anchors |= need.anchors
        self.inside = need.chain if self.inside is None else self.inside & need.chain
        self.params.update(need.params)


def _same(left: object, right: object) -> bool:
    """Compare parameters as pytest's fixture cache does."""
    if left is right:
        return True
    try:
        return bool(left == right)
    except Exception:  # noqa: BLE001 - a user's __eq__ may raise anything
        return False


class _Fixtures:
    """Finds what items keep alive; looks at each function's fixtures and each package once."""

    def __init__(self) -> None:
        self._anchors: dict[tuple[int, object], frozenset[pytest.Collector]] = {}
        self._chains: dict[object, frozenset[pytest.Collector]] = {}
        self._stateful: dict[pytest.Collector, bool] = {}

    def need(self, item: pytest.Item) -> _Need:
        # A class-scoped fixture of a function outside classes ends with the function.
        ends_with_item = "class" if item.getparent(pytest.Class) is None else None
        params = tuple(
            (name, value) for name, scope, value in compat.high_scope_params(item) if scope != ends_with_item
        )
        info = getattr(item, "_fixtureinfo", None)
        key = (id(item) if info is None else id(info), item.parent)
        anchors = self._anchors.get(key)
        if anchors is None:
            anchors = self._anchors[key] = self._find_anchors(item)
        if not anchors and not params:
            return _Need()
        return _Need(anchors=anchors, params=params, chain=self._chain(item))

    def _chain(self, item: pytest.Item) -> frozenset[pytest.Collector]:
        chain = self._chains.get(item.parent)
        if chain is None:
            nodes = () if item.parent is None else item.parent.iter_parents()
            chain = self._chains[item.parent] = frozenset(
                node for node in nodes if isinstance(node, pytest.Collector)
            )
        return chain

    def _find_anchors(self, item: pytest.Item) -> frozenset[pytest.Collector]:
        anchors = {node for node in self._chain(item) if self._is_stateful(node)}
        for name, definitions in compat.fixture_closure(item).items():
            for definition in definitions:
                if definition.scope == "function" or _does_nothing(item, name):
                    continue
                package = compat.package_of(item, definition) if definition.scope == "package" else None
                anchors.update(_anchor(item, definition.scope, package))
        for scope in _hidden_scopes(item):
            anchors.update(_anchor(item, scope, item.getparent(pytest.Package)))
        return frozenset(anchors)

    def _is_stateful(self, node: pytest.Collector) -> bool:
        """Tell whether entering or leaving ``node`` itself runs something."""
        known = self._stateful.get(node)
        if known is None:
            known = self._stateful[node] = _runs_something(node)
        return known


def _runs_something(node: pytest.Collector) -> bool:
    if isinstance(node, pytest.Session):
        return False
    cls = type(node)
    if cls is pytest.Package:
        try:
            text = (node.path / "__init__.py").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        return any(name in text for name in _MODULE_HOOKS)
    return cls.setup is not pytest.Collector.setup or cls.teardown is not pytest.Collector.teardown


def _anchor(item: pytest.Item, scope: str, package: object) -> Iterable[pytest.Collector]:
    """Return the node with which a fixture of ``scope`` ends, unless that is the item or the session."""
    node: object
    if scope == "class":
        node = item.getparent(pytest.Class)
    elif scope == "module":
        node = item.getparent(pytest.Module)
    else:
        node = package if scope == "package" else None
    return [node] if isinstance(node, pytest.Collector) and not isinstance(node, pytest.Session) else []


def _does_nothing(item: pytest.Item, fixture: str) -> bool:
    """Tell whether ``fixture`` stands for a TestCase's class set-up that nobody has written."""
    if not fixture.startswith("_unittest_setUpClass_fixture"):
        return False
    import unittest

    cls = getattr(item, "cls", None)
    return all(
        getattr(getattr(cls, name, None), "__func__", None) is getattr(unittest.TestCase, name).__func__
        for name in ("setUpClass", "tearDownClass")
    )


def _hidden_scopes(item: pytest.Item) -> Iterable[str]:
    """Return the scopes of fixtures that ``item`` may ask for only while it runs."""
    closure = compat.fixture_closure(item)
    info = getattr(item, "_fixtureinfo", None)
    function = item.function if isinstance(item, pytest.Function) else None
    # pytest-asyncio adds the fixture of a loop at set-up
    carriers = (item, *(definition.func for definitions in closure.values() for definition in definitions))
    for carrier in carriers:
        loop_scope = getattr(carrier, "_loop_scope", None)
        if isinstance(loop_scope, str):
            yield loop_scope
    added = set(getattr(item, "fixturenames", ())) - closure.keys() - {"request"}  # by a hook
    examples = getattr(getattr(item, "dtest", None), "examples", ())
    if (
        added
        or "request" in getattr(info, "argnames", ())
        or _asks_later(function)
        or any(_asks_later(carrier) for carrier in carriers[1:])
        or any("getfixture" in example.source for example in examples)
    ):
        yield from ("class", "module")


def _asks_later(function: object) -> bool:
    if getattr(function, "__module__", "").startswith("_pytest."):
        return False
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is not None and _names_getfixturevalue(code)


def _names_getfixturevalue(code: CodeType) -> bool:
    if "getfixturevalue" in code.co_names:
        return True
    return any(_names_getfixturevalue(inner) for inner in code.co_consts if hasattr(inner, "co_names"))
