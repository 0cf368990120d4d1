"""Sessions that record what models answer, and sessions that are answered from there."""

from __future__ import annotations

import importlib.util

import pytest
from wire import Server

from pytest_crashlab.store import Store

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("openai", "anthropic")),
    reason="the openai and anthropic SDKs are not installed (extra providers-test)",
)
HEAD = """
import asyncio, os, pytest

URL = os.environ["URL"]
ASKED = [{"role": "user", "content": "The capital of France?"}]

def chat(client, **given):
    return client.chat.completions.create(model="model-x", messages=ASKED, **given)

def openai(fault="ok", **given):
    return pytest.mark.crashlab(provider="openai:model-x", base_url=f"{URL}/{fault}/v1", **given)

def anthropic(fault="ok"):
    return pytest.mark.crashlab(provider="anthropic:model-x", base_url=f"{URL}/{fault}")
"""
EVERY_WAY = """
@openai()
def test_chat(provider):
    client = provider.client()
    assert chat(client).choices[0].message.content == "Paris"
    assert client.responses.create(model="model-x", input=ASKED).output_text == "Paris"

@openai()
def test_stream(provider):
    parts = [e.choices[0].delta.content for e in chat(provider.client(), stream=True) if e.choices]
    assert "".join(filter(None, parts)) == "Paris"

@openai()
def test_async(provider):
    async def ask():
        async with provider.async_client() as client:
            answer = await chat(client)
            stream = await client.responses.create(model="model-x", input=ASKED, stream=True)
            return answer, [event.type async for event in stream]
    answer, events = asyncio.run(ask())
    assert answer.choices[0].message.content == "Paris"
    assert events[-1] == "response.completed"

@anthropic()
def test_messages(provider):
    asked = {"model": "model-x", "messages": ASKED, "max_tokens": 50}
    client = provider.client()
    assert client.messages.create(**asked).content[0].text == "Paris"
    with client.messages.stream(**asked) as stream:
        assert "".join(stream.text_stream) == "Paris"

    async def ask():
        async with provider.async_client() as client:
            events = [e.type async for e in await client.messages.create(**asked, stream=True)]
            return events, await client.messages.create(**asked)
    events, answer = asyncio.run(ask())
    assert events[-1] == "message_stop"
    assert answer.content[0].text == "Paris"

@openai("packed")
def test_compressed_and_plain(provider):
    assert provider.ask("The capital of France?").text == "Paris"
    with provider.http_client(library="httpx") as client:
        assert client.get("models").json() == {"object": "list", "data": []}

@pytest.mark.crashlab(provider="openai:model-x", judge="openai:judge-x", base_url=f"{URL}/ok/v1")
def test_judged(provider, judge):
    assert judge.provider.client(base_url=f"{URL}/ok/v1").models.list().data == []
    assert provider.ask("The capital of France?").text == "Paris"
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    """Run a suite with a server of its own: (result, said, newest run, requests that the server saw)."""
    for name in ("PYTEST_ADDOPTS", "CI", "GITHUB_ACTIONS", "CRASHLAB_STORE", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(source, *arguments, key="sk-loopback-000000000001"):
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            if key is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, key)
        pytester.makepyfile(test_it=HEAD + source)
        with Server() as server:
            monkeypatch.setenv("URL", server.url("")[:-1])
            load = ("-p", "pytest_crashlab.plugin", "-p", "xdist.plugin")
            result = pytester.runpytest_inprocess(*load, *arguments)
            asked = sum(server.seen.values())
        said = " ".join((result.stdout.str() + result.stderr.str()).split())
        folder = pytester.path / ".crashlab"
        stored = None
        if folder.exists() and (found := Store.open(folder)).manifests():
            stored = found.load(found.manifests()[0].id)
        return result, said, stored, asked

    return run


def tapes(pytester, folder="tapes"):
    return sorted((pytester.path / folder).glob("*.jsonl"))


def rows(stored):
    return stored.trials.sort("case", "trial").to_dicts()


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["one", "two"])
def test_every_client_is_answered_from_the_recording(suite, pytester, workers):
    _, said, live, asked = suite(EVERY_WAY, "--trials=2", "--crashlab-record=tapes", *workers)
    assert live.manifest.outcomes == {"passed": 12}, said
    assert asked == 2 * (2 + 1 + 2 + 4 + 1 + 1)
    assert not live.manifest.replayed
    assert len(tapes(pytester)) == 12

    _, said, replayed, asked = suite(EVERY_WAY, "--trials=2", "--crashlab-replay=tapes", *workers, key=None)
    assert replayed.manifest.outcomes == {"passed": 12}, said
    assert asked == 0
    assert replayed.manifest.replayed
    for then, now in zip(rows(live), rows(replayed), strict=True):
        assert (then["replayed"], now["replayed"]) == (None, True)
        for told in ("tokens_in", "tokens_out", "cost_usd", "models"):
            assert now[told] == then[told]
        assert then["run_duration"] > 0
        assert now["run_duration"] is None
