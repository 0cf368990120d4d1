"""The output of a command, bounded while it is read: a command that never stops writing costs no memory."""

from __future__ import annotations

import os

_HEAD_SHARE = 4  # the first three quarters of the limit, and the last one


class Kept:
    """The first and the last bytes of what is added, ``limit`` in all; ``total`` counts them all."""

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._room = limit - limit // _HEAD_SHARE
        self._end = limit // _HEAD_SHARE
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, part: bytes) -> None:
        """Take what comes next."""
        self.total += len(part)
        room = self._room - len(self._head)
        self._head += part[:room]
        self._tail += part[room:] if room > 0 else part
        if len(self._tail) > 2 * self._end + (1 << 16):
            self._trim()

    def _trim(self) -> None:
        del self._tail[: max(0, len(self._tail) - self._end)]

    @property
    def head(self) -> bytes:
        """The first bytes."""
        return bytes(self._head)

    @property
    def tail(self) -> bytes:
        """The last bytes beyond the first."""
        self._trim()
        return bytes(self._tail)


class Collector(Kept):
    """Keeps what is read from a stream."""

    def __init__(self, fd: int, limit: int) -> None:
        super().__init__(limit)
        self.fd: int | None = fd
        os.set_blocking(fd, False)

    def read(self) -> bool:
        """Take what is there; False at the end of the stream."""
        if self.fd is None:
            return False
        try:
            part = os.read(self.fd, 1 << 16)
        except BlockingIOError:
            return True
        if not part:
            self.close()
            return False
        self.add(part)
        return True

    def drain(self, most: int = 1 << 20) -> None:
        """Take what ended writers have left in the pipe."""
        before = self.total
        while self.fd is not None and self.total - before < most:
            known = self.total
            if not self.read() or self.total == known:
                return

    def close(self) -> None:
        """Let the stream go; its writer gets SIGPIPE."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
