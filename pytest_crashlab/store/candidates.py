"""The runs that a name could mean, and why others could not."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pytest_crashlab.records.comparison import Note, Word
from pytest_crashlab.records.dataset import are_same_split, shares_dataset
from pytest_crashlab.records.run import RunStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_crashlab.store.git import Commit, Head
    from pytest_crashlab.store.schema import Manifest

_OLD_DAYS = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is looked for.

    ``dataset`` and ``split`` None: any; ``own_run`` the id of the run that will be compared;
    ``promotions`` run ids promoted under ``name``, newest first; ``gone`` run id -> date of deletion
    for runs that had to do with ``name``; ``no_access`` why the store could not be read; ``now``
    seconds since the epoch; ``environment`` what the candidate run's manifest says of its own;
    ``saving`` whether the session is to become the baseline ``name`` itself.
    """

    name: str
    dataset: str | None = None
    split: str | None = None
    own_run: str | None = None
    promotions: tuple[str, ...] = ()
    gone: Mapping[str, str] = field(default_factory=dict)
    no_access: str | None = None
    now: float | None = None
    environment: Mapping[str, Any] | None = None
    saving: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A run that was not chosen, and why, in a few words."""

    run_id: str
    why: str


def short_run(run_id: str) -> str:
    """A run id as sentences name it: ``20261129-k3v9q2``."""
    match = re.fullmatch(r"(\d{8})T\d{6}Z-([a-z0-9]{6})", run_id)
    return f"{match[1]}-{match[2]}" if match else run_id


def short_commit(commit: str | None) -> str:
    """The first seven characters of a commit id."""
    return "unknown" if commit is None else commit[:7]


def unfit(manifest: Manifest, *, dataset: str | None, split: str | None, own_run: str | None) -> str | None:
    """Why a run can be no baseline at all, in a few words; None when nothing speaks against it."""
    if manifest.id == own_run:
        return "it is this run itself"
    if manifest.status is RunStatus.RUNNING:
        return "it has not finished"
    if manifest.status is not RunStatus.COMPLETED:
        return f"it did not finish ({manifest.status})"
    if manifest.partial or manifest.planned_cases < manifest.total_cases:
        return f"it ran a part of its plan ({manifest.planned_cases} of {manifest.total_cases} cases)"
    if dataset is not None and not shares_dataset(manifest.dataset, dataset):
        return f"it is of another dataset ({manifest.dataset or 'none'}, not {dataset})"
    if split is not None and not are_same_split(manifest.split, split):
        return f"it is of another split ({manifest.split or 'none'}, not {split})"
    return None


def failed_gate(manifest: Manifest) -> Note | None:
    """That a run was itself judged worse than its own baseline, or missed a threshold.

    It may still be a baseline, as the run of its commit, but its faults are then what is compared with.
    """
    gate = manifest.gate or {}
    regressed = gate.get("word") == Word.REGRESSED
    if gate.get("exit_code") != 1 and not regressed:
        return None
    because = [str(text).removesuffix(".") for text in gate.get("because") or ()]
    because = [text for text in because if not (regressed and "regressed" in text)]
    if gate.get("exit_code") != 1:
        because = []
    why = "; ".join([*(["Regressed"] if regressed else []), *because])
    said = (
        "The baseline's own gate failed" if gate.get("exit_code") == 1 else "The baseline was itself judged"
    )
    return Note(code="baseline_gate_failed", text=f"{said} ({why})." if why else f"{said}.")


class Candidates:
    """The stored runs, seen from what is checked out and a name, which is a branch or a label."""

    def __init__(
        self, runs: Sequence[Manifest], head: Head | None, target: Target, *, is_branch: bool
    ) -> None:
        self.target = target
        self._is_branch = is_branch
        self._head = head
        self._runs = sorted(runs, key=lambda m: (m.created, m.id), reverse=True)
        self._by_place: dict[str, list[Manifest]] = {}
        for run in self._runs:
            places = {(run.git or {}).get("commit"), (run.git or {}).get("tree")}
            for place in places - {None}:
                self._by_place.setdefault(str(place), []).append(run)

    def on(self, commit: Commit) -> tuple[list[Manifest], tuple[Refusal, ...]]:
        """Runs of a commit or of its tree: the fit ones, best first, and the refused ones."""
        here = {m.id: m for m in self._by_place.get(commit.id, [])}
        if commit.tree is not None:
            here |= {m.id: m for m in self._by_place.get(commit.tree, [])}
        good: list[Manifest] = []
        refused: list[Refusal] = []
        for run in here.values():
            why = self._refused(run)
            if why is None:
                good.append(run)
            else:
                refused.append(Refusal(run_id=run.id, why=why))
        good.sort(key=lambda m: (m.created, m.id), reverse=True)
        good.sort(key=self._promotion_rank)
        return good, tuple(refused)

    def not_on(self, commits: Sequence[Commit]) -> tuple[Refusal, ...]:
        """The runs recorded for the name that are on none of ``commits``, newest first."""
        places = {c.id for c in commits} | {c.tree for c in commits}
        found = []
        for run in self._runs:
            git = run.git or {}
            if not self._recorded(run) or git.get("commit") in places or git.get("tree") in places:
                continue
            where = (
                f"its commit {short_commit(git['commit'])}" if git.get("commit") else "it has no commit and"
            )
            otherwise = f"{where} is not on the way back from here"
            if self._head is not None and git.get("commit") == self._head.commit:
                otherwise = "it is of this very commit; the search starts at the commit before"
            why = self._refused(run) or otherwise
            found.append(Refusal(run_id=run.id, why=why))
        return tuple(found)

    def promoted(self) -> list[Manifest]:
        """The fit runs promoted under the name, newest promotion first."""
        fit = [m for m in self._runs if self._is_promoted(m) and self._refused(m) is None]
        return sorted(fit, key=self._promotion_rank)

    def recorded(self) -> list[Manifest]:
        """All runs recorded for the name that are fit, wherever they are."""
        return [m for m in self._runs if self._recorded(m) and self._refused(m) is None]

    def recorded_but_refused(self) -> list[Refusal]:
        """All runs recorded for the name that may not be used, and why."""
        return [
            Refusal(run_id=m.id, why=why)
            for m in self._runs
            if self._recorded(m) and (why := self._refused(m)) is not None
        ]

    def notes(self, run: Manifest) -> tuple[Note, ...]:
        """What a reader should know of ``run`` as a baseline: its age, another model or platform."""
        failed = failed_gate(run)
        found: list[Note] = [] if failed is None else [failed]
        if self.target.now is not None:
            days = int((self.target.now - datetime.fromisoformat(run.created).timestamp()) // 86400)
            if days > _OLD_DAYS:
                found.append(Note(code="baseline_old", text=f"The baseline is {days} days old."))
        for key, name in (("model", "model"), ("price_list", "price list"), ("platform", "platform")):
            was, now = run.environment.get(key), (self.target.environment or {}).get(key)
            if was is not None and now is not None and was != now:
                text = f"The baseline ran with another {name} ({was}, now {now})."
                found.append(Note(code=f"baseline_{key}", text=text))
        return tuple(found)

    def _refused(self, run: Manifest) -> str | None:
        target, git = self.target, run.git or {}
        why = unfit(run, dataset=target.dataset, split=target.split, own_run=target.own_run)
        if why is None and run.replayed:
            why = "its provider calls were replayed"
        if why is None and run.cached:
            why = "answers of its provider came from a cache"
        labelled = not self._is_branch and self._is_promoted(run)
        if why is None and self._of_this_branch(git) and not labelled:
            why = f"it is of this branch ({git['branch']})"
        if why is None and git.get("dirty") and not self._is_promoted(run):
            why = "its files had changes that are not committed"
        return why

    def _of_this_branch(self, git: Mapping[str, Any]) -> bool:
        head = self._head
        if head is None or head.branch is None or git.get("branch") != head.branch:
            return False
        if head.branch != self.target.name:
            return True
        # a fork's pull request may come from a branch of the target's name
        return head.pull_request and bool(git.get("pull_request"))

    def _is_promoted(self, run: Manifest) -> bool:
        return run.id in self.target.promotions or self.target.name in run.recorded_for

    def _recorded(self, run: Manifest) -> bool:
        git = run.git or {}
        return self._is_promoted(run) or (
            git.get("branch") == self.target.name and not git.get("pull_request")
        )

    def _promotion_rank(self, run: Manifest) -> int:
        if run.id in self.target.promotions:
            return self.target.promotions.index(run.id)
        return len(self.target.promotions) + (0 if self._is_promoted(run) else 1)
