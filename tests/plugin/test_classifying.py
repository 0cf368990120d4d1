"""What wrapped exceptions and groups of them mean, and hooks that answer with nonsense."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

CONFTEST = """
def pytest_crashlab_classify_exception(exception, phase):
    if isinstance(exception, IndexError):
        raise RuntimeError("the hook broke")
    if isinstance(exception, ZeroDivisionError):
        return 7
    if isinstance(exception, EOFError):
        return "passed"
    if isinstance(exception, BufferError):
        return "crashed"
"""
TESTS = """
import pytest
from pytest_crashlab import InstrumentFailure

class GaveUp(Exception): pass

def wrapped(outer, inner):
    outer.__cause__ = inner
    return outer

loop = GaveUp("loop")
loop.__cause__ = GaveUp("loop")
loop.__cause__.__cause__ = loop

ERRORS = {
    "from_network": wrapped(GaveUp(), ConnectionResetError()),
    "twice": wrapped(GaveUp(), wrapped(GaveUp(), TimeoutError())),
    "from_own": wrapped(GaveUp(), ValueError()),
    "cause_that_knows": wrapped(TimeoutError(), InstrumentFailure("sandbox_oom")),
    "assertion": wrapped(AssertionError("wrong"), ConnectionError()),
    "from_instrument": wrapped(GaveUp(), InstrumentFailure("sandbox_oom")),
    "loop": loop,
    "group": ExceptionGroup("all", [ConnectionError(), TimeoutError()]),
    "group_mixed": ExceptionGroup("some", [ConnectionError(), ValueError()]),
    "group_deep": ExceptionGroup("all", [ExceptionGroup("inner", [wrapped(GaveUp(), TimeoutError())])]),
    "group_own": ExceptionGroup("own", [ConnectionError(), BufferError()]),
    "broken_hook": IndexError(),
    "no_label": ZeroDivisionError(),
    "pass_label": EOFError(),
    "odd_failure": InstrumentFailure(["x"], 5),
}

@pytest.mark.parametrize("name", ERRORS)
def test_in_run(trial, name):
    with trial.run():
        raise ERRORS[name]
"""


def test_wrapped_grouped_and_wrongly_named_exceptions(single: Suite) -> None:
    single.pytester.makeconftest(CONFTEST)
    single.files(test_ends=TESTS)
    single.run("--trials=1", "--crashlab-run-name=x")
    rows = {
        row["case"].partition("[")[2][:-1]: (row["outcome"], row["message"])
        for row in single.last().trials.iter_rows(named=True)
    }
    assert {name: outcome for name, (outcome, _) in rows.items()} == {
        "from_network": "network_error",
        "twice": "network_error",
        "from_own": "crashed",
        "cause_that_knows": "sandbox_oom",
        "assertion": "crashed",
        "from_instrument": "sandbox_oom",
        "loop": "crashed",
        "group": "network_error",
        "group_mixed": "crashed",
        "group_deep": "network_error",
        "group_own": "crashed",
        "broken_hook": "misdeclared",
        "no_label": "misdeclared",
        "pass_label": "misdeclared",
        "odd_failure": "misdeclared",
    }
    assert rows["broken_hook"][1] == (
        "pytest_crashlab_classify_exception raised RuntimeError: the hook broke"
    )
    assert "named 7, which is no label" in rows["no_label"][1]
    assert "'passed' is the label of trials that passed" in rows["pass_label"][1]
