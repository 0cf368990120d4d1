"""The run phase of a trial: how far the target gets, and the clocks that may stop it."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pytest_crashlab.errors import InstrumentFailure
from pytest_crashlab.plugin.measured import real, word

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from types import FrameType, TracebackType

TimeoutIs = Literal["instrument", "target"]


class WallClock(BaseException):
    """Ends the target when its time is up; no ``Exception``, so that the target does not catch it."""


@dataclass(slots=True)
class Target:
    """The system under test inside ``trial.run()``: set ``t`` and ``output`` as it goes.

    ``horizon`` its declared limit in ``unit``, ``timeout`` its limit in seconds, if any; ``timed_out``
    whether that time was up.
    """

    horizon: float | None = None
    unit: str | None = None
    t: float | None = None
    output: Any = None
    timeout: float | None = None
    timeout_is: TimeoutIs = "instrument"
    timed_out: bool = False

    @property
    def exhausted(self) -> bool:
        """Whether the target used up its declared horizon; False where either is unknown."""
        return self.horizon is not None and self.t is not None and self.t >= self.horizon


class RunPhase(Protocol):
    """What a run phase needs of its trial."""

    run_duration: float | None
    run_error: BaseException | None

    def enter_run(self, target: Target) -> None:
        """Begin the run phase."""

    def leave_run(self, error: BaseException | None) -> None:
        """End it, by ``error`` if one was raised."""


def declared_target(
    horizon: float | None, unit: str | None, timeout: float | None, timeout_is: TimeoutIs
) -> Target:
    """The target of ``trial.run(...)``; what cannot be meant is an error of the test."""
    limit = None if horizon is None else real(horizon)
    if horizon is not None and not (limit is not None and 0 < limit < math.inf):
        raise _misdeclared(f"trial.run(horizon={horizon!r}): give a number above 0")
    if horizon is not None and unit is None:
        raise _misdeclared('trial.run(horizon=...) needs its unit, e.g. unit="turns"')
    if timeout is not None and not 0 < timeout < math.inf:
        raise _misdeclared(f"trial.run(timeout={timeout!r}): give a number of seconds above 0")
    if timeout_is not in ("instrument", "target"):
        raise _misdeclared(f'trial.run(timeout_is={timeout_is!r}): write "instrument" or "target"')
    if unit is not None:
        word(unit, "the unit of trial.run()")
    return Target(horizon=limit, unit=unit, timeout=timeout, timeout_is=timeout_is)


def _misdeclared(message: str) -> InstrumentFailure:
    return InstrumentFailure("misdeclared", message)


class Run:
    """The run phase, as a plain or an async context manager."""

    def __init__(self, trial: RunPhase, target: Target) -> None:
        self._trial = trial
        self._target = target
        self._alarm: _Alarm | None = None
        self._scope: asyncio.Timeout | None = None

    def __enter__(self) -> Target:
        self._trial.enter_run(self._target)
        if self._target.timeout is not None:
            self._alarm = _Alarm(self._target.timeout)
            self._alarm.start()
        return self._target

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> bool:
        if self._alarm is None:
            self._trial.leave_run(error)
            return False
        try:
            self._alarm.stop()
        except WallClock as late:  # it rang between the target's end and here
            error = late
            self._alarm.stop()
        return self._leave(error, rang=self._alarm.rang)

    async def __aenter__(self) -> Target:
        self._trial.enter_run(self._target)
        if self._target.timeout is not None:
            import asyncio

            try:
                self._scope = asyncio.timeout(self._target.timeout)
                await self._scope.__aenter__()
            except RuntimeError:  # another library's loop: looked at afterwards
                self._scope = None
        return self._target

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> bool:
        if self._target.timeout is None:
            self._trial.leave_run(error)
            return False
        rang = False
        if self._scope is not None:
            try:
                await self._scope.__aexit__(kind, error, tb)
            except TimeoutError as expired:
                error = expired
            rang = self._scope.expired()
        return self._leave(error, rang=rang)

    def _leave(self, error: BaseException | None, *, rang: bool) -> bool:
        """End a run phase that has a time limit; True keeps what ended it from going on."""
        trial, target = self._trial, self._target
        trial.leave_run(error)
        took, limit = trial.run_duration or 0.0, target.timeout or math.inf
        if not (rang or took >= limit):
            return False
        if error is not None and not isinstance(error, (Exception, WallClock)):
            return False  # Ctrl-C, or the end of the session
        target.timed_out = True
        if target.timeout_is == "target":
            trial.run_error = None
            return True
        how = "" if rang else "; it could not be interrupted"
        failure = InstrumentFailure(
            "wall_clock", f"trial.run(timeout={limit:g}) was up after {took:.2f} s{how}"
        )
        trial.run_error = failure
        raise failure from (None if isinstance(error, WallClock) else error)


class _Alarm:
    """Interrupts the main thread by a signal, where there are signals and nobody else has set one earlier.

    Not in other threads, nor where an event loop runs, whose own work it would break off; a call into
    compiled code is interrupted when it comes back.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._before: Callable[[int, FrameType | None], Any] | int | None = None
        self._others = 0.0
        self._started = 0.0
        self._set = False
        self.rang = False

    def start(self) -> None:
        if not self._possible():
            return
        self._others, _ = signal.getitimer(signal.ITIMER_REAL)
        if 0 < self._others <= self._seconds:
            return
        self._before = signal.signal(signal.SIGALRM, self._ring)
        self._started = time.monotonic()
        self._set = True
        signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def _possible(self) -> bool:
        if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
            return False
        return "asyncio" not in sys.modules or not _in_a_loop()

    def _ring(self, _signum: int, _frame: FrameType | None) -> None:
        self.rang = True
        raise WallClock

    def stop(self) -> None:
        """Take the alarm back and give another one what is left of its time."""
        if not self._set:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._set = False
        signal.signal(signal.SIGALRM, signal.SIG_DFL if self._before is None else self._before)
        if self._others:
            left = self._others - (time.monotonic() - self._started)
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-6))


def _in_a_loop() -> bool:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
