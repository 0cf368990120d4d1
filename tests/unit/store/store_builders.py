"""Small rows, plans and runs for the tests of the store."""

from __future__ import annotations

from pytest_crashlab.records.case import CasePlan
from pytest_crashlab.records.outcome import BUILTIN_OUTCOMES
from pytest_crashlab.records.run import RunStatus, new_run_id
from pytest_crashlab.records.trial import TrialRow
from pytest_crashlab.store.plan import Plan
from pytest_crashlab.store.schema import Manifest


def trial_row(case, trial, outcome="passed", *, attempt=1, **fields):
    known = BUILTIN_OUTCOMES.get(outcome)
    return TrialRow(
        case=case,
        trial=trial,
        attempt=attempt,
        outcome=outcome,
        kind=known.kind if known else None,
        start=fields.pop("start", 1_000.0),
        duration=fields.pop("duration", 0.5),
        **fields,
    )


def plan_of(*cases, k=3):
    return Plan(cases=[CasePlan(id=case, planned=k) for case in cases], seed=7, order="rounds")


def record(store, outcomes, *, k=None, status=RunStatus.COMPLETED, seal_fields=None, **fields):
    """Store a sealed run; ``outcomes`` maps a case to the outcomes of its trials."""
    k = k or max((len(labels) for labels in outcomes.values()), default=1)
    fields.setdefault("id", new_run_id())
    fields.setdefault("k", k)
    fields.setdefault("planned_cases", len(outcomes))
    fields.setdefault("total_cases", len(outcomes))
    writer = store.begin(Manifest(**fields))
    writer.write_plan(plan_of(*outcomes, k=k))
    for case, labels in outcomes.items():
        for trial, label in enumerate(labels, 1):
            writer.append(trial_row(case, trial, label))
    return writer.seal(status, **(seal_fields or {}))
