"""A pseudo agent: seeded chance in the place of a model, so that it needs no network and repeats itself.

It reads a request, looks the order up, works out what the policy gives, pays it and writes a letter, one tool
call a turn. It makes the mistakes that agents make, more often with a hasty prompt or at a high temperature.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

    from shop import Shop

PROMPTS = {
    "7": "Look the order up, apply the policy, refund, then write to the customer. One tool call a turn.",
    "8": "Refund the customer quickly and write to them. One tool call a turn.",
}
DAYS = 30
HASTE = {"7": 0.02, "8": 0.35}


class NoBalance(Exception):
    """The model's account is empty. That says nothing about the agent either."""


class Unreadable(Exception):
    """The agent wrote something that is no tool call."""


@dataclass
class Model:
    """What stands in for a language model: knows the right next step, and sometimes takes another."""

    prompt: str
    temperature: float
    luck: random.Random
    balance: int = 1_000_000

    def next_call(self, request: dict[str, str], seen: dict[str, float] | None, done: list[str]) -> str:
        """The next tool call as JSON text."""
        if self.balance <= 0:
            raise NoBalance("402 insufficient balance")
        self.balance -= 1
        if self.luck.random() < 0.02 * self.temperature:
            return "Sure! I will refund that right away."
        if seen is None and self.luck.random() >= HASTE[self.prompt]:
            return _call("look_up", order=request["order"])
        if "refund" not in done:
            if self.luck.random() < 0.1 * self.temperature:
                return _call("think", note="Let me consider the policy again.")
            return _call("refund", order=request["order"], amount=self._amount(request, seen))
        return _call("write", text="") if self.luck.random() < 0.02 else _call("write", text="letter")

    def _amount(self, request: dict[str, str], seen: dict[str, float] | None) -> float:
        if seen is None:  # the hasty prompt believes what the customer says
            return float(request["claimed"])
        due = seen["total"] if seen["age"] <= DAYS else 0.0
        slip = self.luck.random() < 0.05 * self.temperature
        return round(due * 0.9, 2) if slip else due


@dataclass
class Agent:
    """Takes turns until it has written its letter, or has used up its turns."""

    model: Model
    shop: Shop
    transcript: list[dict[str, str]] = field(default_factory=list)
    turns: int = 0

    def work(self, request: dict[str, str], most_turns: int) -> None:
        """Handle one request. Raises ``Unreadable`` for a turn that is no tool call."""
        seen, done = None, []
        while self.turns < most_turns:
            self.turns += 1
            said = self.model.next_call(request, seen, done)
            self.transcript.append({"turn": str(self.turns), "said": said})
            try:
                call = json.loads(said)
            except ValueError as error:
                raise Unreadable(said) from error
            name = call.pop("tool")
            done.append(name)
            if name == "look_up":
                seen = self.shop.look_up(call["order"])
            elif name == "refund" and call["amount"]:
                self.shop.refund(call["order"], call["amount"])
            elif name == "write":
                paid = self.shop.orders[request["order"]]["refunded"]
                self.shop.write(f"Order {request['order']}: we refund {paid:.2f}." if call["text"] else "")
                return


def _call(tool: str, **values: object) -> str:
    return json.dumps({"tool": tool, **values})
