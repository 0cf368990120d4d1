"""The test process's side of keepers: one for each command at a time, used again for the next."""

from __future__ import annotations

import contextlib
import select
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_crashlab.sandbox import cgroups, wire
from pytest_crashlab.sandbox.base import Command, EndedBy, Output, Result, SandboxFailure, hides_itself
from pytest_crashlab.sandbox.endings import result_of

if TYPE_CHECKING:
    from pytest_crashlab.sandbox.limits import Limits

__tracebackhide__ = hides_itself
_KEEPER = Path(__file__).with_name("keeper.py")
_PACKAGE_ROOT = Path(__file__).parents[2]
_IDLE = 2  # keepers kept for later commands
_TURN = 0.2  # seconds until a waiting thread sees that another has taken the report


class Keeper:
    """One keeper process and the connection to it."""

    def __init__(self, base: Path, number: str) -> None:
        ours, theirs = socket.socketpair()
        self.sock = ours
        self._closing = threading.Lock()
        self._said: bytes | None = None
        argv = [sys.executable, "-I", "-S", str(_KEEPER), str(_PACKAGE_ROOT), str(theirs.fileno())]
        try:
            self._process = subprocess.Popen(
                [*argv, str(base), number],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                cwd="/",
            )
        finally:
            theirs.close()
        facts = wire.receive(self.sock)
        if facts is None:
            raise SandboxFailure("sandbox_error", f"the sandbox's keeper did not start: {self.why_gone()}")
        self.cage: dict[str, bool] = facts[0]["cage"]
        self._groups: list[str] = facts[0]["groups"]
        self.oom_kills = 0  # that it has told of

    @property
    def has_ended(self) -> bool:
        """Whether it was killed: no target of a strong backend can, but the kernel may."""
        return self._process.poll() is not None

    def bury(self) -> int:
        """End what is left of a command whose keeper was killed; how many the kernel had killed for memory.

        With its keeper its count is gone, but not the kernel's.
        """
        kills = cgroups.bury(self._groups)
        return kills - self.oom_kills

    def why_gone(self) -> str:
        """Close, and return what it wrote before it ended."""
        self.close()
        lines = (self._said or b"").decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {self._process.returncode}"

    def close(self) -> None:
        """Let it end, with all that runs in it; from any thread."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)  # wakes who waits for it in another thread
        with self._closing:
            if self._said is None:
                _, self._said = self._process.communicate()
                self.sock.close()


class Keepers:
    """The keepers of one test process. Safe to use from several threads."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._lock = threading.Lock()
        self._idle: list[Keeper] = []
        self._made = 0

    def take(self) -> Keeper:
        """An idle keeper, or a new one; raises :class:`SandboxFailure`."""
        with self._lock:
            while self._idle:
                idle = self._idle.pop()
                if not idle.has_ended:
                    return idle
                idle.bury()
                idle.close()
            self._made += 1
            number = f"{self._base.name.rpartition('-')[2]}-{self._made}"  # other backends count as well
        try:
            return Keeper(self._base, number)
        except OSError as error:
            raise SandboxFailure(
                "sandbox_error", f"the sandbox's keeper cannot be started: {error}"
            ) from error

    def give_back(self, keeper: Keeper) -> None:
        """Keep it for the next command, or let it end where there are enough."""
        with self._lock:
            if len(self._idle) < _IDLE and not keeper.has_ended:
                self._idle.append(keeper)
                return
        keeper.close()

    def close(self) -> None:
        """End all idle ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for keeper in idle:
            keeper.close()


class KeptCommand:
    """A command that a keeper runs. Safe to use from several threads."""

    def __init__(self, keepers: Keepers, command: Command, limits: Limits, request: dict[str, Any]) -> None:
        self._keepers = keepers
        self._command = command
        self._limits = limits
        self._result: Result | None = None
        self._failure: SandboxFailure | None = None
        self._asking = threading.Lock()  # one question at a time, and its answer
        self._sending = threading.Lock()
        self._began = time.monotonic()
        self._keeper = keepers.take()
        try:
            wire.send(self._keeper.sock, request, command.stdin)
        except OSError as error:
            raise SandboxFailure(
                "sandbox_error", f"the sandbox's keeper ended: {self._keeper.why_gone()}"
            ) from error
        except BaseException:  # Ctrl-C, or a time-out of the test's
            self._keeper.close()
            raise

    def wait(self, timeout: float | None = None) -> Result:
        """Its result; raises ``TimeoutError`` when it still runs after ``timeout`` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._result is None:
            left = _TURN if deadline is None else min(_TURN, max(0.0, deadline - time.monotonic()))
            try:
                said = self._says_something(left)
                if said:
                    self._take_report()
            except BaseException:
                if self._result is None:  # Ctrl-C: a closed connection ends the command
                    self._give_up("the session was interrupted")
                raise
            if not said and deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"still running after {timeout:g} s")
        return self._told()

    def _says_something(self, timeout: float) -> bool:
        poll = select.poll()
        try:
            poll.register(self._keeper.sock, select.POLLIN)
        except ValueError:  # closed by another thread, which has set the result
            return self._result is None
        return bool(poll.poll(timeout * 1000))

    def _take_report(self) -> None:
        """Receive, unless another thread has taken what was there."""
        with self._asking:
            if self._result is None and self._says_something(0):
                self._finish(self._receive())

    def _told(self) -> Result:
        if self._failure is not None:
            raise self._failure
        assert self._result is not None  # noqa: S101
        return self._result

    def _give_up(self, why: str) -> None:
        """Where nobody can know its result any more."""
        self._result = _nothing(self._command, why)
        self._keeper.close()

    def _receive(self) -> tuple[dict[str, Any], list[bytes]]:
        try:
            received = wire.receive(self._keeper.sock)
        except OSError:
            received = None
        return self._post_mortem() if received is None else received

    def _post_mortem(self) -> tuple[dict[str, Any], list[bytes]]:
        """The report of a command whose keeper has ended before it."""
        why = self._keeper.why_gone()
        kills = self._keeper.bury()
        if kills <= 0:
            return {"backend_error": f"its keeper ended: {why}"}, []
        duration = time.monotonic() - self._began
        lost = "its supervisor among them, and with it the output"
        report = {"status": None, "oom_kills": kills, "duration": duration, "totals": [0, 0], "lost": lost}
        return report, [b""] * 4

    def _finish(self, received: tuple[dict[str, Any], list[bytes]]) -> None:
        report, kept = received
        if self._result is not None:  # given up by another thread
            return
        if "backend_error" in report:
            why = report["backend_error"]
            nothing = _nothing(self._command, why)
            self._failure = SandboxFailure("sandbox_error", f"the sandbox failed: {why}", nothing)
            self._result = nothing
        else:
            self._keeper.oom_kills += report.get("oom_kills") or 0
            self._result = result_of(self._command, self._limits, report, kept)
        self._keepers.give_back(self._keeper)

    @property
    def has_ended(self) -> bool:
        """Whether its result is known here."""
        return self._result is not None

    def request_stop(self) -> None:
        """Have it ended, without waiting; from any thread."""
        if self._result is None:
            with contextlib.suppress(OSError):
                self._send({"do": "stop"})

    def _send(self, message: dict[str, Any]) -> None:
        with self._sending:
            wire.send(self._keeper.sock, message)

    def stop(self) -> Result:
        """End it and all that it started; the result of an earlier end where there was one."""
        self.request_stop()
        return self.wait()

    def abandon(self) -> None:
        """End it where it runs; nobody wants its result."""
        if self._result is None:
            self._give_up("its sandbox was closed")

    def peek(self) -> tuple[Output, Output]:
        """What it has written up to now."""
        with self._asking:
            answer = self._ask({"do": "peek"})
        if answer is not None:
            report, kept = answer
            return (
                Output(head=kept[0], tail=kept[1], total=report["totals"][0]),
                Output(head=kept[2], tail=kept[3], total=report["totals"][1]),
            )
        result = self._told()
        return result.out, result.err

    def connect(self, port: int) -> socket.socket:
        """A connection to a TCP port on its loopback; raises ``OSError`` where nothing listens."""
        with self._asking:
            answer = self._ask({"do": "connect", "port": port})
            if answer is None:
                raise ConnectionRefusedError(f"port {port} in the sandbox: the command has ended")
            if not answer[0]["connected"]:
                raise ConnectionRefusedError(f"port {port} in the sandbox: {answer[0]['why']}")
            _, fds, _, _ = socket.recv_fds(self._keeper.sock, 1, 1)
            return socket.socket(fileno=fds[0])

    def _ask(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]] | None:
        """The answer; None where the command ended before it was asked, and its result is known now."""
        if self._result is not None:
            return None
        try:
            with contextlib.suppress(OSError):
                self._send(message)
            received = self._receive()
        except BaseException:  # the answer would be taken for that to the next question
            self._give_up("the session was interrupted")
            raise
        if "status" not in received[0] and "backend_error" not in received[0]:
            return received
        self._finish(received)
        return None


def _nothing(command: Command, why: str) -> Result:
    empty = Output(head=b"", total=0)
    return Result(
        argv=command.argv,
        ended_by=EndedBy.KILLED_UNKNOWN,
        exit_code=None,
        signal=None,
        out=empty,
        err=empty,
        duration=0.0,
        detail=why,
    )
