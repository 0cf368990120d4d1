"""The backend ``bubblewrap``: namespaces of its own, no network, and a root of a few read-only paths."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_crashlab.sandbox.base import Command, EndedBy, SandboxFailure, shown
from pytest_crashlab.sandbox.folders import MARK
from pytest_crashlab.sandbox.kept import KeptBox, Machine
from pytest_crashlab.sandbox.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

_INSIDE = 1000  # the user and group id that the target sees
_NOBODY = 65534  # whom root's targets run as, outside
_HOME = "/workspace"
_SYSTEM = ("/usr",)
_LINKS = ("bin", "sbin", "lib", "lib32", "lib64")
_SETTINGS = (
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "ssl/certs",
)
_ONLINE = ("hosts", "nsswitch.conf", "resolv.conf", "services")
_USERS = f"sandbox:x:{_INSIDE}:{_INSIDE}:sandbox:{_HOME}:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n"
_GROUPS = f"sandbox:x:{_INSIDE}:\nnogroup:x:65534:\n"


class Bubblewrap:
    """Programs that see a small read-only system, their working directory and a ``/tmp``, and nothing else.

    ``readable`` names further paths of this machine that they may read.
    """

    name = "bubblewrap"
    isolates = "own users, processes, files, network; the kernel is shared"

    def __init__(self, readable: Sequence[str] = ()) -> None:
        self._machine = Machine()
        self._readable = tuple(str(Path(path).resolve()) for path in readable)
        self._checked: tuple[str | None] | None = None

    def unavailable(self) -> str | None:
        """Why no sandbox can be made; a true start is tried once."""
        if self._checked is None:
            self._checked = (self._try(),)
        return self._checked[0]

    def _try(self) -> str | None:
        if sys.platform != "linux":
            return f"needs Linux, and this is {sys.platform}"
        if shutil.which("bwrap") is None:
            return "bwrap is not installed; install it, for example with: apt-get install bubblewrap"
        if not hasattr(os, "pidfd_open"):
            return "this Python has no os.pidfd_open"
        box = None
        try:
            box = self.open(Limits())
            result = box.start(Command(argv=("true",)), Limits(wall_clock=20)).wait()
        except (SandboxFailure, OSError) as error:
            return f"bwrap makes no sandbox here: {shown(str(error))}"
        finally:
            if box is not None:
                box.close()
        if result.ended_by is EndedBy.EXITED and result.exit_code == 0:
            return None
        return f"bwrap makes no sandbox here: {result.sentence}"

    def open(self, limits: Limits) -> KeptBox:  # noqa: ARG002  each command says its own
        """A fresh sandbox; raises :class:`SandboxFailure` where it cannot be made."""
        try:
            folder = self._machine.new_folder(_outside_user())
        except OSError as error:
            raise SandboxFailure("sandbox_error", f"no folder for a sandbox can be made: {error}") from error
        return KeptBox(self._machine, folder, self._describe)

    def close(self) -> None:
        """Leave nothing behind."""
        self._machine.close()

    def _describe(self, box: KeptBox) -> dict[str, Any]:
        etc = _settings(box.folder)
        program = shutil.which("bwrap") or "bwrap"

        def request(limits: Limits) -> dict[str, Any]:
            options = self._options(box, etc, limits)
            return {"program": program, "options": options, "uid": _outside_user(), "holder": ["cat"]}

        env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": _HOME,
            "TMPDIR": "/tmp",  # noqa: S108  of the sandbox
            "LANG": "C.UTF-8",
            MARK: box.mark,
        }
        return {
            "env": env,
            "cwd": _HOME,
            "cage": True,
            "counts_user": True,
            "uid": _outside_user(),
            "bubblewrap": request,
        }

    def _options(self, box: KeptBox, etc: Path, limits: Limits) -> list[str]:
        options = ["--unshare-all", "--unshare-user", "--uid", str(_INSIDE), "--gid", str(_INSIDE)]
        options += ["--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--new-session"]
        options += ["--hostname", "sandbox", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin"]
        if limits.network == "on":
            options.append("--share-net")
        for path in (*_SYSTEM, *self._readable):
            options += ["--ro-bind", path, path]
        for name in _LINKS:
            options += _link_or_folder(name)
        for name in _SETTINGS + (_ONLINE if limits.network == "on" else ()):
            options += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
        for name in ("passwd", "group"):
            options += ["--ro-bind", str(etc / name), f"/etc/{name}"]
        options += ["--dev", "/dev", "--proc", "/proc", "--perms", "1777"]
        if limits.disk is not None:
            options += ["--size", str(limits.disk)]
        options += ["--tmpfs", "/tmp", "--bind", str(box.workspace), _HOME, "--chdir", _HOME]  # noqa: S108
        return [*options, "--remount-ro", "/"]


def _outside_user() -> int | None:
    """Whom the target is outside: never root."""
    return _NOBODY if os.getuid() == 0 else None


def _link_or_folder(name: str) -> list[str]:
    path = Path("/", name)
    if path.is_symlink():
        return ["--symlink", str(path.readlink()), str(path)]
    return ["--ro-bind", str(path), str(path)] if path.is_dir() else []


def _settings(folder: Path) -> Path:
    """The users that the target sees: itself and nobody."""
    etc = folder / "etc"
    etc.mkdir(mode=0o755)
    etc.chmod(0o755)
    for name, text in (("passwd", _USERS), ("group", _GROUPS)):
        (etc / name).write_text(text)
        (etc / name).chmod(0o644)
    return etc
