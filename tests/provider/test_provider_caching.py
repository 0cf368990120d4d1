"""A cache between tests and their provider, seen from the answers: real SDKs, a real proxy, sessions."""

from __future__ import annotations

import importlib.util
import json

import pytest
from caching_proxy import CachingProxy
from wire import Server

from pytest_crashlab.report.evidence import trial_view
from pytest_crashlab.report.evidence_text import render_trial
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

def openai(way, **given):
    return pytest.mark.crashlab(provider="openai:model-x", base_url=f"{URL}/{way}/v1", **given)

def anthropic(way):
    return pytest.mark.crashlab(provider="anthropic:model-x", base_url=f"{URL}/{way}")
"""
EVERY_WAY = """
@openai(WAY)
def test_chat(provider):
    assert chat(provider.client(), temperature=0).choices[0].message.content == "Paris"

@openai(WAY)
def test_stream(provider):
    parts = [e.choices[0].delta.content for e in chat(provider.client(), stream=True) if e.choices]
    assert "".join(filter(None, parts)) == "Paris"

@openai(WAY)
def test_async(provider):
    async def ask():
        async with provider.async_client() as client:
            return await client.responses.create(model="model-x", input=ASKED)
    assert asyncio.run(ask()).output_text == "Paris"

@openai(WAY)
def test_response_stream(provider):
    stream = provider.client().responses.create(model="model-x", input=ASKED, stream=True)
    assert [event.type for event in stream][-1] == "response.completed"

@anthropic(WAY)
def test_messages(provider):
    asked = {"model": "model-x", "messages": ASKED, "max_tokens": 50}
    assert provider.client().messages.create(**asked).content[0].text == "Paris"

@anthropic(WAY)
def test_message_stream(provider):
    asked = {"model": "model-x", "messages": ASKED, "max_tokens": 51}
    with provider.client().messages.stream(**asked) as stream:
        assert "".join(stream.text_stream) == "Paris"

@openai(WAY)
def test_plain(provider):
    assert provider.ask("And that of Spain?").text == "Paris"
"""
CASES = 7
ADVICE = "Turn off the cache between test and provider (a gateway, a proxy or an HTTP client)"


@pytest.fixture
def proxy():
    with Server() as server, CachingProxy(server.server_address[1]) as running:
        yield running


@pytest.fixture
def suite(pytester, monkeypatch, proxy):
    """Run a suite behind the proxy: (result, said, newest run)."""
    for name in ("PYTEST_ADDOPTS", "CI", "GITHUB_ACTIONS", "CRASHLAB_STORE", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("URL", proxy.url)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "sk-loopback-000000000001")

    def run(source, *arguments):
        pytester.makepyfile(test_it=HEAD + source)
        load = ("-p", "pytest_crashlab.plugin", "-p", "xdist.plugin")
        result = pytester.runpytest_inprocess(*load, *arguments)
        said = " ".join((result.stdout.str() + result.stderr.str()).split())
        store = Store.open(pytester.path / ".crashlab")
        return result, said, store.load(store.manifests()[0].id)

    return run


def cached(stored):
    """By case what its trials say, sorted so that the order in which they began is no matter."""
    found = {}
    for row in stored.trials.filter(stored.trials["deciding"]).iter_rows(named=True):
        found.setdefault(row["case"].partition("::")[2], []).append(row["cached"])
    return {case: sorted(said, key=str) for case, said in found.items()}


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["one", "two"])
@pytest.mark.parametrize("way", ["silent", "named"])
def test_a_cache_is_seen_through_every_client(suite, pytester, proxy, workers, way):
    source = f"WAY = '{way}/fresh'" + EVERY_WAY
    _, said, run = suite(source, "--trials=3", "--crashlab-report=a.json,a.md", *workers)
    assert run.manifest.outcomes == {"passed": 3 * CASES}, said
    assert proxy.seen == {"miss": CASES, "hit": 2 * CASES}
    assert list(cached(run).values()) == [[False, True, True]] * CASES
    assert run.manifest.cached == 2 * CASES
    told = f"{2 * CASES} trials had answers of the provider out of a cache"
    assert told in said
    assert ADVICE in said
    report = json.loads((pytester.path / "a.json").read_text())
    assert report["run"]["cached"] == 2 * CASES
    assert [a["code"] for a in report["anomalies"]] == ["cached"]
    assert told in (pytester.path / "a.md").read_text()


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["one", "two"])
def test_equal_texts_with_ids_of_their_own_are_no_cache(suite, proxy, workers):
    source = "WAY = 'open/fresh'" + EVERY_WAY
    _, said, run = suite(source, "--trials=3", "--save-baseline=main", *workers)
    assert list(cached(run).values()) == [[False] * 3] * CASES, said
    assert run.manifest.cached == 0
    assert "out of a cache" not in said
    result, said, run = suite(source, "--trials=3", "--baseline=main", *workers)
    assert "No change" in said
    assert (result.ret, run.manifest.cached) == (0, 0)


MANY_KINDS = """
from pytest_crashlab.provider.scripted import Scripted

