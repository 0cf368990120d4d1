"""The markers a test author writes, read and checked; a project's own of the same name are left alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_crashlab.plugin.keys import TRIAL_KEY
from pytest_crashlab.plugin.marker_names import MARKERS
from pytest_crashlab.records.check import Check
from pytest_crashlab.records.outcome import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_crashlab.plugin.budget import Marked
    from pytest_crashlab.plugin.vocabularies import Vocabularies

_TRIAL_SETTINGS = ("trials", "fixed", "min_passes")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSpec:
    """What its markers and the options say of a case.

    ``k`` how often it runs; ``min_passes`` how many trials must pass (None: no threshold of its
    own); ``checks`` what its trials are judged by; ``vocabulary`` what stands for its vocabulary.
    """

    k: int = 1
    min_passes: int | None = None
    checks: tuple[Check, ...] = ()
    vocabulary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialsMark:
    """What a test says about its trials; ``k`` None: only a threshold was given."""

    k: int | None = None
    fixed: bool = False
    min_passes: int | None = None


def marker_is_ours(config: pytest.Config, name: str) -> bool:
    """Tell whether marker ``name`` means ours: nobody else has registered one of that name.

    Others register in the ``markers`` ini or, from a conftest or plugin, by ``addinivalue_line``.
    """
    lines: list[str] = config.getini("markers")
    return [re.split(r"[:(\s]", line, maxsplit=1)[0] for line in lines].count(name) == 1


class Markers:
    """Reads our markers of items; knows once and for all which names are ours in this session."""

    def __init__(self, config: pytest.Config) -> None:
        self._ours = frozenset(name for name in MARKERS if marker_is_ours(config, name))

    def trials(self, item: pytest.Item) -> TrialsMark | None:
        """Return what the closest ``trials(...)`` or ``crashlab(trials=...)`` says, or None.

        Raises ``pytest.UsageError`` with one sentence for an argument that cannot be followed.
        """
        for mark in item.iter_markers():
            if mark.name == "trials" and "trials" in self._ours:
                return _trials(item, mark)
            if mark.name == "crashlab" and "crashlab" in self._ours:
                given = {name: mark.kwargs[name] for name in _TRIAL_SETTINGS if name in mark.kwargs}
                if given:
                    return _trials_settings(item, mark, given)
        return None

    def outcomes(self, item: pytest.Item) -> Vocabulary | None:
        """Return the vocabulary of the closest ``outcomes(vocabulary)``, or None."""
        mark = self._closest(item, "outcomes")
        if mark is None:
            return None
        if len(mark.args) != 1 or mark.kwargs or not isinstance(mark.args[0], Vocabulary):
            _refuse(item, mark, "takes one Vocabulary", "outcomes(Vocabulary(...))")
        vocabulary: Vocabulary = mark.args[0]
        return vocabulary

    def checks(self, item: pytest.Item) -> tuple[Check, ...]:
        """Return the checks of all ``checks(...)`` markers, those of the outermost node first."""
        if "checks" not in self._ours:
            return ()
        found: dict[str, Check] = {}
        for mark in reversed(list(item.iter_markers("checks"))):
            if mark.kwargs or not mark.args or not all(isinstance(check, Check) for check in mark.args):
                _refuse(item, mark, "takes Check objects", 'checks(Check("name", must="be true"))')
            for check in mark.args:
                if check.name in found and found[check.name] != check:
                    _refuse(item, mark, f"declares {check.name!r} twice and differently", "each name once")
                found[check.name] = check
        return tuple(found.values())

    def settings(self, item: pytest.Item) -> dict[str, Any]:
        """Return what the ``crashlab(...)`` markers set, the closest one's value for each name."""
        if "crashlab" not in self._ours:
            return {}
        settings: dict[str, Any] = {}
        for mark in reversed(list(item.iter_markers("crashlab"))):
            if mark.args:
                _refuse(item, mark, "takes no positional argument", "crashlab(name=value)")
            settings.update(mark.kwargs)
        return {name: value for name, value in settings.items() if name not in _TRIAL_SETTINGS}

    def budgets(self, item: pytest.Item) -> Marked | None:
        """Return what the ``crashlab(...)`` markers let a trial, or all trials of a case, take."""
        said = self.settings(item)
        if not any("budget" in name for name in said):
            return None
        from pytest_crashlab.plugin.budget import MARKED_KEY, Marked

        found = Marked.read(said, f"{where(item)}: the marker crashlab")
        item.config.stash[MARKED_KEY] = found is not None or item.config.stash.get(MARKED_KEY, False)
        return found

    def _closest(self, item: pytest.Item, name: str) -> pytest.Mark | None:
        return item.get_closest_marker(name) if name in self._ours else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the ``own`` own markers of an item, and those of its parents, say of its outcomes."""

    vocabulary: Vocabulary
    checks: tuple[Check, ...]
    own: int


class Declarations:
    """What trials declare: read once a case, and again for a trial whose fixture added a marker."""

    def __init__(self, markers: Markers, vocabularies: Vocabularies) -> None:
        self._markers = markers
        self._vocabularies = vocabularies
        self._by_case: dict[str, Declared] = {}

    def by(self, item: pytest.Item) -> Declared:
        """The vocabulary and the checks of ``item``."""
        of = item.stash.get(TRIAL_KEY, None)
        if of is None:
            return self._read(item)
        known = self._by_case.get(of.case.id)
        if known is None or known.own != len(item.own_markers):
            known = self._by_case[of.case.id] = self._read(item)
        return known

    def _read(self, item: pytest.Item) -> Declared:
        return Declared(
            vocabulary=self._vocabularies.of(item),
            checks=self._markers.checks(item),
            own=len(item.own_markers),
        )


def resolve_trials(
    item: pytest.Item,
    markers: Markers,
    *,
    option: int | None = None,
    ini: int | None = None,
    baseline: int | None = None,
) -> TrialSpec:
    """Decide how often ``item`` runs.

    ``option`` (--trials) unless the marker is fixed, else the marker, else ``ini``
    (crashlab_trials), else the ``baseline``'s k, else 1.
    """
    markers.budgets(item)  # one that cannot be followed is refused now
    mark = markers.trials(item)
    k = next((value for value in (option, ini, baseline) if value is not None), 1)
    if mark is None:
        return TrialSpec(k=k, checks=markers.checks(item))
    if mark.k is not None and (mark.fixed or option is None):
        k = mark.k
    if mark.min_passes is not None and mark.min_passes > k:
        raise pytest.UsageError(
            f"{where(item)}: min_passes={mark.min_passes} cannot be reached in {k} "
            f"trial{'s' if k > 1 else ''}; lower min_passes or write fixed=True beside it to keep the "
            "marker's own number of trials."
        )
    return TrialSpec(k=k, min_passes=mark.min_passes, checks=markers.checks(item))


def where(item: pytest.Item) -> str:
    """Return ``file:line`` of a test, the line counted from 1."""
    path, line, _ = item.location
    return path if line is None else f"{path}:{line + 1}"


def _trials(item: pytest.Item, mark: pytest.Mark) -> TrialsMark:
    given = dict(mark.kwargs)
    if len(mark.args) > 1 or (mark.args and "k" in given):
        _refuse(item, mark, "takes one number", "trials(5)")
    if mark.args:
        given["k"] = mark.args[0]
    unknown = sorted(given.keys() - {"k", "fixed", "min_passes"})
    if unknown:
        _refuse(item, mark, f"does not know {unknown[0]!r}", "trials(5, fixed=True, min_passes=4)")
    if "k" not in given:
        _refuse(item, mark, "needs a number", "trials(5)")
    given["trials"] = given.pop("k")
    return _trials_settings(item, mark, given)


def _trials_settings(item: pytest.Item, mark: pytest.Mark, given: Mapping[str, Any]) -> TrialsMark:
    k, fixed, min_passes = given.get("trials"), given.get("fixed", False), given.get("min_passes")
    instead = "trials(5, min_passes=4)" if mark.name == "trials" else "crashlab(trials=5, min_passes=4)"
    if "trials" in given and not _is_count(k, at_least=1):
        _refuse(item, mark, f"needs a whole number of at least 1, not {k!r}", instead)
    if not isinstance(fixed, bool):
        _refuse(item, mark, f"needs fixed=True or fixed=False, not {fixed!r}", instead)
    if fixed and k is None:
        _refuse(item, mark, "needs a number beside fixed=True", instead)
    if min_passes is not None and not _is_count(min_passes, at_least=0):
        _refuse(item, mark, f"needs min_passes as a whole number of at least 0, not {min_passes!r}", instead)
    if min_passes is not None and k is not None and min_passes > k:
        _refuse(item, mark, f"asks for min_passes={min_passes} of {k} trials", f"at most min_passes={k}")
    return TrialsMark(k=k, fixed=fixed, min_passes=min_passes)


def _is_count(value: object, *, at_least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= at_least


def _refuse(item: pytest.Item, mark: pytest.Mark, what: str, instead: str) -> NoReturn:
    raise pytest.UsageError(f"{where(item)}: the marker {mark.name} {what}; write {instead}.")
