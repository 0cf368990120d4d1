"""Real git repositories with runs recorded along their history."""

from __future__ import annotations

import os
import subprocess

from store_builders import record

from pytest_crashlab.store.baseline_refs import resolve_baseline
from pytest_crashlab.store.git import git_fields, read_head
from pytest_crashlab.store.runs import Store

_AUTHOR = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


class Repository:
    """A repository in a folder. ``env`` holds what a CI service would set, nothing by default."""

    def __init__(self, folder, store_root, *, clock=None):
        self.folder = folder
        self.store = Store.open(store_root, create=True)
        self._clock = clock if clock is not None else [1_790_000_000]

    @classmethod
    def make(cls, folder, store_root):
        folder.mkdir()
        repository = cls(folder, store_root)
        repository.git("init", "-q", "-b", "main")
        return repository

    def clone(self, folder, *options):
        """A clone by its URL, so that ``--depth`` is honoured; it shares the store."""
        self.git("clone", "-q", *options, f"file://{self.folder}", str(folder))
        return Repository(folder, self.store.root, clock=self._clock)

    def git(self, *arguments):
        self._clock[0] += 60
        date = f"{self._clock[0]} +0000"
        env = {
            **{k: v for k, v in os.environ.items() if not k.startswith("GIT_")},
            **_AUTHOR,
            "GIT_AUTHOR_DATE": date,
            "GIT_COMMITTER_DATE": date,
        }
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
        return done.stdout.strip()

    def commit(self, text, name="agent.py"):
        (self.folder / name).write_text(f"{text}\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", text)
        return self.id()

    def id(self, revision="HEAD"):
        return self.git("rev-parse", f"{revision}^{{commit}}")

    def env(self, **ci):
        return {"PATH": os.environ["PATH"], **_AUTHOR, **ci}

    def head(self, **ci):
        return read_head(self.folder, env=self.env(**ci))

    def record(self, run_id, *, ci=None, outcomes=None, **fields):
        """A completed run of what is checked out, with an id that begins with ``run_id``."""
        self._clock[0] += 60
        fields.setdefault("git", git_fields(self.head(**(ci or {}))))
        number = len(self.store.run_ids())
        fields.setdefault("id", f"20261129T{number:06d}Z-{run_id:a<6}")
        fields.setdefault("created", f"2026-11-29T00:{number // 60:02d}:{number % 60:02d}.000Z")
        if outcomes is None:
            outcomes = {"t.py::test_a": ["passed", "passed", "failed"]}
        return record(self.store, outcomes, **fields)

    def resolve(self, ref="main", *, ci=None, **fields):
        return resolve_baseline(self.store, ref, cwd=self.folder, env=self.env(**(ci or {})), **fields)
