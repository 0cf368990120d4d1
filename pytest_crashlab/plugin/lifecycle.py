"""One trial from set-up to tear-down: what happened, told once, in one row.

Runs where tests run: in the single process, or in each xdist worker.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from time import perf_counter  # bound now: a test may put another clock in its place
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_crashlab.plugin import deciding, gating, judging
from pytest_crashlab.plugin.author import Trial, derive_seed, relative_site
from pytest_crashlab.plugin.classify import Classifier
from pytest_crashlab.plugin.compat import remembered_proxies
from pytest_crashlab.plugin.deciding import Assigned
from pytest_crashlab.plugin.keys import TRIAL_KEY
from pytest_crashlab.plugin.markers import Declarations, Markers
from pytest_crashlab.plugin.redacting import without_secrets
from pytest_crashlab.plugin.rows import Handover, row_of, shown
from pytest_crashlab.plugin.vocabularies import Vocabularies
from pytest_crashlab.records.outcome import (
    FAILED,
    INSTRUMENT_OUTCOMES,
    SKIPPED,
    XFAILED,
    Decision,
    Vocabulary,
)
from pytest_crashlab.records.trial import Phase

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_crashlab.plugin.settings import Settings

LIFECYCLE_NAME = "crashlab-lifecycle"


class Usage(Protocol):
    """What knows of the calls of a trial's target."""

    def columns(self) -> dict[str, Any]:
        """Fields of the row: tokens, cost and models."""

    def prompts(self) -> list[str]:
        """The prompts that the calls themselves name."""

    def documents(self) -> list[dict[str, Any]]:
        """Each call, with what it sent and received, for the trial's evidence."""


@dataclass(slots=True)
class ItemState:
    """What is known of the item that is running; ``usage`` what its target used, where that is measured."""

    start: float = field(default_factory=time.time)
    clock: float = field(default_factory=time.perf_counter)
    in_body: bool = False
    body_ran: bool = False
    trial: Trial | None = None
    assigned: Assigned | None = None
    body_duration: float | None = None
    body_started: float | None = None
    body_ended: float | None = None
    failed_subtests: list[str] = field(default_factory=list)
    record_error: str | None = None
    usage: Usage | None = None


STATE_KEY = pytest.StashKey[ItemState]()


def trial_for(request: pytest.FixtureRequest) -> Trial:
    """The ``Trial`` of the requesting test; starts the bookkeeping where no run is recorded."""
    manager = request.config.pluginmanager
    lifecycle = manager.get_plugin(LIFECYCLE_NAME)
    if not isinstance(lifecycle, Lifecycle):
        from pytest_crashlab.plugin.settings import Settings

        lifecycle = Lifecycle(request.config, Settings.of(request.config), seed=0)
        manager.register(lifecycle, LIFECYCLE_NAME)
    return lifecycle.make_trial(request.node)


