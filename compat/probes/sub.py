"""For pytest-subtests: parts of one test."""

from __future__ import annotations

import unittest
from typing import Any


def test_parts(subtests: Any) -> None:
    for number in range(4):
        with subtests.test("part", number=number):
            assert number < 4


class TestParts(unittest.TestCase):
    def test_parts(self) -> None:
        for number in range(3):
            with self.subTest(number=number):
                self.assertLess(number, 3)
