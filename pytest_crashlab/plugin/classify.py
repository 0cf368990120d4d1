"""From an exception to an outcome label: hooks, then ini, what is known of model SDKs, the built-in table.

The built-in table takes the cautious side: what may have been the network's doing is undecided,
neither a pass nor a regression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.errors import InstrumentFailure
from pytest_crashlab.provider.errors import label_of_exception
from pytest_crashlab.records.classification import BUILTIN_EXCEPTIONS

if TYPE_CHECKING:
    import pytest

_PYTEST_TIMEOUT_END = "from pytest-timeout."


def qualified_names(exception: BaseException) -> list[str]:
    """The names under which a class of the exception may be listed, most specific first.

    A class of ``httpx._exceptions`` is also found as ``httpx.Name``.
    """
    names = []
    for cls in type(exception).__mro__:
        names.append(f"{cls.__module__}.{cls.__qualname__}")
        root = cls.__module__.partition(".")[0]
        if root != cls.__module__:
            names.append(f"{root}.{cls.__qualname__}")
    return names


def _text(exception: BaseException) -> str:
    """What the exception says; nothing where saying it raises another one."""
    try:
        return str(exception)
    except Exception:  # noqa: BLE001  any code of the target's may run here
        return ""


class Classifier:
    """Names the outcome of an exception."""

    def __init__(self, config: pytest.Config, exceptions: dict[str, str]) -> None:
        self._hook = config.hook
        self._table = BUILTIN_EXCEPTIONS
        self._own = exceptions

    def label(self, exception: BaseException, phase: str) -> str | None:
        """The label, or None where nothing knows the exception."""
        if isinstance(exception, InstrumentFailure):
            return exception.label
        named: str | None = self._hook.pytest_crashlab_classify_exception(exception=exception, phase=phase)
        if named is not None:
            return named
        if _text(exception).endswith(_PYTEST_TIMEOUT_END):
            return "wall_clock"
        names = qualified_names(exception)
        listed = _listed(self._own, names)
        if listed is not None:
            return listed or None
        return label_of_exception(exception) or _listed(self._table, names) or None


def _listed(table: dict[str, str], names: list[str]) -> str | None:
    """What a table says of the first of ``names`` that it has."""
    return next((table[name] for name in names if name in table), None)
