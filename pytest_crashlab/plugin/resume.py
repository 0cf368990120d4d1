"""Going on with a run that ended early: only planned trials without a decision run again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import UsageError
from pytest_crashlab.plugin.sources import changed
from pytest_crashlab.records.case import CasePlan

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pytest_crashlab.store.runs import Store
    from pytest_crashlab.store.schema import Manifest

LATEST = "latest"
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """What a resumed run still has to do.

    ``cases`` its plan; ``decided`` case id -> numbers of the trials that have a decision or are
    excluded; ``attempts`` case id -> trial number -> attempts so far; ``failed`` the cases with a
    trial that failed for good; ``selection`` whether the run was of selected cases, so that others
    are left out instead of refused.
    """

    cases: list[CasePlan]
    decided: dict[str, list[int]]
    attempts: dict[str, dict[int, int]]
    failed: list[str]
    selection: bool

    @classmethod
    def from_mapping(cls, data: dict[str, Any]) -> Remaining:
        """The value whose ``dataclasses.asdict`` went through JSON, which knows text keys only."""
        return cls(
            cases=[CasePlan(**case) for case in data["cases"]],
            decided=data["decided"],
            failed=data["failed"],
            attempts={
                case: {int(trial): count for trial, count in trials.items()}
                for case, trials in data["attempts"].items()
            },
            selection=data["selection"],
        )


def find_run(store: Store, ref: str) -> Manifest:
    """The run that ``--crashlab-resume`` names, by its id, the start of it, or ``latest``."""
    known = store.run_ids()
    if ref == LATEST and known:
        return store.manifests()[0]
    ids = [run_id for run_id in known if run_id.startswith(ref)]
    if len(ids) > 1 and ref not in ids:
        some = ", ".join(ids[:_MOST_NAMED])
        raise UsageError(
            f"--crashlab-resume={ref} may be any of {len(ids)} runs ({some}); write more of the id"
        )
    return store.manifest(ref if ref in ids or not ids else ids[0])


def remaining(store: Store, manifest: Manifest) -> Remaining:
    """What is left of a run, from its tables or its journal."""
    run = store.load(manifest.id)
    fields = ("id", "planned", "content", "pass_rule", "min_passes", "uses_trial", "file", "line")
    cases = [
        CasePlan(**{name: row["case" if name == "id" else name] for name in fields})
        for row in run.cases.iter_rows(named=True)
    ]
    if not cases:
        raise UsageError(
            f"run {manifest.id} cannot be resumed: it ended before it knew what to run; begin a new run"
        )
    decided: dict[str, list[int]] = {}
    attempts: dict[str, dict[int, int]] = {}
    failed: dict[str, None] = {}
    columns = ("case", "trial", "attempt", "decision", "deciding")
    for case, trial, attempt, decision, deciding in run.trials.select(columns).iter_rows():
        trials = attempts.setdefault(case, {})
        trials[trial] = max(attempt, trials.get(trial, 0))
        if deciding and decision not in (None, "inconclusive"):
            decided.setdefault(case, []).append(trial)
            if decision == "fail":
                failed[case] = None
    return Remaining(
        cases=cases, decided=decided, attempts=attempts, failed=list(failed), selection=manifest.partial
    )


def refuse_changed_target(manifest: Manifest, root: Path) -> None:
    """Raise ``UsageError`` where the files under test are not those the run began with."""
    from pytest_crashlab.store.git import git_fields, read_head

    before, now = manifest.git or {}, git_fields(read_head(root)) or {}
    if before.get("tree") and now.get("tree") and before["tree"] != now["tree"]:
        raise UsageError(
            f"run {manifest.id} cannot be resumed: the files under test changed since it began at commit "
            f"{str(before.get('commit'))[:7]}; check them out again, or begin a new run"
        )


def refuse_changed_sources(manifest: Manifest, target: dict[str, str], evaluation: dict[str, str]) -> None:
    """Raise ``UsageError`` that names what changed of the files that the project declares."""
    for what, now in (("target", target), ("evaluation", evaluation)):
        if differing := changed(manifest.sources.get(what, {}), now):
            raise UsageError(
                f"run {manifest.id} cannot be resumed: its {what} changed since it began "
                f"({', '.join(differing)}); restore it, or begin a new run"
            )


def refuse_other_trials(manifest: Manifest, trials: int | None) -> None:
    """Raise ``UsageError`` where another number of trials is asked for than the run was planned with."""
    if trials is not None and trials != manifest.k:
        raise UsageError(
            f"run {manifest.id} cannot be resumed with --trials={trials}: it was planned with {manifest.k}; "
            "leave the option out, or begin a new run"
        )


def refuse_changed_config(manifest: Manifest, now: dict[str, str]) -> None:
    """Raise ``UsageError`` that names the settings declared otherwise than when the run began."""
    before = manifest.run_config
    if differing := sorted(key for key in {*before, *now} if before.get(key) != now.get(key)):
        raise UsageError(
            f"run {manifest.id} cannot be resumed: its declared configuration changed since it began "
            f"({', '.join(differing)}); declare it as it was, or begin a new run"
        )


def refuse_other_split(manifest: Manifest, split: str) -> None:
    """Raise ``UsageError`` where another split would be collected than the run was planned with."""
    if manifest.split not in (None, split):
        raise UsageError(
            f"run {manifest.id} measured the {manifest.split} split; to go on with it, give "
            f"--crashlab-split={manifest.split}"
        )


def refuse_changed_plan(planned: Iterable[CasePlan], now: Iterable[CasePlan]) -> None:
    """Raise ``UsageError`` that says what differs between the stored plan and the collected cases."""
    before, after = {c.id: c for c in planned}, {c.id: c for c in now}
    found = []
    for what, cases in (
        ("gone", [i for i in before if i not in after]),
        ("new", [i for i in after if i not in before]),
        (
            "with other parameters",
            [i for i in before if i in after and _differs(before[i], after[i], "content")],
        ),
        (
            "with another test source or check",
            [i for i in before if i in after and _differs(before[i], after[i], "pass_rule")],
        ),
    ):
        if cases:
            more = "" if len(cases) <= _MOST_NAMED else f" and {len(cases) - _MOST_NAMED} more"
            found.append(f"{len(cases)} {what} ({', '.join(cases[:_MOST_NAMED])}{more})")
    if found:
        raise UsageError(f"the run cannot be resumed, its cases changed: {'; '.join(found)}; begin a new run")


def _differs(before: CasePlan, after: CasePlan, name: str) -> bool:
    """Whether a known value changed; a plan from ids alone, of a run killed early, knows none."""
    old = getattr(before, name)
    return bool(old) and old != getattr(after, name)
