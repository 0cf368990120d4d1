"""Files of a sandbox, read and written from outside while the target may do anything to them.

Every step of a path is opened from the folder before it and never through a link, so that what the
target puts there meanwhile cannot lead out.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from pytest_crashlab.sandbox.base import FileMissing, LinkRefused, PathRefused, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_READ = 256 << 20
_MAX_DEPTH = 100  # of folders that are looked into: each is held open meanwhile
_PART = 1 << 20


def inside(path: str | os.PathLike[str]) -> str:
    """``path`` in its plain form; raises :class:`PathRefused` where it leads out of the sandbox."""
    text = os.fspath(path)
    pure = PurePosixPath(text)
    if pure.is_absolute() or ".." in pure.parts or "\0" in text:
        raise PathRefused(
            f"{shown(text)!r} leads out of the sandbox; give a path below its working directory"
        )
    return str(pure)


class Workspace:
    """The files below ``root``, which belongs to the target."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextlib.contextmanager
    def _folder(self, parts: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
        """A descriptor of a folder, its parents made on the way where ``make``."""
        with _links_refused("."):
            fd = os.open(self.root, _FOLDER)
        try:
            for part in parts:
                with _links_refused("/".join(parts)):
                    if make:
                        with contextlib.suppress(FileExistsError):
                            os.mkdir(part, 0o755, dir_fd=fd)
                            _give(fd, part)
                    below = os.open(part, _FOLDER, dir_fd=fd)
                os.close(fd)
                fd = below
            yield fd
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def open(self, path: str) -> Iterator[tuple[BinaryIO, int]]:
        """A plain file to read, and its size; raises what :meth:`read` raises."""
        pure = PurePosixPath(inside(path))
        if not pure.name:
            raise PathRefused("a file in the sandbox needs a name")
        with self._folder(pure.parts[:-1]) as folder, _links_refused(path):
            fd = os.open(pure.name, _READ, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise LinkRefused(f"{shown(path)!r} in the sandbox is no plain file")
        with os.fdopen(fd, "rb") as file:
            size = os.fstat(fd).st_size
            if size > _MAX_READ:
                raise LinkRefused(f"{shown(path)!r} in the sandbox is larger than {_MAX_READ >> 20} MiB")
            yield file, size

    def read(self, path: str) -> bytes:
        """The content of a plain file.

        Raises ``FileNotFoundError``, :class:`PathRefused` for a path out of the sandbox, and
        :class:`LinkRefused` where the target has put a link, a folder, a pipe or a device, has made it
        unreadable, or larger than can be read.
        """
        with self.open(path) as (file, size):
            return file.read(size)

    def parts(self, path: str) -> Iterator[bytes]:
        """The content of a plain file in parts, as large as it is now; raises what :meth:`read` raises."""
        with self.open(path) as (file, size):
            for start in range(0, size, _PART):
                yield file.read(min(_PART, size - start))

    def write(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """Put a file in place of whatever has its name now, a link included; its folders are made."""
        pure = PurePosixPath(inside(path))
        if not pure.name:
            raise PathRefused("a file in the sandbox needs a name")
        with self._folder(pure.parts[:-1], make=True) as folder:
            with _links_refused(path), contextlib.suppress(FileNotFoundError):
                os.unlink(pure.name, dir_fd=folder)
            with os.fdopen(os.open(pure.name, _WRITE, mode, dir_fd=folder), "wb") as file:
                file.write(content)
                os.fchmod(file.fileno(), mode)
            _give(folder, pure.name)

    def files(self, below: str = ".") -> Iterator[str]:
        """The paths of all that is no folder, links included; they are not followed.

        A folder that cannot be looked into is named itself: one that the target has made unreadable, or
        too deep a one.
        """
        parts = PurePosixPath(inside(below)).parts
        with self._folder(parts) as fd:
            yield from self._walk(fd, "/".join(parts), 0)

    def _walk(self, fd: int, prefix: str, depth: int) -> Iterator[str]:
        with os.scandir(fd) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            path = f"{prefix}/{entry.name}" if prefix else entry.name
            if entry.is_dir(follow_symlinks=False):
                if depth == _MAX_DEPTH:
                    yield path
                    continue
                try:
                    below = os.open(entry.name, _FOLDER, dir_fd=fd)
                except OSError:  # gone, or made unreadable by the target
                    yield path
                    continue
                try:
                    yield from self._walk(below, path, depth + 1)
                finally:
                    os.close(below)
            else:
                yield path

    def is_folder(self, path: str) -> bool:
        """Whether a folder, no link to one, has this path."""
        try:
            with self._folder(PurePosixPath(inside(path)).parts):
                return True
        except (OSError, LinkRefused):
            return False

    def digest(self, path: str) -> str:
        """What tells one content of a path from another; links and special files by what they are."""
        try:
            found = hashlib.sha256()
            for part in self.parts(path):
                found.update(part)
            return found.hexdigest()
        except LinkRefused:
            return self._what_it_is(path)
        except OSError as error:
            return f"unreadable: {error.errno}"

    def _what_it_is(self, path: str) -> str:
        pure = PurePosixPath(inside(path))
        try:
            with self._folder(pure.parts[:-1]) as folder:
                about = os.stat(pure.name, dir_fd=folder, follow_symlinks=False)
        except (OSError, LinkRefused):
            return "out of reach"
        return f"{stat.S_IFMT(about.st_mode)}:{about.st_ino}:{about.st_size}:{about.st_mtime_ns}"


def _give(folder: int, name: str) -> None:
    """Where root writes for a lesser user, the file is that user's."""
    if os.geteuid() == 0:
        owner = os.fstat(folder)
        os.chown(name, owner.st_uid, owner.st_gid, dir_fd=folder, follow_symlinks=False)


_LINK = "leads through a link or a special file"
_IN_THE_WAY = {
    errno.ELOOP: _LINK,
    errno.ENXIO: _LINK,
    errno.ENODEV: _LINK,
    errno.ENOTDIR: _LINK,
    errno.EISDIR: "is a folder, and no plain file",
    errno.EACCES: "cannot be read or replaced: the target has changed its permissions",
}


@contextlib.contextmanager
def _links_refused(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise FileMissing(f"{shown(path)!r} is not in the sandbox") from None
        if error.errno == errno.ENAMETOOLONG:
            raise PathRefused(f"{shown(path)!r} is too long a name") from None
        if error.errno in _IN_THE_WAY:
            raise LinkRefused(f"{shown(path)!r} in the sandbox {_IN_THE_WAY[error.errno]}") from None
        raise
