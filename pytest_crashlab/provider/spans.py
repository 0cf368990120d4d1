"""The spans of one trial as a tree, and which of them are calls that nothing else has recorded.

A call may be seen several times: by the recording transport, by the instrumentation of an SDK, and by that
of a framework around it. It counts once, as whoever was nearest to the wire saw it: the transport has the
provider's own answer with its usage, each attempt and its time, where a span has what somebody made of it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_crashlab.provider import genai

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_crashlab.provider.base import Call, Role
    from pytest_crashlab.provider.calls import Ledger

SpanId = tuple[int, int]  # of its trace, and its own


@dataclass(slots=True, kw_only=True, eq=False)
class Claim:
    """A block of a trial, whose spans are the trial's; once it is ``over`` none starts in it."""

    spans: Spans
    role: Role
    bound_to: str
    over: bool = False


@dataclass(slots=True, kw_only=True, eq=False)
class _Seen:
    """One span of the trial.

    ``where`` the thread and the task that began it; ``within`` and ``beside`` the recorded calls that
    were begun inside of it, and those begun in its thread and task while it was not over;
    ``outer`` whether another call's span is inside of it.
    """

    claim: Claim
    parent: _Seen | None
    where: object
    number: int | None = None
    request: int = 0
    within: set[int] = field(default_factory=set)
    beside: set[int] = field(default_factory=set)
    outer: bool = False
    call: Call | None = None
    response_id: str | None = None

    def line(self) -> Iterator[_Seen]:
        """The span and those that it is inside of, from the inside out."""
        seen: _Seen | None = self
        while seen is not None:
            yield seen
            seen = seen.parent


class Spans:
    """All spans of one trial, from any number of threads and tasks."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lock = threading.RLock()  # a span may be ended by the garbage collector, anywhere
        self._seen: dict[SpanId, _Seen] = {}
        self._open: dict[SpanId, _Seen] = {}
        self._strays: dict[SpanId, bool] = {}
        self._blocks = 0
        self._closed = False
        self.stray_calls = 0

    def enter(self, role: Role, bound_to: str) -> Claim:
        """A block begins."""
        with self._lock:
            self._blocks += 1
        return Claim(spans=self, role=role, bound_to=bound_to)

    def leave(self, claim: Claim) -> None:
        """It ends; what started in it may still end in time."""
        with self._lock:
            self._blocks -= 1
            claim.over = True

    def close(self) -> None:
        """The trial is over: what has not ended by now stays unknown."""
        with self._lock:
            self._closed = True

    def begin(
        self,
        span: SpanId,
        *,
        parent: SpanId | None,
        claim: Claim | None,
        attributes: Mapping[str, Any],
        where: object,
    ) -> None:
        """A span starts; ``claim`` the block of whichever trial it starts in, None where nothing says so."""
        with self._lock:
            if self._closed:
                return
            inside = None if parent is None else self._seen.get(parent)
            if claim is None and inside is not None:
                claim = inside.claim
            if claim is None:
                self._begin_stray(span, is_call=genai.is_call(attributes))
            elif claim.spans is self and not claim.over:
                seen = _Seen(claim=claim, parent=inside, where=where)
                self._seen[span] = self._open[span] = seen
                if genai.is_call(attributes):
                    self._is_a_call(seen)

    def _begin_stray(self, span: SpanId, *, is_call: bool) -> None:
        """A span that may be of this trial or of none: in a thread that was not told whose work it does."""
        if self._blocks:
            self._strays[span] = is_call
            self.stray_calls += is_call

    def _is_a_call(self, seen: _Seen) -> None:
        seen.number = self._ledger.next_number()
        seen.request = self._ledger.begin_request()
        for around in seen.line():
            around.outer = around.outer or around is not seen

    def end(self, span: SpanId, told: genai.Told) -> None:
        """A span has ended, with all that it says."""
        is_call = genai.is_call(told.attributes)
        with self._lock:
            if self._closed:
                return
            if not self._strays.pop(span, True) and is_call:
                self.stray_calls += 1
            seen = self._open.pop(span, None)
            if seen is None:
                return
            seen.where = None
            if is_call:
                self._end_call(seen, told)
            else:
                seen.number = None

    def _end_call(self, seen: _Seen, told: genai.Told) -> None:
        if seen.number is None:
            self._is_a_call(seen)
        number = seen.number or 0
        seen.response_id = genai.response_id(told.attributes)
        seen.call = genai.read_call(
            told, number=number, request=seen.request, role=seen.claim.role, bound_to=seen.claim.bound_to
        )
        self._ledger.keep(number, *genai.contents(told.attributes))

    def recorded(self, number: int, current: SpanId, where: object) -> None:
        """The ledger's call ``number`` begins in span ``current``."""
        with self._lock:
            inside = self._seen.get(current)
            if inside is not None:
                for around in inside.line():
                    around.within.add(number)
            for seen in self._open.values():
                if seen.where == where:
                    seen.beside.add(number)

    def open(self, role: Role) -> int:
        """How many calls may be missing: spans that are not over, and those of nobody knows which trial."""
        with self._lock:
            waiting = sum(
                seen.number is not None and seen.claim.role is role and not (seen.outer or seen.within)
                for seen in self._open.values()
            )
            return waiting + self.stray_calls

    def calls(self, recorded: Sequence[Call]) -> list[Call]:
        """The calls that only spans tell of."""
        with self._lock:
            ended = [s for s in self._seen.values() if s.call and not (s.outer or s.within)]
            ended.reverse()  # those that began last are the innermost
            taken = set().union(*(seen.within for seen in self._seen.values() if seen.number is not None))
        found: list[_Seen] = []
        for seen in ended:
            same = self._same(seen, [call for call in recorded if call.number not in taken])
            if same is not None:
                taken.add(same)
            elif not any(_is_again(seen, other) for other in found):
                found.append(seen)
        return [seen.call for seen in found if seen.call is not None]

    def _same(self, seen: _Seen, recorded: Sequence[Call]) -> int | None:
        """The number of the recorded call that a span tells of, which did not begin inside of the span.

        Known by the name of the answer. Without one, by who made it: the same thread and task had the
        span open and asked the same model.
        """
        told = seen.call
        if told is None:
            return None
        for call in recorded:
            if not _overlap(told, call):
                continue
            received = self._ledger.contents(call.number)[1]
            if seen.response_id is not None and received:
                if seen.response_id.encode() in received:
                    return call.number
            elif call.number in seen.beside and told.model in {call.model, call.answered_by}:
                return call.number
        return None


def _is_again(seen: _Seen, other: _Seen) -> bool:
    """Whether two spans that are beside each other tell of one answer."""
    if seen.call is None or other.call is None or seen.response_id is None:
        return False
    return seen.response_id == other.response_id and _overlap(seen.call, other.call)


def _overlap(one: Call, other: Call) -> bool:
    """Whether two calls share a moment; a recorded call's clock is read a little apart from a span's."""
    slack = 0.05
    ends = [call.start + (call.latency or 0.0) + slack for call in (one, other)]
    return max(one.start, other.start) <= min(ends)
