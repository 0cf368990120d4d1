"""A trial's id on the command line: pytest knows cases, so it finds none; say which case it is of."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

from pytest_crashlab.records.case import trial_of

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence


class TrialIdHint:
    """Adds to pytest's "not found" what to ask for instead."""

    def __init__(self, args: Sequence[str]) -> None:
        self._args = args

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Collect; where arguments are not found, name the cases that trials among them are of."""
        try:
            return (yield)
        except pytest.UsageError as error:
            raise pytest.UsageError(*error.args, *self._hints(str(error.args))) from error

    def _hints(self, said: str) -> list[str]:
        hints = []
        for arg in self._args:
            found = trial_of(arg)
            if found is not None and _is_named(arg, said):
                case, number = found
                hints.append(
                    f"{arg} reads like a trial, and pytest runs cases: ask for {shlex.quote(case)} with "
                    f"--trials. 'crashlab view RUN --case ID --trial {number}' shows what a stored trial did."
                )
        return hints


def _is_named(arg: str, said: str) -> bool:
    """Whether pytest did not find ``arg``; its message may leave the brackets out."""
    name = arg.rpartition("::")[2].partition("[")[0]
    return re.search(rf"::{re.escape(name)}(?!\w)", said) is not None
