"""What the backends of this machine share: a folder for each sandbox, and keepers for its commands."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pytest_crashlab.sandbox import folders
from pytest_crashlab.sandbox.base import hides_itself
from pytest_crashlab.sandbox.keepers import Keepers, KeptCommand
from pytest_crashlab.sandbox.removing import remove
from pytest_crashlab.sandbox.workspace import inside

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_crashlab.sandbox.base import Command
    from pytest_crashlab.sandbox.limits import Limits
__tracebackhide__ = hides_itself


class Machine:
    """The folders and keepers of one backend in one process; made when the first sandbox is."""

    def __init__(self) -> None:
        self._own: Path | None = None
        self._keepers: Keepers | None = None
        self._pid = os.getpid()
        self._count = 0

    def _ready(self) -> tuple[Path, Keepers]:
        if self._pid != os.getpid():  # a fork: what there is belongs to the other process
            self.__init__()  # type: ignore[misc]
        if self._own is None or self._keepers is None:
            folders.remove_left_behind()
            self._own = folders.make_own()
            self._keepers = Keepers(self._own)
        return self._own, self._keepers

    def new_folder(self, owner: int | None) -> Path:
        """A folder of a sandbox, for user ``owner`` (None: this one)."""
        own, _ = self._ready()
        self._count += 1
        folder = own / f"s{self._count}"
        folder.mkdir(mode=0o700)
        if owner is not None:
            os.chown(folder, owner, owner)
        return folder

    def shared(self, name: str, fill: Callable[[Path], None]) -> Path:
        """A folder that all sandboxes of this process read; ``fill`` makes it the first time."""
        folder = self._ready()[0] / name
        if not folder.exists():
            folder.mkdir()
            fill(folder)
        return folder

    @property
    def keepers(self) -> Keepers:
        """The keepers."""
        return self._ready()[1]

    def close(self) -> None:
        """End the keepers and remove the folders."""
        if self._pid != os.getpid():
            return
        if self._keepers is not None:
            self._keepers.close()
        if self._own is not None:
            remove(self._own)
        self._own = self._keepers = None


class KeptBox:
    """A sandbox whose commands a keeper runs; ``describe`` gives what is the backend's own of a request.

    ``workspace`` is their working directory, ``scratch`` one for temporary files where the backend has none
    of its own.
    """

    def __init__(
        self,
        machine: Machine,
        workspace: Path,
        describe: Callable[[KeptBox], dict[str, Any]],
        scratch: Path | None = None,
    ) -> None:
        self._machine = machine
        self.workspace = workspace
        self.scratch = scratch
        self._own = describe(self)
        self._owner = workspace.stat().st_uid
        self._running: list[KeptCommand] = []

    @property
    def mark(self) -> str:
        """By which processes of this sandbox are known: the session's folder and this one."""
        return f"{self.workspace.parent.name}/{self.workspace.name}"

    def start(self, command: Command, limits: Limits) -> KeptCommand:
        """Start a command; raises :class:`SandboxFailure` where the backend cannot keep its limits."""
        own = self._own
        own["check"](limits)
        folders.mend(self.workspace, self._owner)
        request = {
            "argv": list(command.argv),
            "env": {**own["env"], **{str(k): str(v) for k, v in command.env.items()}},
            "cwd": os.path.join(own["cwd"], inside(command.cwd)),  # noqa: PTH118
            "workspace": str(self.workspace),
            "scratch": None if self.scratch is None else str(self.scratch),
            "limits": {**asdict(limits), "cage": own["cage"], "counts_user": own["counts_user"]},
            "uid": own.get("uid"),
            "bubblewrap": None if "bubblewrap" not in own else own["bubblewrap"](limits),
        }
        running = KeptCommand(self._machine.keepers, command, limits, request)
        self._running = [other for other in self._running if not other.has_ended]
        self._running.append(running)
        return running

    def close(self) -> None:
        """End what runs and remove the folders."""
        for running in self._running:
            running.abandon()
        self._running = []
        for folder in (self.workspace, self.scratch):
            if folder is not None:
                remove(folder)
