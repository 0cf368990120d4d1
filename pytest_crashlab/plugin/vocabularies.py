"""Which vocabulary a test has: its closest marker's, else its closest conftest's, else the project's."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_crashlab.plugin.identity import digest
from pytest_crashlab.records.outcome import DEFAULT_VOCABULARY, Vocabulary
from pytest_crashlab.records.vocabulary_lint import Declared

if TYPE_CHECKING:
    from pytest_crashlab.plugin.markers import Markers

NAME = "crashlab_outcomes"


class Vocabularies:
    """Finds the vocabulary of each test, and keeps what the session's tests declare.

    Markers are read of every test; a ``conftest.py`` sets ``crashlab_outcomes = Vocabulary(...)`` for the
    tests below its folder, the ini key of that name one for all: ``package.module:NAME``.
    """

    def __init__(self, config: pytest.Config, markers: Markers) -> None:
        self._config = config
        self._markers = markers
        self._above: list[tuple[Path | None, Vocabulary]] | None = None
        self._folders: dict[Path, Vocabulary] = {}
        self._keys: dict[int, tuple[Vocabulary, str]] = {}
        self.declared: dict[str, Declared] = {}

    def of(self, item: pytest.Item) -> Vocabulary:
        """The vocabulary of ``item``. Raises ``pytest.UsageError`` for one that cannot be followed."""
        return self._markers.outcomes(item) or self._from_above(item)

    def key_of(self, item: pytest.Item, case: str) -> str:
        """Note the vocabulary of ``item``, whose case is ``case``; a text that stands for it, "" for none."""
        vocabulary = self.of(item)
        if vocabulary is DEFAULT_VOCABULARY:
            return ""
        known = self._keys.get(id(vocabulary))
        if known is None:
            parts = [f"{o.label}\0{o.kind}\0{o.definition}\0{o.completed}" for o in vocabulary.declared]
            silence = [f"{name}\0{why}" for name, why in vocabulary.silence.items()]
            known = self._keys[id(vocabulary)] = (vocabulary, digest(*parts, "", *silence)[:12])
            where = case.partition("[")[0]
            self.declared.setdefault(known[1], Declared.of(vocabulary, key=known[1], where=where))
        return known[1]

    @property
    def only_markers(self) -> bool:
        """Whether a test without a marker has none but the built-in vocabulary."""
        return not self._all_above()

    def _from_above(self, item: pytest.Item) -> Vocabulary:
        above = self._all_above()
        if not above:
            return DEFAULT_VOCABULARY
        folder = item.path.parent
        if folder not in self._folders:
            fitting = (v for where, v in above if where is None or folder.is_relative_to(where))
            self._folders[folder] = next(fitting, DEFAULT_VOCABULARY)
        return self._folders[folder]

    def _all_above(self) -> list[tuple[Path | None, Vocabulary]]:
        """(folder, vocabulary) of the conftests, the deepest first, and of the project (None)."""
        if self._above is None:
            found = sorted(_of_conftests(self._config), key=lambda pair: len(pair[0].parts), reverse=True)
            project = _of_project(self._config)
            self._above = [*found, *([] if project is None else [(None, project)])]
        return self._above


def _of_conftests(config: pytest.Config) -> list[tuple[Path, Vocabulary]]:
    found = []
    for plugin in config.pluginmanager.get_plugins():
        file = getattr(plugin, "__file__", None)
        if isinstance(file, str) and Path(file).name == "conftest.py" and hasattr(plugin, NAME):
            value = getattr(plugin, NAME)
            if not isinstance(value, Vocabulary):
                raise pytest.UsageError(
                    f"{file}: {NAME} is {value!r}; write {NAME} = Vocabulary(...) or leave it out."
                )
            found.append((Path(file).parent, value))
    return found


def _of_project(config: pytest.Config) -> Vocabulary | None:
    given = (config.getini(NAME) or "").strip()
    if not given:
        return None
    module, _, name = given.partition(":")
    try:
        value = getattr(importlib.import_module(module), name) if module and name else None
    except (ImportError, AttributeError, ValueError) as error:
        raise pytest.UsageError(
            f"{NAME} = {given} cannot be followed ({error}); name a Vocabulary as package.module:NAME."
        ) from None
    if not isinstance(value, Vocabulary):
        raise pytest.UsageError(f"{NAME} = {given} is no Vocabulary; name one as package.module:NAME.")
    return value
