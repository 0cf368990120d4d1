"""Stop paying for trials that cannot tell anything: a provider that is down, or whose balance is empty.

Each process counts what the calls of its trials came to. Where a provider is plainly down, the process says
so in ``control.json`` in the run's folder, and from then on no process of the run asks that provider: calls
raise the instrument's failure at once, so that the trials are undecided and cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.errors import InstrumentFailure
from pytest_crashlab.plugin.stopped import stops_in, tell_stops
from pytest_crashlab.store.layout import CONTROL

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_crashlab.provider.base import Call

# After how many trials in a row, all of whose calls ended in these, a provider is taken to be down.
LIMITS: tuple[tuple[frozenset[str], int], ...] = (
    (frozenset({"provider_quota"}), 1),
    (frozenset({"provider_auth"}), 3),
    (frozenset({"provider_error", "provider_timeout", "network_error"}), 5),
    (frozenset({"provider_rate_limit"}), 10),
)


class Breaker:
    """One process's part: hears what calls came to, and refuses further ones."""

    def __init__(self, folder: Path, worker: str) -> None:
        self._file = folder / CONTROL
        self._worker = worker
        self._seen: int | None = None
        self._stops: dict[str, dict[str, str]] = {}
        self._row: dict[str, list[str]] = {}

    def refuse(self, provider: str) -> None:
        """Raise the instrument's failure where ``provider`` is not to be asked any more."""
        stop = self._read().get(provider)
        if stop is not None:
            raise InstrumentFailure(
                stop["label"], f"{provider} was not asked, since it is taken to be down: {stop['why']}"
            )

    def heard(self, calls: Sequence[Call]) -> None:
        """Take what the calls of a trial that is over came to; any answer says that the provider is there."""
        for provider in dict.fromkeys(call.provider for call in calls):
            self._heard(provider, [call for call in calls if call.provider == provider])

    def _heard(self, provider: str, calls: list[Call]) -> None:
        failures = [call.error for call in calls if call.error is not None]
        if len(failures) < len(calls):  # an answer, or an error that is the system's
            self._row.pop(provider, None)
            return
        row = self._row.setdefault(provider, [])
        row.append(failures[-1])
        if provider not in self._read() and _is_down(row):
            why = next((call.detail for call in reversed(calls) if call.detail), None)
            self._stop(provider, row[-1], why)

    def _stop(self, provider: str, label: str, why: str | None) -> None:
        trials = len(self._row[provider])
        said = f"{trials} trial{'s' * (trials != 1)} in a row ended in {label}"
        stop = {"label": label, "why": said + (f" ({why})" if why else ""), "by": self._worker}
        self._stops = {**self._stops, provider: stop}
        tell_stops(self._file.parent, self._stops)

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            written = self._file.stat().st_mtime_ns
        except OSError:
            return self._stops
        if written != self._seen:
            self._seen = written
            self._stops = {**self._stops, **stops_in(self._file.parent)}
        return self._stops


def _is_down(row: Sequence[str]) -> bool:
    return any(len(row) >= most and alike.issuperset(row[-most:]) for alike, most in LIMITS)
