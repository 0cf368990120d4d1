"""One command as the main process of a container of its own, watched from outside.

An exit code that comes through a container runtime cannot tell a signal from a number. So a small shell
script is the container's first process: it starts the program, hears from the kernel how it ended, reads the
kernel's counters while the container is still there, and reports through a named pipe. A shell says that a
signal ended its child by a word on its own standard error, which nobody else writes to.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

from pytest_crashlab.sandbox import measuring
from pytest_crashlab.sandbox.base import Output, Result, SandboxFailure, hides_itself, shown
from pytest_crashlab.sandbox.collecting import Kept
from pytest_crashlab.sandbox.endings import result_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_crashlab.sandbox.base import Command
    from pytest_crashlab.sandbox.limits import Limits

__tracebackhide__ = hides_itself
SCRIPT = """
exec 4>/.crashlab/report 3>&2 2>&4
cd "$1" || { echo "start No such directory: $1" >&4; exit 127; }
late=$2 cpu=$3 blocks=$4; shift 4
program=
case $1 in
*/*) program=$1 ;;
*) old=$IFS; IFS=:; for folder in $PATH; do
    if [ -f "$folder/$1" ] && [ -x "$folder/$1" ]; then program=$folder/$1; break; fi
  done; IFS=$old ;;
esac
if ! [ -f "$program" ]; then echo "start No such file: $1" >&4; exit 127; fi
if ! [ -x "$program" ]; then echo "start Permission denied: $1" >&4; exit 126; fi
if [ $late -gt 0 ]; then
  ( sleep $late && kill -KILL -1 ) </dev/null >/dev/null 2>&1 3>&- 4>&- &
fi
echo "began $(if [ -r /proc/uptime ]; then read -r now _ </proc/uptime; echo $now; fi)" >&4
(
  ulimit -c 0
  if [ $cpu -gt 0 ]; then ulimit -S -t $cpu; ulimit -H -t $((cpu + 2)); fi
  if [ $blocks -gt 0 ]; then ulimit -f $blocks; fi
  exec "$@" 2>&3 3>&- 4>&-
)
code=$?
for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
  if [ -r $file ]; then while read -r key value; do
    if [ "$key" = oom_kill ]; then echo "oom $value" >&4; fi
  done <$file; fi
done
for file in /sys/fs/cgroup/memory.peak /sys/fs/cgroup/memory/memory.max_usage_in_bytes; do
  if [ -r $file ] && read -r value <$file; then echo "peak $value" >&4; fi
done
for file in /sys/fs/cgroup/pids.events /sys/fs/cgroup/pids/pids.events; do
  if [ -r $file ] && read -r key value <$file; then echo "refused $value" >&4; fi
done
echo "ended $code" >&4
exit $code
"""
"""Its arguments: the folder to go to; seconds after which all ends though nobody watches, seconds of CPU,
blocks of 512 bytes in a file (each 0: no limit); the command."""

_LOOK = 0.1  # seconds between looks at the clock and the files
_PATIENCE = 60.0  # seconds until a container that does not start, or does not end, is given up
_GRACE = 10.0  # seconds between the end of the program and that of its container
_FRAME = struct.Struct(">BxxxL")  # stream and length before each part of the output


_BEGAN = re.compile(r"^began (?:([0-9]+\.[0-9]+))?\n", re.MULTILINE)


class Report:
    """What the script has said: of how the program began and ended, and of the kernel's counters."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "report"
        os.mkfifo(self._path)
        os.chmod(self._path, 0o666)  # noqa: PTH101, S103  the target's user is another one
        # Open for both: the script never waits for a reader, and this side never sees an end.
        self.fd = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._text = ""
        self.began: float | None = None
        """When its beginning was heard of: on a busy machine later than it was."""
        self.said_began: float | None = None
        """When that was by the script's own clock; None where it has none."""
        self.ended: float | None = None

    def read(self) -> None:
        """Take what was said since."""
        with contextlib.suppress(BlockingIOError):
            while part := os.read(self.fd, 1 << 16):
                self._text = (self._text + part.decode("utf-8", "replace"))[: 1 << 16]
        now = time.monotonic()
        if self.began is None and (said := _BEGAN.search(self._text)) is not None:
            self.began = now
            if said[1]:
                self.said_began = now - (time.clock_gettime(time.CLOCK_BOOTTIME) - float(said[1]))
        if self.ended is None and self._value("ended") is not None:
            self.ended = now

    def _value(self, name: str) -> int | None:
        """The largest that was said: what a target writes here can only add."""
        found = [int(n) for n in re.findall(rf"^{name} (\d{{1,19}})$", self._text, re.MULTILINE)]
        return max(found) if found else None

    @property
    def start_error(self) -> str | None:
        """Why the program was not started; what comes after its start may be its own."""
        found = re.search(r"^start (.+)$", _BEGAN.split(self._text, 1)[0], re.MULTILINE)
        return None if found is None else shown(found[1])

    @property
    def status(self) -> int | None:
        """The program's wait status; None where the script did not live to tell it."""
        code = self._value("ended")
        if code is None:
            return None
        after = _BEGAN.split(self._text, 1)[-1]
        words = re.sub(r"^(oom|peak|refused|ended) \d+$", "", after, flags=re.MULTILINE).strip()
        return code - 128 if words and code > 128 else (code & 0xFF) << 8

    @property
    def counters(self) -> dict[str, int]:
        """``oom_kills``, ``peak`` and ``refused`` as far as the kernel counts for the container."""
        names = {"oom_kills": "oom", "peak": "peak", "refused": "refused"}
        named = {name: self._value(said) for name, said in names.items()}
        return {name: value for name, value in named.items() if value is not None}

    def close(self) -> None:
        """Let it go."""
        os.close(self.fd)


class Connection(Protocol):
    """What a container is attached by."""

    sock: socket.socket

    def close(self) -> None:
        """Let it go."""


class Contained(Protocol):
    """A container, from any thread."""

    def attach(self) -> Connection:
        """Connect to its streams, before it starts."""

    def start(self) -> None:
        """Start it."""

    def kill(self) -> None:
        """End it where it runs, and let go of what this thread holds of the daemon."""

    def state(self) -> dict[str, Any]:
        """What the daemon says of it: ``Pid``, ``OOMKilled``, ``ExitCode``, ``Error``."""

    def remove(self) -> None:
        """End and remove it, and let go of what this thread holds of the daemon."""


class Streams:
    """The connection to a container's standard streams."""

    def __init__(self, connection: Connection, stdin: bytes, limit: int) -> None:
        self._connection = connection
        self.sock = connection.sock
        self.kept = {1: Kept(limit), 2: Kept(limit)}
        self._is_open = True
        self._to_write = memoryview(stdin)
        self._waiting = b""
        self._left = 0
        self._stream = 1
        self.sock.settimeout(0)

    def have_ended(self) -> bool:
        """Whether the container, or the connection to it, has ended."""
        return not self._is_open

    def begin(self) -> None:
        """After the container has started: without input, let the program see its end."""
        if not self._to_write:
            self._end_input()

    @property
    def wants_to_write(self) -> bool:
        """Whether input is left."""
        return bool(self._to_write)

    def write(self) -> None:
        """Send what fits."""
        try:
            self._to_write = self._to_write[self.sock.send(self._to_write[: 1 << 16]) :]
        except BlockingIOError:
            return
        except OSError:  # it reads no more
            self._to_write = self._to_write[:0]
        if not self._to_write:
            self._end_input()

    def _end_input(self) -> None:
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def read(self) -> None:
        """Take what is there."""
        try:
            part = self.sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        if not part:
            self._is_open = False
        data = self._waiting + part
        while data:
            if not self._left:
                if len(data) < _FRAME.size:
                    break
                self._stream, self._left = _FRAME.unpack(data[: _FRAME.size])
                data = data[_FRAME.size :]
            taken, data = data[: self._left], data[self._left :]
            self._left -= len(taken)
            self.kept.get(self._stream, self.kept[1]).add(taken)
        self._waiting = data

    def close(self) -> None:
        """Let it go."""
        self._is_open = False
        self._connection.close()


class ContainedCommand:
    """A command that runs in a container; ``make`` makes one, without starting it."""

    def __init__(
        self, command: Command, limits: Limits, workspace: Path, folder: Path, make: Callable[[], Contained]
    ) -> None:
        self._command = command
        self._limits = limits
        self._workspace = workspace
        self._report = Report(folder)
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._result: Result | None = None
        self._failure: SandboxFailure | None = None
        self._over = threading.Event()
        self._wake, self._woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            self._container = make()
            self._streams = Streams(self._container.attach(), command.stdin, limits.output)
            self._since, self._clock = time.monotonic(), measuring.now()
            self._container.start()
        except BaseException:
            self._clean()
            raise
        self._streams.begin()
        threading.Thread(target=self._run, name="crashlab-container", daemon=True).start()

    def _clean(self) -> None:
        if (streams := getattr(self, "_streams", None)) is not None:
            streams.close()
        if (container := getattr(self, "_container", None)) is not None:
            container.remove()
        self._report.close()
        with self._lock:
            os.close(self._wake)
            os.close(self._woken)
            self._woken = -1

    def _run(self) -> None:
        try:
            self._watch()
            self._result = self._ended()
        except SandboxFailure as failure:
            self._failure = failure
        except Exception as error:  # noqa: BLE001  whoever waits has to hear of it
            why = f"the container's daemon failed: {type(error).__name__}: {shown(str(error))}"
            self._failure = SandboxFailure("sandbox_error", why)
        finally:
            try:
                self._clean()
            except Exception as error:  # noqa: BLE001  as above
                self._failure = self._failure or SandboxFailure(
                    "sandbox_error", f"a container could not be removed: {shown(str(error))}"
                )
            self._over.set()

    def _watch(self) -> None:
        """Serve the streams until the container has ended, or a limit is reached."""
        streams, report = self._streams, self._report
        poll = select.poll()
        poll.register(report.fd, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        last_look = time.monotonic()
        while not streams.have_ended():
            poll.register(
                streams.sock,
                select.POLLIN | select.POLLHUP | (select.POLLOUT if streams.wants_to_write else 0),
            )
            for fd, event in poll.poll(_LOOK * 1000):
                if fd == self._wake:
                    return
                if fd == streams.sock.fileno():
                    if event & select.POLLOUT:
                        streams.write()
                    if event & (select.POLLIN | select.POLLHUP | select.POLLERR):
                        with self._lock:
                            streams.read()
            report.read()
            now = time.monotonic()
            if now - last_look >= _LOOK:
                last_look = now
                if self._is_over(now):
                    return

    def _is_over(self, now: float) -> bool:
        """Whether something has to be ended from here; then ``_reason`` says what."""
        report, limits = self._report, self._limits
        if report.ended is not None:
            return now - report.ended > _GRACE  # the streams' own end is due
        if report.began is None:
            return now - self._since > _PATIENCE
        if limits.wall_clock is not None and now - report.began >= limits.wall_clock:
            self._reason = "wall_clock"
        elif limits.disk is not None and measuring.folder_bytes(str(self._workspace)) > limits.disk:
            self._reason = "disk"
        return self._reason is not None

    def _ended(self) -> Result:
        self._kill()
        state = self._container.state()
        report = self._report
        report.read()
        if report.began is None and report.start_error is None and self._reason is None:
            why = state.get("Error") or f"it ended with {state.get('ExitCode')} before the command began"
            raise SandboxFailure("sandbox_error", f"the container did not start: {shown(str(why))}")
        counters = report.counters
        if state.get("OOMKilled"):
            counters["oom_kills"] = max(1, counters.get("oom_kills", 0))
        full = None
        if report.status:
            full = measuring.file_at_limit([str(self._workspace)], self._limits.file_size, self._clock)
        until = report.ended or time.monotonic()
        return result_of(
            self._command,
            self._limits,
            {
                "status": report.status,
                "start_error": report.start_error,
                "reason": self._reason if report.ended is None else None,
                "duration": self._duration(until),
                "totals": [kept.total for kept in self._streams.kept.values()],
                "file_at_limit": full,
                **counters,
            },
            self._kept(),
        )

    def _duration(self, until: float) -> float:
        """Seconds that the program ran, and never less: at worst since the start of its container."""
        heard, said = self._report.began, self._report.said_began
        if heard is None:
            return 0.0
        return until - (said if said is not None and self._since <= said <= heard else self._since)

    def _kill(self) -> None:
        """End it where it runs, and take what was written before; the connection closes with it.

        A daemon may be busy with output that nobody takes, so both are done at a time.
        """
        streams = self._streams
        if streams.have_ended():
            return
        killing = threading.Thread(target=self._container.kill, daemon=True)
        killing.start()
        end = time.monotonic() + _GRACE
        while time.monotonic() < end:
            if select.select([streams.sock], [], [], _LOOK)[0]:
                with self._lock:
                    streams.read()
                if streams.have_ended():
                    break
        killing.join(_GRACE)

    def _kept(self) -> list[bytes]:
        return [part for kept in self._streams.kept.values() for part in (kept.head, kept.tail)]

    def wait(self, timeout: float | None = None) -> Result:
        """Its result; raises ``TimeoutError`` when it still runs after ``timeout`` seconds."""
        try:
            if not self._over.wait(timeout):
                raise TimeoutError(f"still running after {timeout:g} s")
        except KeyboardInterrupt:
            self.abandon()
            raise
        if self._failure is not None:
            raise self._failure
        assert self._result is not None  # noqa: S101
        return self._result

    @property
    def has_ended(self) -> bool:
        """Whether its container is gone."""
        return self._over.is_set()

    def request_stop(self) -> None:
        """Have it ended, without waiting; from any thread."""
        with self._lock:
            if self._woken >= 0:
                self._reason = self._reason or "stopped"
                with contextlib.suppress(BlockingIOError):
                    os.write(self._woken, b"x")

    def stop(self) -> Result:
        """End it and all that it started; the result of an earlier end where there was one."""
        self.request_stop()
        return self.wait()

    def abandon(self) -> None:
        """End it where it runs; nobody wants its result."""
        self.request_stop()
        self._over.wait(_PATIENCE)

    def peek(self) -> tuple[Output, Output]:
        """What it has written up to now."""
        if self._result is not None:
            return self._result.out, self._result.err
        with self._lock:
            out, err = (
                Output(head=kept.head, tail=kept.tail, total=kept.total)
                for kept in self._streams.kept.values()
            )
        return out, err

    def connect(self, port: int) -> socket.socket:
        """A connection to a TCP port on its loopback; raises ``OSError`` where nothing listens."""
        pid = 0
        if not self._over.is_set():
            with contextlib.suppress(Exception):  # the daemon knows it no more
                pid = int(self._container.state().get("Pid") or 0)
        if not pid:
            raise ConnectionRefusedError(f"port {port} in the sandbox: the command has ended")
        return connect_inside(pid, port)


def connect_inside(pid: int, port: int) -> socket.socket:
    """A socket of the network that process ``pid`` is in; raises ``OSError``."""
    from pytest_crashlab.sandbox.processes import enter_namespace

    made: list[socket.socket] = []
    problem: list[OSError] = []

    def work() -> None:  # a thread has a network of its own, and this one ends with it
        try:
            fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            try:
                enter_namespace(fd)
            finally:
                os.close(fd)
            made.append(socket.create_connection(("127.0.0.1", port), timeout=5))
        except OSError as error:
            problem.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if not made:
        raise ConnectionRefusedError(f"port {port} in the sandbox: {problem[0].strerror or problem[0]}")
    made[0].settimeout(None)
    return made[0]
