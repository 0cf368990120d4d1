"""One pytest session in a process of its own, and what its closing line counts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# "subtests" is also the name of a part of pytest itself since 9.0, which would be switched off with it.
ALWAYS = ("xdist", "xdist.looponfail", "subtests")
LIMIT_S = 300
_CLOSING = re.compile(
    r"^=* ?(?P<counts>[0-9].*?|no tests ran) in [0-9.]+s(?: \([0-9:]+\))? ?=*$", re.MULTILINE
)
_COUNT = re.compile(r"([0-9]+) ([a-z ]+?)(?:,|$)")
# A selection is made of cases, and a warning is counted once for each text.
_UNCOUNTED = frozenset({"deselected", "warning"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What pytest counted, by the word it used (always "error", never "errors"), and its exit code.

    ``trouble`` says what kept the session from counting, and is empty otherwise.
    """

    numbers: dict[str, int]
    code: int
    trouble: str = ""
    output: str = ""

    def times(self, k: int) -> dict[str, int]:
        """The counts that ``k`` trials have to give."""
        return {word: number * k for word, number in self.numbers.items()}

    @property
    def clean(self) -> bool:
        """Whether the session passed and counted something."""
        return self.code == 0 and bool(self.numbers) and not self.trouble

    def __str__(self) -> str:
        if self.trouble:
            return self.trouble
        text = ", ".join(f"{number} {word}" for word, number in self.numbers.items())
        return text if self.code == 0 else f"{text or 'nothing'} (exit {self.code})"


def run(place: Path, args: Iterable[str], *, source: Path | None, plugins: Iterable[str]) -> Counts:
    """Run pytest in ``place`` with only ``plugins`` (entry points) of those that are installed."""
    wanted = {*ALWAYS, *plugins}
    others = sorted({point.name for point in entry_points(group="pytest11")} - wanted)
    blocked = [part for name in others for part in ("-p", f"no:{name}")]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CRASHLAB_"))
    }
    # As a developer runs a suite: under CI's profile Hypothesis draws the same examples every time.
    environment.pop("CI", None)
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200", "NO_COLOR": "1"}
    if source is not None:
        environment["PYTHONPATH"] = str(source)
    shown = ["--tb=short", "-rfE", "-o", "verbosity_subtests=1"]  # else passed subtests are not counted
    command = [sys.executable, "-m", "pytest", *shown, *blocked, *args]
    try:
        done = subprocess.run(
            command,
            cwd=place,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Counts(numbers={}, code=-1, trouble=f"not ended within {LIMIT_S} s")
    return read_counts(done.stdout, done.returncode)


def read_counts(output: str, code: int) -> Counts:
    """Read the last closing line of ``output``."""
    if "INTERNALERROR" in output:
        return Counts(
            numbers={}, code=code, trouble=f"INTERNALERROR, no test counted (exit {code})", output=output
        )
    lines = _CLOSING.findall(output)
    if not lines:
        return Counts(numbers={}, code=code, trouble=f"no closing line (exit {code})", output=output)
    numbers: dict[str, int] = {}
    for number, plural in _COUNT.findall(lines[-1]):
        word = plural.removesuffix("s") if plural in {"errors", "warnings"} else plural
        if word not in _UNCOUNTED:
            numbers[word] = int(number)
    return Counts(numbers=numbers, code=code, output=output)
