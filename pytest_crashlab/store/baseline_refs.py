"""From ``--baseline=REF`` to a run: the store and git are read here, the choice is made elsewhere."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import BaselineError, StoreError
from pytest_crashlab.records.comparison import Note
from pytest_crashlab.store.baselines import resolve
from pytest_crashlab.store.candidates import Target, short_run
from pytest_crashlab.store.explicit import (
    Question,
    known_names,
    near_name,
    recorded_for,
    resolve_explicit,
)
from pytest_crashlab.store.git import GitFailed, GitGraph, look_at_head

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from pytest_crashlab.store.baselines import Resolution, WalkStep
    from pytest_crashlab.store.git import Head
    from pytest_crashlab.store.runs import Store
    from pytest_crashlab.store.schema import Manifest


def resolve_baseline(
    store: Store,
    ref: str,
    *,
    cwd: str | os.PathLike[str],
    dataset: str | None = None,
    split: str | None = None,
    own_run: str | None = None,
    saving: str | None = None,
    environment: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> Resolution:
    """The run that ``ref`` means for what is checked out at ``cwd``.

    ``dataset`` and ``split`` None: not known yet, any. ``saving`` the name that the session will
    promote to: it may be new. ``environment`` as the candidate's manifest will have it, for notes.
    ``env`` where CI variables are read from, by default this process's.

    Raises :class:`BaselineError` for an explicit reference that does not resolve or names a run that
    may be no baseline, and for a name that is a slip of an existing one; other :class:`StoreError`
    when the store cannot be read: that is never "no baseline".
    """
    folder = Path(cwd)
    ref = ref.strip()
    if not ref:
        raise BaselineError("--baseline is empty; name a branch, a run or a file.")
    head, graph, problem = _look(folder, env)
    runs, no_access = _manifests(store)
    question = Question(
        ref=ref,
        store=store,
        runs=runs,
        graph=graph,
        cwd=folder,
        dataset=dataset,
        split=split,
        own_run=own_run,
    )
    known = known_names(question) if no_access is None else []
    explicit = resolve_explicit(question, is_name=ref in known)
    if explicit is not None:
        return explicit
    promotions = _promotions(store, ref) if no_access is None else ()
    branch = head is not None and ref in (head.branch, head.target)
    if not (branch or ref in known or ref == saving or (graph is not None and graph.tips(ref))):
        slip = near_name(ref, known)
        if slip is not None:
            raise BaselineError(
                f"Nothing was recorded for {ref!r}; did you mean {slip!r}? A new name begins with "
                f"'--save-baseline={ref}'."
            )
    target = Target(
        name=ref,
        dataset=dataset,
        split=split,
        own_run=own_run,
        promotions=promotions,
        gone=_gone(store, ref, runs, promotions) if no_access is None else {},
        no_access=no_access,
        now=time.time(),
        environment=environment,
        saving=saving == ref,
    )
    found = resolve(graph, runs, head, target)
    _refuse_unreadable(store, found, promotions)
    notes = (*found.notes, *_store_notes(store), *_git_note(problem))
    if found.run is None:
        return replace(found, notes=notes)
    run_id = found.run.id
    return replace(found, notes=notes, loader=lambda: store.load(run_id))


def explain(
    store: Store,
    name: str,
    *,
    cwd: str | os.PathLike[str],
    dataset: str | None = None,
    split: str | None = None,
    env: Mapping[str, str] | None = None,
) -> list[WalkStep]:
    """The commits that were walked for ``name`` with the runs on each and why some were refused.

    The last step, without a commit, has the runs recorded for the name that are on none of them. An
    explicit reference walks nothing.
    """
    return list(resolve_baseline(store, name, cwd=cwd, dataset=dataset, split=split, env=env).walk)


def _look(cwd: Path, env: Mapping[str, str] | None) -> tuple[Head | None, GitGraph | None, str | None]:
    try:
        return look_at_head(cwd, env=env), GitGraph(cwd, env=env), None
    except GitFailed as error:
        return None, None, str(error)


def _manifests(store: Store) -> tuple[list[Manifest], str | None]:
    try:
        return store.manifests(), None
    except StoreError as error:
        if isinstance(error.__cause__, PermissionError):
            return [], f"{error.__cause__.filename}: permission denied"
        raise


def _promotions(store: Store, name: str) -> tuple[str, ...]:
    try:
        current = store.refs.read(name)
    except StoreError as error:
        if "cannot be a baseline's name" in str(error):
            raise BaselineError(str(error)) from None
        raise
    ids = [current] if current is not None else []
    return tuple(dict.fromkeys([*ids, *(str(e["run"]) for e in store.refs.history(name))]))


def _gone(store: Store, name: str, runs: list[Manifest], promotions: tuple[str, ...]) -> dict[str, str]:
    """Runs that had to do with ``name`` and are not there any more, with the date where known."""
    there = {m.id for m in runs} | {p.run_id for p in store.problems}
    gone = dict.fromkeys((run_id for run_id in promotions if run_id not in there), "")
    for entry in store.ledger.read("deletion"):
        named = name in entry.get("recorded_for", ()) or entry.get("branch") == name
        if entry.get("run") not in there and (named or entry.get("run") in gone):
            gone[str(entry["run"])] = str(entry["at"])
    return gone


def _refuse_unreadable(store: Store, found: Resolution, promotions: tuple[str, ...]) -> None:
    """A run that cannot be read is an error where it, or the only answer, may be the baseline."""
    for problem in store.problems:
        current = bool(promotions) and problem.run_id == promotions[0]
        if current or found.run is None:
            raise StoreError(
                f"The baseline {found.ref} cannot be told, as run {short_run(problem.run_id)} is damaged: "
                f"{problem.text}"
            )


def _store_notes(store: Store) -> tuple[Note, ...]:
    if not store.problems:
        return ()
    first, count = short_run(store.problems[0].run_id), len(store.problems)
    whose = f"Run {first}" if count == 1 else f"{count} runs, {first} among them,"
    return (Note(code="runs_unreadable", text=f"{whose} could not be read and could not be the baseline."),)


def _git_note(problem: str | None) -> tuple[Note, ...]:
    if problem is None or "not a git repository" in problem:
        return ()
    return (Note(code="git_unreadable", text=f"Git gave no history: {problem}."),)


__all__ = ["explain", "recorded_for", "resolve_baseline"]
