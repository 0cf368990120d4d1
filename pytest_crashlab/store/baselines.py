"""Which run a name means: the one recorded nearest below the commit that is being changed.

Nothing here reads a file or asks git by itself: :func:`resolve` gets the history, the manifests and
what is checked out, so that every rule can be tested alone. The rules, in order:

1. *base*: the commit that what is tested is based on. For the merge commit of a pull request its
   first parent; on a branch the merge base with the named branch; on the named branch itself the
   commit before (the same commit while it has changes).
2. *candidates*: completed runs of the whole plan, neither replayed nor answered from a cache, of the same
   dataset and split, promoted under the name, or of a tree that is exactly a walked commit's; never the run
   itself, never one of the branch under test, unless the name is no branch but a label given to it.
3. *walk*: from the base through first parents, at most 200 commits; the first with a candidate.
4. *fall back*: the newest promotion of the name, with a note that it is no ancestor.
5. *missing*: with one of four names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pytest_crashlab.errors import BaselineError
from pytest_crashlab.records.comparison import Note
from pytest_crashlab.store.candidates import Candidates, short_commit, short_run
from pytest_crashlab.store.missing import why_missing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_crashlab.store.candidates import Refusal, Target
    from pytest_crashlab.store.git import Commit, Head
    from pytest_crashlab.store.runs import StoredRun
    from pytest_crashlab.store.schema import Manifest

WALK_LIMIT = 200
_MANY_ALTERNATIVES = 5


class Graph(Protocol):
    """The history that :func:`resolve` asks; :class:`pytest_crashlab.store.git.GitGraph` reads git."""

    @property
    def shallow(self) -> bool:
        """Whether a part of the history is not there."""

    def tips(self, name: str) -> list[str]:
        """Where the branch ``name`` stands, here and at remotes."""

    def merge_bases(self, a: str, b: str) -> list[str]:
        """All best common ancestors."""

    def first_parents(self, commit: str, limit: int) -> list[Commit]:
        """``commit`` and its first parents, ``commit`` at least."""

    def count(self, since: str, until: str) -> int | None:
        """How many commits ``until`` has that ``since`` has not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The commit that what is tested is based on, and how sentences speak of it.

    ``name`` as in "2 commits before NAME"; ``at`` as in "main, 8202b46, AT"; ``offset`` how many
    commits it already is before ``name``. ``commit`` None: there is none, for the cause in ``name``.
    """

    commit: str | None
    name: str
    at: str = ""
    offset: int = 0
    branch_known: bool = True

    @property
    def searched(self) -> str:
        """Which commits a search from here looks at, or why it looks at none."""
        if self.commit is None:
            return self.name
        return f"no run before {self.name}" if self.offset else f"no run at or before {self.name}"

    def before(self, distance: int) -> str:
        """``2 commits before your branch point 8202b46``."""
        count = distance + self.offset
        return f"{_commits(count)} before {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkStep:
    """A commit of the walk with the runs on it: those that could be chosen and those refused.

    ``commit`` None: the runs recorded for the name that are on no walked commit.
    """

    commit: str | None
    distance: int | None
    candidates: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What a baseline reference came to.

    ``run`` None: there is none, ``missing`` has one of the names "never recorded", "expired or
    deleted", "no access", "not in this clone", and ``reason`` the whole sentence. ``distance`` is
    counted in commits from the base, None where the run was not found by walking. ``alternatives``
    are other runs that could have been chosen, nearest first. ``base`` is the commit compared from.
    """

    ref: str
    run: Manifest | None
    reason: str
    distance: int | None = None
    alternatives: tuple[Manifest, ...] = ()
    missing: str | None = None
    notes: tuple[Note, ...] = ()
    base: str | None = None
    walk: tuple[WalkStep, ...] = ()
    loader: Callable[[], StoredRun] | None = None

    def load(self) -> StoredRun:
        """The run with its tables; :class:`BaselineError` when there is none."""
        if self.loader is None:
            raise BaselineError(self.reason)
        return self.loader()


