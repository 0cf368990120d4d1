"""What no kernel limit holds, or tells of afterwards: looked at from time to time while a command runs."""

from __future__ import annotations

import math
import os
import time
from typing import TYPE_CHECKING, Any

from pytest_crashlab.sandbox import measuring, processes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crashlab.sandbox.cgroups import Cage

LOOK = 0.05  # seconds between looks
_REST = 4  # times what a look has taken: never busy with looking
_NEAR_THE_END = 0.6  # of its CPU time: the kernel ends it by ticks, which on a busy machine run ahead


class Looks:
    """Looks at all that is below this process: orphans of the target have come to it.

    ``folders`` are those that count for the disk; ``own`` how many processes below are the sandbox's.
    """

    def __init__(self, limits: dict[str, Any], cage: Cage | None, folders: Sequence[str], own: int) -> None:
        self._limits = limits
        self._folders = folders
        self._own = own
        self._memory = limits["memory"] is not None and (cage is None or not cage.limits_memory)
        self._number = limits["processes"] is not None and (cage is None or not cage.limits_processes)
        self._next = time.monotonic() + LOOK
        self._near_the_end: dict[int, tuple[str | None, int | None]] = {}

    @property
    def needed(self) -> bool:
        """Whether there is anything to look at."""
        limits = self._limits
        return self._memory or self._number or limits["disk"] is not None or limits["cpu"] is not None

    def over(self) -> str | None:
        """Which limit has been passed, as a reason of the report."""
        now = time.monotonic()
        if self._limits["cpu"] is not None:
            self._look_at_cpu(processes.descendants(os.getpid()))
        if now < self._next:
            return None
        below = processes.descendants(os.getpid())
        reason = self._over(below)
        done = time.monotonic()
        self._next = done + max(LOOK, _REST * (done - now))
        return reason

    def _over(self, below: list[int]) -> str | None:
        limits = self._limits
        if self._number and len(below) > limits["processes"] + self._own:
            return "processes"
        if self._memory and processes.resident_bytes(below) > limits["memory"]:
            return "memory"
        if limits["disk"] is not None and self._disk(below) > limits["disk"]:
            return "disk"
        return None

    def _disk(self, below: list[int]) -> int:
        named = sum(measuring.folder_bytes(folder) for folder in self._folders)
        return named + measuring.unlinked_bytes(below, self._folders[0])

    def _look_at_cpu(self, below: list[int]) -> None:
        most = max(1, math.ceil(self._limits["cpu"])) * _NEAR_THE_END
        for pid in below:
            if processes.cpu_seconds(pid) >= most:
                self._near_the_end[pid] = (processes.start_time(pid), processes.parent(pid))

    def ran_out_of_cpu(self, target: int | None, targets_parent: int | None) -> bool:
        """Whether a process was last seen at the end of its CPU time, and has ended.

        Its parent has its wait status, and this process never sees it. Not the target itself, whose
        status is known: it, or its parent, is named.
        """
        return any(
            pid != target
            and (targets_parent is None or parent != targets_parent)
            and not processes.is_running(pid, start)
            for pid, (start, parent) in self._near_the_end.items()
        )
