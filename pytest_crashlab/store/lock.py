"""Locks between processes that the system gives back when their holder dies."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from typing import TYPE_CHECKING, Self

from pytest_crashlab.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


_TAKEN = {errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK}


class FileLock:
    """A lock on a file that is held by one process at a time.

    The lock belongs to the open file and not to the file's presence: a holder that is killed leaves
    nothing to clean up. The file stays unless the holder removes it with :meth:`release`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def try_acquire(self) -> bool:
        """Take the lock if it is free.

        Raises :class:`StoreError` where the file cannot be opened or its file system has no locks.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise StoreError(f"The lock {self._path} cannot be opened ({error.strerror}).") from error
        try:
            _try_lock(handle)
        except OSError as error:
            os.close(handle)
            if error.errno in _TAKEN:
                return False
            raise StoreError(
                f"The file system of {self._path} has no locks ({error.strerror}); move the store to another."
            ) from error
        if not self._still_named(handle):
            os.close(handle)  # its holder removed the file between our open and our lock
            return self.try_acquire()
        self._handle = handle
        return True

    def acquire(self, timeout: float = 30.0) -> None:
        """Take the lock, waiting ``timeout`` seconds for it; :class:`StoreError` when that is not enough."""
        end = time.monotonic() + timeout
        pause = 0.001
        while not self.try_acquire():
            if time.monotonic() >= end:
                raise StoreError(
                    f"Another process has held {self._path} for {timeout:g} seconds; end it, then try again."
                )
            time.sleep(pause)
            pause = min(pause * 2, 0.05)

    @property
    def handle(self) -> int:
        """The open file that the lock belongs to; :class:`StoreError` when it is not held."""
        if self._handle is None:
            raise StoreError(f"The lock {self._path} is not held.")
        return self._handle

    def release(self, *, remove: bool = False) -> None:
        """Give the lock back, and ``remove`` its file; nothing happens when it is not held."""
        handle, self._handle = self._handle, None
        if handle is not None:
            if remove:
                with contextlib.suppress(OSError):  # Windows removes no open file
                    self._path.unlink()
            os.close(handle)

    def _still_named(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), self._path.stat())
        except FileNotFoundError:
            return False

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
