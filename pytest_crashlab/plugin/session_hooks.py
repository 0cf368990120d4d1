"""pytest's hooks in the process that records, each handed on to the session in a line or two."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from pytest_crashlab.conclude.brief import NO_VERDICT
from pytest_crashlab.errors import CrashlabError
from pytest_crashlab.plugin import cache, compat, finish, gating, process
from pytest_crashlab.plugin.keys import TRIAL_KEY
from pytest_crashlab.plugin.lifecycle import STATE_KEY
from pytest_crashlab.plugin.progress import Progress
from pytest_crashlab.plugin.stopping import stops_held_back
from pytest_crashlab.plugin.summary import Ending, header_lines, plan_lines, print_summary

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_crashlab.conclude.brief import Conclusion
    from pytest_crashlab.plugin.session import RunSession


_Status = tuple[str, str, "str | tuple[str, dict[str, bool]]"]


class SessionHooks:
    """Registered in a single process and on the xdist controller."""

    def __init__(self, config: pytest.Config, session: RunSession) -> None:
        self._config = config
        self._session = session
        self._progress = Progress(config, session)
        self._ending = Ending()
        self._told = 0
        self._announced = not process.distributes(config)

    def pytest_unconfigure(self) -> None:
        """Leave the process as it was."""
        self._session.stop.remove()

    def pytest_report_header(self) -> list[str]:
        """Name the baseline and why it is that one."""
        return header_lines(self._session)

    def pytest_report_collectionfinish(self) -> list[str]:
        """Say what the selected cases come to, where this process collects."""
        return plan_lines(self._session)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Take over the progress display before the first test, wherever the tests run."""
        self.begin()
        return (yield)

    def begin(self) -> None:
        """Show trials from now on."""
        self._progress.begin()
        compat.spare_terminal(self._config)

    def refuse(self, message: str) -> None:
        """End the session, which was to have no trials, as a usage error."""
        self._session.usage_error(message)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Know the trial that Ctrl-C, SIGTERM or ``pytest.exit`` ends, where it runs in this process."""
        try:
            return (yield)
        except (KeyboardInterrupt, pytest.exit.Exception):
            of, state = item.stash.get(TRIAL_KEY, None), item.stash.get(STATE_KEY, None)
            if of is not None and state is not None:
                self._session.interrupted(of, state)
            raise

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the row that came with the report."""
        plan, row = gating.detach(report)
        if plan is not None or row is not None:
            self._session.receive(plan, row)
            if plan is not None:
                self._announce()
            self._progress.update()
            if len(self._session.stopped) > self._told:
                self._tell_stops()

    def _tell_stops(self) -> None:
        """Say at once which provider is not asked any more."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        sentences = list(self._session.stopped.values())[self._told :]
        self._told += len(sentences)
        if reporter is None:
            return
        for said in sentences:
            reporter.ensure_newline()
            reporter.write_line(f"crashlab: {said}", yellow=True)

    def _announce(self) -> None:
        """On the controller, which collects nothing itself: say what the workers are going to run."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if self._announced or reporter is None or self._config.option.verbose < 0:
            return
        self._announced = True
        reporter.ensure_newline()
        for line in plan_lines(self._session):
            reporter.write_line(line)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> Generator[None, _Status | None, _Status | None]:
        """Give a gated case's failing trial its own category; leave the letters to the progress line."""
        given = yield
        shown = gating.status(report) or given
        if shown is None or not self._progress.active:
            return shown
        return shown[0], "", ""

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Judge the run; only 0 is ever raised, to 1 or 10.

        Inside every other plugin's wrapper and after their plain hooks, so that one of them that
        fails leaves a sealed run behind.
        """
        ended: int | None = int(pytest.ExitCode.INTERNAL_ERROR)
        # A second Ctrl-C, while pytest handled the first, is still on its way out and in no exit status.
        stopped = isinstance(sys.exc_info()[1], KeyboardInterrupt)
        try:
            yield
            ended = int(pytest.ExitCode.INTERRUPTED) if stopped else None
        except (KeyboardInterrupt, pytest.exit.Exception):  # a second Ctrl-C, while fixtures end
            ended = int(pytest.ExitCode.INTERRUPTED)
            raise
        finally:
            self._finish(session, int(session.exitstatus) if ended is None else ended)

    def _finish(self, session: pytest.Session, before: int) -> None:
        self._progress.end()
        nothing_ran = before == pytest.ExitCode.NO_TESTS_COLLECTED
        if self._session.problem is None and nothing_ran:
            self._session.nothing_left()
        if self._session.problem is not None:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
            self._session.abandon()
        elif self._session.recorder is not None:
            self._session.all_is_over()
            self._tell_stops()
            with stops_held_back():
                status = self._judge(session, before)
            if status != before:
                session.exitstatus = status
        self._ending.exit_status = int(session.exitstatus)

    def _judge(self, session: pytest.Session, status: int) -> int:
        """Conclude the run; return the exit status of the session."""
        run = self._session
        try:
            conclusion = finish.conclude(run, finish.run_status(run, session, status))
        except (CrashlabError, OSError) as error:
            run.store_error = run.store_error or finish.why(run, error)
            if status == 0 and run.settings.save_baseline is not None:
                return int(pytest.ExitCode.TESTS_FAILED)
            return NO_VERDICT if status == 0 else status
        if status == pytest.ExitCode.NO_TESTS_COLLECTED and run.remaining is not None:
            status = 0  # a resumed run in which nothing was left to run
        if status == 0 and run.remaining is not None and self._ungated(set(run.remaining.failed)):
            status = int(pytest.ExitCode.TESTS_FAILED)  # they failed the session that this one goes on with
        if status == 0 and conclusion.gate is not None:
            status = conclusion.gate.exit_code
        if status == 0 and conclusion.gate is None:
            self._ending.unfinished = conclusion.unfinished
            status = 0 if self._ending.unfinished is None else NO_VERDICT
        self._ending.promotion, refused = finish.promote_if_asked(run, conclusion, status)
        if refused:
            status = int(pytest.ExitCode.TESTS_FAILED)
        self._ending.conclusion = conclusion
        cache.rewrite(self._config, failed=self._failed_cases(conclusion), ran=self._ran_cases())
        return status

    def _ran_cases(self) -> set[str]:
        recorder = self._session.recorder
        return set() if recorder is None else recorder.ran

    def _failed_cases(self, conclusion: Conclusion) -> list[str]:
        """The cases that the gate failed, and those outside the gate that had trouble, in order."""
        recorder, selection = self._session.recorder, self._session.selection
        if recorder is None or selection is None:
            return []
        by_gate = frozenset(() if conclusion.gate is None else conclusion.gate.failed_cases)
        outside = self._ungated(recorder.troubled)
        return [case.id for case in selection.cases if case.id in by_gate or case.id in outside]

    def _ungated(self, cases: set[str]) -> set[str]:
        """Those of ``cases`` that the gate does not judge."""
        selection, gated = self._session.selection, self._session.gated_cases
        planned = () if selection is None else selection.cases
        return {case.id for case in planned if case.id in cases and case not in gated}

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what the run came to, after pytest's own failures."""
        print_summary(terminalreporter, self._session, self._ending)
