"""Runs written down in a line, recorded through the real store.

Each letter of a case is one planned trial: P passed, F failed, T used its horizon up, C crashed, E a
provider error, V a verifier error after a completed target, S skipped, N a row without an outcome,
``.`` nothing at all. ``E>P`` in a trial list is not spelled here: pass ``attempts``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_crashlab.records.case import CasePlan
from pytest_crashlab.records.outcome import Kind
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.records.trial import Phase, TrialRow
from pytest_crashlab.store import Manifest, Plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_crashlab.records.check import CheckRow
    from pytest_crashlab.store import Store, StoredRun

# label, kind, infra healthy, target completed
LETTERS: dict[str, tuple[str | None, Kind | None, bool | None, bool | None]] = {
    "P": ("passed", Kind.PASS, True, True),
    "F": ("failed", Kind.FAIL, True, True),
    "T": ("horizon_exhausted", Kind.FAIL, True, False),
    "C": ("crashed", Kind.CRASH, True, False),
    "E": ("provider_error", Kind.INSTRUMENT, False, False),
    "V": ("verifier_error", Kind.INSTRUMENT, False, True),
    "S": ("skipped", Kind.EXCLUDED, None, None),
    "N": (None, None, None, None),
}
START = 1_796_020_380.0  # 2026-11-30T06:33:00Z
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def row(case: str, trial: int, letter: str, **fields: Any) -> TrialRow:
    """The row of one letter."""
    label, kind, healthy, completed = LETTERS[letter]
    base: dict[str, Any] = {
        "outcome": label,
        "kind": kind,
        "infra_healthy": healthy,
        "target_completed": completed,
        "phase": Phase.RUN,
        "start": START + trial,
        "duration": 0.5,
        "site": f"test_agent.py:{10 + list(LETTERS).index(letter)}",
    }
    return TrialRow(case=case, trial=trial, **{**base, **fields})


def record(
    store: Store,
    cases: Mapping[str, str],
    *,
    run_id: str = "20261130T063300Z-aaaaaa",
    plans: Mapping[str, Mapping[str, Any]] | None = None,
    rows: Sequence[TrialRow] = (),
    checks: Sequence[tuple[TrialRow, Sequence[CheckRow]]] = (),
    t_unit: str | None = None,
    status: RunStatus = RunStatus.COMPLETED,
    summarise: bool = False,
    **manifest: Any,
) -> StoredRun:
    """Record a run of ``cases`` (id -> letters) and load it.

    ``plans`` changes fields of a case's plan, ``rows`` and ``checks`` are appended after the letters.
    """
    planned = [
        CasePlan(**{"id": case, "planned": len(letters), "pass_rule": "rule", **(plans or {}).get(case, {})})
        for case, letters in cases.items()
    ]
    trials = sum(p.planned for p in planned)
    head = {
        "created": "2026-11-30T06:33:00.000Z",
        "updated": "2026-11-30T06:34:00.000Z",
        "k": max((p.planned for p in planned), default=1),
        "planned_cases": len(planned),
        "total_cases": len(planned),
        "planned_trials": trials,
        "case_ids": [p.id for p in planned],
    }
    writer = store.begin(Manifest(id=run_id, **{**head, **manifest}))
    writer.write_plan(Plan(cases=planned))
    for case, letters in cases.items():
        for trial, letter in enumerate(letters, 1):
            if letter != ".":
                writer.append(row(case, trial, letter, t_unit=t_unit))
    for extra in rows:
        writer.append(extra)
    for extra, its_checks in checks:
        writer.append(extra, its_checks)
    if status is RunStatus.RUNNING:
        writer.close()
    else:
        writer.seal(status)
    if summarise:
        from pytest_crashlab.compare import run_numbers, summary_fields

        store.set_fields(run_id, summary=summary_fields(run_numbers(store.load(run_id))))
    return store.load(run_id)
