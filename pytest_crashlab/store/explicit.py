"""References that say exactly which run is meant: an id, a file, a release, a commit, a promotion."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_crashlab.errors import BaselineError, StoreError
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store.baselines import Resolution
from pytest_crashlab.store.candidates import failed_gate, short_commit, short_run, unfit
from pytest_crashlab.store.export import load_export
from pytest_crashlab.store.runs import Store, StoredRun

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_crashlab.store.git import GitGraph
    from pytest_crashlab.store.schema import Manifest

_PROMOTION = re.compile(r"(?P<name>.+)@\{(?P<back>\d+)\}")
_LIKE_AN_ID = re.compile(r"\d{4,8}|\d{8}T\d{0,6}Z?(-[a-z0-9]{0,6})?|\d{8}-[a-z0-9]{1,6}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A reference with all that it may be looked up in."""

    ref: str
    store: Store
    runs: Sequence[Manifest]
    graph: GitGraph | None
    cwd: Path
    dataset: str | None
    split: str | None
    own_run: str | None


def resolve_explicit(question: Question, *, is_name: bool) -> Resolution | None:
    """The run that an explicit reference names; None when the reference is a name.

    ``is_name``: something was promoted or recorded under it, which comes before a run id's prefix.
    Raises :class:`BaselineError` with near misses for a reference that names nothing, and for a run
    that may be no baseline.
    """
    ref = question.ref
    if ref.startswith("release:"):
        return _release(question, ref.removeprefix("release:"))
    if ref.startswith("commit:"):
        return _commit(question, ref.removeprefix("commit:"))
    if ref.endswith("@newest"):
        return _newest(question, ref.removesuffix("@newest"))
    if match := _PROMOTION.fullmatch(ref):
        return _promotion(question, match["name"], int(match["back"]))
    if _is_path(ref):
        return _path(question, (question.cwd / Path(ref).expanduser()))
    return _id(question, is_name=is_name)


def _id(question: Question, *, is_name: bool) -> Resolution | None:
    ref = question.ref
    exact = [m for m in question.runs if m.id == ref]
    if exact or is_name:
        return _found(question, exact[0], "named by its id") if exact else None
    matches = [m for m in question.runs if m.id.startswith(ref) or short_run(m.id).startswith(ref)]
    matches = matches or [m for m in question.runs if len(ref) == 6 and m.id.endswith(f"-{ref}")]
    if len(matches) == 1 and len(ref) >= 4:
        return _found(question, matches[0], "named by its id")
    if not _LIKE_AN_ID.fullmatch(ref):
        return None
    if matches:
        fits = _list([m.id for m in matches])
        raise BaselineError(f"Baseline {ref} fits {len(matches)} runs, {fits}; write more of the id.")
    raise BaselineError(f"No run's id begins with {ref}{_near(ref, [m.id for m in question.runs])}")


def _is_path(ref: str) -> bool:
    return ref.startswith((".", "/", "~")) or "\\" in ref or ref.endswith(".crashrun") or ref[1:2] == ":"


def _found(
    question: Question, run: Manifest, how: str, load: Callable[[], StoredRun] | None = None
) -> Resolution:
    why = unfit(run, dataset=question.dataset, split=question.split, own_run=question.own_run)
    if why is not None:
        raise BaselineError(f"Run {run.id} may not be the baseline: {why}; choose another.")
    store = question.store
    return Resolution(
        ref=question.ref,
        run=run,
        reason=f"baseline {short_run(run.id)} ({how})",
        notes=() if (failed := failed_gate(run)) is None else (failed,),
        loader=load or (lambda: store.load(run.id)),
    )


def _fit(question: Question, runs: Sequence[Manifest]) -> list[Manifest]:
    return [
        m
        for m in runs
        if unfit(m, dataset=question.dataset, split=question.split, own_run=question.own_run) is None
    ]


def _first_fit(question: Question, runs: list[Manifest], how: str) -> Resolution:
    """The newest that may be used; when none may, the reason of the newest."""
    return _found(question, (_fit(question, runs) or runs)[0], how)


def _release(question: Question, release: str) -> Resolution:
    runs = [m for m in question.runs if m.release == release]
    if not runs:
        known = sorted({m.release for m in question.runs if m.release})
        raise BaselineError(f"No run has the release {release!r}{_near(release, known)}")
    return _first_fit(question, runs, f"release {release}, its newest run")


