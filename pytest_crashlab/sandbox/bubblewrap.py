"""The backend ``bubblewrap``: namespaces of its own, no network, and a root of a few read-only paths."""

from __future__ import annotations

import contextlib
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
        program = shutil.which("bwrap") or "bwrap"

        def request(limits: Limits) -> dict[str, Any]:
            online = limits.network == "on"
            etc = self._machine.shared(
                "etc-online" if online else "etc", _online_settings if online else _settings
            )
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
            "check": lambda _limits: None,
            "uid": _outside_user(),
            "bubblewrap": request,
        }

    def _options(self, box: KeptBox, etc: Path, limits: Limits) -> list[str]:
        options = ["--unshare-all", "--unshare-user", "--uid", str(_INSIDE), "--gid", str(_INSIDE)]
        options += ["--disable-userns", "--cap-drop", "ALL", "--die-with-parent"]
        options += ["--hostname", "sandbox", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin"]
        if limits.network == "on":
            options.append("--share-net")
        for path in (*_SYSTEM, *self._readable):
            options += ["--ro-bind", path, path]
        for name in _LINKS:
            options += _link_or_folder(name)
        options += ["--ro-bind", str(etc), "/etc"]
        options += ["--dev", "/dev", "--proc", "/proc"]
        for scratch in ("/dev/shm", "/tmp"):  # noqa: S108  of the sandbox
            size = [] if limits.disk is None else ["--size", str(limits.disk)]
            options += ["--perms", "1777", *size, "--tmpfs", scratch]
        options += ["--bind", str(box.workspace), _HOME, "--chdir", _HOME]
        return [*options, "--remount-ro", "/dev", "--remount-ro", "/"]


def _outside_user() -> int | None:
    """Whom the target is outside: never root."""
    return _NOBODY if os.getuid() == 0 else None


def _link_or_folder(name: str) -> list[str]:
    path = Path("/", name)
    if path.is_symlink():
        return ["--symlink", str(path.readlink()), str(path)]
    return ["--ro-bind", str(path), str(path)] if path.is_dir() else []


def _settings(etc: Path) -> None:
    """What programs look for in ``/etc``, copied once, and as users only the target itself and nobody."""
    for name in _SETTINGS:
        _copy(Path("/etc", name), etc / name)
    for name, text in (("passwd", _USERS), ("group", _GROUPS)):
        (etc / name).write_text(text)
    for folder, _, names in os.walk(etc):
        os.chmod(folder, 0o755)  # noqa: PTH101, S103  nothing of it is secret
        for name in names:
            if not os.path.islink(f"{folder}/{name}"):  # noqa: PTH114
                os.chmod(f"{folder}/{name}", 0o644)  # noqa: PTH101


def _online_settings(etc: Path) -> None:
    """With a network, also what names are looked up by."""
    for name in _ONLINE:
        _copy(Path("/etc", name), etc / name)
    _settings(etc)


def _copy(source: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):  # an unreadable one is not for the target either
        if source.is_dir():
            shutil.copytree(source, to, symlinks=True, dirs_exist_ok=True)
        elif source.exists():
            shutil.copyfile(source, to)
