"""A session that sets an option of ours, or in which a marker asks for trials: what to register."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_crashlab.errors import CrashlabError
from pytest_crashlab.plugin import process
from pytest_crashlab.plugin.keys import RUN_FOLDER_KEY
from pytest_crashlab.plugin.redacting import SecretIds
from pytest_crashlab.plugin.settings import Settings
from pytest_crashlab.plugin.watch import Watch

if TYPE_CHECKING:
    from pytest_crashlab.plugin.fanout import Fanout
    from pytest_crashlab.plugin.gating import GatedCases
    from pytest_crashlab.plugin.session import RunSession
    from pytest_crashlab.plugin.session_hooks import SessionHooks


def as_usage_error(error: CrashlabError) -> pytest.UsageError:
    """Give it in pytest's own form: exit 4 and the sentence, without a traceback."""
    return pytest.UsageError(str(error))


def start(config: pytest.Config) -> None:
    """Read the options; begin at once where they ask for trials, else watch for a marker that does."""
    try:
        starter = Starter(config)
        _prepare_recordings(config, starter.settings)
        if starter.settings.off:
            return
        config.pluginmanager.register(SecretIds(config), "crashlab-secret-ids")
        if starter.settings.requested:
            starter.start()
        elif process.distributes(config):
            starter.stand_by()  # workers and scheduler have to know of the options before a marker is found
        else:
            config.pluginmanager.register(Watch(config), "crashlab-start")
    except CrashlabError as error:
        raise as_usage_error(error) from None


def _prepare_recordings(config: pytest.Config, settings: Settings) -> None:
    """See that a recording can be made, or replayed; imports nothing where neither is asked for."""
    if settings.record is None and settings.replay is None:
        return
    from pytest_crashlab.plugin import recordings

    if not process.is_worker(config):
        recordings.refuse(settings)
    if settings.replay is not None:
        config.pluginmanager.register(recordings.ReplayGuard(), "crashlab-replay")


class Starter:
    """Registers the parts that make, record and judge trials; raises :class:`CrashlabError`."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.settings = Settings.of(config)
        self._session: RunSession | None = None
        self._folder: str | None = None

    def start(self) -> None:
        """Resolve the baseline before anything is spent; in a worker, get ready to make trials."""
        if not process.is_worker(self._config):
            self._begin()
        self._config.pluginmanager.register(self, "crashlab-start")

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Register the fan-out last of all, so that every selection acts on cases."""
        if not process.distributes(self._config):
            self.register_fanout(deselected=0)

    def register_fanout(self, *, deselected: int) -> Fanout:
        """Let the selected cases be expanded; ``deselected`` were left out up to now."""
        from pytest_crashlab.plugin.collect import CollectHooks
        from pytest_crashlab.plugin.fanout import Fanout
        from pytest_crashlab.plugin.workers import orders_for

        orders = orders_for(self._config)
        self._folder = None if orders is None else orders.folder
        fanout = Fanout(self._config, self.settings, self, orders, deselected=deselected)
        self._config.pluginmanager.register(fanout, "crashlab-fanout")
        self._config.pluginmanager.register(CollectHooks(fanout.expand), "crashlab-collect")
        return fanout

    def session_for_process(self) -> RunSession:
        """The run session of a single process; starts it when a marker is what asked for trials."""
        return self._session or self._begin()

    def _begin(self) -> RunSession:
        session, _ = self._stand_by(None)
        session.start()
        return session

    def stand_by(self, seed: int | None = None, run_id: str | None = None) -> SessionHooks:
        """Register what records; the run begins with its plan. ``seed`` where workers have one already."""
        return self._stand_by(seed, run_id)[1]

    def _stand_by(self, seed: int | None, run_id: str | None = None) -> tuple[RunSession, SessionHooks]:
        import secrets

        from pytest_crashlab.plugin.session import RunSession
        from pytest_crashlab.plugin.session_hooks import SessionHooks

        if seed is None:
            seed = secrets.randbits(63) if self.settings.seed is None else self.settings.seed
        self._session = session = RunSession(self._config, self.settings, seed, run_id=run_id)
        hooks = SessionHooks(self._config, session)
        manager = self._config.pluginmanager
        manager.register(hooks, "crashlab-session")
        if process.distributes(self._config):
            from pytest_crashlab.plugin.workers import ControllerHooks

            manager.register(ControllerHooks(session), "crashlab-xdist")
        return session, hooks

    def register_lifecycle(self, settings: Settings, seed: int, gate: GatedCases) -> None:
        """Watch the tests of this process."""
        from pytest_crashlab.plugin.lifecycle import LIFECYCLE_NAME, Lifecycle

        lifecycle = Lifecycle(
            self._config,
            settings,
            seed=seed,
            worker=process.worker_name(self._config),
            gate=gate,
            handover=None if self._session is None else self._session.handover,
        )
        self._config.pluginmanager.register(lifecycle, LIFECYCLE_NAME)
        self._register_evidence(settings)
        if RUN_FOLDER_KEY in self._config.stash:
            from pytest_crashlab.plugin.budget import BudgetWatch

            folder = self._config.stash[RUN_FOLDER_KEY]
            watch = BudgetWatch(self._config, folder, of_session=bool(settings.budget))
            self._config.pluginmanager.register(watch, "crashlab-budget")
        if settings.watch_state:
            from pytest_crashlab.plugin.module_state import ModuleState, StateWatch

            state = ModuleState() if self._session is None else self._session.module_state
            self._config.pluginmanager.register(StateWatch(self._config.rootpath, state), "crashlab-state")

    def _register_evidence(self, settings: Settings) -> None:
        """Collect what is kept besides the rows, where there is a folder for it."""
        from pytest_crashlab.plugin.evidence import EVIDENCE_NAME, EvidenceHooks

        folder = self._folder if self._session is None else str(self._session.folder)
        if folder is None:
            return
        self._config.stash[RUN_FOLDER_KEY] = Path(folder)
        hooks = EvidenceHooks(
            self._config,
            folder=Path(folder),
            worker=process.worker_name(self._config),
            limit=settings.attachment_limit,
            show_locals=settings.evidence_locals,
        )
        self._config.pluginmanager.register(hooks, EVIDENCE_NAME)
