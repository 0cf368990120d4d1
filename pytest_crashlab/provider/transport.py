"""A transport for httpx and httpx2 clients that records each call, and makes failed ones again.

Neither library is imported here: the classes are made for the module that a client comes from.
"""

from __future__ import annotations

import random
import sys
import time
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_crashlab.provider import errors
from pytest_crashlab.provider.exchange import Asked, Attempt, Sender

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from types import ModuleType

    from pytest_crashlab.provider.taping import Tape

_AGAIN = frozenset({errors.RATE_LIMIT, errors.ERROR, errors.TIMEOUT, errors.NETWORK})
_AGAIN_STATUS = frozenset({408, 409, 429})
_OF_THE_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 60.0


class Wire:
    """What both kinds of transport share.

    ``gate`` is asked before each attempt and may raise; ``tape`` what the exchanges below are written to.
    """

    def __init__(
        self,
        sender: Sender,
        *,
        seed: int = 0,
        gate: Callable[[], None] | None = None,
        tape: Tape | None = None,
    ) -> None:
        self.sender = sender
        self.tape = tape
        self._random = random.Random(seed)
        self._gate = gate

    def asked(self, request: Any, body: bytes) -> Asked:
        """A new request."""
        ids = [value for name, value in request.headers.items() if name.lower().endswith("-id")]
        told = b" ".join([request.url.raw_path, *(value.encode() for value in ids)])
        return Asked.read(self.sender.ledger.begin_request(), body, told)

    def attempt(self, asked: Asked, number: int, waited: float) -> Attempt:
        """A new attempt at it."""
        if self._gate is not None:
            self._gate()
        return Attempt(self.sender, asked, number, waited)

    def wait_after(self, attempt: int, status: int | None, headers: Any, label: str | None) -> float | None:
        """Seconds until the request is made again; None where it is not."""
        if attempt > (self.sender.binding.retries or 0) or label not in _AGAIN:
            return None
        if status is not None and not _may_be_made_again(status, headers):
            return None
        if self.sender.replayed:
            return 0.0  # nobody is spared by waiting
        said = _retry_after(headers)
        if said is not None:
            return min(said, _LONGEST_WAIT)
        return min(_FIRST_WAIT * 2.0 ** (attempt - 1), _LONGEST_WAIT) * (1 + self._random.random() / 4)


def _may_be_made_again(status: int, headers: Any) -> bool:
    said = headers.get("x-should-retry")
    if said in {"true", "false"}:
        return bool(said == "true")
    return status in _AGAIN_STATUS or status >= 500


def _retry_after(headers: Any) -> float | None:
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name)) * scale
        except (TypeError, ValueError):
            continue
        if seconds >= 0:
            return seconds
    return None


class _SyncBody:
    """The body of an answer, told to an attempt as it is read."""

    def __init__(self, response: Any, attempt: Attempt) -> None:
        self._inner = response.stream
        self._attempt = attempt

    def __iter__(self) -> Iterator[bytes]:
        try:
            for chunk in self._inner:
                self._attempt.chunk(chunk)
                yield chunk
        except GeneratorExit:
            self._attempt.left()
            raise
        except BaseException as error:
            self._attempt.broke(error)
            raise
        self._attempt.whole()

    def close(self) -> None:
        try:
            self._inner.close()
        finally:
            self._attempt.left()


class _AsyncBody:
    """The same for async clients."""

    def __init__(self, response: Any, attempt: Attempt) -> None:
        self._inner = response.stream
        self._attempt = attempt

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._inner:
                self._attempt.chunk(chunk)
                yield chunk
        except GeneratorExit:
            self._attempt.left()
            raise
        except BaseException as error:
            self._attempt.broke(error)
            raise
        self._attempt.whole()

    async def aclose(self) -> None:
        try:
            await self._inner.aclose()
        finally:
            self._attempt.left()


def unpacking(response: Any) -> Callable[[bytes], bytes] | None:
    """What unpacks the body of an answer that is compressed; None for one that is not."""
    if response.headers.get("content-encoding", "identity") in {"identity", ""}:
        return None
    kind, headers = type(response), response.headers

    def unpack(content: bytes) -> bytes:
        try:
            return bytes(kind(200, headers=headers, content=content).content)
        except Exception:  # noqa: BLE001  what cannot be unpacked is told by the client
            return b""

    return unpack


