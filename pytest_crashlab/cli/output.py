"""Writing to the terminal: how wide, in which encoding, and what when nobody listens any more."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass

from pytest_crashlab.errors import UsageError
from pytest_crashlab.report.figures import ascii_text, text

_NARROWEST = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What standard output can show."""

    width: int
    color: bool
    encoding: str

    @classmethod
    def of_stdout(cls) -> Screen:
        """As the terminal, ``COLUMNS``, ``NO_COLOR``, ``FORCE_COLOR`` and ``TERM`` say."""
        width = max(_NARROWEST, shutil.get_terminal_size((80, 24)).columns)
        color = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        if os.environ.get("FORCE_COLOR"):
            color = True
        if os.environ.get("NO_COLOR"):
            color = False
        return cls(width=width, color=color, encoding=sys.stdout.encoding or "ascii")


def write(content: str) -> None:
    """Write ``content`` to standard output; when its reader has gone, go on in silence."""
    try:
        sys.stdout.write(content)
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still to come has no reader either, and Python flushes once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise UsageError(f"The output cannot be written ({error.strerror or error}).") from error


def line(content: str) -> None:
    """Write one line of foreign or own text, made safe and fit for the encoding."""
    safe = text(content)
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    write(f"{safe if utf8 else ascii_text(safe)}\n")


def complain(sentence: str) -> None:
    """Say on standard error what is wrong."""
    safe = text(sentence)
    encoding = sys.stderr.encoding or "ascii"
    sys.stderr.write(f"crashlab: {safe.encode(encoding, 'backslashreplace').decode(encoding)}\n")
