"""Clients whose calls are recorded: those of the openai and anthropic SDKs, and plain httpx and httpx2."""

from __future__ import annotations

import importlib
import os
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_crashlab.provider.base import Misuse
from pytest_crashlab.provider.taping import taping
from pytest_crashlab.provider.transport import Wire, recording, recording_async

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

# provider -> (module of its SDK, client, async client)
_SDKS = {
    "openai": ("openai", "OpenAI", "AsyncOpenAI"),
    "openai-compatible": ("openai", "OpenAI", "AsyncOpenAI"),
    "anthropic": ("anthropic", "Anthropic", "AsyncAnthropic"),
}
_LIBRARIES = ("httpx2", "httpx")


def sdk_client(
    wire: Wire,
    *,
    is_async: bool,
    sdk: str | None = None,
    inner: Callable[[ModuleType], Any] | None = None,
    **options: Any,
) -> Any:
    """The SDK's own client for the binding of ``wire``; ``options`` go to it as they are.

    ``sdk`` the provider whose SDK is meant (None: the binding's); ``inner`` makes a transport to use in
    place of the network. The SDK's retries are off: they would be neither counted nor kept out of
    latency. Raises :class:`Misuse` where there is no such SDK.
    """
    binding = wire.sender.binding
    speaks = binding.provider if sdk is None else sdk
    if speaks not in _SDKS:
        raise Misuse(
            f"{binding.spec}: no SDK is known for {speaks!r}; use provider.http_client() with a "
            "library that takes an httpx client, or provider.call() around your own request"
        )
    name, sync_class, async_class = _SDKS[speaks]
    package = _module(name, f"provider.client() for {binding.spec}")
    default = getattr(package, "DefaultAsyncHttpxClient" if is_async else "DefaultHttpxClient")
    library = _library_of(default)
    http = default(**_transport(library, wire, is_async=is_async, inner=inner, base_url=binding.base_url))
    given: dict[str, Any] = {"max_retries": 0, "http_client": http}
    if binding.base_url is not None:
        given["base_url"] = binding.base_url
    if binding.timeout is not None:
        given["timeout"] = binding.timeout
    if speaks == "openai-compatible":
        # servers of one's own mostly want none, and the SDK insists on one
        given["api_key"] = os.environ.get("OPENAI_API_KEY") or "none"
    if inner is not None:
        given["api_key"] = "scripted"
    return getattr(package, async_class if is_async else sync_class)(**{**given, **options})


def http_client(
    wire: Wire,
    *,
    is_async: bool,
    library: str | None = None,
    inner: Callable[[ModuleType], Any] | None = None,
    **options: Any,
) -> Any:
    """A client of httpx2 or httpx (``library``; None: the first that is installed)."""
    binding = wire.sender.binding
    module = _http_library(library)
    given = _transport(module, wire, is_async=is_async, inner=inner, base_url=binding.base_url)
    if binding.timeout is not None:
        given["timeout"] = binding.timeout
    if binding.base_url is not None:
        given["base_url"] = binding.base_url
    return (module.AsyncClient if is_async else module.Client)(**{**given, **options})


def sdk_for(providers: tuple[str, ...]) -> str:
    """The first of ``providers`` whose SDK is installed. Raises :class:`Misuse` for none."""
    for provider in providers:
        try:
            importlib.import_module(_SDKS[provider][0])
        except ImportError:
            continue
        return provider
    names = " or ".join(_SDKS[provider][0] for provider in providers)
    raise Misuse(f"provider.client() needs {names}; install it, or use provider.ask()")


@cache
def _tls(library: ModuleType) -> Any:
    """What the library trusts, read once: a client is made in each trial."""
    return library.create_ssl_context()


def _http_library(name: str | None) -> ModuleType:
    for candidate in _LIBRARIES if name is None else (name,):
        try:
            return importlib.import_module(candidate)
        except ImportError:
            continue
    wanted = name or " or ".join(_LIBRARIES)
    raise Misuse(f"provider.http_client() needs {wanted}; install it into the project's environment")


def _module(name: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Misuse(f"{what} needs the {name} SDK; install it: pip install {name}") from None


def _library_of(client: Any) -> ModuleType:
    """The HTTP library, httpx or httpx2, that an SDK's client class is made with."""
    for cls in client.__mro__:
        root = cls.__module__.partition(".")[0]
        if root in _LIBRARIES:
            return importlib.import_module(root)
    raise Misuse(f"{client.__module__} has a client of neither httpx nor httpx2, which cannot be recorded")


def _transport(
    library: ModuleType,
    wire: Wire,
    *,
    is_async: bool,
    inner: Callable[[ModuleType], Any] | None,
    base_url: str | None,
) -> dict[str, Any]:
    """How a client sends: a transport of one's own knows of no proxies, so the environment's are mounted."""
    record = recording_async if is_async else recording
    if inner is not None:
        return {"transport": record(library, inner(library), wire)}
    plain = library.AsyncHTTPTransport if is_async else library.HTTPTransport
    limits = library.Limits(max_connections=1000, max_keepalive_connections=100)
    given = {"limits": limits, "verify": _tls(library)}
    own = {"transport": record(library, _taped(library, plain(**given), wire, is_async=is_async), wire)}
    local = base_url is not None and base_url.startswith(("http://127.", "http://localhost", "http://[::1]"))
    if local:
        return {**own, "trust_env": False}
    proxies = getattr(library, "_utils").get_environment_proxies()  # noqa: B009  there is no public way
    if proxies:
        own["mounts"] = {
            pattern: record(
                library, _taped(library, plain(**given, proxy=proxy), wire, is_async=is_async), wire
            )
            for pattern, proxy in proxies.items()
        }
    return own


def _taped(library: ModuleType, inner: Any, wire: Wire, *, is_async: bool) -> Any:
    """``inner``, or what writes its exchanges into a recording where one is made."""
    if wire.tape is None:
        return inner
    sender = wire.sender
    return taping(
        library,
        inner,
        tape=wire.tape,
        role=str(sender.role),
        provider=sender.binding.provider,
        is_async=is_async,
    )
