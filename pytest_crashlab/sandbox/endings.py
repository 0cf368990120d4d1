"""From what the keeper saw to what ended a command. No exit code is ever read as a signal."""

from __future__ import annotations

import math
import os
import signal
from typing import TYPE_CHECKING, Any

from pytest_crashlab.sandbox.base import Command, EndedBy, Output, Result, shown

if TYPE_CHECKING:
    from pytest_crashlab.sandbox.limits import Limits

_BY_REASON = {
    "wall_clock": (EndedBy.WALL_CLOCK, None),
    "memory": (EndedBy.MEMORY_LIMIT, "the supervisor saw more than the limit in use"),
    "disk": (EndedBy.FILE_LIMIT, "its files together take more than the limit"),
    "processes": (EndedBy.PROCESS_LIMIT, None),
    "stopped": (EndedBy.STOPPED, None),
}


def result_of(command: Command, limits: Limits, report: dict[str, Any], kept: list[bytes]) -> Result:
    """The result of a command from its keeper's report and the kept parts of its output."""
    status: int | None = report["status"]
    ended_by, detail = ended(report, limits)
    exited = status is not None and os.WIFEXITED(status) and ended_by not in _NOT_ITS_OWN
    caught = status is not None and os.WIFSIGNALED(status) and ended_by is not EndedBy.START_FAILED
    peak = report.get("peak")
    return Result(
        argv=command.argv,
        ended_by=ended_by,
        exit_code=os.WEXITSTATUS(status) if exited and status is not None else None,
        signal=os.WTERMSIG(status) if caught and status is not None else None,
        out=Output(head=kept[0], tail=kept[1], total=report["totals"][0]),
        err=Output(head=kept[2], tail=kept[3], total=report["totals"][1]),
        duration=report["duration"],
        cpu=report.get("cpu"),
        peak_memory=report.get("rss") if peak is None else peak,
        peak_is=None if peak is None and report.get("rss") is None else _peak_is(peak),
        oom_kills=report.get("oom_kills"),
        detail=detail,
        start_errno=report.get("errno") if ended_by is EndedBy.START_FAILED else None,
    )


_NOT_ITS_OWN = frozenset({EndedBy.WALL_CLOCK, EndedBy.START_FAILED, EndedBy.STOPPED})


def _peak_is(peak: int | None) -> Any:
    return "largest process" if peak is None else "tree"


def ended(report: dict[str, Any], limits: Limits) -> tuple[EndedBy, str | None]:
    """What ended it, from the strongest witness to the weakest.

    The kernel's count of processes killed for memory, the supervisor's own deed, which may also keep a
    program from starting, a failed start, the wait status. SIGKILL that none of them explains is unknown.
    """
    problem = report.get("start_error")
    reason = report.get("reason")
    kills = report.get("oom_kills")
    if kills and problem is None:
        lost = f"; {report['lost']}" if "lost" in report else ""
        return (
            EndedBy.MEMORY_LIMIT,
            f"the kernel ended {kills} process{'es' * (kills > 1)} of it for memory{lost}",
        )
    if reason in _BY_REASON:
        return _BY_REASON[reason]
    if problem is not None:
        return EndedBy.START_FAILED, str(problem)
    status: int | None = report["status"]
    if status is None:
        return EndedBy.KILLED_UNKNOWN, "its wait status was lost"
    return _by_status(status, report, limits)


def _by_status(status: int, report: dict[str, Any], limits: Limits) -> tuple[EndedBy, str | None]:
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    cpu = report.get("cpu")
    if (number == signal.SIGXCPU and _is_limit(cpu, limits)) or (
        number == signal.SIGKILL and _used_up(cpu, limits)
    ):
        return EndedBy.CPU_LIMIT, None
    if number == signal.SIGXFSZ:
        return EndedBy.FILE_LIMIT, "a file grew beyond the limit"
    if number == signal.SIGKILL:
        return EndedBy.KILLED_UNKNOWN, None
    return _by_signs(status, report, limits) or (
        EndedBy.EXITED if number is None else EndedBy.SIGNALLED,
        None,
    )


def _by_signs(status: int, report: dict[str, Any], limits: Limits) -> tuple[EndedBy, str] | None:
    """A limit that a process met whose parent alone has its status, or that it was told by an error."""
    refused = report.get("refused")
    if status and report.get("cpu_of_another") and _is_limit(report.get("cpu"), limits):
        return EndedBy.CPU_LIMIT, "a process of it was at the end of its CPU time, and is gone"
    full = report.get("file_at_limit")
    if status and full is not None:
        return EndedBy.FILE_LIMIT, f"{shown(full)!r} is as large as a file may be"
    if status and refused:
        return EndedBy.PROCESS_LIMIT, f"the kernel refused to start {refused} of them"
    return None


def _is_limit(cpu: float | None, limits: Limits) -> bool:
    """Whether SIGXCPU is the kernel's; with less time used, the target has sent it."""
    least = 1 if limits.cpu is None else max(1, math.ceil(limits.cpu))
    return cpu is None or cpu >= least * _AHEAD


_AHEAD = 0.8  # the kernel ends a process by ticks, which on a busy machine run ahead of what it counts


def _used_up(cpu: float | None, limits: Limits) -> bool:
    return cpu is not None and limits.cpu is not None and cpu >= math.ceil(limits.cpu)
