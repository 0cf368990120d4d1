"""The sandboxes of a session: which backends there are, which one is used, what tests ask of it.

Imported when a selected test uses the fixture ``sandbox``, and by no other session.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crashlab.errors import UsageError
from pytest_crashlab.plugin import process
from pytest_crashlab.plugin.markers import Markers, where
from pytest_crashlab.sandbox.base import SandboxFailure, hides_itself, strongest
from pytest_crashlab.sandbox.limits import Wanted
from pytest_crashlab.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from pytest_crashlab.sandbox.base import Backend

__tracebackhide__ = hides_itself
NAME = "crashlab-sandboxes"
_DEFAULTS = ("bubblewrap", "local")  # the strongest first; one that needs to be told more is no default


class BuiltinSandboxes:
    """The package's own backends, registered as a project registers its own."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted

    @pytest.hookimpl(trylast=True)
    def pytest_crashlab_register_sandboxes(self) -> Sequence[Backend]:
        """The backends of this machine."""
        from pytest_crashlab.sandbox.bubblewrap import Bubblewrap
        from pytest_crashlab.sandbox.docker import Docker
        from pytest_crashlab.sandbox.local import Local

        readable = self._wanted.readable
        return [Bubblewrap(readable), Docker(readable=readable), Local()]


class Sandboxes:
    """Opens sandboxes for the tests of one process, and leaves nothing of them behind."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._markers = Markers(config)
        self._wanted, self._blame = _of_session(config)
        config.pluginmanager.register(BuiltinSandboxes(self._wanted), "crashlab-sandboxes-builtin")
        found: list[Sequence[Backend]] = config.hook.pytest_crashlab_register_sandboxes()
        self._backends = _by_name(found)
        self._default: Backend | None = None
        self._reasons: list[str] = []
        self._told = False

    def wanted(self, item: pytest.Item) -> Wanted:
        """What the session and the test's marker ask for; raises ``UsageError``."""
        asked = self._markers.settings(item).get("sandbox")
        at = self._blame if asked is None else where(item)
        wanted = self._wanted if asked is None else self._wanted.but(asked, at)
        backend = None if wanted.backend is None else self._backends.get(wanted.backend)
        if wanted.backend is not None and backend is None:
            known = ", ".join(sorted(self._backends))
            raise UsageError(f"{at}: there is no sandbox {wanted.backend!r}; choose of {known}")
        if wanted.backend == "docker" and wanted.image is None:
            raise UsageError(
                f"{at}: the sandbox 'docker' needs an image; "
                "write for example 'docker image=python:3.12-slim'"
            )
        names_image = wanted.image is not None and (asked is None or wanted.image != self._wanted.image)
        if names_image and not hasattr(backend, "of_image"):
            used = "the strongest here" if backend is None else repr(backend.name)
            raise UsageError(f"{at}: image= is for the sandbox 'docker', and this one is {used}")
        if wanted.readable != self._wanted.readable:
            raise UsageError(
                f"{at}: readable paths hold for a whole session; put readable= into crashlab_sandbox"
            )
        return wanted

    def open(self, item: pytest.Item) -> Sandbox:
        """A fresh sandbox for ``item``; raises :class:`SandboxFailure` where there can be none."""
        wanted = self.wanted(item)
        backend = self.backend(wanted.backend)
        of_image = getattr(backend, "of_image", None)
        if wanted.image is not None and of_image is not None:
            backend = of_image(wanted.image, wanted.pull)
        return Sandbox(backend, wanted.limits)

    def backend(self, name: str | None) -> Backend:
        """The backend called ``name``, else the strongest that works here; raises :class:`SandboxFailure`."""
        if name is not None:
            backend = self._backends[name]
            reason = backend.unavailable()
            if reason is not None:
                raise SandboxFailure("sandbox_error", f"the sandbox {name!r} does not work here: {reason}")
            return backend
        if self._default is None:
            ranked = [self._backends[default] for default in _DEFAULTS if default in self._backends]
            self._default, self._reasons = strongest(ranked)
        return self._default

    def pytest_report_collectionfinish(self) -> list[str]:
        """Name the backend and what it isolates."""
        try:
            backend = self.backend(self._wanted.backend)
        except SandboxFailure as error:
            return [f"crashlab: sandbox: {error}"]
        return [
            f"crashlab: sandbox: {backend.name} ({backend.isolates})",
            *(f"crashlab: note: no stronger sandbox: {reason}" for reason in self._reasons),
        ]

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self) -> Generator[None, dict[str, Any] | None, dict[str, Any] | None]:
        """In a worker: let the first report bring the controller the same lines, as it collects nothing."""
        data = yield
        if data is not None and not self._told and process.is_worker(self._config):
            self._told = True
            data[process.SANDBOX] = self.pytest_report_collectionfinish()
        return data

    def pytest_unconfigure(self) -> None:
        """Leave no process, folder or control group behind."""
        for backend in self._backends.values():
            backend.close()


def prepare(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Read what the tests that use our fixture ask for; raises ``pytest.UsageError``.

    A worker tells its controller instead, which ends the session, and runs nothing.
    """
    users = [item for item in items if _uses_ours(item)]
    if not users:
        return
    try:
        sandboxes = sandboxes_of(config)
        for item in users:
            sandboxes.wanted(item)
    except UsageError as error:
        if not process.is_worker(config):
            raise pytest.UsageError(str(error)) from None
        from pytest_crashlab.plugin import workers

        workers.tell_usage_error(config, str(error))
        items.clear()


def sandboxes_of(config: pytest.Config) -> Sandboxes:
    """The one object of this process; raises ``UsageError``."""
    found = config.pluginmanager.get_plugin(NAME)
    if not isinstance(found, Sandboxes):
        found = Sandboxes(config)
        config.pluginmanager.register(found, NAME)
    return found


def open_for(request: pytest.FixtureRequest) -> Sandbox:
    """A fresh sandbox for the requesting test."""
    try:
        return sandboxes_of(request.config).open(request.node)
    except UsageError as error:  # where no one looked at collection: in a worker, or asked for by name
        pytest.fail(str(error), pytrace=False)


def _of_session(config: pytest.Config) -> tuple[Wanted, str]:
    """What the session asks for, and by what it does; raises ``UsageError``."""
    for given, blame in (
        (config.getoption("--crashlab-sandbox"), "--crashlab-sandbox"),
        (config.getini("crashlab_sandbox"), "crashlab_sandbox"),
    ):
        if given:
            wanted = Wanted().but(str(given), blame)
            for path in wanted.readable:
                if not Path(path).is_absolute() or not Path(path).exists():
                    raise UsageError(
                        f"{blame}: readable={path} is not there; give absolute paths, with : between"
                    )
            return wanted, blame
    return Wanted(), "crashlab_sandbox"


def _by_name(found: Iterable[Sequence[Backend]]) -> dict[str, Backend]:
    """A project's own come before the built-in ones and may take the name of one."""
    backends: dict[str, Backend] = {}
    for answer in found:
        for backend in answer:
            backends.setdefault(backend.name, backend)
    return backends


def _uses_ours(item: pytest.Item) -> bool:
    """Whether the fixture that ``item`` gets by the name ``sandbox`` is ours."""
    info: Any = getattr(item, "_fixtureinfo", None)
    definitions: Any = () if info is None else info.name2fixturedefs.get("sandbox", ())
    return bool(definitions) and definitions[-1].func.__module__ == "pytest_crashlab.plugin.fixtures"