def _read_whole(response: Any, content: bytes) -> Any:
    """An answer whose body was read, as one that is still to be read."""
    library = sys.modules[type(response).__module__.partition(".")[0]]
    headers = [(k, v) for k, v in response.headers.multi_items() if k not in _OF_THE_BODY]
    return type(response)(
        response.status_code,
        headers=headers,
        stream=library.ByteStream(content),
        extensions=response.extensions,
    )


class _SyncTransport:
    """Records what goes through ``inner``."""

    stream_type: Any

    def __init__(self, inner: Any, wire: Wire) -> None:
        self._inner = inner
        self._wire = wire

    def handle_request(self, request: Any) -> Any:
        request.extensions[errors.MARK] = True
        if request.method != "POST":
            return self._inner.handle_request(request)
        asked = self._wire.asked(request, request.read())
        number, waited = 1, 0.0
        while True:
            attempt = self._wire.attempt(asked, number, waited)
            try:
                response = self._inner.handle_request(request)
            except BaseException as error:
                attempt.broke(error)
                wait = self._wire.wait_after(number, None, {}, _broken(error))
                if wait is None:
                    raise
            else:
                attempt.answered(response.status_code, response.headers, unpacking(response))
                response.stream = self.stream_type(response, attempt)
                if response.status_code < 400:
                    return response
                content = response.read()
                wait = self._wire.wait_after(number, response.status_code, response.headers, attempt.refusal)
                if wait is None:
                    return _read_whole(response, content)
            time.sleep(wait)
            number, waited = number + 1, wait

    def close(self) -> None:
        self._inner.close()


class _AsyncTransport:
    """The same for async clients."""

    stream_type: Any

    def __init__(self, inner: Any, wire: Wire) -> None:
        self._inner = inner
        self._wire = wire

    async def handle_async_request(self, request: Any) -> Any:
        request.extensions[errors.MARK] = True
        if request.method != "POST":
            return await self._inner.handle_async_request(request)
        asked = self._wire.asked(request, await request.aread())
        number, waited = 1, 0.0
        while True:
            attempt = self._wire.attempt(asked, number, waited)
            try:
                response = await self._inner.handle_async_request(request)
            except BaseException as error:
                attempt.broke(error)
                wait = self._wire.wait_after(number, None, {}, _broken(error))
                if wait is None:
                    raise
            else:
                attempt.answered(response.status_code, response.headers, unpacking(response))
                response.stream = self.stream_type(response, attempt)
                if response.status_code < 400:
                    return response
                content = await response.aread()
                wait = self._wire.wait_after(number, response.status_code, response.headers, attempt.refusal)
                if wait is None:
                    return _read_whole(response, content)
            await _async_sleep(wait)
            number, waited = number + 1, wait

    async def aclose(self) -> None:
        await self._inner.aclose()


def _broken(error: BaseException) -> str | None:
    """The label of what the inner transport raised; None for what is nobody's failure, as a Ctrl-C."""
    names = {cls.__name__ for cls in type(error).__mro__}
    if "TimeoutException" in names:
        return errors.TIMEOUT
    return errors.NETWORK if "TransportError" in names else None


async def _async_sleep(seconds: float) -> None:
    import anyio  # comes with httpx; knows which event loop runs

    await anyio.sleep(seconds)


@cache
def _types(library: ModuleType) -> tuple[Any, Any]:
    """Both transports as classes of ``library``, which is httpx or httpx2."""
    sync_body = type("RecordedBody", (_SyncBody, library.SyncByteStream), {})
    async_body = type("RecordedAsyncBody", (_AsyncBody, library.AsyncByteStream), {})
    return (
        type("RecordingTransport", (_SyncTransport, library.BaseTransport), {"stream_type": sync_body}),
        type(
            "RecordingAsyncTransport",
            (_AsyncTransport, library.AsyncBaseTransport),
            {"stream_type": async_body},
        ),
    )


def recording(library: ModuleType, inner: Any, wire: Wire) -> Any:
    """A transport of ``library`` that records what goes through ``inner``."""
    return _types(library)[0](inner, wire)


def recording_async(library: ModuleType, inner: Any, wire: Wire) -> Any:
    """The same for async clients."""
    return _types(library)[1](inner, wire)
