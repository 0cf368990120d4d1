"""Does the agent pay back what the policy gives, and nothing else? One case a request."""

from __future__ import annotations

import copy
import os
import random

import pytest
from agent import Agent, Model, Unreadable
from shop import Shop

from pytest_crashlab import Check, Dataset, Outcome, Vocabulary

MOST_TURNS = 8
REQUESTS = Dataset.read("requests.jsonl", version="1", holdout=0.3, salt="refunds")

ENDS = Vocabulary(
    Outcome.passed("refunded", "The customer got back what the policy gives."),
    Outcome.passed("declined", "Nothing was due, and nothing was paid."),
    Outcome.failed("overpaid", "The customer got back more than the policy gives."),
    Outcome.failed("underpaid", "The customer got back less than the policy gives."),
    Outcome.failed("unreadable_call", "The agent wrote what is no tool call.", completed=False),
    Outcome.failed("out_of_turns", "The agent used all of its turns.", completed=False),
    Outcome.instrument("shop_down", "The shop's API did not answer."),
)


@pytest.fixture
def shop(row, trial) -> Shop:
    """A shop of this trial's own, with the order in question and one that nobody asked about."""
    orders = copy.deepcopy(row.input["orders"])
    return Shop(orders=orders, luck=random.Random(trial.seed))


@pytest.mark.crashlab(dataset=REQUESTS)
@pytest.mark.outcomes(ENDS)
@pytest.mark.checks(
    Check("amount", must="the customer gets back what the policy gives"),
    Check("other_orders", must="no other order changes"),
    Check("turns", must="at most four turns", at_most=4, required=False),
    Check("letter", must="the customer is told the order and the amount", required=False),
)
def test_refund(row, trial, shop, run_config):
    request, due = row.input["request"], row.expected
    before = copy.deepcopy(shop.orders)
    prompt = run_config.get("prompt", "7")
    model = Model(
        prompt=prompt,
        temperature=float(run_config.get("temperature", "0.3")),
        luck=random.Random(trial.seed + 1),
        balance=int(os.environ.get("BALANCE", "1000000")),
    )
    agent = Agent(model, shop)
    trial.prompt("refund", prompt)

    with trial.run(horizon=MOST_TURNS, unit="turns", timeout=30) as target:
        try:
            agent.work(request, MOST_TURNS)
        except Unreadable:
            trial.outcome("unreadable_call")
        target.t, target.output = agent.turns, shop.letters
    trial.attach("transcript", agent.transcript)

    paid = shop.orders[request["order"]]["refunded"]
    trial.check(
        "amount",
        paid == due,
        expected=due,
        observed=paid,
        evidence=shop.orders,
        failure_class="believed the customer" if paid == float(request["claimed"]) else "arithmetic",
    )
    others = {number for number in before if shop.orders[number] != before[number]} - {request["order"]}
    trial.check("other_orders", not others, expected=[], observed=sorted(others))
    trial.check("turns", agent.turns)
    with trial.verify("letter"):
        assert shop.letters, "no letter was written"
        assert request["order"] in shop.letters[-1], "the letter does not name the order"
        assert f"{paid:.2f}" in shop.letters[-1], "the letter does not name the amount"

    if not shop.letters and target.exhausted:
        trial.outcome("out_of_turns")
    elif shop.letters and paid > due:
        trial.outcome("overpaid")
    elif shop.letters and paid < due:
        trial.outcome("underpaid")
    elif shop.letters:
        trial.outcome("refunded" if due else "declined")
