"""One attempt of a trial as a view: its row, its checks, and what was kept of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytest_crashlab.records.trial import Phase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_crashlab.store import StoredRun

VERSION = 1
MOST_CHARACTERS = 2_000
MOST_ITEMS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseView:
    """A phase and the seconds it took."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckView:
    """A check of the attempt; ``ok`` None: not evaluated. ``seen`` what it expected and observed, if kept."""

    name: str
    required: bool
    ok: bool | None
    why: str | None
    site: str | None
    judge: str | None
    seen: dict[str, Any]
    kind: str | None = None
    value: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    failure_class: str | None = None
    must: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialView:
    """One attempt of a trial.

    ``attempts`` how many the trial has; ``deciding`` whether this one counts; ``row`` the stored row, all
    columns; ``evidence`` the stored document, None where there is none; ``problem`` why it could not be
    read. ``phases`` those whose duration is stored.
    """

    run: str
    case: str
    trial: int
    attempt: int
    attempts: int
    deciding: bool
    row: dict[str, Any]
    phases: tuple[PhaseView, ...]
    checks: tuple[CheckView, ...]
    evidence: dict[str, Any] | None
    problem: str | None


def find_row(run: StoredRun, case: str, trial: int, attempt: int | None = None) -> dict[str, Any] | None:
    """The row of an attempt (None: of the one that counts for its trial), or None where there is none."""
    rows = run.trials.filter((run.trials["case"] == case) & (run.trials["trial"] == trial))
    for row in rows.iter_rows(named=True):
        if row["deciding"] if attempt is None else row["attempt"] == attempt:
            return row
    return None


def trial_view(
    run: StoredRun, row: Mapping[str, Any], evidence: dict[str, Any] | None, problem: str | None = None
) -> TrialView:
    """The view of the attempt that ``row`` describes."""
    case, trial, attempt = row["case"], row["trial"], row["attempt"]
    of_trial = (run.trials["case"] == case) & (run.trials["trial"] == trial)
    seen = (evidence or {}).get("checks")
    return TrialView(
        run=run.manifest.id,
        case=case,
        trial=trial,
        attempt=attempt,
        attempts=int(of_trial.sum()),
        deciding=bool(row["deciding"]),
        row=dict(row),
        phases=_phases(row),
        checks=_checks(run, row, seen if isinstance(seen, dict) else {}),
        evidence=evidence,
        problem=problem,
    )


def _phases(row: Mapping[str, Any]) -> tuple[PhaseView, ...]:
    told = ((phase.value, row.get(f"{phase.value}_duration")) for phase in Phase)
    return tuple(PhaseView(name=name, seconds=seconds) for name, seconds in told if seconds is not None)


_MEASURED = ("kind", "value", "at_least", "at_most", "failure_class", "must")


def _checks(run: StoredRun, row: Mapping[str, Any], seen: dict[str, Any]) -> tuple[CheckView, ...]:
    table = run.checks
    mine = table.filter(
        (table["case"] == row["case"])
        & (table["trial"] == row["trial"])
        & (table["attempt"] == row["attempt"])
    )
    return tuple(
        CheckView(
            name=check["name"],
            required=check["required"],
            ok=check["ok"],
            why=check["why"],
            site=check["site"],
            judge=check["judge"],
            seen=found if isinstance(found := seen.get(check["name"]), dict) else {},
            **{name: check[name] for name in _MEASURED},
        )
        for check in mine.iter_rows(named=True)
    )


def trial_json(view: TrialView, *, raw: bool) -> dict[str, Any]:
    """The view as plain values; bounded unless ``raw``: 2,000 characters of a text, 50 items of a list."""
    data = asdict(view)
    if not raw:
        data["evidence"] = bounded(data["evidence"])
        for check in data["checks"]:
            check["seen"] = bounded(check["seen"])
    return {"schema": "crashlab.trial", "version": VERSION, **data}


def bounded(value: Any) -> Any:
    """A JSON value with its long texts and lists cut, each saying how long it is."""
    if isinstance(value, str) and len(value) > MOST_CHARACTERS:
        return f"{value[:MOST_CHARACTERS]}[... {MOST_CHARACTERS:,} of {len(value):,} characters are shown]"
    if isinstance(value, list):
        shown = [bounded(item) for item in value[:MOST_ITEMS]]
        return [*shown, *([_shown(len(value))] if len(value) > MOST_ITEMS else [])]
    if isinstance(value, dict):
        cut = {key: bounded(inner) for key, inner in list(value.items())[:MOST_ITEMS]}
        return cut | ({"...": _shown(len(value))} if len(value) > MOST_ITEMS else {})
    return value


def _shown(of: int) -> str:
    return f"[... {MOST_ITEMS} of {of:,} are shown]"
