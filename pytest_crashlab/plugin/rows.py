"""From what is known of an item at its end to the JSON text that travels and is stored."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from time import perf_counter  # bound now: a test may put another clock in its place
from typing import TYPE_CHECKING

from pytest_crashlab.records.check import CheckRow
from pytest_crashlab.records.outcome import Kind
from pytest_crashlab.records.redaction import redact
from pytest_crashlab.records.trial import TrialRow

if TYPE_CHECKING:
    from pytest_crashlab.plugin.keys import TrialOf
    from pytest_crashlab.plugin.lifecycle import ItemState

MESSAGE_LIMIT = 300


def clean(text: str | None) -> str | None:
    """One line of at most 300 characters without secrets."""
    if text is None:
        return None
    line = redact(" ".join(text.split()))
    return line if len(line) <= MESSAGE_LIMIT else f"{line[: MESSAGE_LIMIT - 1]}…"


def row_of(of: TrialOf, state: ItemState, *, worker: str) -> str:
    """The row of a finished item, with its checks, as one line of JSON."""
    assigned, trial = state.assigned, state.trial
    target = None if trial is None else trial.target
    kind = None if assigned is None else assigned.outcome.kind
    excluded = kind is Kind.EXCLUDED
    row = TrialRow(
        case=of.case.id,
        trial=of.trial,
        outcome=None if assigned is None else assigned.outcome.label,
        kind=kind,
        phase=None if assigned is None else assigned.phase,
        infra_healthy=None if kind is None or excluded else kind is not Kind.INSTRUMENT,
        target_completed=None if assigned is None or excluded else assigned.outcome.completed,
        t=None if target is None else target.t,
        horizon=None if target is None else target.horizon,
        t_unit=None if target is None else target.unit,
        start=state.start,
        duration=perf_counter() - state.clock,
        run_duration=state.body_duration if target is None or trial is None else trial.run_duration,
        worker=worker,
        site=None if assigned is None else assigned.site,
        failure_class=None if assigned is None else assigned.failure_class,
        message=None if assigned is None else clean(assigned.message),
        record_error=clean(state.record_error),
    )
    checks = [] if trial is None else [asdict(replace(c, why=clean(c.why))) for c in trial.results.values()]
    return row.to_json() if not checks else f'{row.to_json()[:-1]},"checks":{json.dumps(checks)}}}'


def read_row(text: str) -> tuple[TrialRow, list[CheckRow]]:
    """The row and its checks from the text that ``row_of`` made."""
    data = json.loads(text)
    checks = [CheckRow(**check) for check in data.pop("checks", [])]
    return TrialRow.from_mapping(data), checks
