"""The scripted model: the same answers for the same seed, through the SDKs' own clients and without."""

from __future__ import annotations

import asyncio
import importlib.util

import pytest

from pytest_crashlab.errors import InstrumentFailure, UsageError
from pytest_crashlab.provider.asking import Refused
from pytest_crashlab.provider.base import Binding, Role
from pytest_crashlab.provider.bound import Bound
from pytest_crashlab.provider.calls import Ledger
from pytest_crashlab.provider.errors import label_of_exception
from pytest_crashlab.provider.scripted import FAULTS, Reply, Scripted

LABELS = {
    "rate_limit": "provider_rate_limit",
    "quota": "provider_quota",
    "auth": "provider_auth",
    "error": "provider_error",
    "overloaded": "provider_error",
    "timeout": "provider_timeout",
    "refused": "network_error",
    "reset": "network_error",
    "truncated": "network_error",
    "bad_json": "bad_response",
    "empty": "bad_response",
}
needs_http = pytest.mark.skipif(
    not any(importlib.util.find_spec(name) for name in ("httpx", "httpx2")), reason="httpx is not installed"
)
pytestmark = needs_http


def bound(*replies, seed=1, **options):
    script = Scripted(*replies, **options)
    return Bound(script.binding, Ledger(), seed=seed, playing=script.play(seed))


def test_replies_come_in_order_and_the_last_one_stays():
    model = bound("one", Reply(text="two", finish="length"))
    assert [model.ask("say").text for _ in range(3)] == ["one", "two", "two"]
    assert [call.finish for call in model.calls] == ["stop", "length", "length"]
    assert model.usage.tokens_in == 3  # a token for each "say"
    assert model.usage.cost_usd is None


def test_a_function_replies_to_the_prompt_with_the_trials_own_luck():
    def coin(prompt, luck):
        return f"{prompt}: {'heads' if luck.random() < 0.5 else 'tails'}"

    first, again, other = (
        [model.ask("toss").text for _ in range(20)]
        for model in (bound(coin, seed=1), bound(coin, seed=1), bound(coin, seed=2))
    )
    assert first == again != other
    assert set(first) == {"toss: heads", "toss: tails"}


@pytest.mark.parametrize("fault", LABELS)
def test_a_fault_has_the_label_that_the_real_one_has(fault):
    model = bound(Reply(text="never heard", fault=fault))
    with pytest.raises(InstrumentFailure) as caught:
        model.ask("say")
    assert caught.value.label == LABELS[fault]
    assert [call.error for call in model.calls] == [LABELS[fault]]


def test_what_is_the_questions_own_fault_is_not_the_instruments():
    model = bound(Reply(fault="too_long"))
    with pytest.raises(Refused, match="prompt is too long"):
        model.ask("say")
    assert [call.error for call in model.calls] == [None]


def test_faults_come_as_often_as_asked_and_at_the_same_requests():
    def outcomes(seed):
        model = bound("fine", faults={"rate_limit": 0.25, "timeout": 0.25}, seed=seed)
        for _ in range(200):
            try:
                model.ask("say")
            except InstrumentFailure:
                continue
        return [call.error for call in model.calls]

    found = outcomes(1)
    assert found == outcomes(1)
    assert 30 < found.count("provider_rate_limit") < 70
    assert 30 < found.count("provider_timeout") < 70


def test_every_fault_is_known_by_its_effect():
    assert set(FAULTS) == {*LABELS, "too_long", "no_usage"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Scripted("a", faults={"rain": 1}), "Scripted has no fault 'rain'"),
        (lambda: Scripted("a", faults={"error": 0.7, "reset": 0.7}), "add up to at most 1"),
        (lambda: Scripted("a", lambda prompt, luck: prompt), "texts and replies, or one function"),
        (lambda: Reply(fault="rain"), "has no fault 'rain'"),
    ],
)
def test_what_cannot_be_scripted_is_refused(wrong, message):
    with pytest.raises(UsageError, match=message):
        wrong()


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
@pytest.mark.parametrize("stream", [False, True])
def test_the_sdks_own_client_talks_to_it(sdk, stream):
    pytest.importorskip(sdk)
    model = bound("The capital of France is Paris.", Reply(fault="overloaded"))
    client = model.client(sdk=sdk)
    content = [{"role": "user", "content": "The capital of France?"}]

    def create():
        if sdk == "openai":
            return client.chat.completions.create(model=model.model, messages=content, stream=stream)
        return client.messages.create(model=model.model, messages=content, max_tokens=9, stream=stream)

    answer = create()
    said = [event.model_dump_json() for event in answer] if stream else [answer.model_dump_json()]
    assert "Paris" in "".join(said)
    assert (model.calls[0].finish, model.calls[0].error) in {("stop", None), ("end_turn", None)}
    assert (model.usage.tokens_in, model.usage.tokens_out) == (5, 8)
    with pytest.raises(Exception) as caught:  # noqa: PT011  each SDK has its own
        create()
    assert label_of_exception(caught.value) == "provider_error"
    model.close()


@pytest.mark.parametrize("stream", [False, True])
def test_the_responses_api_talks_to_it_too(stream):
    pytest.importorskip("openai")
    model = bound("Paris", Reply(text="Par", finish="length"))
    client = model.client(sdk="openai")
    for _ in range(2):
        answer = client.responses.create(model="m", input="France?", stream=stream)
        list(answer) if stream else answer.output_text
    assert [call.finish for call in model.calls] == ["completed", "max_output_tokens"]
    model.close()


def test_async_questions_are_recorded_one_by_one():
    model = bound(lambda prompt, luck: prompt.upper())

    async def many():
        return await asyncio.gather(*(model.aask(f"q{n}") for n in range(16)))

    answers = asyncio.run(many())
    assert [answer.text for answer in answers] == [f"Q{n}" for n in range(16)]
    assert len({call.request for call in model.calls}) == 16


def test_a_call_by_hand_says_what_it_knows():
    model = Bound(Binding(provider="inhouse", model="m1"), Ledger())
    with model.call(temperature=0) as call:
        call.tokens(input=12, output=3)
        call.cost_usd = 0.5
        call.finish = "done"
    with pytest.raises(TimeoutError), model.call():
        raise TimeoutError("no answer")
    first, second = model.calls
    assert (first.tokens.input, first.cost.usd, first.cost.basis, first.settings) == (
        12,
        0.5,
        "billed",
        {"temperature": 0},
    )
    assert (second.status, second.detail) == ("error", "TimeoutError: no answer")
    assert (model.usage.calls, model.usage.tokens_in) == (2, None)


def test_a_judges_calls_are_not_the_targets():
    ledger = Ledger()
    target = Bound(Binding(provider="inhouse", model="m1"), ledger)
    judge = Bound(Binding(provider="inhouse", model="m1"), ledger, role=Role.JUDGE)
    with target.call() as call:
        call.tokens(input=12, output=3)
    with judge.call() as call:
        call.tokens(input=500, output=70)
        assert target.usage.tokens_in == 12
    assert (target.usage.tokens_in, judge.usage.tokens_in) == (12, 500)
    assert [call.role for call in judge.calls] == ["judge"]
