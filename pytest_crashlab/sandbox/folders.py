"""The folders of one process's sandboxes, and those that a killed process left."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import tempfile
from pathlib import Path

from pytest_crashlab.sandbox import cgroups, processes
from pytest_crashlab.sandbox.base import SandboxFailure
from pytest_crashlab.sandbox.removing import remove

MARK = "CRASHLAB_SANDBOX"
"""The variable by which a process that a killed session left is known."""


def base_folder() -> Path:
    """The folder of this user's sandboxes; root lets others pass through, as its targets are others.

    Raises :class:`SandboxFailure` where somebody else made it.
    """
    base = Path(tempfile.gettempdir()) / f"pytest-crashlab-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        base.mkdir(mode=0o700)
    about = base.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
        raise SandboxFailure("sandbox_error", f"{base} is not a folder of yours; remove it or set TMPDIR")
    base.chmod(_passable())
    return base


def _passable() -> int:
    return 0o711 if os.getuid() == 0 else 0o700


def make_own() -> Path:
    """A new folder for this process's sandboxes; its name says whose it is."""
    own = Path(tempfile.mkdtemp(prefix=f"{processes.identity(os.getpid())}-", dir=base_folder()))
    own.chmod(_passable())
    return own


def mend(folder: Path, owner: int) -> None:
    """Whatever an earlier command did to its working directory itself, the next one has one.

    What it did is the target's, and is seen by the next command; that it could not start would not be.
    """
    try:
        try:
            about = folder.lstat()
        except FileNotFoundError:
            about = None
        if about is not None and not stat.S_ISDIR(about.st_mode):
            folder.unlink()
            about = None
        if about is None:
            folder.mkdir(mode=0o700)
            if owner != os.getuid():
                os.chown(folder, owner, owner)
        elif about.st_mode & stat.S_IRWXU != stat.S_IRWXU:
            folder.chmod(0o700)
    except OSError as error:
        raise SandboxFailure("sandbox_error", f"the sandbox's folder is gone: {error}") from error


def remove_left_behind() -> list[str]:
    """End and remove what sessions left that were killed together with their keepers; what was removed."""
    removed = []
    for folder in base_folder().iterdir():
        if cgroups.is_left_behind(folder.name):
            _end_marked(folder.name)
            remove(folder)
            removed.append(folder.name)
    cgroups.remove_left_behind()
    return removed


def _end_marked(name: str) -> None:
    """Kill the processes that carry the mark of a dead session."""
    mark = f"{MARK}={name}".encode()
    for entry in os.listdir("/proc"):  # noqa: PTH208
        if entry.isdigit():
            with contextlib.suppress(OSError):
                variables = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
                if any(v == mark or v.startswith(mark + b"/") for v in variables):
                    os.kill(int(entry), signal.SIGKILL)
