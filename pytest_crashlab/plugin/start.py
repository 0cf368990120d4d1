"""Whether this session makes trials at all, and what to register when it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_crashlab.errors import CrashlabError
from pytest_crashlab.plugin import marker_names, process
from pytest_crashlab.plugin.options import Settings

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from pytest_crashlab.plugin.fanout import Fanout
    from pytest_crashlab.plugin.gating import GatedCases
    from pytest_crashlab.plugin.session import RunSession


def as_usage_error(error: CrashlabError) -> pytest.UsageError:
    """Give it in pytest's own form: exit 4 and the sentence, without a traceback."""
    return pytest.UsageError(str(error))


class Starter:
    """Starts a run when an option asks for one, or later when a collected test's marker does."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._settings: Settings | None = None
        self._session: RunSession | None = None

    def configure(self) -> None:
        """Read the options; resolve the baseline before anything is spent."""
        marker_names.register_markers(self._config)
        try:
            self._settings = Settings.of(self._config)
            if self._settings.off or process.is_worker(self._config):
                return
            if self._settings.requested:
                self._start(self._settings)
            elif process.distributes(self._config):
                # Only workers collect, so only they can find a marker: stand by for their word.
                self._stand_by(self._settings)
        except CrashlabError as error:
            raise as_usage_error(error) from None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Register the fan-out last of all, so that every selection acts on cases."""
        settings = self._settings
        if settings is None or settings.off or process.distributes(self._config):
            return
        if settings.requested or process.is_asked_for_trials(self._config):
            self.register_fanout(settings, deselected=0)
        else:
            self._config.pluginmanager.register(_MarkerWatch(self, settings), "crashlab-watch")

    def register_fanout(self, settings: Settings, *, deselected: int) -> Fanout:
        """Let the selected cases be expanded; ``deselected`` were left out up to now."""
        from pytest_crashlab.plugin.collect import CollectHooks
        from pytest_crashlab.plugin.fanout import Fanout
        from pytest_crashlab.plugin.workers import orders_for

        orders = orders_for(self._config)
        fanout = Fanout(self._config, settings, self, orders, deselected=deselected)
        self._config.pluginmanager.register(fanout, "crashlab-fanout")
        self._config.pluginmanager.register(CollectHooks(fanout.expand), "crashlab-collect")
        return fanout

    def session_for(self, fanout: Fanout) -> RunSession:
        """The run session of a single process; starts it when a marker is what asked for trials."""
        return self._session or self._start(fanout.settings)

    def _start(self, settings: Settings) -> RunSession:
        session = self._stand_by(settings)
        session.start()
        return session

    def _stand_by(self, settings: Settings) -> RunSession:
        import secrets

        from pytest_crashlab.plugin.session import RunSession
        from pytest_crashlab.plugin.session_hooks import SessionHooks

        seed = secrets.randbits(63) if settings.seed is None else settings.seed
        self._session = session = RunSession(self._config, settings, seed)
        manager = self._config.pluginmanager
        manager.register(SessionHooks(self._config, session), "crashlab-session")
        if process.distributes(self._config):
            from pytest_crashlab.plugin.workers import ControllerHooks

            manager.register(ControllerHooks(session), "crashlab-xdist")
        return session

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


class _MarkerWatch:
    """Looks whether a selected test's marker asks for trials; only then is the fan-out imported.

    Registered last, as the fan-out itself would be.
    """

    def __init__(self, starter: Starter, settings: Settings) -> None:
        self._starter = starter
        self._settings = settings
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
            fanout = self._starter.register_fanout(self._settings, deselected=self._deselected)
            fanout.expand(session, config, items)
        return result
