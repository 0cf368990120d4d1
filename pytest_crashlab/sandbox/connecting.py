"""A connection to a port inside, made by a process beside the command: its supervisor never waits for it."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import TYPE_CHECKING

from pytest_crashlab.sandbox import entering, wire

if TYPE_CHECKING:
    from pytest_crashlab.sandbox.holding import Held

_PATIENCE = 5.0  # seconds that a server which takes no more connections is waited for


class Connecting:
    """A process that connects inside the sandbox and hands the socket over."""

    def __init__(self, port: int, uid: int | None, held: Held | None) -> None:
        self._ours, theirs = socket.socketpair()
        self._child = os.fork()
        if self._child == 0:
            _connect(port, theirs, uid, held)
        theirs.close()

    @property
    def fd(self) -> int:
        """Readable when it has an answer."""
        return self._ours.fileno()

    def hand_over(self, sock: socket.socket) -> None:
        """Send the answer, and the socket where there is one, and let go of it."""
        answer, fds, _, _ = socket.recv_fds(self._ours, 4096, 1)
        why = answer[1:].decode("utf-8", "replace")
        wire.send(sock, {"connected": bool(fds), "why": why or "the connection could not be made"})
        for fd in fds:
            socket.send_fds(sock, [b"+"], [fd])
            os.close(fd)
        self.close()

    def close(self) -> None:
        """Let go of it."""
        self._ours.close()
        with contextlib.suppress(ChildProcessError):  # it may have been reaped as an orphan
            os.waitpid(self._child, 0)


def _connect(port: int, answer: socket.socket, uid: int | None, held: Held | None) -> None:
    """In a fork of the keeper. Never returns."""
    try:
        if held is not None:
            entering.become_user(uid)
            entering.join({k: v for k, v in held.namespaces.items() if k in ("user", "mnt", "net")})
        made = socket.socket()  # nothing that imports: the files of the machine are not here
        made.settimeout(_PATIENCE)
        made.connect(("127.0.0.1", port))
        made.settimeout(None)
        socket.send_fds(answer, [b"+"], [made.fileno()])
    except BaseException as error:  # noqa: BLE001  this process must not go on
        answer.sendall(b"-" + str(error).encode())
    finally:
        os._exit(0)
