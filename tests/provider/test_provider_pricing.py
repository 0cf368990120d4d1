"""Costs by the installed list of prices: an estimate with its source, or nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pytest_crashlab.provider import pricing
from pytest_crashlab.provider.base import Call, Status, Tokens

pytest.importorskip("genai_prices")
IN_2024 = datetime(2024, 12, 30, tzinfo=UTC).timestamp()


def call(model, *, provider="openai", start=IN_2024, answered_by=None, **tokens):
    return Call(
        number=1,
        request=1,
        provider=provider,
        model=model,
        answered_by=answered_by,
        start=start,
        status=Status.OK,
        tokens=Tokens(**tokens),
    )


def test_a_cost_is_estimated_and_says_by_which_list():
    found = pricing.price(call("gpt-4o", input=1_000_000, output=100_000))
    assert found.usd == pytest.approx(3.5)  # $2.50 and $10 a million, the public prices of that model
    assert found.basis == "estimated"
    name, version, digest = found.source.split()
    assert name == "genai-prices"
    assert version[0].isdigit()
    assert digest.startswith("sha256:")
    assert len(digest) == 19


def test_what_came_from_a_cache_costs_its_own_price_and_is_counted_once():
    found = pricing.price(call("gpt-4o", input=1_000_000, output=0, cache_read=1_000_000))
    assert found.usd == pytest.approx(1.25)


def test_the_model_that_answered_is_what_is_paid_for():
    found = pricing.price(call("a-router", answered_by="gpt-4o-2024-11-20", input=1_000_000, output=0))
    assert found.usd == pytest.approx(2.5)


@pytest.mark.parametrize(
    "unknown",
    [
        call("no-such-model-anywhere", input=10, output=10),
        call("gpt-4o", provider="no-such-provider", input=10, output=10),
        call("gpt-4o", input=10),
        call("gpt-4o"),
        call("gpt-4o", provider="scripted", input=10, output=10),
        call("gpt-4o", provider="openai-compatible", input=10, output=10),
    ],
)
def test_what_is_not_known_has_no_cost(unknown):
    assert pricing.price(unknown) is None
