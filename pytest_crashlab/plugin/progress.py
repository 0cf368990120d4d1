"""What a long session shows while it runs: one line with trials, outcomes, cost and the time left.

A terminal gets the line in place; a log gets it now and then. Trials of all files take turns, so
pytest's own letters, a file name before each, would say less in more lines. ``-v`` and ``-q`` keep
pytest's display.
"""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

from pytest_crashlab.records.outcome import Decision
from pytest_crashlab.report.figures import amount, seconds, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from pytest_crashlab.plugin.recorder import Recorder
    from pytest_crashlab.plugin.session import RunSession

_LIVE_EVERY, _LOG_EVERY = 0.1, 10.0
_NAME = "crashlab: "
_ANY_WIDTH = 10_000
_LONG = 1.0  # seconds from which on a trial is worth a name
_LONGEST_NAME = 30


def clock(seconds: float) -> str:
    """``m:ss``, or ``h:mm:ss`` from an hour on."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def fitted(parts: Sequence[str], width: int) -> str:
    """``parts`` of a progress line in ``width`` columns: a line that wraps cannot be written over.

    The first part and the last, how far it is and how long it takes, stay the longest.
    """
    kept = list(parts)
    line = f"{_NAME}{', '.join(kept)}"
    if len(line) > width:
        line = line.removeprefix(_NAME)
    while len(line) > width and len(kept) > 2:
        del kept[-2]
        line = ", ".join(kept)
    return line[:width]


def _columns() -> int:
    """Columns of the terminal as it is now, without the last, whose filling may begin another row.

    pytest takes less than 40 for an error and says 80.
    """
    return max(1, shutil.get_terminal_size().columns - 1)


def _cost(recorder: Recorder) -> list[str]:
    """What the targets told that they cost; at least that, where a trial told nothing."""
    if recorder.cost is None:
        return []
    return [f"{'at least ' if recorder.costless else ''}{amount(recorder.cost, 'USD')}"]


def _slowest(recorder: Recorder) -> list[str]:
    """The case with the longest trial so far, where one takes long enough to be waited for."""
    if recorder.slowest is None or recorder.slowest[0] < _LONG:
        return []
    duration, case = recorder.slowest
    name = text(_own_name(case))
    short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."
    return [f"slowest {short} {seconds(duration)}"]


def _own_name(case: str) -> str:
    """The test's name and its parameters, without the file and class: parameters may hold ``::``."""
    head, bracket, parameters = case.partition("[")
    return f"{head.rpartition('::')[2]}{bracket}{parameters}"


class Progress:
    """The progress line of one session; silent where there is no terminal reporter."""

    def __init__(self, config: pytest.Config, session: RunSession) -> None:
        self._config = config
        self._session = session
        self._started = 0.0
        self._shown = 0.0
        self._live = False
        self._last = ""
        self.active = False

    def begin(self) -> None:
        """Take over from pytest's letters, where this session has several trials and default verbosity."""
        reporter = self._reporter()
        if reporter is None or self._config.option.verbose != 0 or not self._session.started:
            return
        self._started = self._shown = time.monotonic()
        self._live = bool(getattr(reporter, "isatty", False))
        reporter.showfspath = False
        self.active = True

    def update(self) -> None:
        """Show where the session is, if the last look is long enough ago."""
        if not self.active:
            return
        now = time.monotonic()
        if now - self._shown < (_LIVE_EVERY if self._live else _LOG_EVERY):
            return
        self._shown = now
        parts = self.parts(now - self._started)
        self._write(fitted(parts, _columns() if self._live else _ANY_WIDTH), final=False)

    def end(self) -> None:
        """Leave the last state behind."""
        if self.active and self._session.recorder is not None:
            parts = self.parts(time.monotonic() - self._started, over=True)
            self._write(fitted(parts, _ANY_WIDTH), final=True)
        self.active = False

    def parts(self, elapsed: float, *, over: bool = False) -> list[str]:
        """What the line says after ``elapsed`` seconds; ``over``: no more trials will come."""
        recorder, selection = self._session.recorder, self._session.selection
        if recorder is None or selection is None:
            return ["waiting for the first trial"]
        planned = sum(case.planned for case in selection.cases)
        done = recorder.reported
        parts = [f"{done}/{planned} trials", f"{recorder.decisions[Decision.PASS]} passed"]
        for decision, word in (
            (Decision.FAIL, "failed"),
            (Decision.INCONCLUSIVE, "undecided"),
            (Decision.EXCLUDED, "excluded"),
        ):
            if recorder.decisions[decision]:
                parts.append(f"{recorder.decisions[decision]} {word}")
        parts += _cost(recorder)
        if not over:
            parts += _slowest(recorder)
        if done < planned and over:
            parts.append(f"stopped after {clock(elapsed)}")
        elif done < planned:
            left = clock(elapsed / done * (planned - done)) if done else "-:--"
            parts.append(f"about {left} left")
        else:
            parts.append(f"in {clock(elapsed)}")
        return parts

    def _write(self, text: str, *, final: bool) -> None:
        reporter = self._reporter()
        if reporter is None:
            return
        if self._live:
            reporter.rewrite(text.ljust(_columns()))
        elif text != self._last:  # the last trial may just have been shown
            reporter.ensure_newline()
            reporter.write_line(text)
        self._last = text
        if final and self._live:
            reporter.ensure_newline()

    def _reporter(self) -> pytest.TerminalReporter | None:
        return self._config.pluginmanager.get_plugin("terminalreporter")
