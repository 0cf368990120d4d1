"""What every backend speaks: limits in, results out, and which failures mean what.

A result is told by whoever caused or counted the ending (the supervisor's clock, the kernel's counter,
the wait status), never read from an exit code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, Protocol

from pytest_crashlab.errors import CrashlabError, InstrumentFailure

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_crashlab.sandbox.limits import Limits

Network = Literal["off", "loopback", "on"]


class EndedBy(StrEnum):
    """What ended a command."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    WALL_CLOCK = "wall_clock"
    CPU_LIMIT = "cpu_limit"
    MEMORY_LIMIT = "memory_limit"
    FILE_LIMIT = "file_limit"
    PROCESS_LIMIT = "process_limit"
    KILLED_UNKNOWN = "killed_unknown"
    START_FAILED = "start_failed"
    STOPPED = "stopped"

    @property
    def is_limit(self) -> bool:
        """Whether a declared limit ended it, which an author may call the target's own."""
        return self in _LIMITS


_LIMITS = frozenset(
    {
        EndedBy.WALL_CLOCK,
        EndedBy.CPU_LIMIT,
        EndedBy.MEMORY_LIMIT,
        EndedBy.FILE_LIMIT,
        EndedBy.PROCESS_LIMIT,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command: ``argv``, the bytes of ``stdin``, variables beside the clean ones, ``cwd`` inside."""

    argv: tuple[str, ...]
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "."


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The first and last bytes of the ``total`` that a stream held; what was between them is gone."""

    head: bytes
    tail: bytes = b""
    total: int

    @property
    def truncated(self) -> bool:
        """Whether bytes were left out."""
        return self.total > len(self.head) + len(self.tail)

    def end(self, width: int) -> str:
        """Its last characters, for a line."""
        text = self.text.strip()
        return text if len(text) <= width else f"...{text[-width:]}"

    @property
    def text(self) -> str:
        """As UTF-8; what is none of it is replaced. Control characters are as the target wrote them."""
        head, tail = (part.decode("utf-8", "replace") for part in (self.head, self.tail))
        if not self.truncated:
            return head + tail
        return f"{head}\n[... {self.total - len(self.head) - len(self.tail)} bytes left out ...]\n{tail}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Result:
    """How a command ended.

    ``exit_code`` of the target, None where it did not exit by itself; ``signal`` that ended it, None
    where none did. ``duration`` and ``cpu`` in seconds, ``peak_memory`` in bytes of the whole tree
    where ``peak_is`` "tree", else of its largest process; None where unknown. ``oom_kills``: how many
    processes the kernel killed for memory, None where it does not count for this sandbox. ``start_errno``:
    the system's number of the error by which the program could not be started, 0 where it was not even
    asked, None where it is unknown.
    """

    argv: tuple[str, ...]
    ended_by: EndedBy
    exit_code: int | None
    signal: int | None
    out: Output
    err: Output
    duration: float
    cpu: float | None = None
    peak_memory: int | None = None
    peak_is: Literal["tree", "largest process"] | None = None
    oom_kills: int | None = None
    detail: str | None = None
    start_errno: int | None = None

    def __repr__(self) -> str:
        """What a failed assertion shows of it: how it ended, and the last that it wrote."""
        ends = (("stdout", self.out), ("stderr", self.err))
        said = "".join(f"; {name} ends {shown(out.end(60))!r}" for name, out in ends if out.total)
        return f"<Result: {self.sentence}{said}>"

    @property
    def stdout(self) -> str:
        """Standard output as text, bounded; a line marks what was left out."""
        return self.out.text

    @property
    def stderr(self) -> str:
        """Standard error as text, bounded; a line marks what was left out."""
        return self.err.text

    @property
    def ok(self) -> bool:
        """Whether it exited by itself with 0."""
        return self.ended_by is EndedBy.EXITED and self.exit_code == 0

    @property
    def sentence(self) -> str:
        """What happened, in a line that is safe to print."""
        return f"{shown(' '.join(self.argv), 80)!s} {_ending(self)}"


def _ending(result: Result) -> str:
    after = f"after {result.duration:.3g} s"
    why = f": {result.detail}" if result.detail else ""
    texts = {
        EndedBy.EXITED: f"exited with {result.exit_code} {after}",
        EndedBy.SIGNALLED: f"was ended by signal {result.signal} {after}",
        EndedBy.WALL_CLOCK: f"was stopped at the wall-clock limit {after}",
        EndedBy.CPU_LIMIT: f"used up its CPU time {after}",
        EndedBy.MEMORY_LIMIT: f"ran into the memory limit {after}",
        EndedBy.FILE_LIMIT: f"ran into the limit of what may be written {after}",
        EndedBy.PROCESS_LIMIT: f"started more processes than it may {after}",
        EndedBy.KILLED_UNKNOWN: f"was killed {after}, and nothing tells by whom",
        EndedBy.START_FAILED: "could not be started",
        EndedBy.STOPPED: f"was stopped by the test {after}",
    }
    return texts[result.ended_by] + why


def shown(text: str, width: int = 200) -> str:
    """``text`` for a terminal: control characters as escapes, at most ``width`` characters."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return safe if len(safe) <= width else f"{safe[: width - 3]}..."


def hides_itself(excinfo: object) -> bool:
    """For ``__tracebackhide__``: what raises on purpose is not to be read in a traceback, a bug in it is."""
    return isinstance(getattr(excinfo, "value", None), CrashlabError)


__tracebackhide__ = hides_itself

LABELS: dict[EndedBy, str] = {
    EndedBy.WALL_CLOCK: "wall_clock",
    EndedBy.CPU_LIMIT: "wall_clock",
    EndedBy.MEMORY_LIMIT: "sandbox_oom",
    EndedBy.FILE_LIMIT: "sandbox_error",
    EndedBy.PROCESS_LIMIT: "sandbox_error",
    EndedBy.KILLED_UNKNOWN: "sandbox_error",
    EndedBy.START_FAILED: "sandbox_error",
}


class SandboxFailure(InstrumentFailure):
    """The sandbox, or a limit of it, ended what ran: the trial gives no decision.

    ``label`` is ``sandbox_error``, ``sandbox_oom`` or ``wall_clock``; ``result`` is what was seen of
    the command, None where none was started.
    """

    def __init__(self, label: str, message: str, result: Result | None = None) -> None:
        super().__init__(label, message)
        self.result = result


class TargetError(CrashlabError, AssertionError):
    """The target ended where it should not have: with ``check=True`` by another exit code than 0 or a signal.

    A failed assertion about the target, so that it counts against it in every phase.
    """

    def __init__(self, result: Result, before: str = "") -> None:
        tail = shown(result.stderr.strip()[-400:], 400)
        super().__init__(f"{before}{result.sentence}{f'; it wrote: {tail}' if tail else ''}")
        self.result = result


class NothingListens(CrashlabError, AssertionError):
    """A server that has to answer for its limits (``limit_is="target"``) did not listen in time."""


class WrongArgument(CrashlabError, TypeError):
    """What was given is of another kind than what is taken."""


class PathRefused(CrashlabError, ValueError):
    """A path that leads out of the sandbox, or to something that is no plain file."""


class LinkRefused(PathRefused, AssertionError):
    """The target put a link or a special file in a plain file's place: a failed assertion about it."""


class FileMissing(CrashlabError, FileNotFoundError, AssertionError):
    """A file is not there: a sandbox begins empty, so the target has not made or has removed it."""


class NotJson(CrashlabError, ValueError, AssertionError):
    """A file that the test reads as JSON holds something else."""


class Running(Protocol):
    """A command in progress."""

    def wait(self, timeout: float | None = None) -> Result:
        """Its result; raises ``TimeoutError`` when it still runs after ``timeout`` seconds."""

    def stop(self) -> Result:
        """End it and all that it started; the result of an earlier end where there was one."""

    def request_stop(self) -> None:
        """Have it ended, without waiting; from any thread."""

    def peek(self) -> tuple[Output, Output]:
        """What it has written up to now: standard output and standard error."""

    def connect(self, port: int) -> socket.socket:
        """A connection to a TCP port on its loopback; raises ``OSError`` where nothing listens."""


class Box(Protocol):
    """One sandbox of a backend: a folder of files and commands that see little else."""

    workspace: Path
    """The folder on this machine that the target sees as its working directory."""

    def start(self, command: Command, limits: Limits) -> Running:
        """Start a command.

        Raises :class:`SandboxFailure` ``sandbox_error`` where the backend itself fails: no decision.
        A program that is not there is no exception but a result, ``start_failed``.
        """

    def close(self) -> None:
        """End what runs and remove what there is; never raises for what is already gone."""


class Backend(Protocol):
    """A way to isolate, registered by ``pytest_crashlab_register_sandboxes``."""

    name: str
    isolates: str
    """One line for the session's header: what it keeps apart and what not."""

    def unavailable(self) -> str | None:
        """Why it does not work on this machine, as a sentence that says what to do; None where it works."""

    def open(self, limits: Limits) -> Box:
        """A fresh sandbox.

        Raises :class:`SandboxFailure` ``sandbox_error`` where it cannot be made or cannot keep one of
        the ``limits`` that are set: no decision.
        """

    def close(self) -> None:
        """At the end of the session: leave no process, folder, mount or control group behind."""


def strongest(backends: Sequence[Backend]) -> tuple[Backend, list[str]]:
    """The first that works here, and why those before it do not; raises :class:`SandboxFailure`."""
    reasons: list[str] = []
    for backend in backends:
        reason = backend.unavailable()
        if reason is None:
            return backend, reasons
        reasons.append(f"{backend.name}: {reason}")
    raise SandboxFailure("sandbox_error", f"no sandbox works on this machine: {'; '.join(reasons)}")
