"""One command from start to end, in the keeper: who ended it is known here and nowhere else."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import stat
import time
from typing import TYPE_CHECKING, Any

from pytest_crashlab.sandbox import entering, processes, wire
from pytest_crashlab.sandbox.collecting import Collector
from pytest_crashlab.sandbox.holding import Held, HoldFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_crashlab.sandbox.cgroups import Cage

_LOOK = 0.05  # seconds between looks at what no kernel limit holds
_OWN_PROCESSES = 6  # the keeper, bubblewrap's three, the target's parent, one that connects to a port
_CLOCK_STEP = 0.02  # seconds; by as much may the time of a file lag behind the clock
_MAX_ENTRIES = 200_000  # of a workspace, counted for its size


class ParentGone(Exception):
    """The process that asked for the command has ended."""


class Supervised:
    """Starts, feeds, reads, limits and ends one command."""

    def __init__(
        self,
        request: dict[str, Any],
        stdin: bytes,
        sock: socket.socket,
        parent: int | None,
        cage: Cage | None,
    ) -> None:
        self._request = request
        self._limits = request["limits"]
        self._stdin = memoryview(stdin)
        self._sock = sock
        self._parent = parent
        self._cage = cage
        self._held: Held | None = None
        self._reason: str | None = None
        self._start_error: str | None = None
        self._exits: int | None = None
        self._poll = select.poll()

    def run(self) -> tuple[dict[str, Any], list[bytes]]:
        """Return the report and the kept output: head and tail of each stream.

        Raises :class:`ParentGone`, with everything ended.
        """
        try:
            return self._run()
        except HoldFailed as error:
            return {"backend_error": str(error)}, []
        finally:
            if self._held is not None:
                self._close_door()
                self._held.close()
            self._end_all()

    def _close_door(self) -> None:
        if self._cage is not None:
            self._cage.close_door()

    def _end_all(self) -> None:
        """End what the command has left; where it left something, nothing more of it may begin."""
        processes.end_all(found_some=self._close_door)

    def _run(self) -> tuple[dict[str, Any], list[bytes]]:
        self._set_cage()
        if self._request.get("bubblewrap") is not None:
            self._held = Held(self._request["bubblewrap"])
        self._since = time.time()
        self._start()
        began = time.monotonic()
        if self._start_error is None:
            self._watch(began)
        duration = time.monotonic() - began
        ending = self._end()
        for stream in (self._out, self._err):
            stream.drain()
        report = {**ending, "reason": self._reason, "duration": duration, "totals": self._totals()}
        kept = self._kept()
        for stream in (self._out, self._err):
            stream.close()
        return report, kept

    def _set_cage(self) -> None:
        if self._cage is None:
            return
        most = self._limits["processes"]
        try:
            self._cage.set(self._limits["memory"], None if most is None else most + _OWN_PROCESSES)
        except OSError as error:
            raise HoldFailed(f"the limits cannot be set: {error}") from None

    def _totals(self) -> list[int]:
        return [self._out.total, self._err.total]

    def _kept(self) -> list[bytes]:
        return [self._out.head, self._out.tail, self._err.head, self._err.tail]

    def _start(self) -> None:
        child_in, self._feed = os.pipe()
        out, child_out = os.pipe()
        err, child_err = os.pipe()
        streams = (child_in, child_out, child_err)
        try:
            if self._held is None:
                self.pid = self._start_here(streams)
            else:
                self.pid = self._start_inside(streams, self._held)
        finally:
            for fd in streams:
                os.close(fd)
        self._out = Collector(out, self._limits["output"])
        self._err = Collector(err, self._limits["output"])
        os.set_blocking(self._feed, False)

    def _start_here(self, streams: tuple[int, int, int]) -> int:
        """The target's process id, or 0 where its program cannot be started."""
        try:
            pid = entering.start_target(self._request, streams)
        except OSError as error:
            self._start_error = f"{type(error).__name__}: {error}"
            return 0
        entering.be_first_to_go(pid)
        return pid

    def _start_inside(self, streams: tuple[int, int, int], held: Held) -> int:
        """The target's parent, which reports of it."""
        self._report, report = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(self._feed)
            request = self._request
            if self._cage is not None and self._cage.limits_processes:  # which also counts what it refuses
                request = {**request, "limits": {**self._limits, "counts_user": False}}
            entering.be_parent_inside(request, streams, held.namespaces, report)
        os.close(report)
        return pid

    def _watch(self, began: float) -> None:
        """Serve the streams until the target has ended or a limit ends it."""
        exits = self._register()
        wall = self._limits["wall_clock"]
        deadline = None if wall is None else began + wall
        looks = self._has_to_look()
        last_look = began
        while True:
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                self._reason = "wall_clock"
                return
            if now - last_look >= _LOOK:
                processes.reap_orphans(self.pid)
                last_look = now
                if looks and self._over():
                    return
            pause = _LOOK if looks or exits is None else 1.0
            if deadline is not None:
                pause = min(pause, deadline - now)
            for fd, event in self._poll.poll(max(1.0, pause * 1000)):
                if fd == exits or self._serve(fd, event):
                    return
            if exits is None and os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return

    def _register(self) -> int | None:
        reading = select.POLLIN | select.POLLHUP
        for fd in (self._out.fd, self._err.fd, self._sock.fileno(), self._parent):
            if fd is not None:
                self._poll.register(fd, reading)
        if self._stdin:
            self._poll.register(self._feed, select.POLLOUT | select.POLLERR)
        else:
            self._close_feed()
        self._exits = self._end_handle()
        if self._exits is not None:
            self._poll.register(self._exits, reading)
        return self._exits

    def _end_handle(self) -> int | None:
        """What becomes readable when the target has ended: its parent's report where it has one.

        Sooner than that parent's own end, which is then waited for beside the end of the namespaces.
        """
        if self._held is not None:
            return os.dup(self._report)
        try:
            return os.pidfd_open(self.pid)
        except OSError:
            return None

    def _serve(self, fd: int, event: int) -> bool:
        """Handle one ready descriptor; True when the command is to be ended."""
        if fd == self._parent:
            raise ParentGone
        if fd == self._sock.fileno():
            return self._obey()
        if fd == self._feed:
            self._write_stdin(event)
        for stream in (self._out, self._err):
            if fd == stream.fd and not stream.read():
                self._poll.unregister(fd)
        return False

    def _write_stdin(self, event: int) -> None:
        try:
            if event & select.POLLOUT:
                self._stdin = self._stdin[os.write(self._feed, self._stdin[: 1 << 16]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._stdin = self._stdin[:0]
        if not self._stdin or not event & select.POLLOUT:
            self._poll.unregister(self._feed)
            self._close_feed()

    def _close_feed(self) -> None:
        if self._feed >= 0:
            os.close(self._feed)
            self._feed = -1

    def _obey(self) -> bool:
        """Do what the test's process asks for meanwhile; True when that is to end the command."""
        received = wire.receive(self._sock)
        if received is None:
            raise ParentGone
        message, _ = received
        if message["do"] == "peek":
            wire.send(self._sock, {"totals": self._totals()}, *self._kept())
        elif message["do"] == "connect":
            self._connect(message["port"])
        else:
            self._reason = "stopped"
            return True
        return False

    def _connect(self, port: int) -> None:
        """Hand over a socket of the sandbox's network; the test connects it."""
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            try:
                if self._held is not None:
                    entering.become_user(self._request["uid"])
                    entering.join(
                        {k: v for k, v in self._held.namespaces.items() if k in ("user", "mnt", "net")}
                    )
                made = socket.socket()
                made.connect(("127.0.0.1", port))
                socket.send_fds(theirs, [b"+"], [made.fileno()])
            except BaseException as error:  # noqa: BLE001  this process must not go on
                theirs.sendall(b"-" + str(error).encode())
            finally:
                os._exit(0)
        theirs.close()
        answer, fds, _, _ = socket.recv_fds(ours, 4096, 1)
        os.waitpid(child, 0)
        wire.send(self._sock, {"connected": bool(fds), "why": answer[1:].decode("utf-8", "replace")})
        if fds:
            socket.send_fds(self._sock, [b"+"], fds)
            os.close(fds[0])
        ours.close()

    def _has_to_look(self) -> bool:
        limits, cage = self._limits, self._cage
        memory = limits["memory"] is not None and (cage is None or not cage.limits_memory)
        count = limits["processes"] is not None and (cage is None or not cage.limits_processes)
        return memory or count or limits["disk"] is not None

    def _over(self) -> bool:
        """Whether a limit that the kernel does not hold has been passed; then ``reason`` says which."""
        limits, cage = self._limits, self._cage
        if limits["disk"] is not None and folder_bytes(self._request["workspace"]) > limits["disk"]:
            self._reason = "disk"
        elif cage is None or not (cage.limits_memory and cage.limits_processes):
            self._count(memory=cage is None or not cage.limits_memory)
        return self._reason is not None

    def _count(self, *, memory: bool) -> None:
        """Look at all that is below this process: orphans of the target have come to it."""
        limits = self._limits
        below = processes.descendants(os.getpid())
        own = 0 if self._held is None else _OWN_PROCESSES - 2
        if limits["processes"] is not None and len(below) > limits["processes"] + own:
            self._reason = "processes"
        elif memory and limits["memory"] is not None and processes.resident_bytes(below) > limits["memory"]:
            self._reason = "memory"

    def _end(self) -> dict[str, Any]:
        """End the command where it still runs; what the kernel says of it."""
        refused = None if self._cage is None else self._cage.refused()  # before the door is closed
        if self._reason is not None:
            self._close_door()
        self._close_feed()
        if self._start_error is not None:
            ending: dict[str, Any] = {"status": None, "start_error": self._start_error}
        elif self._held is None:
            ending = self._end_child()
        else:
            ending = self._end_held(self._held)
        if self._exits is not None:
            os.close(self._exits)
        if self._cage is not None:
            ending |= {"oom_kills": self._cage.oom_kills(), "refused": refused}
            if self._cage.limits_memory:
                ending["peak"] = self._cage.peak()
        if exited_with_an_error(ending["status"]):
            ending["full_file"] = full_file(
                self._request["workspace"], self._limits["file_size"], self._since
            )
        return ending

    def _end_child(self) -> dict[str, Any]:
        if self._reason is not None:
            os.kill(self.pid, signal.SIGKILL)
        _, status, usage = os.wait4(self.pid, 0)
        self._end_all()
        return {"status": status, "cpu": usage.ru_utime + usage.ru_stime, "rss": usage.ru_maxrss * 1024}

    def _end_held(self, held: Held) -> dict[str, Any]:
        """The target's parent has reported, or does when the namespaces are taken from under the target."""
        self._held = None
        if self._reason is not None:
            for pid in processes.descendants(held.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        held.close()
        os.waitpid(self.pid, 0)
        self._end_all()
        report = os.read(self._report, 4096)
        os.close(self._report)
        ending: dict[str, Any] = json.loads(report) if report else {"status": None}
        return ending


def exited_with_an_error(status: int | None) -> bool:
    """Whether a wait status is of a program that ended by itself, and not with 0."""
    return status is not None and os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0


def full_file(path: str, limit: int | None, since: float) -> str | None:
    """A file below a folder, changed ``since``, that is as large as a file may be: there it was cut off.

    The signal for that kills few: Python ignores it, and of a child's end its parent only tells a number.
    """
    if limit is None:
        return None
    for entry, about in _entries(path):
        if stat.S_ISREG(about.st_mode) and about.st_size == limit and about.st_ctime >= since - _CLOCK_STEP:
            return os.path.relpath(entry, path)
    return None


def folder_bytes(path: str) -> int:
    """What the files below a folder take on the disk; counts at most a fixed number of entries."""
    return sum(about.st_blocks * 512 for _, about in _entries(path))


def _entries(path: str) -> Iterator[tuple[str, os.stat_result]]:
    entries = 0
    todo = [path]
    while todo and entries < _MAX_ENTRIES:
        try:
            found = list(os.scandir(todo.pop()))
        except OSError:
            continue
        for entry in found:
            entries += 1
            with contextlib.suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(about.st_mode):
                    todo.append(entry.path)
                yield entry.path, about
