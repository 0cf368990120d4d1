"""Clients of the real SDKs against the loopback server."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

import pytest
from wire import Server

from pytest_crashlab.provider.base import Binding
from pytest_crashlab.provider.calls import Ledger
from pytest_crashlab.provider.clients import http_client, sdk_client
from pytest_crashlab.provider.exchange import Sender
from pytest_crashlab.provider.transport import Wire

APIS = ("openai chat", "openai responses", "anthropic messages")


@pytest.fixture(scope="module")
def server():
    with Server() as running:
        yield running


@dataclass
class Line:
    """One API of one SDK, reached over the loopback server, with what was recorded of it."""

    api: str
    server: Server
    ledger: Ledger

    @property
    def provider(self):
        return self.api.partition(" ")[0]

    def wire(self, fault="ok", *, retries=0, timeout=None):
        root = self.server.url(fault)
        binding = Binding(
            provider=self.provider,
            model="model-x",
            base_url=root if self.provider == "anthropic" else f"{root}/v1",
            retries=retries,
            timeout=timeout,
        )
        return Wire(Sender(binding=binding, ledger=self.ledger))

    def client(self, fault="ok", *, is_async=False, **options):
        return sdk_client(self.wire(fault, **options), is_async=is_async, api_key="sk-loopback")

    def create(self, client, *, stream=False) -> Any:
        """Start a call; what it returns is awaited where the client is async."""
        content = [{"role": "user", "content": "The capital of France?"}]
        if self.api == "openai chat":
            return client.chat.completions.create(
                model="model-x", messages=content, temperature=0.5, stream=stream
            )
        if self.api == "openai responses":
            return client.responses.create(model="model-x", input=content, temperature=0.5, stream=stream)
        given = {"extra_body": {"temperature": 0.5}}  # the newest SDK has no argument for it
        return client.messages.create(
            model="model-x", messages=content, max_tokens=50, stream=stream, **given
        )

    def call(self, fault="ok", *, stream=False, **options):
        """One call that is read to its end; returns the answer, or the list of its events."""
        with self.client(fault, **options) as client:
            answer = self.create(client, stream=stream)
            return list(answer) if stream else answer

    async def acall(self, fault="ok", *, stream=False, **options):
        async with self.client(fault, is_async=True, **options) as client:
            answer = await self.create(client, stream=stream)
            return [event async for event in answer] if stream else answer

    def plain(self, fault="ok", **options):
        """A plain HTTP client on the same line."""
        return http_client(self.wire(fault, **options), is_async=False)

    @property
    def only(self):
        """The one call that was made."""
        (call,) = self.ledger.calls()
        return call


def needs(api):
    name = api.partition(" ")[0]
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"the {name} SDK is not installed (extra providers-test)")


@pytest.fixture(params=APIS)
def line(request, server):
    needs(request.param)
    return Line(request.param, server, Ledger())


@pytest.fixture
def openai_line(server):
    needs("openai chat")
    return Line("openai chat", server, Ledger())


@pytest.fixture
def anthropic_line(server):
    needs("anthropic messages")
    return Line("anthropic messages", server, Ledger())
