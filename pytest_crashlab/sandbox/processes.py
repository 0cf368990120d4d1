"""Processes as the kernel tells of them: descendants, wait statuses, and ending all of them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITIES = 64
_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that no daemon gets away."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Be killed when the parent ends; forgotten by the kernel when the user id changes."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def renounce_privileges() -> None:
    """Let no program, set-uid or with file capabilities, get more than this process has; drop the rest."""
    for capability in range(_CAPABILITIES):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs cannot be set")


def enter_namespace(fd: int) -> None:
    """Join the namespace that ``fd`` refers to; raises ``OSError``."""
    if _libc.setns(fd, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"setns: {os.strerror(code)}")


def start_time(pid: int) -> str | None:
    """When a process started, in clock ticks since boot; None where there is none. With the pid, a name."""
    fields = _stat(pid)
    return None if fields is None else fields[19]


def is_running(pid: int, start: str | None) -> bool:
    """Whether the process of this id that began at ``start`` is there and has not ended."""
    fields = _stat(pid)
    return fields is not None and fields[19] == start and fields[0] not in "ZX"


def parent(pid: int) -> int | None:
    """The id of the parent of a process; None where there is no process."""
    fields = _stat(pid)
    return None if fields is None else int(fields[1])


def cpu_seconds(pid: int) -> float:
    """The processor time that a process has used, without its children's; 0.0 where there is none."""
    fields = _stat(pid)
    return 0.0 if fields is None else (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def identity(pid: int) -> str:
    """A name that no other process of this machine has had: its id, when it started, its namespace."""
    return f"{pid}-{start_time(pid)}-{os.stat('/proc/self/ns/pid').st_ino}"  # noqa: PTH116


def _stat(pid: int) -> list[str] | None:
    """The fields of ``/proc/PID/stat`` from the state on; the name before it may hold anything."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  once per process per look: cheap
            return file.read().rpartition(b")")[2].decode().split()
    except OSError:
        return None


def descendants(pid: int) -> list[int]:
    """All processes below ``pid``, parents before their children."""
    found = []
    todo = [pid]
    while todo:
        children = _children(todo.pop())
        found += children
        todo += children
    return found


def _children(pid: int) -> list[int]:
    """Each thread has a list of its own."""
    if not _HAS_CHILDREN:
        return _children_by_parent(pid)
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                found += [int(child) for child in file.read().split()]
    return found


_HAS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")  # noqa: PTH110


def _children_by_parent(pid: int) -> list[int]:
    """Where the kernel keeps no list of children."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            fields = _stat(int(name))
            if fields is not None and fields[1] == str(pid):
                found.append(int(name))
    return found


def resident_bytes(pids: list[int]) -> int:
    """The memory that the processes hold in RAM, shared pages counted in each."""
    pages = 0
    for pid in pids:
        fields = _stat(pid)
        if fields is not None:
            pages += int(fields[21])
    return pages * os.sysconf("SC_PAGE_SIZE")


def reap_orphans(main: int) -> None:
    """Wait for adopted processes that have ended, but leave ``main`` to who wants its status."""
    with contextlib.suppress(ChildProcessError):
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid == main:
                return
            os.waitpid(ended.si_pid, os.WNOHANG)


def end_all(patience: float = 10.0, found_some: Callable[[], None] | None = None) -> bool:
    """Kill and reap every descendant of this process; False where some were left after ``patience`` s.

    ``found_some`` is called once before any is killed, where there are some.
    """
    deadline = time.monotonic() + patience
    pause = 0.0002
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        if found_some is not None:
            found_some()
            found_some = None
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 2, 0.02)


def parent_handle() -> int | None:
    """A descriptor that becomes readable when the parent ends; None where the kernel has none."""
    try:
        return os.pidfd_open(os.getppid())
    except OSError:
        return None
