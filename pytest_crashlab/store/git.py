"""Reading git: the checked-out commit and the history behind it. Nothing is ever written."""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_crashlab.store.ci import read_ci

if TYPE_CHECKING:
    from collections.abc import Mapping

_TIMEOUT = 20.0
# Where git looks and whom it trusts may come from outside; which repository it opens may not: a hook
# of another repository leaves GIT_DIR and the like behind.
_KEPT = ("GIT_CONFIG", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EXEC_PATH")


class GitFailed(Exception):
    """Git is not there, refused, or took too long; what it said. It does not leave the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit of the walked history; ``tree`` None where the clone does not hold the commit."""

    id: str
    tree: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What is checked out.

    ``tree`` the id of the commit's tree, with ``+`` and a digest of what differs from it when
    ``dirty``; ``branch`` None when detached and no CI service says; ``target`` the branch a pull
    request is to be merged into; ``merged_into`` the first parent of a pull request's merge commit;
    ``ci_base`` the branch point as a CI service gives it.
    """

    commit: str
    tree: str
    branch: str | None
    dirty: bool = False
    parents: tuple[str, ...] = ()
    target: str | None = None
    merged_into: str | None = None
    ci_base: str | None = None

    @property
    def pull_request(self) -> bool:
        """Whether this is a pull request under test, and not a branch of the project."""
        return self.target is not None or self.merged_into is not None


def git(cwd: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """The output of a git command in ``cwd``, without its last line's end; :class:`GitFailed`."""
    source = os.environ if env is None else env
    clean = {k: v for k, v in source.items() if not k.startswith("GIT_") or k.startswith(_KEPT)}
    clean |= {
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
    }
    command = ["git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=clean,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GitFailed(f"git {arguments[0]} took more than {_TIMEOUT:g} seconds") from None
    except OSError as error:
        raise GitFailed(f"git cannot be run ({error.strerror or error})") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise GitFailed(said[0] if said else f"git {arguments[0]} ended with {done.returncode}")
    return done.stdout.decode(errors="surrogateescape").removesuffix("\n")


def read_head(cwd: Path, *, env: Mapping[str, str] | None = None) -> Head | None:
    """What is checked out in ``cwd``; None without git, outside a work tree or before a first commit.

    ``env`` (default: this process's) is where CI variables are read from.
    """
    try:
        return look_at_head(cwd, env=env)
    except GitFailed:
        return None


def look_at_head(cwd: Path, *, env: Mapping[str, str] | None = None) -> Head:
    """As :func:`read_head`; :class:`GitFailed` says why there is nothing."""
    env = os.environ if env is None else env
    top = Path(git(cwd, "rev-parse", "--show-toplevel", env=env))
    commit = git(cwd, "rev-parse", "--verify", "HEAD^{commit}", env=env)
    # the object itself: it lists both parents of a merge in a clone of depth 1 too
    header = git(cwd, "cat-file", "commit", commit, env=env).split("\n\n", 1)[0].splitlines()
    tree = next(line[5:] for line in header if line.startswith("tree "))
    parents = tuple(line[7:] for line in header if line.startswith("parent "))
    changes = _changes(top, env)
    try:
        branch: str | None = git(cwd, "symbolic-ref", "--quiet", "--short", "HEAD", env=env)
    except GitFailed:
        branch = None
    ci = read_ci(env)
    target: str | None = None
    merged = len(parents) == 2 and _named_as_merge(cwd, commit, env)
    if ci is not None and ci.target is not None:
        branch = ci.branch or branch
        target = ci.target
        merged = merged or (ci.merged and len(parents) == 2)
    elif ci is not None and branch is None and ci.commit == commit:
        branch = ci.branch
    return Head(
        commit=commit,
        tree=f"{tree}+{changes}" if changes else tree,
        branch=branch,
        dirty=changes is not None,
        parents=parents,
        target=target,
        merged_into=parents[0] if merged else None,
        ci_base=ci.base if ci is not None else None,
    )


def git_fields(head: Head | None, *, base: str | None = None) -> dict[str, Any] | None:
    """What a manifest keeps of ``head``; ``base`` the commit it was compared from, when known."""
    if head is None:
        return None
    return {
        "commit": head.commit,
        "tree": head.tree,
        "branch": head.branch,
        "dirty": head.dirty,
        "base": base or head.merged_into,
        "pull_request": head.pull_request,
        "target": head.target,
    }


def _named_as_merge(cwd: Path, commit: str, env: Mapping[str, str]) -> bool:
    """Whether a ref of the form ``pull/N/merge`` names this commit, as CI checkouts leave it."""
    names = git(cwd, "for-each-ref", f"--points-at={commit}", "--format=%(refname)", env=env)
    return any(
        name.endswith("/merge") and ("/pull/" in name or "/merge-requests/" in name)
        for name in names.splitlines()
        if not name.startswith("refs/heads/")
    )


def _changes(top: Path, env: Mapping[str, str]) -> str | None:
    """A digest of what differs from the commit, None where nothing does.

    Tracked files count, and of the files git does not know those in Python outside environments: a
    new module is part of what is tested, the reports and caches that a session leaves are not.
    """
    status = git(top, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", env=env)
    entries = sorted(entry for entry in status.split("\0") if entry)
    environments = tuple(e[3:].removesuffix("pyvenv.cfg") for e in entries if e.endswith("/pyvenv.cfg"))
    digest = hashlib.sha256()
    found = False
    for entry in entries:
        code, name = entry[:2], entry[3:]
        if code == "??" and (not name.endswith((".py", ".pyi")) or name.startswith(environments)):
            continue
        found = True
        digest.update(f"{code} {name}\0".encode(errors="surrogateescape"))
        digest.update(_content(top / name))
    return digest.hexdigest()[:12] if found else None


def _content(path: Path) -> bytes:
    digest = hashlib.sha256()
    try:
        if path.is_symlink():
            digest.update(os.fsencode(path.readlink()))
        elif path.is_file():
            with path.open("rb") as file:
                while block := file.read(2**20):
                    digest.update(block)
    except OSError as error:
        digest.update(str(error.errno).encode())
    return digest.digest()


class GitGraph:
    """The history of the repository around ``cwd``, asked for as it is needed."""

    def __init__(self, cwd: Path, *, env: Mapping[str, str] | None = None) -> None:
        self._cwd = cwd
        self._env = env

    def _ask(self, *arguments: str) -> str | None:
        try:
            return git(self._cwd, *arguments, env=self._env)
        except GitFailed:
            return None

    @property
    def shallow(self) -> bool:
        """Whether the clone holds only a part of the history."""
        return self._ask("rev-parse", "--is-shallow-repository") == "true"

    def tips(self, name: str) -> list[str]:
        """Where branch ``name`` stands: at ``origin``, at other remotes, here; without repeats."""
        remotes = (self._ask("remote") or "").splitlines()
        remotes.sort(key=lambda remote: remote != "origin")
        names = [f"refs/remotes/{remote}/{name}" for remote in remotes] + [f"refs/heads/{name}"]
        listing = self._ask("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/remotes")
        known = {ref: commit for commit, ref in (line.split(" ", 1) for line in (listing or "").splitlines())}
        return list(dict.fromkeys(known[ref] for ref in names if ref in known))

    def merge_bases(self, a: str, b: str) -> list[str]:
        """All best common ancestors; none where the clone does not reach one."""
        return (self._ask("merge-base", "--all", a, b) or "").split()

    def first_parents(self, commit: str, limit: int) -> list[Commit]:
        """``commit`` and its first parents, at most ``limit``, as far as the clone holds them."""
        out = self._ask("log", "--first-parent", f"--max-count={limit}", "--format=%H %T", commit, "--")
        pairs = [line.split() for line in (out or "").splitlines()]
        return [Commit(id=c, tree=t) for c, t in pairs] or [Commit(id=commit, tree=None)]

    def count(self, since: str, until: str) -> int | None:
        """How many commits ``until`` has that ``since`` has not; None where that is not known."""
        out = self._ask("rev-list", "--count", f"{since}..{until}", "--")
        return None if out is None else int(out)

    def commit(self, revision: str) -> str | None:
        """The id of the commit that ``revision`` names, None where it names none."""
        return self._ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
