"""The id of a trial on the command line: pytest does not find it, and its case is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

TESTS = """
import pytest

def test_a(): pass

@pytest.mark.parametrize("x", [1], ids=["b"])
def test_x(x): pass

@pytest.mark.parametrize("x", [1], ids=["trial2"])
def test_named(x): pass
"""


@pytest.mark.parametrize(
    ("arg", "case", "number"),
    [
        ("test_it.py::test_x[b-trial2]", "'test_it.py::test_x[b]'", 2),
        ("test_it.py::test_a[trial3]", "test_it.py::test_a", 3),
    ],
)
@pytest.mark.parametrize("option", [(), ("--trials=3",)])
def test_the_case_of_a_trial_is_named(
    single: Suite, arg: str, case: str, number: int, option: tuple[str, ...]
) -> None:
    single.files(test_it=TESTS)
    result = single.run(arg, *option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (hint,) = (line for line in result.errlines if "reads like a trial" in line)
    assert hint == (
        f"ERROR: {arg} reads like a trial, and pytest runs cases: ask for {case} with --trials. "
        f"'crashlab view RUN --case ID --trial {number}' shows what a stored trial did."
    )
    assert any("not found" in line for line in result.errlines)


def test_a_parameter_may_be_named_like_a_trial(single: Suite) -> None:
    single.files(test_it=TESTS)
    single.run("test_it.py::test_named[trial2]").assert_outcomes(passed=1)
    result = single.run("test_it.py::test_named[trial2]", "test_it.py::test_none")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert not any("reads like a trial" in line for line in result.errlines)
