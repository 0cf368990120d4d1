"""The shop that the agent works in: orders, a refund policy, and an API that is down now and then."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random


class ShopDown(Exception):
    """The shop's API did not answer. That says nothing about the agent."""


@dataclass
class Shop:
    """A few orders by number, each with its total, its age in days, and what was refunded."""

    orders: dict[str, dict[str, float]]
    luck: random.Random
    outages: float = 0.01
    letters: list[str] = field(default_factory=list)

    def look_up(self, number: str) -> dict[str, float]:
        """One order as it is."""
        self._answer()
        return dict(self.orders[number])

    def refund(self, number: str, amount: float) -> None:
        """Pay ``amount`` back."""
        self._answer()
        self.orders[number]["refunded"] += amount

    def write(self, letter: str) -> None:
        """Send the customer a letter."""
        self.letters.append(letter)

    def _answer(self) -> None:
        if self.luck.random() < self.outages:
            raise ShopDown("503 from the order API")
