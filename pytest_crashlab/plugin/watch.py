"""A session that sets no option of ours: looks for a marker that asks for trials, and starts the rest then.

This is all that most sessions know of the package, so it imports next to nothing of it.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crashlab.plugin import marker_names, process

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from pytest_crashlab.plugin.session_hooks import SessionHooks


class Watch:
    """Registers what watches, in the process that collects or in the one that hears from workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._manager = config.pluginmanager
        self._config = config
        if process.distributes(config):
            self._manager.register(_WorkersWatch(config), "crashlab-workers-watch")

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Watch from the last place, so that every selection acts on cases."""
        if not process.distributes(self._config):
            self._manager.register(_MarkerWatch(self._config), "crashlab-watch")


class _MarkerWatch:
    """Looks whether a selected test's marker asks for trials; only then is the fan-out imported."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._deselected = 0

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Count what a selection leaves out."""
        self._deselected += len(items)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Let the others select, then look."""
        result = yield
        if marker_names.may_ask_for_trials(items):
            from pytest_crashlab.plugin.start import Starter

            fanout = Starter(config).register_fanout(deselected=self._deselected)
            fanout.expand(session, config, items)
        return result


class _WorkersWatch:
    """On xdist's controller: only workers collect, so only they can find a marker that asks for trials."""

    def __init__(self, config: pytest.Config) -> None:
        import secrets

        self._config = config
        self._seed = secrets.randbits(63)
        self._run_id: str | None = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give all workers one seed and one run to write to, as each may turn out to make trials."""
        from pytest_crashlab.records.run import new_run_id

        self._run_id = self._run_id or new_run_id()
        store = self._config.rootpath / (os.environ.get("CRASHLAB_STORE") or ".crashlab")
        orders = {"active": False, "seed": self._seed, "folder": str(store / "runs" / self._run_id)}
        node.workerinput[process.WORKER_INPUT] = json.dumps(orders)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Start a run when a worker's first report comes with a plan."""
        if hasattr(report, process.PLAN):
            hooks = self._start()
            hooks.begin()
            hooks.pytest_runtest_logreport(report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear whether a worker refused the trials that a marker asks for."""
        message = (getattr(node, "workeroutput", None) or {}).get(process.USAGE_OUTPUT)
        if message is not None:
            self._start().refuse(str(message))

    def _start(self) -> SessionHooks:
        from pytest_crashlab.plugin.start import Starter

        self._config.pluginmanager.unregister(self)
        return Starter(self._config).stand_by(self._seed, self._run_id)
