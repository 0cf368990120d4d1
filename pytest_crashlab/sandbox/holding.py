"""Namespaces made by bubblewrap and held open while a command runs in them."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
from typing import Any

from pytest_crashlab.sandbox import entering

_PATIENCE = 20.0  # seconds until a sandbox that does not come up is given up


class HoldFailed(Exception):
    """bubblewrap made no sandbox; the message is what it said."""


class Held:
    """A sandbox with nothing in it but what keeps it open: ``cat``, which ends with its input."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.namespaces: dict[str, int] = {}
        args, args_in = os.pipe()
        self._status, status = os.pipe()
        try:
            os.write(args_in, b"\0".join(option.encode() for option in request["options"]) + b"\0")
            os.close(args_in)
            with entering.as_user(request["uid"]):
                self._bubblewrap = _start(request, args, status)
        except OSError as error:
            os.close(self._status)
            raise HoldFailed(f"{request['program']}: {error.strerror}") from None
        finally:
            os.close(args)
            os.close(status)
        try:
            self._wait_until_up()
            self._open_namespaces()
        except (OSError, ValueError, KeyError, IndexError) as error:
            raise HoldFailed(self._said() or f"{type(error).__name__}: {error}") from None

    @property
    def pid(self) -> int:
        """Of bubblewrap, outside."""
        return self._bubblewrap.pid

    def _wait_until_up(self) -> None:
        """What is written to ``cat`` comes back when everything is mounted."""
        feed, echo = self._bubblewrap.stdin, self._bubblewrap.stdout
        assert feed is not None  # noqa: S101
        assert echo is not None  # noqa: S101
        os.write(feed.fileno(), b"x")
        poll = select.poll()
        poll.register(echo, select.POLLIN | select.POLLHUP)
        if not poll.poll(_PATIENCE * 1000):
            raise OSError("bubblewrap did not come up")
        if os.read(echo.fileno(), 1) != b"x":
            raise OSError("bubblewrap ended before the sandbox was up")

    def _open_namespaces(self) -> None:
        first = _available(self._status).splitlines()[0]
        pid = json.loads(first)["child-pid"]
        for name in ("user", *entering.NAMESPACES):
            if not _is_shared(pid, name):
                self.namespaces[name] = os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)

    def _said(self) -> str:
        errors = self._bubblewrap.stderr
        said = b"" if errors is None else _available(errors.fileno())
        self.close()
        return said.decode("utf-8", "replace").strip()

    def close(self) -> None:
        """Let it go; the kernel ends all that runs in it with its first process."""
        self._bubblewrap.kill()
        for fd in (self._status, *self.namespaces.values()):
            os.close(fd)
        self.namespaces = {}
        for stream in (self._bubblewrap.stdin, self._bubblewrap.stdout, self._bubblewrap.stderr):
            if stream is not None:
                stream.close()
        self._bubblewrap.wait()


def _start(request: dict[str, Any], args: int, status: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            request["program"],
            "--args",
            str(args),
            "--json-status-fd",
            str(status),
            "--",
            *request["holder"],
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        pass_fds=(args, status),
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
    )


def _is_shared(pid: int, name: str) -> bool:
    """Whether a process is in the same namespace as this one, or the kernel has none of that kind."""
    try:
        return os.stat(f"/proc/{pid}/ns/{name}").st_ino == os.stat(f"/proc/self/ns/{name}").st_ino  # noqa: PTH116
    except FileNotFoundError:
        return True


def _available(fd: int) -> bytes:
    os.set_blocking(fd, False)
    with contextlib.suppress(BlockingIOError):
        return os.read(fd, 1 << 14)
    return b""
