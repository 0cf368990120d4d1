"""One command from start to end, in the keeper: who ended it is known here and nowhere else."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import time
from typing import TYPE_CHECKING, Any

from pytest_crashlab.sandbox import connecting, entering, measuring, processes, wire
from pytest_crashlab.sandbox.collecting import Collector
from pytest_crashlab.sandbox.holding import Held, HoldFailed
from pytest_crashlab.sandbox.looking import LOOK, Looks

if TYPE_CHECKING:
    import socket

    from pytest_crashlab.sandbox.cgroups import Cage

_HERE = 2  # own processes: the keeper, one that connects to a port
_AROUND = 4  # where there are namespaces: bubblewrap's three, the target's parent


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
        self._start_error: dict[str, Any] = {}
        self._exits: int | None = None
        self._streams: list[Collector] = []
        self._connecting: connecting.Connecting | None = None
        self._poll = select.poll()
        self._since = measuring.now()

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
            for stream in self._streams:
                stream.close()
            if self._connecting is not None:
                self._connecting.close()

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
        own = _HERE - 1 if self._held is None else _HERE - 1 + _AROUND
        self._looks = Looks(self._limits, self._cage, self._folders, own)
        began = time.monotonic()  # before it runs: a busy machine may go on with it, and here only later
        self._start()
        if not self._start_error:
            self._watch(began)
        duration = time.monotonic() - began
        ending = self._end()
        for stream in self._streams:
            stream.drain()
        report = {**ending, "reason": self._reason, "duration": duration, "totals": self._totals()}
        return report, self._kept()

    def _set_cage(self) -> None:
        if self._cage is None:
            return
        most = self._limits["processes"]
        own = _HERE if self._request.get("bubblewrap") is None else _HERE + _AROUND
        try:
            self._cage.set(self._limits["memory"], None if most is None else most + own)
        except OSError as error:
            if error.errno == errno.EBUSY:
                raise HoldFailed(
                    "memory= is less than the sandbox itself takes; give it 32M or more"
                ) from None
            raise HoldFailed(f"the limits cannot be set: {error}") from None
        # The control group alone: it counts what it refuses, and a limit of the user's would come before.
        self._limits["counts_user"] = self._limits["counts_user"] and not self._cage.limits_processes

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
        self._streams = [self._out, self._err]
        os.set_blocking(self._feed, False)

    def _start_here(self, streams: tuple[int, int, int]) -> int:
        """The target's process id, or 0 where its program cannot be started."""
        try:
            pid = entering.start_target(self._request, streams)
        except entering.REFUSALS as error:
            self._start_error = entering.told(error)
            return 0
        entering.be_first_to_go(pid)
        return pid

    def _start_inside(self, streams: tuple[int, int, int], held: Held) -> int:
        """The target's parent, which reports of it."""
        self._report, report = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(self._feed)
            entering.be_parent_inside(self._request, streams, held.namespaces, report)
        os.close(report)
        return pid

    def _watch(self, began: float) -> None:
        """Serve the streams until the target has ended or a limit ends it."""
        exits = self._register()
        wall = self._limits["wall_clock"]
        deadline = None if wall is None else began + wall
        looks = self._looks.needed
        last_look = began
        while True:
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                self._reason = "wall_clock"
                return
            if now - last_look >= LOOK:
                processes.reap_orphans(self.pid)
                last_look = now
                self._reason = self._looks.over() if looks else None
                if self._reason is not None:
                    return
            pause = LOOK if looks or exits is None else 1.0
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
        if self._connecting is not None and fd == self._connecting.fd:
            self._poll.unregister(fd)
            self._connecting.hand_over(self._sock)
            self._connecting = None
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
            try:
                self._connecting = connecting.Connecting(message["port"], self._request["uid"], self._held)
            except OSError as error:  # no further process may begin
                wire.send(self._sock, {"connected": False, "why": str(error)})
                return False
            self._poll.register(self._connecting.fd, select.POLLIN | select.POLLHUP)
        else:
            self._reason = "stopped"
            return True
        return False

    @property
    def _folders(self) -> list[str]:
        """What counts for the disk."""
        return [folder for folder in (self._request["workspace"], self._request["scratch"]) if folder]

    def _end(self) -> dict[str, Any]:
        """End the command where it still runs; what the kernel says of it."""
        refused = None if self._cage is None else self._cage.refused()  # the next line refuses more
        if self._reason is not None:
            self._close_door()
        self._close_feed()
        known = (self.pid, None) if self._held is None else (None, self.pid)
        used_up = self._looks.ran_out_of_cpu(*known)
        if self._start_error:
            ending: dict[str, Any] = {"status": None, **self._start_error}
        elif self._held is None:
            ending = self._end_child()
        else:
            ending = self._end_held(self._held)
        if self._exits is not None:
            os.close(self._exits)
        if "backend_error" in ending and self._reason is None:
            raise HoldFailed(ending["backend_error"])
        if self._cage is not None:
            ending["oom_kills"] = self._cage.oom_kills()
            if self._cage.limits_memory:
                ending["peak"] = self._cage.peak()
        return {**ending, "refused": refused, "cpu_of_another": used_up, "file_at_limit": self._file(ending)}

    def _file(self, ending: dict[str, Any]) -> str | None:
        """A file that was cut off, where the target has not ended well."""
        if not ending["status"]:
            return None
        return measuring.file_at_limit(self._folders, self._limits["file_size"], self._since)

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
