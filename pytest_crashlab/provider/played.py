"""A scripted model behind the transports of httpx and httpx2, for the clients that are tested with it."""

from __future__ import annotations

import json
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_crashlab.provider.formats import api_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from types import ModuleType

    from pytest_crashlab.provider.scripted import Playing, Step

_BREAKS = {
    "timeout": ("ReadTimeout", "the scripted model does not answer"),
    "refused": ("ConnectError", "the scripted model is not there"),
    "reset": ("ReadError", "the scripted model hung up"),
    "truncated": ("RemoteProtocolError", "the scripted model stopped before its end"),
}


def _broken(library: ModuleType, name: str, request: Any) -> Exception:
    kind, message = _BREAKS[name]
    error: Exception = getattr(library, kind)(message, request=request)
    return error


class _Body:
    """A body that ends early where the script says so; both kinds of iteration."""

    def __init__(self, library: ModuleType, step: Step, request: Any) -> None:
        self._library = library
        self._step = step
        self._request = request

    def _end(self) -> None:
        if self._step.breaks is not None:
            raise _broken(self._library, self._step.breaks, self._request)

    def __iter__(self) -> Iterator[bytes]:
        yield self._step.body
        self._end()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._step.body
        self._end()


class _Transport:
    """Answers requests with what is played."""

    body_type: Any

    def __init__(self, playing: Playing) -> None:
        self._playing = playing

    def handle_request(self, request: Any) -> Any:
        return self._answer(request, request.read())

    async def handle_async_request(self, request: Any) -> Any:
        return self._answer(request, await request.aread())

    def _answer(self, request: Any, content: bytes) -> Any:
        library = sys.modules[type(request).__module__.partition(".")[0]]
        step = self._playing.step(api_of(request.url.path), json.loads(content))
        if step.breaks is not None and not step.body:
            raise _broken(library, step.breaks, request)
        body = self.body_type(library, step, request)
        return library.Response(step.status, headers={"content-type": step.content_type}, stream=body)


@cache
def _type(library: ModuleType) -> Any:
    body = type("PlayedBody", (_Body, library.SyncByteStream, library.AsyncByteStream), {})
    bases = (_Transport, library.BaseTransport, library.AsyncBaseTransport)
    return type("PlayedTransport", bases, {"body_type": body})


def transport(library: ModuleType, playing: Playing) -> Any:
    """A transport of ``library``, for sync and async clients."""
    return _type(library)(playing)
