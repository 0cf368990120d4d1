"""From what is known of an item at its end to the JSON text that travels and is stored."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from time import perf_counter  # bound now: a test may put another clock in its place
from typing import TYPE_CHECKING, NamedTuple

from pytest_crashlab.plugin.measured import progress
from pytest_crashlab.records.check import CheckRow
from pytest_crashlab.records.outcome import Kind
from pytest_crashlab.records.redaction import redact
from pytest_crashlab.records.trial import TrialRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_crashlab.plugin.keys import TrialOf
    from pytest_crashlab.plugin.lifecycle import ItemState

MESSAGE_LIMIT = 300
SHOWN_LIMIT = 2000


def clean(text: str | None, without_secrets: Callable[[str], str] = redact) -> str | None:
    """One line of at most 300 characters without secrets."""
    if text is None:
        return None
    line = without_secrets(" ".join(text.split()))
    return line if len(line) <= MESSAGE_LIMIT else f"{line[: MESSAGE_LIMIT - 1]}…"


def shown(text: str) -> str:
    """What a trial says, for the terminal: what a target put into it acts on nothing and floods nothing."""
    cut = text if len(text) <= SHOWN_LIMIT else f"{text[:SHOWN_LIMIT]}…"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in cut)


class Finished(NamedTuple):
    """The row of a finished item with its checks; ``text`` is both as one line of JSON."""

    text: str
    row: TrialRow
    checks: list[CheckRow]


class Handover:
    """The row that this process finished last: where it is also recorded, its text need not be read."""

    def __init__(self) -> None:
        self._last: Finished | None = None

    def put(self, finished: Finished) -> str:
        """Keep a row until its report comes by; return the text that goes with the report."""
        self._last = finished
        return finished.text

    def take(self, text: str) -> Finished:
        """The row of a report: the one kept if it is this very text, else what the text says."""
        last, self._last = self._last, None
        return last if last is not None and last.text is text else read_row(text)


def row_of(
    of: TrialOf, state: ItemState, *, worker: str, without_secrets: Callable[[str], str] = redact
) -> Finished:
    """The row of a finished item, with its checks; ``without_secrets`` cleans what they say."""
    assigned, trial = state.assigned, state.trial
    target = None if trial is None else trial.target
    kind = None if assigned is None else assigned.outcome.kind
    excluded = kind is Kind.EXCLUDED
    end = perf_counter()
    prepared, verified = _phases(state)
    usage = {} if state.usage is None else state.usage.columns()
    row = TrialRow(
        case=of.case.id,
        trial=of.trial,
        outcome=None if assigned is None else assigned.outcome.label,
        kind=kind,
        phase=None if assigned is None else assigned.phase,
        infra_healthy=None if kind is None or excluded else kind is not Kind.INSTRUMENT,
        target_completed=None if assigned is None or excluded else assigned.outcome.completed,
        t=None if target is None else progress(target.t),
        horizon=None if target is None else target.horizon,
        t_unit=None if target is None else target.unit,
        start=state.start,
        duration=end - state.clock,
        prepare_s=None if prepared is None else round(prepared - state.clock, 6),
        verify_s=None
        if verified is None or state.body_ended is None
        else round(state.body_ended - verified, 6),
        record_s=None if state.body_ended is None else round(end - state.body_ended, 6),
        run_duration=None if usage.get("replayed") else _run_duration(state),
        worker=worker,
        site=None if assigned is None else assigned.site,
        failure_class=None if assigned is None else assigned.failure_class,
        message=None if assigned is None else clean(assigned.message, without_secrets),
        record_error=clean(state.record_error, without_secrets),
        prompt=_prompts(state),
        **usage,
    )
    checks = (
        []
        if trial is None
        else [replace(c, why=clean(c.why, without_secrets)) for c in trial.results.values()]
    )
    text = row.to_json()
    if checks:
        text = f'{text[:-1]},"checks":{json.dumps([asdict(check) for check in checks])}}}'
    return Finished(text, row, checks)


def _run_duration(state: ItemState) -> float | None:
    """Seconds that the target itself took; the whole body where it is not apart."""
    trial = state.trial
    return state.body_duration if trial is None or trial.target is None else trial.run_duration


def _prompts(state: ItemState) -> str | None:
    """What the test said it gave its target, and what the calls to a model name themselves."""
    said = [] if state.trial is None else state.trial.prompts
    shown = said if state.usage is None else [*said, *state.usage.prompts()]
    return ", ".join(dict.fromkeys(shown)) or None


def _phases(state: ItemState) -> tuple[float | None, float | None]:
    """When prepare and when the run had ended, by the clock; None where they had not, or not apart."""
    trial = state.trial
    if trial is None or trial.target is None:
        return state.body_started, None
    if trial.run_duration is None:
        return trial.run_started, None
    return trial.run_started, trial.run_started + trial.run_duration


def read_row(text: str) -> Finished:
    """The row and its checks from the text that ``row_of`` made."""
    data = json.loads(text)
    checks = [CheckRow(**check) for check in data.pop("checks", [])]
    return Finished(text, TrialRow.from_mapping(data), checks)