def resolve(graph: Graph | None, runs: Sequence[Manifest], head: Head | None, target: Target) -> Resolution:
    """The run that ``target.name`` means for what is checked out.

    ``graph`` and ``head`` are None where there is no git. The answer depends on the arguments alone.
    """
    tips = [] if graph is None else graph.tips(target.name)
    is_branch = bool(tips) or (head is not None and target.name in (head.branch, head.target))
    candidates = Candidates(runs, head, target, is_branch=is_branch)
    if graph is None or head is None:
        base = Base(commit=None, name="no git repository here", branch_known=False)
        return _newest_promotion(candidates, base, (), None, head)
    base = find_base(graph, head, target.name, tips)
    if base.commit is None:
        return _newest_promotion(candidates, base, _elsewhere(candidates, ()), graph, head)
    commits = graph.first_parents(base.commit, WALK_LIMIT)
    steps: list[WalkStep] = []
    others: list[Manifest] = []
    chosen: tuple[int, Commit, Manifest] | None = None
    for distance, commit in enumerate(commits):
        good, refused = candidates.on(commit)
        if good and chosen is None:
            chosen = (distance, commit, good.pop(0))
            good_ids: tuple[str, ...] = (chosen[2].id, *(m.id for m in good))
        else:
            good_ids = tuple(m.id for m in good)
        others += good
        if chosen is None or good_ids or refused:
            steps.append(WalkStep(commit=commit.id, distance=distance, candidates=good_ids, refused=refused))
    walk = (*steps, *_elsewhere(candidates, commits))
    if chosen is None:
        return _newest_promotion(candidates, base, walk, graph, head)
    distance, commit, run = chosen
    return Resolution(
        ref=target.name,
        run=run,
        reason=f"baseline {short_run(run.id)} ({_place(target.name, run, commit.id, distance, base)})",
        distance=distance,
        alternatives=tuple(others[:_MANY_ALTERNATIVES]),
        notes=(*_far(distance, base), *candidates.notes(run)),
        base=base.commit,
        walk=walk,
    )


def find_base(graph: Graph, head: Head, name: str, tips: list[str]) -> Base:
    """The commit that what is tested is based on, for a branch ``name`` that stands at ``tips``.

    Where several branches have the name (a fork's and its origin's, a local and a remote one) the
    merge base nearest to what is tested counts: the others are stale. A name that is no branch
    stands for the branch that a pull request is to be merged into, where a CI service says which.
    """
    if head.merged_into is not None and _merges_into(graph, head, name, tips):
        commit = head.merged_into
        at = "the commit this pull request merges into"
        return Base(commit=commit, name=f"{short_commit(commit)}, which it merges into", at=at)
    if head.branch == name and not head.pull_request:
        return _before(head)
    if not tips and head.target is not None:
        tips = graph.tips(head.target)
    found = list(dict.fromkeys(_merge_base(graph, head.commit, tip) for tip in tips))
    bases = [base for base in found if base is not None]
    if not bases and head.target == name and head.ci_base is not None:
        bases = [head.ci_base]
    if not bases:
        if tips:
            return Base(commit=None, name=f"no common history with {name} in this clone")
        if head.target == name:
            return Base(commit=None, name=f"branch {name} is not in this clone")
        return Base(commit=None, name=f"no branch is called {name}", branch_known=False)
    nearest = min(bases, key=lambda base: _or_many(graph.count(base, head.commit)))
    if nearest == head.commit and head.branch is None and not head.pull_request:
        return _before(head)  # an older commit of the branch, checked out by its id
    point = f"your branch point {short_commit(nearest)}"
    return Base(commit=nearest, name=point, at="your branch point")


