"""A transport that answers from the tape of a trial and knows of no network."""

from __future__ import annotations

import sys
import threading
from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import InstrumentFailure
from pytest_crashlab.provider.cleaning import Asked, Cleaner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from types import ModuleType

    from pytest_crashlab.provider.tapes import Exchange

MISSING = "replay_missing"


class Replay:
    """The recorded answers of one trial: each is given once, to the request that it was an answer to.

    ``where`` names the trial in sentences; ``unknown`` why there are no ``exchanges`` of it at all.
    ``asked`` whether a request came, ``missing`` what is said of the first one without an answer.
    """

    def __init__(
        self,
        where: str,
        exchanges: Sequence[Exchange],
        redactor: Callable[[str], str],
        *,
        unknown: str | None = None,
    ) -> None:
        self.redactor = redactor
        self.asked = False
        self.missing: str | None = None
        self._where = where
        self._unknown = unknown
        self._lock = threading.Lock()
        self._requests = 0
        self._waiting: dict[tuple[str, str, str], deque[Exchange]] = {}
        for exchange in sorted(exchanges, key=lambda exchange: exchange.number):
            if exchange.digest is not None:
                key = (exchange.role, exchange.provider, exchange.digest)
                self._waiting.setdefault(key, deque()).append(exchange)

    def take(self, asked: Asked) -> Exchange:
        """The next recorded answer to this very request. Raises :class:`InstrumentFailure` for none."""
        with self._lock:
            self.asked = True
            self._requests += 1
            number = self._requests
            waiting = None
            if asked.digest is not None:
                waiting = self._waiting.get((asked.role, asked.provider, asked.digest))
            if waiting:
                return waiting.popleft()
        why = self._unknown or _why(asked, known=waiting is not None)
        raise self.fail(
            f"there is no recorded answer to request {number} of {self._where} ({asked.shown}): {why}"
        )

    def by_hand(self) -> InstrumentFailure:
        """What to raise in place of a call that nothing here could record."""
        self.asked = True
        return self.fail(
            f"a call by hand in {self._where} cannot be replayed: provider.call() records no answer"
        )

    def fail(self, why: str) -> InstrumentFailure:
        """The failure, which is remembered: a test that catches it is no pass."""
        self.missing = self.missing or why
        return InstrumentFailure(MISSING, why)

    def ended_early(self, exchange: Exchange) -> InstrumentFailure:
        """What to raise where more is read of an answer than was recorded."""
        return self.fail(
            f"the recorded answer to request {exchange.number} of {self._where} was not read to its end "
            "when it was recorded"
        )


def _why(asked: Asked, *, known: bool) -> str:
    if asked.digest is None:
        return "the project's pytest_crashlab_redact failed on it, so it cannot be known again"
    if known:
        return "all answers to it were given already"
    return "the recording has no such request"


class _ReplayedBody:
    """A recorded body; both kinds of iteration."""

    def __init__(self, exchange: Exchange, replay: Replay, broken: Exception | None) -> None:
        self._exchange = exchange
        self._replay = replay
        self._broken = broken

    def _end(self) -> None:
        if self._broken is not None:
            raise self._broken
        if not self._exchange.whole:
            raise self._replay.ended_early(self._exchange)

    def __iter__(self) -> Iterator[bytes]:
        yield from self._exchange.content()
        self._end()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._exchange.content():
            yield chunk
        self._end()


class _Player:
    """Answers requests from the tape; knows of no network."""

    body_type: Any

    def __init__(self, replay: Replay, role: str, provider: str) -> None:
        self._replay = replay
        self._role = role
        self._provider = provider

    def handle_request(self, request: Any) -> Any:
        return self._answer(request, request.read())

    async def handle_async_request(self, request: Any) -> Any:
        return self._answer(request, await request.aread())

    def _answer(self, request: Any, content: bytes) -> Any:
        library = sys.modules[type(request).__module__.partition(".")[0]]
        cleaner = Cleaner(self._replay.redactor)
        exchange = self._replay.take(Asked(request, content, self._role, self._provider, cleaner))
        broken = None if exchange.broke is None else _raised(library, exchange, request)
        if exchange.status is None:
            raise self._replay.ended_early(exchange) if broken is None else broken
        body = self.body_type(exchange, self._replay, broken)
        return library.Response(exchange.status, headers=dict(exchange.headers), stream=body)


def _raised(library: ModuleType, exchange: Exchange, request: Any) -> Exception:
    """The exception that ended an exchange, as the library that is used now has it."""
    kind = getattr(library, exchange.broke or "", None)
    if not (isinstance(kind, type) and issubclass(kind, library.TransportError)):
        kind = library.ReadError
    error: Exception = kind(exchange.detail or "", request=request)
    return error


@cache
def _type(library: ModuleType) -> Any:
    body = type("ReplayedBody", (_ReplayedBody, library.SyncByteStream, library.AsyncByteStream), {})
    bases = (_Player, library.BaseTransport, library.AsyncBaseTransport)
    return type("ReplayingTransport", bases, {"body_type": body})


def transport(library: ModuleType, *, replay: Replay, role: str, provider: str) -> Any:
    """A transport of ``library``, for sync and async clients, that answers from a recording."""
    return _type(library)(replay, role, provider)
