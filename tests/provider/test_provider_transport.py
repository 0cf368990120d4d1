"""Calls of the real SDKs to a loopback server: what is recorded of them, and what their errors mean."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from wire import STATUSES

from pytest_crashlab.errors import InstrumentFailure
from pytest_crashlab.provider.base import Role, Status, Tokens
from pytest_crashlab.provider.calls import totals
from pytest_crashlab.provider.errors import label_of_exception

ANSWERED_BY = {"openai": "gpt-x-2026-11-01", "anthropic": "claude-x-20261101"}
# OpenAI's 120 tokens of input include the 100 from the cache; Anthropic's 10 exclude 100 and 20.
TOKENS = {
    "openai": Tokens(input=120, output=30, cache_read=100, reasoning=20),
    "anthropic": Tokens(input=130, output=30, cache_read=100, cache_write=20),
}
FINISH = {"openai chat": "stop", "openai responses": "completed", "anthropic messages": "end_turn"}

LABELS = {
    "rate_limit": "provider_rate_limit",
    "forbidden": "provider_auth",
    "unauthorised": "provider_auth",
    "payment": "provider_quota",
    "quota": "provider_quota",
    "balance": "provider_quota",
    "no_model": "provider_error",
    "too_long": None,
    "malformed": "provider_error",
    "slow": "provider_timeout",
    "too_large": None,
    "unprocessable": "provider_error",
    "broken": "provider_error",
    "unavailable": "provider_error",
    "overloaded": "provider_error",
    "page": "provider_error",
}


def check_recorded(line, *, streamed):
    call = line.only
    assert (call.status, call.error, call.http_status) == (Status.OK, None, 200)
    assert (call.model, call.answered_by) == ("model-x", ANSWERED_BY[line.provider])
    assert call.tokens == TOKENS[line.provider]
    assert call.finish == FINISH[line.api]
    assert call.settings["temperature"] == 0.5
    assert "messages" not in call.settings
    assert call.request_id == "req_7"
    assert call.streamed is streamed
    assert call.role is Role.TARGET
    assert 0 < call.first <= call.latency < 60
    assert line.ledger.open(Role.TARGET) == 0


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_is_recorded_as_it_was(line, stream, is_async):
    answer = asyncio.run(line.acall(stream=stream)) if is_async else line.call(stream=stream)
    check_recorded(line, streamed=stream)
    if not stream:
        assert "Paris" in answer.model_dump_json()
    sent, received = line.ledger.contents(1)
    assert json.loads(sent)["model"] == "model-x"
    assert b"Pa" in received


def test_a_compressed_answer_is_read(line):
    assert "Paris" in line.call("packed").model_dump_json()
    assert line.only.tokens == TOKENS[line.provider]


@pytest.mark.parametrize("fault", LABELS)
def test_a_status_has_its_label(line, fault):
    of_one = {"quota": "openai", "balance": "anthropic"}.get(fault, line.provider)
    if of_one != line.provider:
        pytest.skip(f"only {of_one} says it so")
    with pytest.raises(Exception) as caught:  # noqa: PT011  whichever class the SDK has for it
        line.call(fault)
    assert label_of_exception(caught.value) == LABELS[fault]
    call = line.only
    assert (call.error, call.status) == (LABELS[fault], Status.ERROR)
    assert call.http_status == (502 if fault == "page" else STATUSES[fault][0])
    assert str(call.http_status) in call.detail
    assert not call.charged


@pytest.mark.parametrize(
    ("fault", "label", "charged"),
    [
        ("reset", "network_error", True),
        ("truncated", "network_error", True),
        ("hang", "provider_timeout", True),
        ("bad_json", "bad_response", True),
        ("empty", "bad_response", True),
        ("error_in_200", "provider_error", True),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_broken_answer_has_its_label(line, fault, label, charged, is_async):
    timeout = 0.2 if fault == "hang" else None
    with pytest.raises(Exception) as caught:  # noqa: PT011
        asyncio.run(line.acall(fault, timeout=timeout)) if is_async else line.call(fault, timeout=timeout)
    assert label_of_exception(caught.value) == label
    assert (line.only.error, line.only.charged) == (label, charged)
    assert totals(line.ledger.calls()).tokens_in in (None, 120, 10)


def test_nobody_listening_is_the_networks_doing_and_costs_nothing(line, server):
    address, server.url = server.url, lambda fault="ok": "http://127.0.0.1:9"
    try:
        with pytest.raises(Exception) as caught:  # noqa: PT011
            line.call()
    finally:
        server.url = address
    assert label_of_exception(caught.value) == "network_error"
    assert (line.only.error, line.only.charged) == ("network_error", False)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("fault", "label"),
    [
        ("cut", "network_error"),
        ("quiet", "bad_response"),
        ("inside", "provider_error"),
        ("garbled", "bad_response"),
    ],
)
def test_a_stream_that_breaks_has_its_label(line, fault, label, is_async):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        asyncio.run(line.acall(fault, stream=True)) if is_async else line.call(fault, stream=True)
    assert label_of_exception(caught.value) == label
    if fault != "garbled":  # the SDK stopped to read, and that is all that the transport saw
        assert line.only.error == label
    assert totals(line.ledger.calls(), still_open=line.ledger.open(Role.TARGET)).tokens_out is None


def test_a_stream_that_is_left_early_has_no_total(line):
    with line.client(stream := "ok") as client:
        answer = line.create(client, stream=bool(stream))
        next(iter(answer))
        answer.close()
    assert line.only.status is Status.ABANDONED
    assert line.only.error is None
    assert totals(line.ledger.calls()).tokens_in is None


def test_an_answer_without_usage_has_no_tokens_and_no_cost(line):
    line.call("no_usage")
    found = totals(line.ledger.calls())
    assert line.only.tokens == Tokens()
    assert (found.calls, found.tokens_in, found.tokens_out, found.cost_usd) == (1, None, None, None)


def test_one_unknown_usage_makes_the_sum_unknown(line):
    line.call("ok")
    line.call("no_usage")
    assert totals(line.ledger.calls()).tokens_in is None


def test_what_is_refused_adds_nothing_to_the_sum(line):
    line.call("ok")
    with pytest.raises(Exception):  # noqa: B017, PT011
        line.call("rate_limit")
    found = totals(line.ledger.calls())
    assert (found.calls, found.failed) == (2, 1)
    assert found.tokens_in == TOKENS[line.provider].input


def test_a_cost_of_the_provider_is_billed_and_a_zero_beside_tokens_is_none(openai_line):
    openai_line.call("billed")
    openai_line.call("free")
    billed, free = openai_line.ledger.calls()
    assert (billed.cost.usd, billed.cost.basis) == (0.0125, "billed")
    assert free.cost is None


@pytest.mark.parametrize("is_async", [False, True])
def test_failed_calls_are_made_again_and_each_attempt_is_kept(line, server, monkeypatch, is_async):
    waits = []

    async def rest(seconds):
        waits.append(seconds)

    monkeypatch.setattr("time.sleep", waits.append)
    monkeypatch.setattr("anyio.sleep", rest)
    name = f"flaky-{2}"
    server.seen.clear()
    answer = asyncio.run(line.acall(name, retries=3)) if is_async else line.call(name, retries=3)
    assert "Paris" in answer.model_dump_json()
    calls = line.ledger.calls()
    assert [call.error for call in calls] == ["provider_error", "provider_error", None]
    assert [call.attempt for call in calls] == [1, 2, 3]
    assert {call.request for call in calls} == {1}
    assert [call.waited for call in calls] == [0.0, *waits]
    assert 0.5 <= waits[0] <= 0.625
    assert 1 <= waits[1] <= 1.25
    assert server.seen[name] == 3


@pytest.mark.parametrize("fault", ["quota", "unauthorised", "too_long", "malformed"])
def test_what_would_fail_again_is_asked_once(openai_line, server, fault):
    server.seen.clear()
    with pytest.raises(Exception):  # noqa: B017, PT011
        openai_line.call(fault, retries=3)
    assert server.seen[fault] == 1


def test_retries_are_off_in_the_sdk(line, server):
    server.seen.clear()
    with pytest.raises(Exception):  # noqa: B017, PT011
        line.call("broken")
    assert server.seen["broken"] == 1


def test_64_calls_at_once_are_told_apart(line):
    async def many():
        async with line.client(is_async=True) as client:
            return await asyncio.gather(*(line.create(client) for _ in range(64)))

    answers = asyncio.run(many())
    calls = line.ledger.calls()
    assert len(answers) == len(calls) == 64
    assert [call.number for call in calls] == list(range(1, 65))
    assert len({call.request for call in calls}) == 64
    assert totals(calls).tokens_in == 64 * TOKENS[line.provider].input


def test_a_call_that_is_cancelled_is_no_failure_of_the_instrument(line):
    async def impatient():
        async with line.client("hang", is_async=True) as client:
            await asyncio.wait_for(line.create(client), 0.2)

    with pytest.raises(TimeoutError):
        asyncio.run(impatient())
    assert (line.only.status, line.only.error) == (Status.ABANDONED, None)


@pytest.mark.parametrize("fault", ["rate_limit", "bad_json"])
def test_a_plain_client_is_recorded_and_its_errors_have_labels(openai_line, fault):
    with openai_line.plain(fault) as client:
        answer = client.post("/chat/completions", json={"model": "m", "messages": []})
        with pytest.raises(Exception) as caught:  # noqa: PT011
            answer.raise_for_status().json()
    expected = {"rate_limit": "provider_rate_limit", "bad_json": "bad_response"}[fault]
    assert label_of_exception(caught.value) == expected == openai_line.only.error


def test_what_is_no_call_passes_by(openai_line):
    with openai_line.client() as client:
        assert client.models.list().data == []
    assert openai_line.ledger.calls() == []


def test_an_answer_of_something_else_through_a_plain_client_is_the_tests_own(openai_line):
    httpx = pytest.importorskip("httpx")
    with httpx.Client() as client:
        answer = client.post(f"{openai_line.server.url('rate_limit')}/v1/chat/completions", json={})
        with pytest.raises(httpx.HTTPStatusError) as caught:
            answer.raise_for_status()
    assert label_of_exception(caught.value) is None


def test_json_that_the_model_wrote_badly_is_the_systems_doing():
    with pytest.raises(ValueError, match="Expecting") as caught:
        json.loads("{'tool': 1}")
    assert label_of_exception(caught.value) is None


def test_an_error_is_found_behind_what_a_framework_raised_from_it(line):
    class AgentFailed(Exception):
        pass

    def agent():
        try:
            line.call("overloaded")
        except Exception as error:
            raise AgentFailed("no answer") from error

    with pytest.raises(AgentFailed) as caught:
        agent()
    assert label_of_exception(caught.value) == "provider_error"


def test_an_empty_answer_says_so(line):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        line.call("empty")
    own = caught.value if isinstance(caught.value, InstrumentFailure) else caught.value.__cause__
    assert str(own) == "the provider's answer is empty: it has no content and used no tokens"


def test_a_clock_that_a_test_sets_does_not_change_latency(line, monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: 1e9)
    line.call()
    assert 0 < line.only.latency < 60
