"""From the keeper to the target's program: users, namespaces, limits.

Programs are started by ``subprocess``, which has no page of this process copied. Limits that it cannot
set are set before and after: the soft ones are inherited, the hard ones follow at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import subprocess
from typing import TYPE_CHECKING, Any

from pytest_crashlab.sandbox import processes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NS_GET_USERNS = 0xB701
NAMESPACES = ("cgroup", "ipc", "uts", "net", "pid", "mnt")
_CPU_GRACE = 2  # seconds between SIGXCPU, which tells the limit from others, and SIGKILL
_Pair = tuple[int, int]


REFUSALS = (OSError, ValueError, OverflowError)
"""By which a program is not started: of the system, and of what it cannot even be told, such as a NUL."""


def told(error: BaseException) -> dict[str, Any]:
    """A failed start, for the report."""
    return {"start_error": f"{type(error).__name__}: {error}", "errno": getattr(error, "errno", None) or 0}


def start_target(request: dict[str, Any], streams: Sequence[int]) -> int:
    """Start the target as a child and return its process id; one of ``REFUSALS`` where it cannot be."""
    wanted = _limits(request["limits"])
    before = {which: resource.getrlimit(which) for which in wanted}
    for which, (soft, _) in wanted.items():
        resource.setrlimit(which, (soft, before[which][1]))
    try:
        child = subprocess.Popen(
            request["argv"],
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            cwd=request["cwd"],
            env=request["env"],
            process_group=0,  # not a session of its own: a new one waits for the processor behind all others
            umask=0o022,
        )
        for which, pair in wanted.items():
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(child.pid, which, pair)
    finally:
        for which, pair in before.items():
            resource.setrlimit(which, pair)
    child.returncode = 0  # the object must not wait for it: its status is wanted from the kernel
    return child.pid


def _limits(limits: dict[str, Any]) -> dict[int, _Pair]:
    found = {resource.RLIMIT_CORE: (0, 0)}
    if limits["cpu"] is not None:
        seconds = max(1, -int(-limits["cpu"] // 1))
        found[resource.RLIMIT_CPU] = (seconds, seconds + _CPU_GRACE)
    if limits["file_size"] is not None:
        found[resource.RLIMIT_FSIZE] = (limits["file_size"], limits["file_size"])
    return {which: _below(resource.getrlimit(which)[1], *pair) for which, pair in found.items()}


def _below(ceiling: int, soft: int, hard: int) -> _Pair:
    """A limit that is lower already stays."""
    if ceiling == resource.RLIM_INFINITY:
        return soft, hard
    return min(soft, ceiling), min(hard, ceiling)


def be_parent_inside(
    request: dict[str, Any], streams: Sequence[int], namespaces: dict[str, int], report: int
) -> None:
    """In a fork of the keeper: join the namespaces and have the target as a child there. Never returns.

    Writes the target's wait status, or why it did not start, to ``report``. This process stays outside of
    the target's process namespace: the status is the kernel's, and nothing that the target can reach
    could have written it.
    """
    answer: dict[str, Any] = {"status": None}
    try:
        be_first_to_go("self")
        become_user(request["uid"])
        processes.die_with_parent()
        join(namespaces)
        processes.renounce_privileges()
        limits = request["limits"]
        if limits["processes"] is not None and limits["counts_user"]:
            # The count of a user namespace of its own; this process and bubblewrap's two are of it.
            most = limits["processes"] + 3
            resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
        answer = _start_and_wait(request, streams)
    except BaseException as error:  # noqa: BLE001  whatever it is, this process must not go on
        answer["backend_error"] = f"{type(error).__name__}: {error}"
    try:
        os.write(report, json.dumps(answer).encode())
    finally:
        os._exit(0)


def _start_and_wait(request: dict[str, Any], streams: Sequence[int]) -> dict[str, Any]:
    try:
        child = start_target(request, streams)
    except REFUSALS as error:
        return {"status": None, **told(error)}
    for fd in streams:
        os.close(fd)
    _, code, usage = os.wait4(child, 0)
    return {
        "status": code,
        "cpu": usage.ru_utime + usage.ru_stime,
        "rss": usage.ru_maxrss * 1024,
    }


def be_first_to_go(pid: int | str) -> None:
    """When memory runs out, let the kernel take this process and its children before what supervises it."""
    with contextlib.suppress(OSError):
        fd = os.open(f"/proc/{pid}/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, b"1000")
        finally:
            os.close(fd)


def become_user(uid: int | None) -> None:
    """Drop root for good; None: stay."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


@contextlib.contextmanager
def as_user(uid: int | None) -> Iterator[None]:
    """Start programs as another user: what is executed meanwhile cannot come back, this process does."""
    if uid is None:
        yield
        return
    groups, gid = os.getgroups(), os.getgid()
    os.setgroups([])
    os.setresgid(uid, uid, gid)
    os.setresuid(uid, uid, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(gid, gid, gid)
        os.setgroups(groups)


def join(namespaces: dict[str, int]) -> None:
    """Enter the user namespace that owns the others, then those, then the target's own."""
    owner = fcntl.ioctl(namespaces["mnt"], _NS_GET_USERNS)
    processes.enter_namespace(owner)
    for name in NAMESPACES:
        if name in namespaces:
            processes.enter_namespace(namespaces[name])
    if os.fstat(owner).st_ino != os.fstat(namespaces["user"]).st_ino:
        processes.enter_namespace(namespaces["user"])
