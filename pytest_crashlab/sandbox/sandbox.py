"""What a test holds: one sandbox, its files and its commands."""

from __future__ import annotations

import asyncio
import errno
import functools
import json
import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pytest_crashlab.errors import CrashlabError
from pytest_crashlab.sandbox.base import (
    LABELS,
    Command,
    EndedBy,
    LinkRefused,
    NothingListens,
    NotJson,
    Output,
    PathRefused,
    Result,
    SandboxFailure,
    TargetError,
    WrongArgument,
    hides_itself,
    shown,
)
from pytest_crashlab.sandbox.workspace import Workspace, inside

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence

    from pytest_crashlab.sandbox.base import Backend, Box, Running
    from pytest_crashlab.sandbox.limits import Limits

__tracebackhide__ = hides_itself
_SHOWN_BYTES = 64 << 10  # of a file, in a snapshot
_SHOWN_IN_ALL = 16 << 20  # of the others only a digest is kept
_READ_IN_ALL = 1 << 30  # for digests; files may be large on paper and take no room on the disk

P = ParamSpec("P")
T = TypeVar("T")


def _briefly(method: Callable[P, T]) -> Callable[P, T]:
    """Let out what is raised on purpose without the way it came: a test's own line and the sentence do."""

    @functools.wraps(method)
    def brief(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except CrashlabError as error:
            raise error.with_traceback(None)  # noqa: B904  the same one

    return brief


class Sandbox:
    """A fresh place for one trial: an empty working directory and commands that run in it.

    Made by ``backend`` with ``limits``, which every command may change for itself.
    """

    def __init__(self, backend: Backend, limits: Limits) -> None:
        self.backend = backend.name
        self.limits = limits
        self._opened: Box | None = backend.open(limits)
        self._workspace = Workspace(self._opened.workspace)
        self._known: dict[str, str] = {}
        self._processes: list[Process] = []

    @property
    def _box(self) -> Box:
        if self._opened is None:
            raise SandboxFailure(
                "sandbox_error", "the sandbox is closed: each is for one trial, and ends with it"
            )
        return self._opened

    @property
    def _files(self) -> Workspace:
        assert self._box is not None  # noqa: S101  raises where it is closed
        return self._workspace

    def run(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str = ".",
        timeout: float | None = None,
        check: bool = False,
        **limits: Any,
    ) -> Result:
        """Run a command to its end and return how it ended; a non-zero exit code is the target's own.

        ``timeout`` is the wall clock in seconds; other ``limits`` by name (``memory="256M"``). Raises
        :class:`SandboxFailure` where the sandbox failed, a limit was reached that is not declared as
        the target's (``limit_is="target"``), or the program is not there, unless it is one of the
        sandbox's own files (``./program``), which the target has left so. With ``check``, raises
        :class:`TargetError` where the target did not exit with 0. Everything that the command started
        has ended when this returns.
        """
        command, allowed = self._asked(argv, stdin, env, cwd, timeout, limits)
        return judged(self._box.start(command, allowed).wait(), allowed, check=check)

    async def run_async(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str = ".",
        timeout: float | None = None,  # noqa: ASYNC109  a limit of the command, not of the await
        check: bool = False,
        **limits: Any,
    ) -> Result:
        """Like :meth:`run`, under asyncio; cancelled, the command is ended."""
        command, allowed = self._asked(argv, stdin, env, cwd, timeout, limits)
        # A thread of its own: those of the loop are few, and a command that waits for another would block it.
        threads = ThreadPoolExecutor(1, "crashlab-sandbox")
        loop = asyncio.get_running_loop()
        starting = loop.run_in_executor(threads, self._box.start, command, allowed)
        try:
            running = await asyncio.shield(starting)
            waiting = loop.run_in_executor(threads, running.wait)
            result = await asyncio.shield(waiting)
        except asyncio.CancelledError:
            await asyncio.wait([starting])
            if starting.exception() is None:
                running = starting.result()
                running.request_stop()
                await asyncio.wait([loop.run_in_executor(threads, running.wait)])
            raise
        finally:
            threads.shutdown(wait=False)
        return judged(result, allowed, check=check)

    def spawn(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str = ".",
        timeout: float | None = None,
        **limits: Any,
    ) -> Process:
        """Start a command that goes on beside the test until it ends, is stopped, or the trial is over.

        Takes what :meth:`run` takes.
        """
        command, allowed = self._asked(argv, stdin, env, cwd, timeout, limits)
        process = Process(self._box.start(command, allowed), allowed)
        self._processes.append(process)
        return process

    @_briefly
    def _asked(  # noqa: PLR0917  the arguments of run
        self,
        argv: Sequence[str | os.PathLike[str]],
        stdin: str | bytes,
        env: Mapping[str, str] | None,
        cwd: str,
        timeout: float | None,
        limits: Mapping[str, Any],
    ) -> tuple[Command, Limits]:
        if isinstance(argv, str | bytes) or not argv:
            raise WrongArgument("sandbox.run takes a list of words, for example ['sh', '-c', 'ls | wc']")
        given = dict(limits) if timeout is None else {**limits, "timeout": timeout}
        for word in argv:
            if not isinstance(word, str | os.PathLike):
                raise WrongArgument(
                    f"sandbox.run takes words as text, and {word!r} is none; write str({word!r})"
                )
        if not isinstance(stdin, str | bytes):
            raise WrongArgument(f"stdin is text or bytes, and {type(stdin).__name__} is neither")
        command = Command(
            argv=tuple(os.fspath(word) for word in argv),
            stdin=stdin.encode() if isinstance(stdin, str) else stdin,
            env=dict(env or {}),
            cwd=inside(cwd),
        )
        return command, self.limits.but(given, "sandbox.run") if given else self.limits

    def write(self, path: str, text: str) -> None:
        """Write a text file; its folders are made. What has the name, a link included, is replaced."""
        if not isinstance(text, str):
            raise WrongArgument(
                f"sandbox.write takes text, and this is {type(text).__name__}; see write_file"
            )
        self.write_file(path, text.encode())

    @_briefly
    def write_file(self, path: str, content: bytes, *, executable: bool = False) -> None:
        """Write a file of bytes."""
        if not isinstance(content, bytes | bytearray | memoryview):
            raise WrongArgument(
                f"sandbox.write_file takes bytes, and this is {type(content).__name__}; see write"
            )
        self._files.write(path, content, 0o755 if executable else 0o644)
        self._known[inside(path)] = self._files.digest(inside(path))

    def read(self, path: str) -> str:
        """The text of a file; what is no UTF-8 is replaced.

        Raises :class:`FileMissing` where there is none, :class:`PathRefused` for a path that leads
        out, and :class:`LinkRefused` where the target has put a link or a special file.
        """
        return self.read_bytes(path).decode("utf-8", "replace")

    @_briefly
    def read_bytes(self, path: str) -> bytes:
        """The bytes of a file; raises what :meth:`read` raises."""
        return self._files.read(path)

    def read_json(self, path: str) -> Any:
        """The value in a JSON file; raises what :meth:`read` raises, and :class:`NotJson`."""
        try:
            return json.loads(self.read(path))
        except ValueError as error:
            if isinstance(error, PathRefused):
                raise
            raise NotJson(f"{shown(path)!r} in the sandbox is no JSON: {error}") from None

    def files(self) -> list[str]:
        """The paths of all files, links included."""
        return list(self._files.files())

    def snapshot(self, *paths: str) -> dict[str, str]:
        """What is in the files at ``paths`` (all files without any), by path: text, or a digest of the rest.

        A file that is not there is left out.
        """
        found = {}
        texts, read = 0, 0
        for path in paths or self._files.files():
            try:
                with self._files.open(path) as (file, size):
                    content = file.read(size) if size <= min(_SHOWN_BYTES, _SHOWN_IN_ALL - texts) else None
            except FileNotFoundError:
                continue
            except (LinkRefused, OSError) as error:
                found[path] = f"({type(error).__name__})"
                continue
            text = None if content is None else _as_text(content)
            if text is not None:
                texts += size
                found[path] = text
            elif read + size > _READ_IN_ALL:
                found[path] = f"({size} bytes, not read)"
            else:
                read += size
                found[path] = f"sha256:{self._files.digest(path)} ({size} bytes)"
        return found

    def changed(self) -> set[str]:
        """The paths of files that the target made, changed or removed: what the test wrote is known."""
        now = set(self._files.files())
        same = {path for path, digest in self._known.items() if self._files.digest(path) == digest}
        return (now | self._known.keys()) - (same & now)

    def upload(self, source: str | os.PathLike[str], path: str) -> None:
        """Copy a file or folder of this machine into the sandbox; links in it are followed."""
        origin = Path(source)
        if not origin.is_dir():
            mode = origin.stat().st_mode
            self.write_file(path, origin.read_bytes(), executable=bool(mode & stat.S_IXUSR))
            return
        for folder, _, names in os.walk(origin):
            for name in names:
                file = Path(folder, name)
                self.upload(file, f"{path}/{file.relative_to(origin).as_posix()}")

    @_briefly
    def download(self, path: str, destination: str | os.PathLike[str]) -> None:
        """Copy a file or folder of the sandbox to ``destination``.

        Raises :class:`LinkRefused` where a link or a special file is among them, before anything is
        copied: nothing of this machine can come back as the target's.
        """
        to = Path(destination)
        names = {to: path}
        if self._files.is_folder(path):
            prefix = inside(path)
            names = {to / Path(n).relative_to(prefix): n for n in self._files.files(path)}
        room = None if self.limits.disk is None else max(self.limits.disk, _READ_IN_ALL)
        for name in names.values():
            with self._files.open(name) as (_, size):
                room = None if room is None else room - size
            if room is not None and room < 0:
                raise LinkRefused(f"{shown(path)!r} in the sandbox holds more than its disk may")
        for target, name in names.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as copy:
                copy.writelines(self._files.parts(name))

    def close(self) -> None:
        """End what runs and remove everything."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()


class Process:
    """A command that goes on beside the test."""

    def __init__(self, running: Running, limits: Limits) -> None:
        self._running = running
        self._limits = limits

    def wait(self, timeout: float | None = None, *, check: bool = False) -> Result:
        """Its result; raises ``TimeoutError`` after ``timeout`` seconds, else what ``Sandbox.run`` raises."""
        return judged(self._running.wait(timeout), self._limits, check=check)

    def stop(self) -> Result:
        """End it with all that it started."""
        return self._running.stop()

    @property
    def stdout(self) -> str:
        """What it has written up to now."""
        return self._peek()[0].text

    @property
    def stderr(self) -> str:
        """What it has written up to now."""
        return self._peek()[1].text

    def _peek(self) -> tuple[Output, Output]:
        return self._running.peek()

    def connect(self, port: int, timeout: float = 0.0) -> socket.socket:
        """A connection to its TCP ``port``, tried again for ``timeout`` seconds while nothing listens.

        Works where the sandbox has no network: the connection is made inside. Where the command has ended,
        nothing will: raises :class:`TargetError` where that is its own doing, else what ``Sandbox.run``
        raises. ``ConnectionRefusedError`` where it runs and nothing listens in time, which gives no
        decision; :class:`NothingListens` where the command has ``limit_is="target"``.
        """
        if port not in range(1, 1 << 16):
            raise ValueError(f"{port!r} is no TCP port; give a number from 1 to 65535")
        deadline = time.monotonic() + timeout
        while True:
            try:
                return self._running.connect(port)
            except ConnectionRefusedError as error:
                self._refuse_ended(port)
                if time.monotonic() >= deadline:
                    why = f"{error}; nothing listened for {timeout:g} s" if timeout else str(error)
                    kind = NothingListens if self._limits.limit_is == "target" else ConnectionRefusedError
                    raise kind(why) from None
                time.sleep(0.02)

    def _refuse_ended(self, port: int) -> None:
        """Raise what the end of the command means for who wants to connect; nothing where it runs."""
        try:
            result = self._running.wait(0)
        except TimeoutError:
            return
        if result.ended_by is not EndedBy.STOPPED:  # by the test, which knows
            raise TargetError(judged(result, self._limits, check=False), f"nothing listens on port {port}: ")


def _as_text(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def judged(result: Result, limits: Limits, *, check: bool) -> Result:
    """Return ``result`` where it speaks of the target; raise what it means where it does not."""
    own = (result.ended_by.is_limit and limits.limit_is == "target") or _is_missing_work(result)
    if result.ended_by in LABELS and not own:
        hint = _hint(result, limits) if result.ended_by.is_limit else ""
        raise SandboxFailure(LABELS[result.ended_by], f"{result.sentence}{hint}", result)
    if check and not result.ok and result.ended_by is not EndedBy.STOPPED:
        raise TargetError(result)
    return result


_ENDED_BY_LIMIT = {
    EndedBy.WALL_CLOCK: ("wall_clock",),
    EndedBy.CPU_LIMIT: ("cpu",),
    EndedBy.MEMORY_LIMIT: ("memory",),
    EndedBy.FILE_LIMIT: ("file_size", "disk"),
    EndedBy.PROCESS_LIMIT: ("processes",),
}


def _hint(result: Result, limits: Limits) -> str:
    """Which limit that was, and what an author says who holds it to be the target's own failure."""
    set_to = ", ".join(f"{name}={limits.text(name)}" for name in _ENDED_BY_LIMIT[result.ended_by])
    return f" ({set_to}; if that is the target's own failure, say limit_is='target')"


def _is_missing_work(result: Result) -> bool:
    """Whether a program of the sandbox's own files cannot be started: the target has left it so.

    It is not there, or no program. Too long arguments and too little memory are none of its doing.
    """
    program = result.argv[0]
    own = "/" in program and not program.startswith("/")
    known = result.start_errno is None or result.start_errno in _NO_PROGRAM
    return result.ended_by is EndedBy.START_FAILED and own and known


_NO_PROGRAM = frozenset(
    {
        errno.ENOENT,
        errno.EACCES,
        errno.EPERM,
        errno.ENOEXEC,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ELOOP,
        errno.EINVAL,
        errno.ELIBBAD,
        errno.ETXTBSY,
        errno.ENAMETOOLONG,
    }
)
