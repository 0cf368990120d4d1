"""A transport below the recording one that writes each exchange onto the tape of its trial."""

from __future__ import annotations

import base64
import re
import threading
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_crashlab.provider import cleaning
from pytest_crashlab.provider.answers import read_stream
from pytest_crashlab.provider.tapes import Exchange
from pytest_crashlab.provider.transport import unpacking
from pytest_crashlab.records.redaction import UNREDACTABLE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from types import ModuleType

# What clients and the recording transport act on. Everything else of a head may name an account.
_HEADERS = (
    "content-type",
    "x-request-id",
    "request-id",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "location",
)
_EVENT_END = re.compile(r"(?<=\n\n)|(?<=\r\n\r\n)")
_LONGEST_DETAIL = 300


class Tape:
    """What is recorded of one trial, by any number of clients at once."""

    def __init__(self, redactor: Callable[[str], str]) -> None:
        self.redactor = redactor
        self._lock = threading.Lock()
        self._begun: list[_Taking] = []
        self._exchanges: list[Exchange] = []

    def begin(self, taking: _Taking) -> int:
        """The number of a request that is about to be sent."""
        with self._lock:
            self._begun.append(taking)
            return len(self._begun)

    def end(self, exchange: Exchange) -> None:
        """Keep an exchange that is over."""
        with self._lock:
            self._exchanges.append(exchange)

    def close(self) -> list[Exchange]:
        """All exchanges; those that are not over by now were left, such as a stream that nobody read."""
        with self._lock:
            begun = list(self._begun)
        for taking in begun:
            taking.end()
        with self._lock:
            return list(self._exchanges)


class _Taking:
    """One exchange from its request on; ends once, whichever way comes first."""

    def __init__(self, tape: Tape, asked: cleaning.Asked, cleaner: cleaning.Cleaner) -> None:
        self._tape = tape
        self._asked = asked
        self._cleaner = cleaner
        self._response: Any = None
        self._unpack: Callable[[bytes], bytes] | None = None
        self._headers: dict[str, str] = {}
        self._chunks: list[bytes] = []
        self._over = False
        self._number = tape.begin(self)

    def answered(self, response: Any) -> None:
        """The head of the answer is there."""
        self._response = response
        self._unpack = unpacking(response)
        for name in _HEADERS:
            if name in response.headers:
                said = str(response.headers[name])
                self._headers[name] = (
                    self._cleaner.url(said) if name == "location" else self._cleaner.text(said)
                )

    def chunk(self, content: bytes) -> None:
        """A part of the answer's body."""
        self._chunks.append(content)

    def end(self, *, whole: bool = False, error: BaseException | None = None) -> None:
        """The exchange is over: read to its end, ended by ``error``, or left by the caller."""
        if self._over:
            return
        self._over = True
        content = b"".join(self._chunks)
        if self._unpack is not None and content:
            content = self._unpack(content)
        chunks, coded = self._written(content)
        broke = detail = None
        if error is not None and _is_of_a_client(error):
            broke = type(error).__name__
            detail = self._cleaner.text(str(error))[:_LONGEST_DETAIL]
        elif self._streams and not whole:  # clients stop reading at a stream's last event
            whole = read_stream(content.decode("utf-8", "replace")).ended
        lost = any(UNREDACTABLE in chunk for chunk in chunks)
        asked = self._asked
        self._tape.end(
            Exchange(
                number=self._number,
                role=asked.role,
                provider=asked.provider,
                method=asked.method,
                url=asked.url,
                digest=None if lost else asked.digest,
                body_digest=asked.body_digest,
                request=asked.body,
                status=None if self._response is None else self._response.status_code,
                headers=self._headers,
                chunks=[] if lost else chunks,
                base64=coded,
                broke=broke,
                detail=detail,
                whole=whole,
            )
        )

    @property
    def _streams(self) -> bool:
        return self._headers.get("content-type", "").startswith("text/event-stream")

    def _written(self, content: bytes) -> tuple[list[str], bool]:
        """The body as it is written down, and whether that is base64."""
        text = cleaning.as_text(content)
        if text is None and self._streams:  # cut inside a character
            text = content.decode("utf-8", "ignore")
        if text is None:
            clean = self._cleaner.text(content.decode("latin-1"))
            safe = clean.encode("latin-1", "replace")
            return [base64.b64encode(safe).decode("ascii")], True
        if self._streams:
            return [self._cleaner.event(event) for event in _EVENT_END.split(text) if event], False
        return ([self._cleaner.body(text)] if text else []), False


