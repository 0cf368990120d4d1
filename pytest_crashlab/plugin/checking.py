"""From what an author passes to ``trial.check()`` to what the check came to."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_crashlab.errors import InstrumentFailure
from pytest_crashlab.plugin.measured import real, word
from pytest_crashlab.records.check import Check, CheckRow, refuse_bounds

if TYPE_CHECKING:
    from types import TracebackType

    from pytest_crashlab.plugin.author import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What ``trial.check()`` was given beside the name and the answer."""

    site: str
    required: bool = True
    expected: object = None
    observed: object = None
    why: str | None = None
    judge: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    failure_class: str | None = None


def evaluated(name: str, ok: object, given: Given, declared: Check | None) -> CheckRow:
    """The row of a check. What cannot be an answer is an error of the test (``misdeclared``)."""
    _refuse_words(name, given)
    at_least, at_most = _bounds(name, given, declared)
    kind = declared.kind if declared is not None else None
    measured = kind == "metric" or (at_least, at_most) != (None, None)
    value = _number(ok, name, given.site) if measured else None
    required = given.required if declared is None else declared.required
    if value is not None:
        held = _inside(value, at_least, at_most)
        if held is None and required:
            raise _misdeclared(
                f"check {name!r} at {given.site} is required and has no bound; give at_least= or at_most="
            )
    else:
        held = None if measured else _held(ok, name, given.site)
    return CheckRow(
        name=name,
        required=required,
        ok=held,
        why=_why(given, held=held, value=value, at_least=at_least, at_most=at_most),
        site=given.site,
        judge=given.judge,
        value=value,
        at_least=at_least,
        at_most=at_most,
        kind=kind or ("judge" if given.judge is not None else "code" if value is None else "metric"),
        failure_class=given.failure_class,
        must=None if declared is None else declared.must,
    )


def _bounds(name: str, given: Given, declared: Check | None) -> tuple[float | None, float | None]:
    own = (given.at_least, given.at_most)
    try:
        refuse_bounds(f"check {name!r} at {given.site}", *own)
    except ValueError as error:
        raise _misdeclared(str(error)) from None
    of_declared = (None, None) if declared is None else (declared.at_least, declared.at_most)
    if of_declared == (None, None) or own == (None, None):
        return own if of_declared == (None, None) else of_declared
    if own != of_declared:
        raise _misdeclared(f"check {name!r} at {given.site} has other bounds than its declaration")
    return own


def _refuse_words(name: str, given: Given) -> None:
    """Refuse what cannot be told apart in a table: names that are no text, and lines that are several."""
    word(name, f"the name of a check at {given.site}")
    for what, value in (("judge", given.judge), ("failure_class", given.failure_class)):
        if value is not None:
            word(value, f"{what} of check {name!r} at {given.site}")


def _number(ok: object, name: str, site: str) -> float | None:
    """The measured number; None where it could not be measured (None, NaN)."""
    if ok is None:
        return None
    value = real(ok)
    if value is None:
        raise _misdeclared(f"check {name!r} at {site} measures a number and got {_short(ok)}")
    return None if math.isnan(value) else value


def _inside(value: float, at_least: float | None, at_most: float | None) -> bool | None:
    if at_least is None and at_most is None:
        return None
    return (at_least is None or value >= at_least) and (at_most is None or value <= at_most)


def _why(
    given: Given, *, held: bool | None, value: float | None, at_least: float | None, at_most: float | None
) -> str | None:
    if given.why is not None or held:
        return None if given.why is None else str(given.why)
    if given.expected is None and given.observed is not None:
        return f"observed {_short(given.observed)}"
    if given.expected is not None:
        return f"expected {_short(given.expected)}, observed {_short(given.observed)}"
    if value is None or held is None:
        return None
    bounds = [f"at least {at_least:g}"] if at_least is not None else []
    bounds += [f"at most {at_most:g}"] if at_most is not None else []
    return f"{value:g} is not {' and '.join(bounds)}"


def _held(ok: object, name: str, site: str) -> bool | None:
    """Whether a check holds; None where that is unknown. What cannot be an answer is refused."""
    if ok is None or isinstance(ok, bool):
        return ok
    if inspect.isawaitable(ok):
        if inspect.iscoroutine(ok):
            ok.close()
        raise _misdeclared(f"check {name!r} at {site} got a coroutine; await it first")
    number = real(ok)
    if number is not None:
        if math.isnan(number):
            return None
        if number not in (0, 1):
            raise _misdeclared(
                f"check {name!r} at {site} got the number {number:g}; compare it with a threshold first, or "
                "give at_least= or at_most="
            )
    return bool(ok)


class Verification:
    """One criterion as a block of assertions: what fails in it is noted, and the test goes on."""

    def __init__(self, trial: Trial, name: str, given: Given) -> None:
        self._trial = trial
        self._name = name
        self._given = given

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> bool:
        import pytest

        failed = isinstance(error, AssertionError | pytest.fail.Exception)
        if error is not None and not failed:
            return False
        said = None if error is None else (str(error).strip().partition("\n")[0] or "assertion failed")
        why = said if self._given.why is None or said is None else f"{self._given.why}: {said}"
        self._trial.settle(self._name, error is None, self._given, why=why)
        return True


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _misdeclared(message: str) -> InstrumentFailure:
    return InstrumentFailure("misdeclared", message)
