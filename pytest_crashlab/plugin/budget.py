"""What a session may spend: no trial is started that would not end inside of it.

The controlling process adds up what trials report. When the largest trial so far would no longer fit, it
says so in ``control.json`` in the run's folder, and no process of the run starts another trial. Those that
were not started are missing: no fail, no regression, and a resumed run goes on with them.

What a test's marker allows one trial, or all trials of its case, is kept to in :mod:`.limits`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from math import isfinite
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest

from pytest_crashlab.errors import UsageError
from pytest_crashlab.plugin.keys import TRIAL_KEY
from pytest_crashlab.plugin.stopped import budget_in, tell_budget

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_crashlab.plugin.limits import Limiter
    from pytest_crashlab.records.trial import TrialRow

Unit = Literal["usd", "tokens", "s"]
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(usd|tokens|[smh])", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_MARKED: dict[str, Unit] = {"budget_usd": "usd", "budget_tokens": "tokens", "budget_seconds": "s"}
_OF_CASE = "case_"
MARKED_KEY = pytest.StashKey[bool]()
"""Of a session: whether a marker of one of its tests sets a budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """US dollars, tokens (in and out) and seconds that may be taken; None: as much as it likes."""

    usd: float | None = None
    tokens: float | None = None
    s: float | None = None

    def __bool__(self) -> bool:
        return any(True for _ in self.limits())

    def limits(self) -> Iterator[tuple[Unit, float]]:
        """Each unit that is limited, and to how much."""
        for limit in fields(self):
            unit: Unit = limit.name  # type: ignore[assignment]
            most = getattr(self, unit)
            if most is not None:
                yield unit, most

    @classmethod
    def read(cls, text: str, blame: str) -> Budget:
        """Read ``5usd, 200000tokens, 30m``. Raises :class:`UsageError` naming ``blame``."""
        found: dict[str, float] = {}
        for part in text.split(","):
            match = _PART.fullmatch(part.strip())
            unit = "" if match is None else match[2].lower()
            name = "s" if unit in _SECONDS else unit
            if match is None or float(match[1]) <= 0 or name in found:
                raise UsageError(
                    f"{blame}={text} is no budget: write amounts above 0 in usd, tokens, s, m or h, each "
                    f"kind once, for example {blame}=5usd,30m"
                )
            found[name] = float(match[1]) * _SECONDS.get(unit, 1)
        return cls(**found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """What a test's marker allows: ``trial`` each of its trials, ``case`` all of them in one session."""

    trial: Budget
    case: Budget

    @classmethod
    def read(cls, said: Mapping[str, Any], blame: str) -> Marked | None:
        """The budgets among a marker's settings, None without one. Raises :class:`UsageError`.

        ``budget_usd``, ``budget_tokens`` and ``budget_seconds`` of a trial, the same behind ``case_`` of
        a case; None lifts what an outer marker set. ``blame`` names the marker in errors.
        """
        found: dict[str, dict[str, float]] = {"": {}, _OF_CASE: {}}
        for name, value in said.items():
            if "budget" not in name:
                continue
            part = _OF_CASE if name.startswith(_OF_CASE) else ""
            unit = _MARKED.get(name.removeprefix(part))
            if unit is None:
                raise UsageError(
                    f"{blame} has {name}=, which is no budget; write budget_usd, budget_tokens or "
                    "budget_seconds for a trial, and case_budget_usd ... for all trials of a case"
                )
            if value is None:
                continue
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not isfinite(value) or value <= 0:
                raise UsageError(f"{blame} has {name}={value!r}; give it a number above 0")
            found[part][unit] = float(value)
        if not any(found.values()):
            return None
        return cls(trial=Budget(**found[""]), case=Budget(**found[_OF_CASE]))


class Amounts(NamedTuple):
    """What a trial took as far as it is known; ``unpriced`` and ``uncounted`` say that more was not.

    ``unpriced`` how many had a cost, ``uncounted`` how many had tokens, that nobody told.
    """

    usd: float = 0.0
    tokens: float = 0.0
    s: float = 0.0
    unpriced: int = 0
    uncounted: int = 0

    def plus(self, other: Amounts) -> Amounts:
        """Both together."""
        return Amounts(
            usd=self.usd + other.usd,
            tokens=self.tokens + other.tokens,
            s=self.s + other.s,
            unpriced=self.unpriced + other.unpriced,
            uncounted=self.uncounted + other.uncounted,
        )

    def of(self, unit: Unit) -> float:
        """The amount in one unit."""
        return self.usd if unit == "usd" else self.tokens if unit == "tokens" else self.s

    def unknown(self, budget: Budget, what: str) -> str:
        """What a budget could not count, in brackets behind a sentence: "" where it counted all."""
        named = ((budget.usd, self.unpriced, "cost"), (budget.tokens, self.uncounted, "tokens"))
        parts = [
            f"{count} {what}{'s' * (count != 1)} of unknown {kind} not counted"
            for limit, count, kind in named
            if limit is not None and count
        ]
        return f" ({', '.join(parts)})" if parts else ""


@dataclass(slots=True)
class Spent:
    """What trials came to: ``used`` in all, ``largest`` of one trial in each unit."""

    used: Amounts = field(default_factory=Amounts)
    largest: Amounts = field(default_factory=Amounts)
    trials: int = 0

    def add(self, took: Amounts) -> None:
        """Take over what a trial took."""
        self.trials += 1
        self.used = self.used.plus(took)
        self.largest = Amounts(
            usd=max(self.largest.usd, took.usd),
            tokens=max(self.largest.tokens, took.tokens),
            s=max(self.largest.s, took.s),
        )

    def reached(self, budget: Budget) -> str | None:
        """Why no further trial is started; None while the largest one so far still fits."""
        for unit, most in budget.limits():
            used, largest = self.used.of(unit), self.largest.of(unit)
            if used + largest > most:
                return (
                    f"after {self.trials} trial{'s' * (self.trials != 1)} {said(used, unit)} of "
                    f"{said(most, unit)} are used, and a trial took up to {said(largest, unit)}"
                    f"{self.used.unknown(budget, 'trial')}"
                )
        return None


def said(value: float, unit: Unit) -> str:
    """An amount with its unit."""
    return f"{value:,.0f} tokens" if unit == "tokens" else f"{value:,.4g} {'USD' if unit == 'usd' else 's'}"


class BudgetWatch:
    """In each process that runs tests: starts no trial once a budget is reached that it counts against.

    ``of_session`` whether the session has one; the markers' are known once the tests are collected.
    """

    def __init__(self, config: pytest.Config, folder: Path, *, of_session: bool) -> None:
        self._config = config
        self._folder = folder
        self._of_session = of_session
        self._limiter: Limiter | None = None

    @pytest.hookimpl
    def pytest_collection_finish(self) -> None:
        """Watch only where there is a budget."""
        if self._config.stash.get(MARKED_KEY, False):
            from pytest_crashlab.plugin.limits import Limiter

            self._limiter = Limiter(self._config, self._folder)
            self._config.pluginmanager.register(self._limiter, "crashlab-limits")
        elif not self._of_session:
            self._config.pluginmanager.unregister(self)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Leave a trial out, so that it is missing."""
        if TRIAL_KEY not in item.stash:
            return None
        if self._of_session and budget_in(self._folder) is not None:
            return True
        return None if self._limiter is None or self._limiter.begins(item) else True


class BudgetKeeper:
    """In the controlling process: adds up, and tells every process when it is enough.

    ``reason`` why no further trial is started at all, ``cases`` case -> why none of its own is.
    """

    def __init__(self, budget: Budget, folder: Path) -> None:
        from pytest_crashlab.plugin.limits import CaseUse

        self._budget = budget
        self._folder = folder
        self._spent = Spent()
        self._began = monotonic()
        self._use = CaseUse(folder)
        self.reason: str | None = None
        self.cases: dict[str, str] = {}

    def hear(self) -> None:
        """When all trials are over: which cases have reached their own budget."""
        for case in self._use.heard():
            why = self._use.reached(case)
            if why is not None:
                self.cases[case] = why
        self._use.forget()

    @pytest.hookimpl
    def pytest_crashlab_trial_recorded(self, row: TrialRow) -> None:
        """Add up a trial; at the end of a budget say so."""
        if self.reason is not None:
            return
        self._spent.add(_reported(row))
        self._spent.used = self._spent.used._replace(s=monotonic() - self._began)
        self.reason = self._spent.reached(self._budget)
        if self.reason is not None:
            tell_budget(self._folder, self.reason)


def _reported(row: TrialRow) -> Amounts:
    tokens = (row.tokens_in or 0) + (row.tokens_out or 0)
    asked = row.models is not None
    return Amounts(
        usd=row.cost_usd or 0.0,
        tokens=tokens,
        s=row.duration,
        unpriced=int((asked or tokens > 0) and row.cost_usd is None),
        uncounted=int(asked and (row.tokens_in is None or row.tokens_out is None)),
    )
