"""A session that is told to stop ends like one that is interrupted: sealed, and not called complete."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

_HELD = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived; pytest treats it as Ctrl-C."""


class StopOnSigterm:
    """Turns SIGTERM, which CI systems and supervisors send first, into an orderly end.

    Without it the process would die at once: nothing recorded would be lost, but nobody would be told.
    A handler of the project's own is left alone.
    """

    def __init__(self) -> None:
        self._installed = False

    def install(self) -> None:
        """Take the signal, where this is the main thread and nobody else has it."""
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._stop)
            self._installed = True

    def remove(self) -> None:
        """Give the signal back."""
        if self._installed and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._installed = False

    def _stop(self, _number: int, _frame: FrameType | None) -> NoReturn:
        raise Terminated("SIGTERM")


@contextlib.contextmanager
def stops_held_back() -> Generator[None, None, None]:
    """Let Ctrl-C and SIGTERM wait until the block is done, the seconds that sealing a run takes.

    An impatient second Ctrl-C would else leave the run unsealed. What came meanwhile is delivered
    afterwards, once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in _HELD}
    ours = {n: handler for n, handler in before.items() if handler not in (None, signal.SIG_IGN)}
    for number in ours:
        signal.signal(number, lambda n, _frame: came.append(n))
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