def _merges_into(graph: Graph, head: Head, name: str, tips: Sequence[str]) -> bool:
    """Whether the pull request under test is to be merged into ``name``."""
    if head.target is not None or head.merged_into is None:
        return head.target == name
    bases = [graph.merge_bases(head.merged_into, tip) for tip in tips]
    return not any(bases) or [head.merged_into] in bases  # none: the clone is too shallow to tell


def _before(head: Head) -> Base:
    if head.dirty:
        changed = f"{short_commit(head.commit)}, which you are changing"
        return Base(commit=head.commit, name=changed, at="the commit you are changing")
    if not head.parents:
        return Base(commit=None, name="there is no commit before this one")
    return Base(commit=head.parents[0], name="this commit", at="the commit before this one", offset=1)


def _merge_base(graph: Graph, commit: str, tip: str) -> str | None:
    """Of several merge bases (histories that crossed) the one that is a step of the branch itself."""
    bases = graph.merge_bases(commit, tip)
    if len(bases) > 1:
        own = [c.id for c in graph.first_parents(tip, 50 * WALK_LIMIT)]
        bases.sort(key=lambda base: own.index(base) if base in own else len(own))
    return bases[0] if bases else None


def _or_many(count: int | None) -> int:
    return 10**9 if count is None else count


def _place(name: str, run: Manifest, commit: str, distance: int, base: Base) -> str:
    """``main, 1f26568, 2 commits before your branch point 8202b46: no run there``."""
    branch = (run.git or {}).get("branch")
    whose = name if name in run.recorded_for or branch in (None, name) else f"{branch}, same files as {name}"
    where = f"{base.before(distance)}: no run there" if distance else base.at
    return f"{whose}, {short_commit(commit)}, {where}"


def _commits(count: int) -> str:
    return "1 commit" if count == 1 else f"{count} commits"


def _far(distance: int, base: Base) -> tuple[Note, ...]:
    if distance <= 20:
        return ()
    return (Note(code="baseline_far", text=f"The baseline is {base.before(distance)}."),)


def _elsewhere(candidates: Candidates, commits: Sequence[Commit]) -> tuple[WalkStep, ...]:
    refused = candidates.not_on(commits)
    return (WalkStep(commit=None, distance=None, refused=refused),) if refused else ()


def _newest_promotion(
    candidates: Candidates,
    base: Base,
    walk: tuple[WalkStep, ...],
    graph: Graph | None,
    head: Head | None,
) -> Resolution:
    name = candidates.target.name
    promoted = candidates.promoted()
    shallow = graph is not None and graph.shallow
    if not promoted:
        missing, sentence = why_missing(
            candidates, base.searched, branch_known=base.branch_known, shallow=shallow
        )
        return Resolution(ref=name, run=None, reason=sentence, missing=missing, base=base.commit, walk=walk)
    run = promoted[0]
    notes = candidates.notes(run)
    if graph is not None and head is not None and base.branch_known:
        notes = (_no_ancestor(graph, head, run, shallow=shallow), *notes)
    return Resolution(
        ref=name,
        run=run,
        reason=f"baseline {short_run(run.id)} ({name}, its newest promotion: {base.searched})",
        alternatives=tuple(promoted[1 : 1 + _MANY_ALTERNATIVES]),
        notes=notes,
        base=base.commit,
        walk=walk,
    )


def _no_ancestor(graph: Graph, head: Head, run: Manifest, *, shallow: bool) -> Note:
    commit = (run.git or {}).get("commit")
    if commit == head.commit:
        return Note(
            code="baseline_same_commit",
            text=f"The baseline was recorded at this same commit {short_commit(commit)}.",
        )
    ahead = None if commit is None else graph.count(head.commit, commit)
    if shallow:
        why = "shallow clone"
    elif ahead is None:
        why = "its commit is not in this clone" if commit else "it has no commit"
    else:
        why = f"{_commits(ahead)} ahead"
    return Note(code="baseline_not_ancestor", text=f"The baseline is not an ancestor of this change ({why}).")