class Lifecycle:
    """The pytest hooks around one item.

    ``seed`` the run's seed, ``worker`` the name of this process, ``gate`` which cases do not fail
    the session by themselves (None: no trial is recorded, the trial fixture alone is served),
    ``handover`` where rows are left for the session, if it records in this process.
    """

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        *,
        seed: int,
        worker: str = "main",
        gate: gating.GatedCases | None = None,
        handover: Handover | None = None,
    ) -> None:
        self._config = config
        self._root = config.rootpath
        self._classifier = Classifier(config, settings.exceptions)
        markers = Markers(config)
        self._declared = Declarations(markers, Vocabularies(config, markers))
        self._attachment_limit = settings.attachment_limit
        self._without_secrets = without_secrets(config)
        self._seed = seed
        self._worker = worker
        self._gate = gate
        self._handover = handover or Handover()

    def make_trial(self, item: pytest.Item) -> Trial:
        """The author's object for this item, made once."""
        state = item.stash.setdefault(STATE_KEY, ItemState())
        if state.trial is None:
            of = item.stash.get(TRIAL_KEY, None)
            case, number = (item.nodeid, 1) if of is None else (of.case.id, of.trial)
            state.trial = Trial(
                case=case,
                number=number,
                seed=derive_seed(self._seed, case, number),
                root=self._root,
                vocabulary=self._vocabulary(item),
                declared={check.name: check for check in self._declared.by(item).checks},
                attachment_limit=self._attachment_limit,
            )
        return state.trial

    def _vocabulary(self, item: pytest.Item) -> Vocabulary:
        return self._declared.by(item).vocabulary

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Run the trials."""
        with remembered_proxies(session):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Start the clock before any other plugin does its part; keep nothing of a trial that is over."""
        item.stash[STATE_KEY] = ItemState()
        result = yield
        del item.stash[STATE_KEY]
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Know a sub-test's report, which comes out of the body, from the test's own."""
        state = item.stash[STATE_KEY]
        state.in_body = state.body_ran = True
        state.body_started = perf_counter()
        try:
            return (yield)
        finally:
            state.body_ended = perf_counter()
            state.in_body = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Read what pytest made of the phase, then say what it means for the trial."""
        report = yield
        state = item.stash.get(STATE_KEY, None)
        if state is None:
            return report
        if report.when == "call" and (state.in_body or state.body_duration is not None or not state.body_ran):
            self._subtest(state, item, report)
        elif report.when == "setup":
            self._setup(state, item, call, report)
        elif report.when == "call":
            self._call(state, item, call, report)
        else:
            self._teardown(state, item, report)
        return report

    def _subtest(self, state: ItemState, item: pytest.Item, report: pytest.TestReport) -> None:
        if report.failed:
            if state.body_duration is None:
                state.failed_subtests.append(_first_line(report))
            else:  # the trial is decided; what fails afterwards is its tear-down
                state.record_error = f"teardown_error: {_first_line(report)}"
            if self._gated(item):
                gating.rewrite(report, gating.SUBTEST, "sub-test failed")

    def _setup(
        self, state: ItemState, item: pytest.Item, call: pytest.CallInfo[Any], report: pytest.TestReport
    ) -> None:
        if report.passed:
            return
        if report.skipped:
            state.assigned = _excluded(report, Phase.PREPARE)
            return
        state.assigned = self._setup_failure(item, call, report)
        self._show(state.assigned, item, report)

    def _setup_failure(
        self, item: pytest.Item, call: pytest.CallInfo[Any], report: pytest.TestReport
    ) -> Assigned:
        error = None if call.excinfo is None else call.excinfo.value
        if error is None:
            return self._assign("setup_error", item, call, report, Phase.PREPARE)
        label, why = judging.label_of(error, Phase.PREPARE, None, self._vocabulary(item), self._classifier)
        return self._assign(label, item, call, report, Phase.PREPARE, why=why)

    def _call(
        self, state: ItemState, item: pytest.Item, call: pytest.CallInfo[Any], report: pytest.TestReport
    ) -> None:
        state.body_duration = call.duration
        if report.skipped:
            state.assigned = _excluded(report, Phase.RUN)
            return
        error = call.excinfo.value if call.excinfo is not None and report.failed else None
        if error is not None:
            state.assigned = self._failure(state, item, call, report, error)
        else:
            state.assigned = self._without_error(state, item, call, report)
        if state.trial is not None:
            state.trial.decided = True
        self._show(state.assigned, item, report)

    def _without_error(
        self, state: ItemState, item: pytest.Item, call: pytest.CallInfo[Any], report: pytest.TestReport
    ) -> Assigned:
        """The outcome of a body that raised nothing."""
        if state.failed_subtests:
            count = len(state.failed_subtests)
            message = f"{count} sub-test{'s' * (count > 1)} failed: {state.failed_subtests[0]}"
            ending = Assigned(outcome=FAILED, site=self._own_site(item), phase=Phase.RUN, message=message)
        else:
            ending = self._ending(state, item)
        if ending.outcome.decision is not Decision.PASS and _expected_to_fail(report):
            report.outcome = "skipped"
            report.wasxfail = getattr(report, "wasxfail", "")
            return replace(ending, outcome=XFAILED)
        if report.failed and ending.outcome.decision is Decision.PASS:
            # An unexpected pass under a strict mark: nothing was raised, and that is the failure.
            return self._assign(FAILED.label, item, call, report, Phase.RUN)
        return ending

    def _ending(self, state: ItemState, item: pytest.Item) -> Assigned:
        """The outcome of a body that ended without an exception."""
        if state.trial is None:
            required = [check.name for check in self._declared.by(item).checks if check.required]
            if required:
                return Assigned(
                    outcome=INSTRUMENT_OUTCOMES["not_verified"],
                    site=self._own_site(item),
                    phase=Phase.RUN,
                    message=f"required and not evaluated: {', '.join(required)}",
                )
            outcome = self._vocabulary(item).default_pass
            return Assigned(outcome=outcome, site=self._own_site(item), phase=Phase.RUN)
        assigned = deciding.assigned(state.trial)
        return assigned if assigned.site is not None else replace(assigned, site=self._own_site(item))

    def _failure(
        self,
        state: ItemState,
        item: pytest.Item,
        call: pytest.CallInfo[Any],
        report: pytest.TestReport,
        error: BaseException,
    ) -> Assigned:
        """The outcome of a body that ``error`` ended."""
        trial = state.trial
        phase = judging.phase_of(trial, error, item)
        if trial is not None and phase is Phase.VERIFY and isinstance(error, AssertionError):
            explicit = deciding.before_an_assertion(trial, _first_line(report))
            if explicit is not None:
                return explicit
        label, why = judging.label_of(error, phase, trial, self._vocabulary(item), self._classifier)
        assigned = self._assign(label, item, call, report, phase, why=why)
        failed = None if trial is None or label != FAILED.label else deciding.failed_checks(trial)
        return assigned if failed is None else replace(assigned, message=f"{assigned.message}; {failed}")

    def _teardown(self, state: ItemState, item: pytest.Item, report: pytest.TestReport) -> None:
        if report.failed:
            state.record_error = f"teardown_error: {_first_line(report)}"
            if self._gated(item):
                gating.rewrite(report, gating.TEARDOWN, state.record_error)
        if self._gate is not None and TRIAL_KEY in item.stash:
            finished = row_of(
                item.stash[TRIAL_KEY], state, worker=self._worker, without_secrets=self._without_secrets
            )
            gating.attach(report, self._handover.put(finished))

    def _assign(
        self,
        label: str,
        item: pytest.Item,
        call: pytest.CallInfo[Any],
        report: pytest.TestReport,
        phase: Phase,
        *,
        why: str | None = None,
    ) -> Assigned:
        vocabulary = self._vocabulary(item)
        message = why or _first_line(report)
        if label not in vocabulary:
            message = f"outcome {label!r} is not in the test's vocabulary: {message}"
            label = judging.MISDECLARED
        outcome = vocabulary[label]
        return Assigned(outcome=outcome, site=self._raise_site(item, call), phase=phase, message=message)

    def _show(self, assigned: Assigned, item: pytest.Item, report: pytest.TestReport) -> None:
        """Make pytest's own report agree with the trial, or keep it from failing the session."""
        if assigned.outcome.decision in (Decision.PASS, Decision.EXCLUDED):
            return
        if report.passed:
            text = f"{assigned.outcome.label}: {assigned.message or assigned.outcome.definition}"
            report.outcome = "failed"
            report.longrepr = f"{assigned.site or item.nodeid}: {shown(text)}"
        if self._gated(item):
            failed = assigned.outcome.decision is Decision.FAIL
            mark = gating.FAILED if failed else gating.UNDECIDED
            said = f"{assigned.outcome.label}: {shown(assigned.message or '')}"
            gating.rewrite(report, mark, said.rstrip(": "))

    def _gated(self, item: pytest.Item) -> bool:
        return self._gate is not None and TRIAL_KEY in item.stash and item.stash[TRIAL_KEY].case in self._gate

    def _own_site(self, item: pytest.Item) -> str:
        file, line, _ = item.location
        return file if line is None else f"{file}:{line + 1}"

    def _raise_site(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> str:
        """The deepest frame inside the test's own file, else the test itself."""
        if call.excinfo is not None:
            own = str(item.path)
            for entry in reversed(call.excinfo.traceback):
                if str(entry.path) == own:
                    return relative_site(own, entry.lineno + 1, self._root)
        return self._own_site(item)


def _expected_to_fail(report: pytest.TestReport) -> bool:
    """Whether an xfail mark applies to a body that raised nothing: as passed, or as a strict failure."""
    return hasattr(report, "wasxfail") or str(report.longrepr).startswith("[XPASS(strict)]")


def _excluded(report: pytest.TestReport, phase: Phase) -> Assigned:
    outcome = XFAILED if hasattr(report, "wasxfail") else SKIPPED
    return Assigned(outcome=outcome, site=None, phase=phase, message=_skip_reason(report))


def _skip_reason(report: pytest.TestReport) -> str | None:
    if hasattr(report, "wasxfail"):
        return str(report.wasxfail) or None
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return None


def _first_line(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext.strip().rpartition("\n")[2]
    return str(text).strip().partition("\n")[0]
