"""Which runs may be a name's baseline, and making one of them it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import BaselineError
from pytest_crashlab.records.comparison import Word
from pytest_crashlab.store.baselines import WALK_LIMIT
from pytest_crashlab.store.candidates import short_run, unfit
from pytest_crashlab.store.git import GitGraph

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from types import EllipsisType

    from pytest_crashlab.store.runs import Store
    from pytest_crashlab.store.schema import Manifest

_ENOUGH = 0.9
_USUAL_BRANCHES = frozenset({"main", "master", "trunk", "develop"})
FROM_BRANCH = "--crashlab-from-branch"


def promotable(manifest: Manifest) -> list[str]:
    """Why a run may be no one's baseline, each in a few words; empty when it may.

    It has to be sealed, of the whole plan, neither replayed nor answered from a cache, with an
    infrastructure that was healthy and a decision in at least 90 % of the scheduled trials.
    """
    reasons = []
    why = unfit(manifest, dataset=None, split=None, own_run=None)
    if why is not None:
        reasons.append(why)
    if manifest.replayed:
        reasons.append("its provider calls were replayed")
    if manifest.cached:
        reasons.append("answers of its provider came from a cache")
    if manifest.counts is None:
        if why is None:
            reasons.append("its trials were never counted")
        return reasons
    scheduled = manifest.counts["scheduled"]
    decided = manifest.counts["passed"] + manifest.counts["failed"]
    healthy = manifest.counts["healthy"]
    if scheduled == 0:
        reasons.append("it has no trial that counts")
    elif healthy < _ENOUGH * scheduled:
        reasons.append(f"the infrastructure was healthy in {healthy} of {scheduled} trials, under 90 %")
    elif decided < _ENOUGH * scheduled:
        reasons.append(f"{decided} of {scheduled} trials were decided, under 90 %")
    return reasons


def judged_regressed(store: Store, manifest: Manifest) -> bool:
    """Whether the run's gate or one of its kept comparisons said Regressed."""
    words = [(manifest.gate or {}).get("word")]
    words += [comparison.get("word") for comparison in store.comparisons(manifest.id).values()]
    return Word.REGRESSED in words


def judged_worse(store: Store, manifest: Manifest) -> bool:
    """Whether the run was judged Regressed, or its gate failed for a case that is proven worse."""
    if judged_regressed(store, manifest):
        return True
    gate = manifest.gate or {}
    if gate.get("exit_code") != 1:
        return False
    kept = store.comparisons(manifest.id).values()
    proven = any(case.get("proven", 0) < 0 for one in kept for case in one.get("cases") or ())
    return proven or any("proven worse" in str(text) for text in gate.get("because") or ())


def _is_elsewhere(name: str, git: Mapping[str, Any]) -> bool:
    """Whether ``name`` is a branch that this clone does not have, as far as can be known.

    A shallow clone of one branch, and a pull request's checkout, know no other branch; a free label
    such as "nightly" is none.
    """
    if git.get("pull_request") or name == git.get("target"):
        return True
    return git.get("branch") not in (None, name) and name in _USUAL_BRANCHES


def refusals(
    store: Store,
    name: str,
    manifest: Manifest,
    *,
    cwd: str | os.PathLike[str] = ".",
    from_branch: bool = False,
    accept_regression: bool = False,
    reason: str | None = None,
    from_branch_option: str = FROM_BRANCH,
    env: Mapping[str, str] | None = None,
) -> list[str]:
    """Why a run may not be promoted as ``name``, each in a few words; empty when it may.

    Beside :func:`promotable`: a run of another branch or of a pull request needs the files of a
    commit of ``name``, or ``from_branch``; a run that was judged worse
    ``accept_regression`` and a ``reason``. ``from_branch_option`` what that is called where it is asked for.
    """
    found = promotable(manifest)
    git = manifest.git or {}
    own = git.get("branch") == name and not git.get("pull_request")
    if git and not own and not from_branch:
        graph = GitGraph(Path(cwd), env=env)
        tips = graph.tips(name)
        if (tips or _is_elsewhere(name, git)) and git.get("tree") not in _trees(graph, tips):
            whose = "a pull request" if git.get("pull_request") else f"branch {git.get('branch')}"
            if git.get("branch") is None:
                whose = "no branch"
            found.append(
                f"it is of {whose} and its files are those of no commit of {name} ({from_branch_option} "
                "promotes it all the same)"
            )
    if judged_worse(store, manifest) and not (accept_regression and reason):
        said = "was judged Regressed" if judged_regressed(store, manifest) else "has cases proven worse"
        found.append(f"it {said} (--accept-regression with --reason promotes it all the same)")
    return found


def promote(
    store: Store,
    name: str,
    run_id: str,
    *,
    cwd: str | os.PathLike[str] = ".",
    expected: str | EllipsisType | None = ...,
    from_branch: bool = False,
    accept_regression: bool = False,
    reason: str | None = None,
    from_branch_option: str = FROM_BRANCH,
    env: Mapping[str, str] | None = None,
) -> None:
    """Make a run the baseline ``name``.

    ``expected`` the run that ``name`` stood for when the decision was made, by default now. Raises
    :class:`BaselineError` with the reasons for a run that may not be promoted and
    :class:`PromotionConflict` when another session came first.
    """
    if isinstance(expected, type(...)):
        expected = store.refs.read(name)
    manifest = store.manifest(run_id)
    reasons = refusals(
        store,
        name,
        manifest,
        cwd=cwd,
        from_branch=from_branch,
        accept_regression=accept_regression,
        reason=reason,
        from_branch_option=from_branch_option,
        env=env,
    )
    if reasons:
        raise BaselineError(f"Run {short_run(run_id)} was not promoted as {name}: {'; '.join(reasons)}.")
    details: dict[str, Any] = {"commit": (manifest.git or {}).get("commit")}
    if from_branch:
        details["from_branch"] = (manifest.git or {}).get("branch")
    if judged_worse(store, manifest):
        details["accepted_regression"] = reason
    store.refs.promote(name, run_id, expected=expected, **details)
    if name not in manifest.recorded_for:
        store.set_fields(run_id, recorded_for=[*store.manifest(run_id).recorded_for, name])


def _trees(graph: GitGraph, tips: list[str]) -> set[str]:
    return {c.tree for tip in tips for c in graph.first_parents(tip, WALK_LIMIT) if c.tree is not None}
