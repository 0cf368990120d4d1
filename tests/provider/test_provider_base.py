"""How models are written down, and what calls add up to."""

from __future__ import annotations

import json

import pytest

from pytest_crashlab.errors import UsageError
from pytest_crashlab.provider.base import Basis, Call, Cost, Status, Tokens, is_spec, parse_binding
from pytest_crashlab.provider.calls import totals


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("openai:gpt-x", ("default", "openai", "gpt-x", {})),
        ("openai-compatible:llama3:8b", ("default", "openai-compatible", "llama3:8b", {})),
        ("critic = anthropic:claude-x", ("critic", "anthropic", "claude-x", {})),
        (
            "openai:gpt-x temperature=0 stop=END",
            ("default", "openai", "gpt-x", {"temperature": 0, "stop": "END"}),
        ),
    ],
)
def test_a_model_is_written_with_its_provider(text, expected):
    bound = parse_binding(text, where="crashlab_provider")
    assert (bound.name, bound.provider, bound.model, dict(bound.settings)) == expected


def test_where_it_is_served_and_how_often_it_is_asked_are_no_settings():
    bound = parse_binding(
        "local = openai-compatible:llama base_url=http://127.0.0.1:8080/v1 retries=3 timeout=2.5 top_p=1",
        where="x",
    )
    assert (bound.base_url, bound.retries, bound.timeout) == ("http://127.0.0.1:8080/v1", 3, 2.5)
    assert dict(bound.settings) == {"top_p": 1}
    assert bound.spec == "openai-compatible:llama"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpt-x", "crashlab_provider has 'gpt-x', which names no model; write it as openai:gpt-x"),
        ("", "names no model"),
        ("openai:", "names no model"),
        ("openai:gpt-x temperature", "write settings as temperature=0"),
        ("a b = openai:x", "names no model"),
        ("9 = openai:x", "names a model '9'"),
        ("openai:x base_url=ftp://x", "give it an address"),
        ("openai:x retries=-1", "a whole number from 0 to 20"),
        ("openai:x retries=true", "a whole number from 0 to 20"),
        ("openai:x timeout=0", "a number of seconds above 0"),
    ],
)
def test_what_names_no_model_is_refused_in_a_sentence(text, message):
    with pytest.raises(UsageError) as caught:
        parse_binding(text, where="crashlab_provider")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"), [("openai:gpt-x", True), ("gpt-5 (nightly)", False), ("C:", False), ("a:b", True)]
)
def test_a_label_is_told_from_a_model_with_its_provider(text, expected):
    assert is_spec(text) is expected


def call(number=1, **fields):
    given = {"provider": "openai", "model": "m", "start": 1.0, "status": Status.OK, "latency": 0.5, **fields}
    return Call(number=number, request=number, **given)


def test_nothing_called_has_no_sums():
    found = totals([])
    assert (found.calls, found.tokens_in, found.cost_usd, found.latency) == (0, None, None, None)


def test_a_sum_with_an_estimate_in_it_is_an_estimate():
    tokens = Tokens(input=1, output=2)
    billed = call(tokens=tokens, cost=Cost(usd=0.25, basis=Basis.BILLED, source="usage.cost"))
    estimated = call(2, tokens=tokens, cost=Cost(usd=0.5, basis=Basis.ESTIMATED, source="list"))
    assert (totals([billed]).cost_usd, totals([billed]).cost_basis) == (0.25, "billed")
    both = totals([billed, estimated])
    assert (both.cost_usd, both.cost_basis, both.tokens_in, both.tokens_out) == (0.75, "estimated", 2, 4)
    assert totals([billed, call(3, tokens=tokens)]).cost_usd is None


def test_a_call_that_is_not_over_leaves_the_sums_unknown():
    done = call(tokens=Tokens(input=1, output=2))
    assert totals([done], still_open=1).tokens_in is None
    assert totals([done], still_open=0).tokens_in == 1


def test_a_call_is_json_without_what_is_not_known():
    made = call(tokens=Tokens(input=1), cost=Cost(usd=0.25, basis=Basis.BILLED, source="usage.cost"))
    told = json.loads(json.dumps(made.to_mapping()))
    assert told["tokens"] == {"input": 1}
    assert told["cost"] == {"usd": 0.25, "basis": "billed", "source": "usage.cost"}
    assert told["status"] == "ok"
    assert "finish" not in told
