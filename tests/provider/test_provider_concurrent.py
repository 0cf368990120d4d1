"""64 calls at once in one trial, some of which fail: each is recorded once, and as it was."""

from __future__ import annotations

import asyncio

import pytest

from pytest_crashlab.provider.base import Role, Status

MANY = 64


def fault_of(number):
    return {3: "rate_limit", 5: "reset"}.get(number % 8)


async def ask(line, client, number):
    fault = fault_of(number)
    given = {
        "model": f"model-{number}",
        "messages": [{"role": "user", "content": f"{number} {fault or ''}".strip()}],
    }
    if line.provider == "anthropic":
        return await client.messages.create(max_tokens=50, **given)
    return await client.chat.completions.create(**given)


@pytest.mark.parametrize("line", ["openai chat", "anthropic messages"], indirect=True)
def test_calls_at_once_keep_what_is_their_own(line, server):
    async def all_at_once():
        async with line.client("each", is_async=True) as client:
            asked = (ask(line, client, number) for number in range(MANY))
            return await asyncio.gather(*asked, return_exceptions=True)

    server.seen.clear()
    answers = asyncio.run(all_at_once())
    assert server.seen["each"] == MANY
    calls = line.ledger.calls()
    assert [call.number for call in calls] == list(range(1, MANY + 1))
    assert len({call.request for call in calls}) == MANY
    assert line.ledger.open(Role.TARGET) == 0
    by_model = {call.model: call for call in calls}
    assert by_model.keys() == {f"model-{number}" for number in range(MANY)}
    for number, answer in enumerate(answers):
        call = by_model[f"model-{number}"]
        assert call.latency >= number % 8 / 40  # the server's own wait before it answers this one
        fault = fault_of(number)
        tokens = (call.tokens.input, call.tokens.output)
        if fault is None:
            assert answer.model == call.answered_by == f"model-{number}-answered"
            assert (call.status, call.error, call.http_status) == (Status.OK, None, 200)
            assert tokens == (1000 + number, 1 + number)
            assert call.request_id == f"req_{number}"
        else:
            assert isinstance(answer, Exception)
            assert (call.status, call.answered_by, tokens) == (Status.ERROR, None, (None, None))
            assert (call.error, call.http_status, call.request_id) == (
                ("provider_rate_limit", 429, f"req_{number}")
                if fault == "rate_limit"
                else ("network_error", None, None)
            )