@openai("renewed/fresh")
def test_named_alone(provider):
    chat(provider.client(), user="named alone")
    assert provider.calls[0].cached in (None, True)

@openai("dated/fresh")
def test_dated(provider):
    chat(provider.client(), user="dated")

@openai("silent/fresh")
def test_each_its_own(provider, trial):
    with trial.run():
        chat(provider.client(), seed=trial.seed)

@openai("silent/fresh")
def test_twice_in_a_trial(provider, trial):
    with trial.run():
        for _ in range(2):
            chat(provider.client(), seed=trial.seed, user="twice")

@openai("silent/shaky-1", retries=1)
def test_a_retry(provider, trial):
    with trial.run():
        chat(provider.client(), seed=trial.seed, user="retry")

@pytest.mark.crashlab(provider=Scripted("Paris"), judge=f"openai-compatible:j base_url={URL}/silent/fresh/v1")
def test_judged(provider, judge):
    assert provider.ask("The capital of France?").text == "Paris"
    judge.provider.ask("Is Paris right?")

@pytest.mark.crashlab(provider=Scripted("Paris"))
def test_scripted(provider):
    assert provider.ask("The capital of France?").text == "Paris"

@openai("open/ok")
def test_a_stub_with_one_short_id(provider):
    chat(provider.client())

@openai("open/ok")
@pytest.mark.parametrize("way", ["same", "short", "own", "none"])
def test_by_hand(provider, trial, way):
    ids = {"same": "req_3f1c9b7a5d2e", "short": "req_3", "own": f"req_{trial.seed:020}", "none": None}
    with trial.run(), provider.call() as call:
        call.request_id = ids[way]
"""


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["one", "two"])
def test_what_is_a_sign_of_a_cache_and_what_is_none(suite, workers):
    _, said, run = suite(MANY_KINDS, "--trials=2", *workers)
    assert run.manifest.outcomes == {"passed": 24}, said
    found = cached(run)
    assert True not in found.pop("test_a_stub_with_one_short_id")
    assert found == {
        "test_named_alone": [False, True],
        "test_dated": [False, True],
        "test_each_its_own": [False, False],
        "test_twice_in_a_trial": [True, True],
        "test_a_retry": [False, False],
        "test_judged": [False, True],
        "test_scripted": [None, None],
        "test_by_hand[same]": [False, True],
        "test_by_hand[short]": [None, None],
        "test_by_hand[own]": [False, False],
        "test_by_hand[none]": [None, None],
    }
    assert run.manifest.cached == 6
    marked = run.trials.filter(run.trials["cached"]).row(0, named=True)
    shown = render_trial(trial_view(run, marked, None), width=100, color=False)
    assert "it had answers of its model out of a cache" in shown


ONE = """
@openai("silent/fresh")
def test_one(provider):
    assert provider.ask("The capital of France?").text == "Paris"
"""


def test_a_run_out_of_a_cache_has_no_verdict_on_either_side_and_is_not_promoted(suite, pytester):
    _, said, first = suite(ONE, "--trials=5", "--save-baseline=main", "--crashlab-record=tapes")
    assert first.manifest.cached == 4
    assert "answers of its provider came from a cache" in said
    assert Store.open(pytester.path / ".crashlab").refs.read("main") is None

    result, said, second = suite(ONE, "--trials=5", f"--baseline={first.manifest.id}")
    assert "No verdict" in said
    assert "4 trials of this run had answers of the provider out of a cache" in said
    assert "4 trials of the baseline had answers of the provider out of a cache" in said
    assert "5 trials of this run had the very answers that the baseline had" in said
    assert (result.ret, second.manifest.gate["exit_code"]) == (10, 10)

    _, said, replayed = suite(ONE, "--trials=5", "--crashlab-replay=tapes")
    assert cached(replayed) == {"test_one": [None] * 5}, said
    assert replayed.manifest.cached is None
    assert replayed.manifest.replayed


EACH = """
@openai("silent/fresh")
@pytest.mark.parametrize("country", ["France", "Spain", "Peru"])
def test_each(provider, country):
    assert provider.ask(f"The capital of {country}?").text == "Paris"
"""


def test_a_cache_that_outlives_a_run_is_seen_beside_its_baseline(suite):
    _, said, first = suite(EACH, "--trials=1", "--save-baseline=main")
    assert first.manifest.cached == 0, said
    result, said, second = suite(EACH, "--trials=1", "--baseline=main", "-n2")
    assert second.manifest.cached == 0
    assert "3 trials of this run had the very answers that the baseline had" in said
    assert (result.ret, second.manifest.gate["exit_code"]) == (10, 10)
