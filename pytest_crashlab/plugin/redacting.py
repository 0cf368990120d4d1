"""The session's redactor: forms, this process's environment, and the project's hook."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crashlab.records.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_KEY = pytest.StashKey[Redactor]()
_SHORTEST = 8


def redactor_of(config: pytest.Config) -> Redactor:
    """The one redactor of this process; the environment as it is now, and was before, is known to it."""
    redactor = config.stash.get(_KEY, None)
    if redactor is None:
        redactor = config.stash[_KEY] = Redactor(_Hooks(config))
    redactor.learn(os.environ)
    return redactor


def without_secrets(config: pytest.Config) -> Callable[[str], str]:
    """The redactor as a function that looks for it, and at the environment, only when there is a text."""

    def clean(text: str) -> str:
        return redactor_of(config)(text)

    return clean


class SecretIds:
    """Keeps a secret that is a parameter out of the test's id, which every report and table names."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(trylast=True)
    def pytest_make_parametrize_id(self, val: object) -> str | None:
        """``redacted`` for such a text; pytest numbers those that are alike."""
        if not isinstance(val, str) or len(val) < _SHORTEST:
            return None
        return None if redactor_of(self._config)(val) == val else "redacted"


class _Hooks:
    """Every implementation of ``pytest_crashlab_redact`` there is by now, first registered first."""

    def __init__(self, config: pytest.Config) -> None:
        self._caller: Any = config.hook.pytest_crashlab_redact

    def __iter__(self) -> Iterator[Callable[[str], object]]:
        for found in self._caller.get_hookimpls():
            if not (found.hookwrapper or found.wrapper):
                yield found.function
