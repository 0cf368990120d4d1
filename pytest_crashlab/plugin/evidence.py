"""What is kept of a trial besides its row: gathered and written where the test ran, never on the report."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crashlab.errors import StoreError
from pytest_crashlab.plugin.datasets import ROW
from pytest_crashlab.plugin.evidence_values import Finish, plain
from pytest_crashlab.plugin.keys import TRIAL_KEY
from pytest_crashlab.plugin.lifecycle import STATE_KEY
from pytest_crashlab.plugin.redacting import redactor_of
from pytest_crashlab.plugin.tracebacks import Tracebacks
from pytest_crashlab.records.dataset import Row
from pytest_crashlab.records.outcome import Kind
from pytest_crashlab.store.evidence_writer import EvidenceWriter

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from pytest_crashlab.plugin.author import Trial
    from pytest_crashlab.plugin.keys import TrialOf
    from pytest_crashlab.plugin.lifecycle import ItemState

EVIDENCE_NAME = "crashlab-evidence"
_QUIET = (Kind.PASS, Kind.EXCLUDED)
# How long a worker that is done waits for its controller to make the run's folder.
_PATIENCE = 10.0


class EvidenceHooks:
    """Collects the evidence of the trials of this process and writes it to ``folder``, the run's.

    A trial that passed or was skipped, printed nothing and attached nothing leaves nothing.
    """

    def __init__(
        self, config: pytest.Config, *, folder: Path, worker: str, limit: int, show_locals: bool
    ) -> None:
        self._config = config
        self._writer = EvidenceWriter(folder, worker)
        self._limit = limit
        self._tracebacks = Tracebacks(config, show_locals=show_locals)
        self._failures: list[dict[str, Any]] = []
        self._of_trial: dict[str, Any] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Take what a phase leaves, before the trial's outcome changes how its report looks."""
        report = yield
        if report.when == "setup":
            self._failures, self._of_trial = [], {}
        if report.failed and call.excinfo is not None:
            self._failures.append(self._tracebacks.failure(item, call.excinfo, report))
        state = item.stash.get(STATE_KEY, None)
        of = item.stash.get(TRIAL_KEY, None)
        if state is None or of is None:
            self._failures.clear()
        elif report.when == "call":
            if state.trial is not None and not state.in_body:
                self._of_trial = _of_trial(state.trial)
            if report.failed or report.sections or self._of_trial:
                redactor_of(self._config)  # looks at the environment that the test's fixtures made
        elif report.when == "teardown":
            self._end(item, of, state, report)
        return report

    def _end(self, item: pytest.Item, of: TrialOf, state: ItemState, report: pytest.TestReport) -> None:
        """Write what there is of a trial that is over."""
        failures, self._failures = self._failures, []
        of_trial, self._of_trial = self._of_trial, {}
        assigned = state.assigned
        quiet = assigned is not None and assigned.outcome.kind in _QUIET
        if quiet and not failures and not of_trial and not report.sections:
            return
        redactor = redactor_of(self._config)
        finish = Finish(redactor, self._limit)
        document: dict[str, Any] = {"format": 1}
        if assigned is not None and assigned.message:
            document["why"] = finish.text(assigned.message)
        if failures:
            document["exceptions"] = [finish.value(failure) for failure in failures]
        attachments = of_trial.pop("attachments", None)
        document.update(finish.value({**_asked(item), **of_trial}))
        if report.sections:
            document["captured"] = [
                {"name": redactor(name), "text": finish.both_ends(text)} for name, text in report.sections
            ]
        if attachments:
            # how large they are together was limited as they came in
            document["attachments"] = [
                _finished(entry, Finish(redactor, self._limit)) | {"name": redactor(entry["name"])}
                for entry in attachments
            ]
        try:
            self._writer.write(of.case.id, of.trial, state.start, document)
        except StoreError as error:
            state.record_error = state.record_error or f"evidence_error: {error}"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Close the file before the run is sealed."""
        until = time.monotonic() + _PATIENCE
        while self._writer.waits_for_folder and time.monotonic() < until:
            time.sleep(0.02)
        try:
            self._writer.close()
        except StoreError:
            return  # the folder never came: there is no run that this could be evidence of


def _of_trial(trial: Trial) -> dict[str, Any]:
    """What the author's objects hold when the test's body is over, as plain values."""
    found: dict[str, Any] = {}
    given = getattr(trial, "input", None)
    if given is not None:
        found["input"] = plain(given)
    expected = getattr(trial, "expected", None)
    if expected is not None:
        found["expected"] = plain(expected)
    if trial.target is not None and trial.target.output is not None:
        found["output"] = plain(trial.target.output)
    kept = trial.kept
    if kept is not None and kept.seen:
        found["checks"] = {name: dict(seen) for name, seen in kept.seen.items()}
    if kept is not None and kept.attachments:
        found["attachments"] = [asdict(attachment) for attachment in kept.attachments.values()]
    return found


def _asked(item: pytest.Item) -> dict[str, Any]:
    """What the case asks, where the author does not say it: a data set's row, other parameters by name."""
    callspec: Any = getattr(item, "callspec", None)
    given: dict[str, Any] = {} if callspec is None else dict(callspec.params)
    row = given.get(ROW)
    if not isinstance(row, Row):
        return {"input": {str(name): plain(value) for name, value in given.items()}} if given else {}
    others = {str(name): plain(value) for name, value in given.items() if name != ROW}
    asked = plain(row.input)
    found = {"input": {ROW: asked, **others} if others else asked}
    return found if row.expected is None else {**found, "expected": plain(row.expected)}


def _finished(entry: dict[str, Any], finish: Finish) -> dict[str, Any]:
    """An attachment without secrets; what a text lost to the limit is said in it and in its note."""
    data, size, kind = entry["data"], entry["size"], entry["kind"]
    known = {key: value for key, value in entry.items() if value is not None}
    if kind == "text" and data is not None:
        known["data"] = finish.text(data, size)
        if size > finish.limit:
            known["note"] = f"cut: {finish.limit:,} of {size:,} characters are kept"
    elif kind == "json":
        known["data"] = finish.value(data)
    return known
