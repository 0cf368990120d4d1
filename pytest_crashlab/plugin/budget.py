"""What a session may spend: no trial is started that would not end inside of it.

The controlling process adds up what trials report. When the largest trial so far would no longer fit, it
says so in ``control.json`` in the run's folder, and no process of the run starts another trial. Those that
were not started are missing: no fail, no regression, and a resumed run goes on with them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from time import monotonic
from typing import TYPE_CHECKING, Literal

import pytest

from pytest_crashlab.errors import UsageError
from pytest_crashlab.plugin.keys import TRIAL_KEY
from pytest_crashlab.plugin.stopped import budget_in, tell_budget

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_crashlab.records.trial import TrialRow

Unit = Literal["usd", "tokens", "s"]
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(usd|tokens|[smh])", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """US dollars, tokens (in and out) and seconds that a session may take; None: as much as it likes."""

    usd: float | None = None
    tokens: float | None = None
    s: float | None = None

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


@dataclass(slots=True)
class Spent:
    """What the session's trials came to; ``largest`` of one trial, ``unpriced`` trials of unknown cost."""

    used: dict[Unit, float] = field(default_factory=lambda: {"usd": 0.0, "tokens": 0.0, "s": 0.0})
    largest: dict[Unit, float] = field(default_factory=lambda: {"usd": 0.0, "tokens": 0.0, "s": 0.0})
    trials: int = 0
    unpriced: int = 0
    began: float = field(default_factory=monotonic)

    def add(self, row: TrialRow) -> None:
        """Take over what a trial reported."""
        self.trials += 1
        tokens = (row.tokens_in or 0) + (row.tokens_out or 0)
        self.unpriced += tokens > 0 and row.cost_usd is None
        amounts: dict[Unit, float] = {"usd": row.cost_usd or 0.0, "tokens": tokens, "s": row.duration}
        for unit, amount in amounts.items():
            self.used[unit] += amount
            self.largest[unit] = max(self.largest[unit], amount)
        self.used["s"] = monotonic() - self.began

    def reached(self, budget: Budget) -> str | None:
        """Why no further trial is started; None while the largest one so far still fits."""
        for limit in fields(budget):
            unit: Unit = limit.name  # type: ignore[assignment]
            most = getattr(budget, unit)
            if most is not None and self.used[unit] + self.largest[unit] > most:
                used, largest = _amount(self.used[unit], unit), _amount(self.largest[unit], unit)
                return (
                    f"after {self.trials} trials {used} of {_amount(most, unit)} are used, and a trial took "
                    f"up to {largest}"
                )
        return None


def _amount(value: float, unit: Unit) -> str:
    return f"{value:,.0f} tokens" if unit == "tokens" else f"{value:,.4g} {'USD' if unit == 'usd' else 's'}"


class BudgetWatch:
    """In each process that runs tests: starts no trial once the budget is reached."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Leave a trial out, so that it is missing."""
        return True if TRIAL_KEY in item.stash and budget_in(self._folder) is not None else None


class BudgetKeeper:
    """In the controlling process: adds up, and tells every process when it is enough."""

    def __init__(self, budget: Budget, folder: Path) -> None:
        self._budget = budget
        self._folder = folder
        self._spent = Spent()
        self.reason: str | None = None

    @pytest.hookimpl
    def pytest_crashlab_trial_recorded(self, row: TrialRow) -> None:
        """Add up a trial; at the end of the budget say so."""
        self._spent.add(row)
        if self.reason is None and (why := self._spent.reached(self._budget)) is not None:
            unknown = self._spent.unpriced
            if self._budget.usd is not None and unknown:
                why += f" ({unknown} trial{'s' * (unknown != 1)} of unknown cost not counted)"
            self.reason = why
            tell_budget(self._folder, why)
