"""The test process's side of keepers: one for each command at a time, used again for the next."""

from __future__ import annotations

import contextlib
import select
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_crashlab.sandbox import wire
from pytest_crashlab.sandbox.base import Command, EndedBy, Output, Result, SandboxFailure, hides_itself
from pytest_crashlab.sandbox.endings import result_of

if TYPE_CHECKING:
    from pytest_crashlab.sandbox.limits import Limits

__tracebackhide__ = hides_itself
_KEEPER = Path(__file__).with_name("keeper.py")
_PACKAGE_ROOT = Path(__file__).parents[2]
_IDLE = 2  # keepers kept for later commands


class Keeper:
    """One keeper process and the connection to it."""

    def __init__(self, base: Path, number: str) -> None:
        ours, theirs = socket.socketpair()
        self.sock = ours
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

    def why_gone(self) -> str:
        """Close, and return what it wrote before it ended."""
        self.sock.close()
        _, said = self._process.communicate()
        lines = said.decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {self._process.returncode}"

    def close(self) -> None:
        """Let it end, with all that runs in it."""
        with contextlib.suppress(OSError):
            self.sock.close()
        self._process.communicate()


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
            if self._idle:
                return self._idle.pop()
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
            if len(self._idle) < _IDLE:
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
    """A command that a keeper runs."""

    def __init__(self, keepers: Keepers, command: Command, limits: Limits, request: dict[str, Any]) -> None:
        self._keepers = keepers
        self._command = command
        self._limits = limits
        self._result: Result | None = None
        self._keeper = keepers.take()
        try:
            wire.send(self._keeper.sock, request, command.stdin)
        except OSError as error:
            raise SandboxFailure(
                "sandbox_error", f"the sandbox's keeper ended: {self._keeper.why_gone()}"
            ) from error

    def wait(self, timeout: float | None = None) -> Result:
        """Its result; raises ``TimeoutError`` when it still runs after ``timeout`` seconds."""
        if self._result is not None:
            return self._result
        if timeout is not None and not select.select([self._keeper.sock], [], [], timeout)[0]:
            raise TimeoutError(f"still running after {timeout:g} s")
        try:
            return self._finish(self._receive())
        except BaseException:
            if self._result is None:  # Ctrl-C: a closed connection ends the command
                self._keeper.close()
                self._result = _nothing(self._command, "the session was interrupted")
            raise

    def _receive(self) -> tuple[dict[str, Any], list[bytes]]:
        received = wire.receive(self._keeper.sock)
        if received is None:
            why = self._keeper.why_gone()
            self._result = _nothing(self._command, f"the sandbox's keeper ended: {why}")
            raise SandboxFailure("sandbox_error", f"the sandbox's keeper ended: {why}", self._result)
        return received

    def _finish(self, received: tuple[dict[str, Any], list[bytes]]) -> Result:
        report, kept = received
        self._keepers.give_back(self._keeper)
        if "backend_error" in report:
            why = report["backend_error"]
            self._result = _nothing(self._command, why)
            raise SandboxFailure("sandbox_error", f"the sandbox could not be made: {why}", self._result)
        self._result = result_of(self._command, self._limits, report, kept)
        return self._result

    @property
    def has_ended(self) -> bool:
        """Whether its result is known here."""
        return self._result is not None

    def request_stop(self) -> None:
        """Have it ended, without waiting; from any thread."""
        if self._result is None:
            with contextlib.suppress(OSError):
                wire.send(self._keeper.sock, {"do": "stop"})

    def stop(self) -> Result:
        """End it and all that it started; the result of an earlier end where there was one."""
        self.request_stop()
        return self.wait()

    def abandon(self) -> None:
        """End it where it runs; nobody wants its result."""
        if self._result is None:
            self._result = _nothing(self._command, "its sandbox was closed")
            self._keeper.close()

    def peek(self) -> tuple[Output, Output]:
        """What it has written up to now."""
        if self._result is None:
            report, kept = self._ask({"do": "peek"})
            if "status" not in report:
                return (
                    Output(head=kept[0], tail=kept[1], total=report["totals"][0]),
                    Output(head=kept[2], tail=kept[3], total=report["totals"][1]),
                )
        result = self.wait()
        return result.out, result.err

    def connect(self, port: int) -> socket.socket:
        """A connection to a TCP port on its loopback; raises ``OSError`` where nothing listens."""
        if self._result is None:
            report, _ = self._ask({"do": "connect", "port": port})
            if "status" not in report:
                if not report["connected"]:
                    raise ConnectionRefusedError(f"port {port} in the sandbox: {report['why']}")
                _, fds, _, _ = socket.recv_fds(self._keeper.sock, 1, 1)
                return socket.socket(fileno=fds[0])
        raise ConnectionRefusedError(f"port {port} in the sandbox: the command has ended")

    def _ask(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """The answer, or the last report where the command ended before it was asked."""
        with contextlib.suppress(BrokenPipeError):
            wire.send(self._keeper.sock, message)
        received = self._receive()
        if "status" in received[0] or "backend_error" in received[0]:
            # The keeper read the question as the next request or not at all: it is of no more use.
            report, kept = received
            self._keeper.close()
            self._result = result_of(self._command, self._limits, report, kept)
        return received


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
