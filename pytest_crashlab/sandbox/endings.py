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
    )


_NOT_ITS_OWN = frozenset({EndedBy.WALL_CLOCK, EndedBy.START_FAILED, EndedBy.STOPPED})


def _peak_is(peak: int | None) -> Any:
    return "largest process" if peak is None else "tree"


def ended(report: dict[str, Any], limits: Limits) -> tuple[EndedBy, str | None]:
    """What ended it, from the strongest witness to the weakest.

    A failed start, the kernel's count of processes killed for memory, the supervisor's own deed, the
    kernel's count of processes not started beside an error, the wait status. SIGKILL that none of them
    explains is unknown.
    """
    problem = report.get("start_error")
    if problem is not None and report.get("reason") is None:  # else it was ended before it could start
        return EndedBy.START_FAILED, str(problem)
    kills = report.get("oom_kills")
    if kills:
        return EndedBy.MEMORY_LIMIT, f"the kernel ended {kills} process{'es' * (kills > 1)} of it for memory"
    if report.get("reason") in _BY_REASON:
        return _BY_REASON[report["reason"]]
    status: int | None = report["status"]
    if status is None:
        return EndedBy.KILLED_UNKNOWN, "its wait status was lost"
    return _by_status(status, report, limits)


def _by_status(status: int, report: dict[str, Any], limits: Limits) -> tuple[EndedBy, str | None]:
    refused = report.get("refused")
    if refused and status != 0:  # who ended with 0 has coped with it
        return EndedBy.PROCESS_LIMIT, f"the kernel refused {refused} process{'es' * (refused > 1)} more"
    if os.WIFEXITED(status):
        full = report.get("full_file")
        if full is not None:
            code = os.WEXITSTATUS(status)
            return (
                EndedBy.FILE_LIMIT,
                f"{shown(full)!r} is as large as a file may be, and it exited with {code}",
            )
        return EndedBy.EXITED, None
    number = os.WTERMSIG(status)
    if number == signal.SIGXCPU or (number == signal.SIGKILL and _used_up(report.get("cpu"), limits)):
        return EndedBy.CPU_LIMIT, None
    if number == signal.SIGXFSZ:
        return EndedBy.FILE_LIMIT, "a file grew beyond the limit"
    if number == signal.SIGKILL:
        return EndedBy.KILLED_UNKNOWN, None
    return EndedBy.SIGNALLED, None


def _used_up(cpu: float | None, limits: Limits) -> bool:
    return cpu is not None and limits.cpu is not None and cpu >= math.ceil(limits.cpu)
