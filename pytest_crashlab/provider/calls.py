"""The calls of one trial, as they come in from any number of threads and tasks, and what they add up to."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_crashlab.provider.base import Basis, Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_crashlab.provider.base import Call
    from pytest_crashlab.provider.otel import Listener

LARGEST = 2**18  # bytes of a request, and of an answer, that are kept to look at


class Ledger:
    """Numbers the calls of a trial as they begin and keeps them as they end.

    ``watch`` what sees further calls, in spans. Numbers of calls that were seen twice are left out.
    """

    def __init__(self) -> None:
        self.watch: Listener | None = None
        self._lock = threading.RLock()  # the garbage collector may end a span, anywhere
        self._calls: list[Call] = []
        self._contents: dict[int, tuple[bytes, bytes]] = {}
        self._begun: list[Role] = []
        self._requests = 0
        self._last = 0

    def watched(self, make: Callable[[Ledger], Listener]) -> Listener:
        """What sees further calls of the trial; made by the first who asks."""
        with self._lock:
            if self.watch is None:
                self.watch = make(self)
            return self.watch

    def begin_request(self) -> int:
        """The number of a request, for all of its attempts."""
        with self._lock:
            self._requests += 1
            return self._requests

    def begin_call(self, role: Role = Role.TARGET) -> int:
        """The number of an attempt that is about to be made."""
        number = self.next_number()
        with self._lock:
            self._begun.append(role)
        if self.watch is not None:
            self.watch.call_begins(number)
        return number

    def next_number(self) -> int:
        """A number for a call that begins now."""
        with self._lock:
            self._last += 1
            return self._last

    def end_call(self, call: Call, *, sent: bytes = b"", received: bytes = b"") -> None:
        """Keep a call that is over, with as much of what went over the wire as can be kept."""
        self.keep(call.number, sent, received)
        with self._lock:
            self._calls.append(call)

    def keep(self, number: int, sent: bytes, received: bytes) -> None:
        """Keep what call ``number`` sent and received."""
        with self._lock:
            self._contents[number] = (sent[:LARGEST], received[:LARGEST])

    def contents(self, number: int) -> tuple[bytes, bytes]:
        """What call ``number`` sent and received."""
        with self._lock:
            return self._contents[number]

    def calls(self, role: Role | None = None) -> list[Call]:
        """Those that are over, in the order in which they began."""
        with self._lock:
            found = list(self._calls)
        if self.watch is not None:
            found += self.watch.calls(found)
        return sorted((c for c in found if role is None or c.role is role), key=lambda call: call.number)

    def open(self, role: Role) -> int:
        """How many calls of ``role`` have begun and are not over."""
        with self._lock:
            still_open = self._begun.count(role) - sum(call.role is role for call in self._calls)
        return still_open if self.watch is None else still_open + self.watch.open(role)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What calls add up to; a sum is None where one of its parts is not known, or where nothing was called.

    ``calls`` attempts; ``failed`` those that the instrument failed; ``latency`` seconds, the sum over
    attempts that were answered; ``cost_basis`` "estimated" as soon as one part is.
    """

    calls: int
    failed: int
    tokens_in: int | None
    tokens_out: int | None
    latency: float | None
    cost_usd: float | None
    cost_basis: str | None


def totals(calls: list[Call], *, still_open: int = 0) -> Totals:
    """Add up ``calls``; with ``still_open`` calls that are not over no sum is known.

    A call for which the provider cannot have worked (a refused connection, an error status) adds
    nothing. One that may have been worked for and whose usage was not told makes the sum unknown.
    """
    charged = [c for c in calls if c.charged]
    whole = bool(charged) and not still_open
    ins, outs = [c.tokens.input for c in charged], [c.tokens.output for c in charged]
    costs = [c.cost for c in charged]
    known_costs = [c for c in costs if c is not None]
    all_known = whole and len(known_costs) == len(costs)
    estimated = any(c.basis is Basis.ESTIMATED for c in known_costs)
    times = [c.latency for c in charged if c.latency is not None]
    return Totals(
        calls=len(calls),
        failed=sum(c.error is not None for c in calls),
        tokens_in=_sum(ins) if whole else None,
        tokens_out=_sum(outs) if whole else None,
        latency=sum(times) if whole and len(times) == len(charged) else None,
        cost_usd=sum(c.usd for c in known_costs) if all_known else None,
        cost_basis=(str(Basis.ESTIMATED if estimated else Basis.BILLED)) if all_known else None,
    )


def _sum(values: list[int | None]) -> int | None:
    known = [v for v in values if v is not None]
    return sum(known) if len(known) == len(values) else None
