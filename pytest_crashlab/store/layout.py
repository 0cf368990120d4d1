"""Where everything lies in a store, and how a store comes to be.

::

    .crashlab/
      store.json                 the format's version
      .gitignore                 "*"
      refs/main                  a run id per file
      ledger.jsonl               append-only
      locks/                     empty files that processes lock
      runs/<run id>/             see RunPaths
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from pytest_crashlab.errors import FormatTooNew, StoreError
from pytest_crashlab.store.atomic import write_whole

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 1

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
_OWN_NAMES = {"store.json", ".gitignore", "refs", "ledger.jsonl", "locks", "runs"}


CONTROL = "control.json"
"""In a running run's folder: which providers its processes do not ask any more."""
BUDGET_USE = "budget.jsonl"
"""In a running run's folder: what trials took of cases that have a budget of their own."""


class RunPaths:
    """The files of one run. Each path is made when it is asked for: a listing asks each run for one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def manifest(self) -> Path:
        """What the run says of itself."""
        return self.folder / "manifest.json"

    @property
    def plan(self) -> Path:
        """The planned cases, while it is running."""
        return self.folder / "plan.json"

    @property
    def journal(self) -> Path:
        """The trials so far, while it is running."""
        return self.folder / "journal.jsonl"

    @property
    def control(self) -> Path:
        """Which providers its processes do not ask any more, while it is running."""
        return self.folder / CONTROL

    @property
    def budget_use(self) -> Path:
        """What trials took of budgets, while it is running."""
        return self.folder / BUDGET_USE

    @property
    def writer_lock(self) -> Path:
        """Locked by the process that writes the run."""
        return self.folder / "writer.lock"

    @property
    def cases(self) -> Path:
        """A row a planned case."""
        return self.folder / "cases.parquet"

    @property
    def trials(self) -> Path:
        """A row an attempt."""
        return self.folder / "trials.parquet"

    @property
    def checks(self) -> Path:
        """A row a check of an attempt."""
        return self.folder / "checks.parquet"

    @property
    def calls(self) -> Path:
        """A row a call."""
        return self.folder / "calls.parquet"

    @property
    def evidence(self) -> Path:
        """What each attempt left, compressed."""
        return self.folder / "evidence.db"

    @property
    def comparisons(self) -> Path:
        """Kept comparisons, by baseline."""
        return self.folder / "comparisons"


class StorePaths:
    """The folders and files of one store."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.format = root / "store.json"
        self.gitignore = root / ".gitignore"
        self.refs = root / "refs"
        self.ledger = root / "ledger.jsonl"
        self.runs = root / "runs"

    def lock(self, name: str) -> Path:
        """The file that is locked while ``name`` is changed."""
        return self.root / "locks" / name

    def run(self, run_id: str) -> RunPaths:
        """The files of a run; :class:`StoreError` for an id that cannot be a folder's name."""
        if not is_run_id(run_id):
            raise StoreError(f"{run_id!r} cannot be a run id; 'crashlab runs' lists those there are.")
        return RunPaths(self.runs / run_id)


def is_run_id(text: str) -> bool:
    """Whether ``text`` could name a run's folder: no separators, nothing hidden, no parents."""
    return bool(_RUN_ID.fullmatch(text)) and ".." not in text


def create_store(paths: StorePaths) -> None:
    """Make an empty store; does nothing where there is one.

    Raises :class:`StoreError` for a file in its place or for a folder with other things in it: its
    ``.gitignore`` would hide them from git.
    """
    root = paths.root
    try:
        root.mkdir(parents=True, exist_ok=True)
        if not paths.format.exists():
            others = sorted(
                p.name for p in root.iterdir() if p.name not in _OWN_NAMES and not p.name.startswith(".tmp-")
            )
            if others:
                raise StoreError(
                    f"{root} holds other things ({others[0]}) and is no store; name a new or empty folder."
                )
            text = json.dumps({"format": FORMAT, "written_by": "pytest-crashlab"})
            write_whole(paths.format, f"{text}\n".encode())
        if not paths.gitignore.exists():
            write_whole(paths.gitignore, b"*\n")
        paths.runs.mkdir(exist_ok=True)
        paths.refs.mkdir(exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise StoreError(
            f"The store {root} is a file or lies below one; name a folder with --crashlab-store."
        ) from error
    except OSError as error:
        raise StoreError(f"The store {root} cannot be created ({error.strerror or error}).") from error


def check_store(paths: StorePaths) -> None:
    """See that there is a store this version can read.

    Raises :class:`StoreError` where there is none and :class:`FormatTooNew` where a later version
    wrote it.
    """
    root = paths.root
    try:
        text = paths.format.read_text(encoding="utf-8")
    except NotADirectoryError:
        raise StoreError(
            f"The store {root} is a file or lies below one; name a folder with --crashlab-store."
        ) from None
    except FileNotFoundError:
        raise StoreError(
            f"There is no store at {root}; record a run with 'pytest --trials=5', or name the store."
        ) from None
    except OSError as error:
        raise StoreError(f"The store {root} cannot be read ({error.strerror or error}).") from error
    except UnicodeDecodeError:
        text = ""
    try:
        version = json.loads(text)["format"]
    except (ValueError, KeyError, TypeError):
        version = None
    if not isinstance(version, int) or isinstance(version, bool):
        raise StoreError(
            f'{paths.format} does not say which format the store has; it should read {{"format": {FORMAT}}}.'
        )
    if version > FORMAT:
        raise FormatTooNew(
            f"The store {root} has format {version} and this version reads format {FORMAT}; "
            "upgrade pytest-crashlab."
        )
