"""What a long session shows while it runs: one line with trials, outcomes and the time left.

A terminal gets the line in place; a log gets it now and then. Trials of all files take turns, so
pytest's own letters, a file name before each, would say less in more lines. ``-v`` and ``-q`` keep
pytest's display.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pytest_crashlab.records.outcome import Decision

if TYPE_CHECKING:
    import pytest

    from pytest_crashlab.plugin.session import RunSession

_LIVE_EVERY, _LOG_EVERY = 0.1, 10.0


def clock(seconds: float) -> str:
    """``m:ss``, or ``h:mm:ss`` from an hour on."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


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
        self._write(self.line(now - self._started), final=False)

    def end(self) -> None:
        """Leave the last state behind."""
        if self.active and self._session.recorder is not None:
            self._write(self.line(time.monotonic() - self._started), final=True)
        self.active = False

    def line(self, elapsed: float) -> str:
        """The line after ``elapsed`` seconds."""
        recorder, selection = self._session.recorder, self._session.selection
        if recorder is None or selection is None:
            return "crashlab: waiting for the first trial"
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
        if done < planned:
            left = clock(elapsed / done * (planned - done)) if done else "-:--"
            parts.append(f"about {left} left")
        else:
            parts.append(f"in {clock(elapsed)}")
        return "crashlab: " + ", ".join(parts)

    def _write(self, text: str, *, final: bool) -> None:
        reporter = self._reporter()
        if reporter is None:
            return
        if self._live:
            reporter.rewrite(text, erase=True)
        elif text != self._last:  # the last trial may just have been shown
            reporter.ensure_newline()
            reporter.write_line(text)
        self._last = text
        if final and self._live:
            reporter.ensure_newline()

    def _reporter(self) -> pytest.TerminalReporter | None:
        return self._config.pluginmanager.get_plugin("terminalreporter")
