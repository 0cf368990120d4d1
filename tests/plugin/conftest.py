"""A suite that sessions are run on, and a look into the store they leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_crashlab.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_crashlab.store import Manifest, StoredRun


@dataclass
class Suite:
    """Runs pytest on files in a temporary directory, with or without workers."""

    pytester: pytest.Pytester
    workers: str

    @property
    def root(self) -> Path:
        """Where the suite lies."""
        return self.pytester.path

    @property
    def store(self) -> Store:
        """The suite's store."""
        return Store.open(self.root / ".crashlab")

    def files(self, **sources: str) -> None:
        """Write ``name="source"`` as ``name.py``."""
        for name, source in sources.items():
            self.pytester.makepyfile(**{name: source})

    def run(self, *args: str, plugins: tuple[str, ...] = (), subprocess: bool = False) -> pytest.RunResult:
        """One session, in this process but for its workers, or when asked for in one of its own.

        It loads the plugins it names: one that loads every installed plugin is slower, and some
        (pytest-randomly) change what is tested here.
        """
        names = ("pytest_crashlab.plugin", "xdist.plugin", *plugins)
        load = [part for name in names for part in ("-p", name)]
        run = self.pytester.runpytest_subprocess if subprocess else self.pytester.runpytest_inprocess
        return run(*load, self.workers, *args)

    def runs(self) -> list[Manifest]:
        """Manifests, newest first."""
        return self.store.manifests()

    def last(self) -> StoredRun:
        """The newest run."""
        return self.store.load(self.runs()[0].id)

    def outcomes(self) -> dict[str, list[str | None]]:
        """Case id -> the outcome labels of the newest run, by trial."""
        table = self.last().trials.sort("case", "trial", "attempt")
        found: dict[str, list[str | None]] = {}
        for case, outcome in table.select("case", "outcome").iter_rows():
            found.setdefault(case, []).append(outcome)
        return found


@pytest.fixture(autouse=True)
def _isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the outer session's environment, and any CI around it, out of the inner sessions."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    for name in (
        "PYTEST_ADDOPTS",
        "PYTEST_XDIST_WORKER",
        "PYTEST_XDIST_WORKER_COUNT",
        "CI",
        "CRASHLAB_STORE",
        "GITHUB_ACTIONS",
        "GITHUB_BASE_REF",
        "GITHUB_REF",
        "GITHUB_STEP_SUMMARY",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=["-n0", "-n2"])
def suite(request: pytest.FixtureRequest, pytester: pytest.Pytester) -> Suite:
    """A suite that is run with and without workers."""
    return Suite(pytester, request.param)


@pytest.fixture(params=["-n0", "-n1"])
def served(request: pytest.FixtureRequest, pytester: pytest.Pytester) -> Suite:
    """A suite that is run here and by a worker, where how many workers makes no difference."""
    return Suite(pytester, request.param)


@pytest.fixture
def single(pytester: pytest.Pytester) -> Suite:
    """A suite that is run in this process, where workers make no difference."""
    return Suite(pytester, "-n0")
