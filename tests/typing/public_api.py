"""What a type checker sees of the public names. Read by ``mypy --strict``, never run."""

from __future__ import annotations

from typing import assert_type

import pytest_crashlab
from pytest_crashlab import Check, Outcome, Vocabulary

assert_type(pytest_crashlab.__version__, str)

solved = Outcome.passed("solved", "The answer is right.")
assert_type(solved, Outcome)
assert_type(Outcome.failed("wrong", "The answer is wrong.", completed=False), Outcome)
assert_type(Outcome.instrument("shop_down", "The shop did not answer."), Outcome)
assert_type(solved.label, str)
assert_type(solved.completed, bool)

vocabulary = Vocabulary(solved)
assert_type(vocabulary["solved"], Outcome)
assert_type([outcome.label for outcome in vocabulary], list[str])
assert_type(vocabulary.default_pass, Outcome)
Vocabulary("solved")  # type: ignore[arg-type]

check = Check("amount", must="the refund equals the order total")
assert_type(check.required, bool)
Check("amount", "must is given by name")  # type: ignore[call-arg]
check.required = False  # type: ignore[misc]