def _is_of_a_client(error: BaseException) -> bool:
    return any(
        cls.__name__ == "TransportError" and cls.__module__.partition(".")[0] in {"httpx", "httpx2"}
        for cls in type(error).__mro__
    )


class _SyncTaped:
    """The body of an answer that goes onto the tape as it is read."""

    def __init__(self, response: Any, taking: _Taking) -> None:
        self._inner = response.stream
        self._taking = taking

    def __iter__(self) -> Iterator[bytes]:
        try:
            for chunk in self._inner:
                self._taking.chunk(chunk)
                yield chunk
        except BaseException as error:
            self._taking.end(error=error)
            raise
        self._taking.end(whole=True)

    def close(self) -> None:
        try:
            self._inner.close()
        finally:
            self._taking.end()


class _AsyncTaped:
    """The same for async clients."""

    def __init__(self, response: Any, taking: _Taking) -> None:
        self._inner = response.stream
        self._taking = taking

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._inner:
                self._taking.chunk(chunk)
                yield chunk
        except BaseException as error:
            self._taking.end(error=error)
            raise
        self._taking.end(whole=True)

    async def aclose(self) -> None:
        try:
            await self._inner.aclose()
        finally:
            self._taking.end()


class _Taper:
    """What both kinds of transport that record share."""

    def __init__(self, inner: Any, tape: Tape, role: str, provider: str) -> None:
        self._inner = inner
        self._tape = tape
        self._role = role
        self._provider = provider

    def _taking(self, request: Any, content: bytes) -> _Taking:
        cleaner = cleaning.Cleaner(self._tape.redactor, cleaning.secret_values(request.headers))
        asked = cleaning.Asked(request, content, self._role, self._provider, cleaner)
        return _Taking(self._tape, asked, cleaner)


class _SyncTaper(_Taper):
    body_type: Any

    def handle_request(self, request: Any) -> Any:
        taking = self._taking(request, request.read())
        try:
            response = self._inner.handle_request(request)
        except BaseException as error:
            taking.end(error=error)
            raise
        taking.answered(response)
        response.stream = self.body_type(response, taking)
        return response

    def close(self) -> None:
        self._inner.close()


class _AsyncTaper(_Taper):
    body_type: Any

    async def handle_async_request(self, request: Any) -> Any:
        taking = self._taking(request, await request.aread())
        try:
            response = await self._inner.handle_async_request(request)
        except BaseException as error:
            taking.end(error=error)
            raise
        taking.answered(response)
        response.stream = self.body_type(response, taking)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


@cache
def _types(library: ModuleType) -> tuple[Any, Any]:
    """Both transports as classes of ``library``, which is httpx or httpx2."""
    sync_body = type("TapedBody", (_SyncTaped, library.SyncByteStream), {})
    async_body = type("TapedAsyncBody", (_AsyncTaped, library.AsyncByteStream), {})
    return (
        type("TapingTransport", (_SyncTaper, library.BaseTransport), {"body_type": sync_body}),
        type("TapingAsyncTransport", (_AsyncTaper, library.AsyncBaseTransport), {"body_type": async_body}),
    )


def taping(library: ModuleType, inner: Any, *, tape: Tape, role: str, provider: str, is_async: bool) -> Any:
    """A transport of ``library`` that writes down what goes through ``inner``."""
    return _types(library)[int(is_async)](inner, tape, role, provider)
