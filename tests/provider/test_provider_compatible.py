"""Servers of one's own, as llama.cpp, vLLM and Ollama: openai-compatible with a base_url."""

from __future__ import annotations

import pytest

from pytest_crashlab.store import Store

TESTS = """
import pytest

ASKED = [{"role": "user", "content": "France?"}]

@pytest.mark.crashlab(provider="openai-compatible:llama3:8b", base_url=%r)
@pytest.mark.parametrize("way", ["client", "ask", "stream"])
def test_asks(provider, way):
    if way == "ask":
        assert provider.ask("France?").text == "Paris"
    elif way == "client":
        answer = provider.client().chat.completions.create(model=provider.model, messages=ASKED)
        assert answer.choices[0].message.content == "Paris"
    else:
        events = provider.client().chat.completions.create(
            model=provider.model, messages=ASKED, stream=True)
        assert "".join(e.choices[0].delta.content or "" for e in events if e.choices) == "Paris"
    (call,) = provider.calls
    assert (call.model, call.provider, call.status) == ("llama3:8b", "openai-compatible", "ok")
    tokens = (120, 30) if %r else (None, None)
    assert (call.tokens.input, call.tokens.output) == tokens == (
        provider.usage.tokens_in, provider.usage.tokens_out)
"""


@pytest.mark.parametrize("fault", ["ok", "no_usage"])
def test_a_server_of_ones_own_is_asked_and_unknown_tokens_stay_unknown(fault, server, pytester, monkeypatch):
    pytest.importorskip("openai")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    names = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "PYTEST_ADDOPTS", "CI", "GITHUB_ACTIONS", "CRASHLAB_STORE")
    for name in (*names, "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    told = fault == "ok"
    pytester.makepyfile(TESTS % (f"{server.url(fault)}/v1", told))
    server.seen.clear()
    result = pytester.runpytest_inprocess("-p", "pytest_crashlab.plugin", "--trials=2", "-q")
    assert result.ret == 0, result.stdout.str()
    assert server.seen[fault] == 6
    store = Store.open(pytester.path / ".crashlab")
    rows = store.load(store.manifests()[0].id).trials.to_dicts()
    found = [(row["tokens_in"], row["tokens_out"], row["cost_usd"], row["cost_basis"]) for row in rows]
    assert found == [(120, 30, None, None) if told else (None, None, None, None)] * 6
