"""From an exception to an outcome label: hooks, then ini, what is known of model SDKs, the built-in table.

The built-in table takes the cautious side: what may have been the network's doing is undecided,
neither a pass nor a regression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.errors import InstrumentFailure
from pytest_crashlab.provider.errors import label_of_exception
from pytest_crashlab.records.classification import BUILTIN_EXCEPTIONS
from pytest_crashlab.records.outcome import INSTRUMENT_OUTCOMES

if TYPE_CHECKING:
    import pytest

_DEEPEST = 20
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
        """The label, or None where nothing knows the exception.

        What it was raised ``from`` speaks for one that nothing knows, as agents and frameworks wrap what
        their connections raise; a group has a label when all of its exceptions have one.
        """
        seen: BaseException | None = exception
        for _ in range(_DEEPEST):
            named = None if seen is None else self._label_of_one(seen, phase)
            if named is not None:
                return named or None
            if not isinstance(seen, Exception) or isinstance(seen, AssertionError):
                return None
            seen = seen.__cause__
        return None

    def _label_of_one(self, exception: BaseException, phase: str) -> str | None:
        """The same without what it was raised from; "" where it is known and the test has to say."""
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
            return listed
        if isinstance(exception, BaseExceptionGroup):
            return self._label_of_group(exception, phase)
        return label_of_exception(exception) or _listed(self._table, names)

    def _label_of_group(self, group: BaseExceptionGroup[BaseException], phase: str) -> str | None:
        """One label for all: the target's own error counts before a failure of the instrument beside it."""
        labels = [self.label(error, phase) for error in group.exceptions]
        known = [label for label in labels if label is not None]
        if len(known) < len(labels):
            return None
        return next((label for label in known if label not in INSTRUMENT_OUTCOMES), known[0])


def _listed(table: dict[str, str], names: list[str]) -> str | None:
    """What a table says of the first of ``names`` that it has."""
    return next((table[name] for name in names if name in table), None)
