"""Removing a folder that a target wrote to, however deep it is and whatever modes it has."""

from __future__ import annotations

import contextlib
import os

_HANDLE = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def remove(folder: str | os.PathLike[str]) -> None:
    """Remove a folder with all that is in it, and never what a link leads to; what is gone is no error.

    One folder is open at a time, and none is named by its whole path: neither the descriptors, nor the
    calls, nor the length of a path grow with the depth that a target has dug.
    """
    with contextlib.suppress(OSError):  # often it is empty
        os.rmdir(folder)  # noqa: PTH106
        return
    with contextlib.suppress(OSError):
        _empty(_open(os.fspath(folder)))
        os.rmdir(folder)  # noqa: PTH106


def _empty(fd: int) -> None:
    """Remove what is in a folder, and close it; what cannot be removed stays."""
    above: list[tuple[tuple[int, int], str, list[str]]] = []
    try:
        names = os.listdir(fd)
        while True:
            while names:
                name = names.pop()
                if _is_gone(fd, name):
                    continue
                with contextlib.suppress(OSError):
                    below = _open(name, fd)
                    above.append((_identity(fd), name, names))
                    os.close(fd)
                    fd = below
                    names = os.listdir(fd)  # noqa: PTH208
            if not above:
                return
            parent, name, names = above.pop()
            up = os.open("..", _READ, dir_fd=fd)
            os.close(fd)
            fd = up
            if _identity(fd) != parent:  # somebody has moved it: not ours to remove
                return
            _is_gone(fd, name)
    finally:
        os.close(fd)


def _identity(fd: int) -> tuple[int, int]:
    about = os.fstat(fd)
    return about.st_dev, about.st_ino


def _is_gone(folder: int, name: str) -> bool:
    """Remove what is no folder, or an empty one."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return True
    except OSError:
        try:
            os.rmdir(name, dir_fd=folder)
        except FileNotFoundError:
            return True
        except OSError:
            return False
    return True


def _open(name: str, folder: int | None = None) -> int:
    """A descriptor of a folder that this process may read and change; raises ``OSError``."""
    handle = os.open(name, _HANDLE, dir_fd=folder)
    itself = f"/proc/self/fd/{handle}"  # a name could have become a link
    try:
        if os.fstat(handle).st_mode & 0o700 != 0o700:
            with contextlib.suppress(OSError):
                os.chmod(itself, 0o700)  # noqa: PTH101
        return os.open(itself, _READ)
    finally:
        os.close(handle)