def _commit(question: Question, revision: str) -> Resolution:
    wanted = revision.lower()
    is_hex = re.fullmatch(r"[0-9a-f]{4,64}", wanted) is not None
    commit_of = {m.id: str((m.git or {}).get("commit", "")) for m in question.runs}
    runs = [m for m in question.runs if is_hex and commit_of[m.id].startswith(wanted)]
    if not runs and question.graph is not None and (full := question.graph.commit(revision)):
        runs = [m for m in question.runs if commit_of[m.id] == full]
    commits = sorted({commit_of[m.id] for m in runs})
    if len(commits) > 1:
        fits = _list([c[:12] for c in commits])
        raise BaselineError(f"commit:{revision} fits {fits}; write more of the id.")
    clean = [m for m in runs if not (m.git or {}).get("dirty")]
    if runs and not clean:
        raise BaselineError(
            f"The only run at commit {short_commit(commits[0])} is {short_run(runs[0].id)}, and its files "
            "had changes that are not committed; name that run by its id if you mean it."
        )
    if not runs:
        known = sorted({commit[:7] for commit in commit_of.values() if commit})
        raise BaselineError(f"No run was recorded at commit {revision}{_near(revision, known)}")
    return _first_fit(question, clean, f"commit {short_commit(commits[0])}")


def _newest(question: Question, name: str) -> Resolution:
    promoted = {e["run"] for e in question.store.refs.history(name)} | {question.store.refs.read(name)}
    runs = [m for m in question.runs if m.id in promoted or recorded_for(m, name)]
    if not runs:
        raise BaselineError(f"No run was recorded for {name!r}{_near(name, known_names(question))}")
    return _first_fit(question, runs, f"the newest run recorded for {name}")


def _promotion(question: Question, name: str, back: int) -> Resolution:
    current = question.store.refs.read(name)
    if current is None:
        raise BaselineError(f"Nothing was promoted as {name!r}{_near(name, known_names(question))}")
    ids = [str(e["run"]) for e in question.store.refs.history(name)] or [current]
    if back >= len(ids):
        raise BaselineError(
            f"{name}@{{{back}}} is further back than the {len(ids)} promotions of {name!r} that are known."
        )
    ago = "1 promotion" if back == 1 else f"{back} promotions"
    how = f"{name}, its newest promotion" if back == 0 else f"{name}, {ago} ago"
    run = next((m for m in question.runs if m.id == ids[back]), None)
    if run is None:
        run = _deleted_or_corrupt(question.store, ids[back])
    return _found(question, run, how)


def _deleted_or_corrupt(store: Store, run_id: str) -> Manifest:
    gone = [e["at"] for e in store.ledger.read("deletion") if e.get("run") == run_id]
    if gone:
        raise BaselineError(f"Run {run_id} was deleted on {gone[-1][:10]}; choose another.")
    try:
        return store.manifest(run_id)
    except StoreError as error:
        raise BaselineError(str(error)) from error


def _path(question: Question, path: Path) -> Resolution:
    if path.is_file():
        exported = load_export(path)
        return _found(question, exported.manifest, f"file {path.name}", lambda: exported)
    if (path / "manifest.json").is_file():
        other = Store.open(path.resolve().parent.parent)
        run_id = path.resolve().name
        return _found(question, other.manifest(run_id), f"folder {path}", lambda: other.load(run_id))
    if path.is_dir():
        raise BaselineError(f"{path} is a folder without a run; name a run's folder or a .crashrun file.")
    beside = [p.name for p in path.parent.glob("*.crashrun")] if path.parent.is_dir() else []
    raise BaselineError(f"There is no run at {path}{_near(path.name, beside)}")


def recorded_for(run: Manifest, name: str) -> bool:
    """Whether a run was promoted under ``name`` or is of the branch ``name``."""
    git = run.git or {}
    return name in run.recorded_for or (git.get("branch") == name and not git.get("pull_request"))


def known_names(question: Question) -> list[str]:
    """All names that something was promoted or recorded under."""
    names = set(question.store.refs.all())
    for run in question.runs:
        names.update(run.recorded_for)
        git = run.git or {}
        if run.status is RunStatus.COMPLETED and git.get("branch") and not git.get("pull_request"):
            names.add(str(git["branch"]))
    return sorted(names)


def near_name(name: str, known: Sequence[str]) -> str | None:
    """The known name that ``name`` probably was meant to be.

    Names that differ in their digits alone are different names (``release/2.4`` beside
    ``release/2.3``), not a slip.
    """
    digits = re.sub(r"\D", "", name)
    same = [k for k in known if re.sub(r"\D", "", k) == digits]
    lowered = {k.lower(): k for k in same}
    near = get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.75)
    return lowered[near[0]] if near else None


def _near(text: str, known: Sequence[str]) -> str:
    near = get_close_matches(text, known, n=3, cutoff=0.6)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f"; there are {_list(known)}." if known else "; there are none."


def _list(texts: Sequence[str]) -> str:
    return ", ".join(texts[:5]) + (f" and {len(texts) - 5} more" if len(texts) > 5 else "")
