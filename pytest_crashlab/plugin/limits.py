"""What the marker of a test lets one trial, and all trials of its case, take.

A trial that has used up its own budget makes no further call: the call is refused before it is sent, and
the trial gives no decision, whatever the test makes of the refusal. A case whose budget has no room for
another trial starts none, and those are missing. Processes tell each other what trials of such cases took
in ``budget.jsonl`` in the run's folder, one line a trial.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from time import perf_counter  # bound now: a test may put another clock in its place
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crashlab.errors import InstrumentFailure
from pytest_crashlab.plugin.budget import Amounts, Budget, Spent, said
from pytest_crashlab.plugin.keys import TRIAL_KEY
from pytest_crashlab.plugin.markers import Markers
from pytest_crashlab.store.layout import BUDGET_USE

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from pytest_crashlab.plugin.budget import Marked
    from pytest_crashlab.provider.base import Call
    from pytest_crashlab.provider.bound import Bound

LABEL = "budget_spent"


class CaseUse:
    """What trials of cases that have a budget took in this session, in all of its processes."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / BUDGET_USE
        self._by = f"{os.getpid()}"
        self._offset = 0
        self._untold: list[bytes] = []
        self._spent: dict[str, Spent] = {}
        self._budgets: dict[str, Budget] = {}

    def add(self, case: str, took: Amounts, budget: Budget) -> None:
        """Count a trial, and tell the other processes."""
        self._take(case, took, budget)
        line = {"by": self._by, "case": case, "took": took, "budget": dict(budget.limits())}
        self._untold.append(json.dumps(line).encode() + b"\n")
        self._tell()

    def of(self, case: str) -> Spent:
        """What trials of ``case`` took that are over, as far as this process can know."""
        self.heard(others=True)
        return self._spent.get(case, Spent())

    def reached(self, case: str) -> str | None:
        """Why no further trial of ``case`` is started."""
        return self._spent[case].reached(self._budgets[case])

    def heard(self, *, others: bool = False) -> list[str]:
        """Take in what was told since, and return the cases that it was of.

        ``others``: only what other processes told.
        """
        self._tell()
        found = []
        for line in self._lines():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                told = json.loads(line)
                if others and told["by"] == self._by:
                    continue
                self._take(told["case"], Amounts(*told["took"]), Budget(**told["budget"]))
                found.append(told["case"])
        return found

    def forget(self) -> None:
        """Remove the file."""
        with contextlib.suppress(OSError):
            self._file.unlink()

    def _take(self, case: str, took: Amounts, budget: Budget) -> None:
        self._spent.setdefault(case, Spent()).add(took)
        self._budgets[case] = budget

    def _lines(self) -> list[bytes]:
        try:
            with self._file.open("rb") as file:
                file.seek(self._offset)
                told = file.read()
        except OSError:
            return []
        whole = told[: told.rfind(b"\n") + 1]  # another process may be at its next line
        self._offset += len(whole)
        return whole.splitlines()

    def _tell(self) -> None:
        """Append what was not told yet; a worker that is faster than its controller has no folder yet."""
        if not self._untold:
            return
        with contextlib.suppress(OSError):
            handle = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                os.write(handle, b"".join(self._untold))
                self._untold.clear()
            finally:
                os.close(handle)


class Limit:
    """One trial's: ``refused`` what was said of the first call that was not sent."""

    def __init__(self, marked: Marked, before: Spent) -> None:
        self.marked = marked
        self.bounds: list[Bound] = []
        self.refused: str | None = None
        self._before = before
        self._began = perf_counter()

    def took(self, calls: Sequence[Call]) -> Amounts:
        """What the trial took up to now, by the calls of its target."""
        charged = [call for call in calls if call.charged]
        return Amounts(
            usd=sum(call.cost.usd for call in charged if call.cost is not None),
            tokens=sum((call.tokens.input or 0) + (call.tokens.output or 0) for call in charged),
            s=perf_counter() - self._began,
            unpriced=sum(call.cost is None for call in charged),
            uncounted=sum(not call.tokens.known for call in charged),
        )

    def refuse(self, calls: Sequence[Call]) -> None:
        """Raise the instrument's failure where a budget is used up, before a call is sent."""
        took = self.took(calls)
        before = self._before.used
        for whose, budget, spent in (
            ("the trial's", self.marked.trial, Amounts()),
            ("its case's", self.marked.case, before),
        ):
            for unit, most in budget.limits():
                used = spent.of(unit) + took.of(unit)
                if used >= most:
                    why = (
                        f"{whose} budget is used up: {said(used, unit)} of {said(most, unit)}"
                        f"{took.unknown(budget, 'call')}; a call to the model was not sent"
                    )
                    self.refused = self.refused or why
                    raise InstrumentFailure(LABEL, why)


_LIMIT_KEY = pytest.StashKey[Limit]()


class Limiter:
    """In each process that runs tests with a budget of their own; registered with the first of them."""

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        self._markers = Markers(config)
        self._use = CaseUse(folder)

    def begins(self, item: pytest.Item) -> bool:
        """Whether the trial is started; from then on it is kept to its budget."""
        if _LIMIT_KEY in item.stash:  # of an attempt before
            del item.stash[_LIMIT_KEY]
        marked = self._markers.budgets(item)
        if marked is None:
            return True
        before = self._use.of(item.stash[TRIAL_KEY].case.id) if marked.case else Spent()
        if before.reached(marked.case) is not None:
            return False
        item.stash[_LIMIT_KEY] = Limit(marked, before)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, request: pytest.FixtureRequest) -> Generator[None, Any, Any]:
        """Have the models of the trial ask before each call."""
        made = yield
        limit = request.node.stash.get(_LIMIT_KEY, None)
        bound = sys.modules.get("pytest_crashlab.provider.bound")
        if limit is not None and bound is not None and isinstance(made, bound.Bound):
            made.limit = limit.refuse
            limit.bounds.append(made)
        return made

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """End a trial that a call was refused to as what it is, also where the test went on without it."""
        try:
            result = yield
        except (pytest.skip.Exception, pytest.exit.Exception, KeyboardInterrupt, InstrumentFailure):
            raise
        except BaseException as error:
            refused = _refused(item)
            if refused is None:
                raise
            raise refused.with_traceback(error.__traceback__) from error
        if (refused := _refused(item)) is not None:
            raise refused
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Count the trial before its report leaves."""
        try:
            return (yield)
        finally:
            limit = item.stash.get(_LIMIT_KEY, None)
            if limit is not None and limit.marked.case:
                took = limit.took(limit.bounds[0].calls if limit.bounds else ())
                whole = took._replace(unpriced=int(took.unpriced > 0), uncounted=int(took.uncounted > 0))
                self._use.add(item.stash[TRIAL_KEY].case.id, whole, limit.marked.case)


def _refused(item: pytest.Item) -> InstrumentFailure | None:
    limit = item.stash.get(_LIMIT_KEY, None)
    if limit is None or limit.refused is None:
        return None
    return InstrumentFailure(LABEL, limit.refused)
