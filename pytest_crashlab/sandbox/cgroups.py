"""A control group for the commands of one keeper: memory and processes limited and counted by the kernel.

Made below the group that this process is in already, so that its own limits stay in force. Version 1 and
2 of the interface; where neither may be written there is no group, and the supervisor watches by itself.
"""

from __future__ import annotations

import contextlib
import os
import time

from pytest_crashlab.sandbox import processes

PREFIX = "crashlab-"
_ROOT = "/sys/fs/cgroup"
_CACHE = 4 << 20


def own_name(owner: int, number: str) -> str:
    """The name of a group: whose it is, so that what a dead session left can be told."""
    return f"{PREFIX}{processes.identity(owner)}-{number}"


def is_left_behind(name: str) -> bool:
    """Whether a name is of a group, or folder, whose session has ended.

    One of another process namespace, such as another container's, is not ours to judge.
    """
    pid, _, rest = name.removeprefix(PREFIX).partition("-")
    identity = processes.identity(int(pid)) if pid.isdigit() else ""
    if identity.rpartition("-")[2] not in rest.split("-")[1:2]:
        return False
    return not name.removeprefix(PREFIX).startswith(f"{identity}-")


def parents(table: str, root: str = _ROOT) -> dict[str, str]:
    """Where groups may be made, by controller; ``table`` is the text of ``/proc/self/cgroup``.

    Version 1 has a folder for each controller (``memory``, ``pids``), version 2 one for all
    (``unified``), which has to hand both controllers on to its children.
    """
    found = {}
    for line in table.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            where = os.path.join(root, controller, path.lstrip("/"))  # noqa: PTH118
            if controller in ("memory", "pids") and os.path.isdir(where):  # noqa: PTH112
                found[controller] = where
        if not controllers:
            for own in (path, os.path.dirname(path)):  # noqa: PTH120  a group with processes cannot hand on
                where = os.path.join(root, own.lstrip("/"))  # noqa: PTH118
                if {"memory", "pids"} <= set(_read(f"{where}/cgroup.subtree_control").split()):
                    found.setdefault("unified", where)
                    found.setdefault("home", os.path.join(root, path.lstrip("/")))  # noqa: PTH118
    return found


class Cage:
    """One group, or one of each controller in version 1. Make it with :meth:`make`."""

    def __init__(self, memory: str | None, pids: str | None, home: str | None) -> None:
        self._memory = memory
        self._pids = pids
        self._unified = home is not None
        self._kills_before = 0
        self._refused_before = 0
        self._files: dict[str, int] = {}
        self._now: dict[str, str] = {}
        self.folders = [path for path in dict.fromkeys((memory, pids)) if path is not None]
        self._homes = [home or os.path.dirname(path) for path in self.folders]  # noqa: PTH120

    @classmethod
    def make(cls, name: str) -> Cage | None:
        """A group, or None where this user may make none."""
        where = parents(_read("/proc/self/cgroup"))
        if "unified" in where:  # this process's own group, to go back to, may be another one
            path = _make(where["unified"], name)
            if path is not None:
                return cls(path, path, home=where["home"])
        memory, pids = (_make(where[c], name) if c in where else None for c in ("memory", "pids"))
        return None if memory is None and pids is None else cls(memory, pids, home=None)

    def enter(self) -> None:
        """Move this process in, and with it all that it starts: once, as a move costs milliseconds."""
        for folder in self.folders:
            _write(f"{folder}/cgroup.procs", "0")

    @property
    def limits_memory(self) -> bool:
        """Whether the kernel holds and counts the memory."""
        return self._memory is not None

    @property
    def limits_processes(self) -> bool:
        """Whether the kernel holds the number of processes."""
        return self._pids is not None

    def set(self, memory: int | None, processes_: int | None) -> None:
        """Set the limits of the next command and begin to count; raises ``OSError``."""
        if self._memory is not None:
            self._forget_cache()
            if self._unified:
                self._set_v2(memory)
            else:
                self._set_v1("-1" if memory is None else str(memory))
            self._kills_before = self._kills()
        if self._pids is not None:
            self._limit(f"{self._pids}/pids.max", "max" if processes_ is None else str(processes_))
            self._refused_before = self._refusals()

    def _forget_cache(self) -> None:
        """Let the file cache of earlier commands go where it would count as this one's."""
        held = self._read(
            f"{self._memory}/{'memory.current' if self._unified else 'memory.usage_in_bytes'}"
        ).strip()
        if held.isdigit() and int(held) > _CACHE:
            with contextlib.suppress(OSError):
                if self._unified:
                    _write(f"{self._memory}/memory.reclaim", held)
                else:
                    _write(f"{self._memory}/memory.force_empty", "0")

    def _set_v2(self, memory: int | None) -> None:
        self._limit(f"{self._memory}/memory.max", "max" if memory is None else str(memory))
        with contextlib.suppress(OSError):
            self._limit(f"{self._memory}/memory.swap.max", "max" if memory is None else "0")
        with contextlib.suppress(OSError):  # counts anew for who reads through the same open file
            self._write(f"{self._memory}/memory.peak", "0")

    def _set_v1(self, limit: str) -> None:
        path, swap = f"{self._memory}/memory.limit_in_bytes", f"{self._memory}/memory.memsw.limit_in_bytes"
        if self._now.get(path) != limit:
            with contextlib.suppress(OSError):  # no swap accounting
                self._write(swap, "-1")  # never below the other
            self._limit(path, limit)
            with contextlib.suppress(OSError):
                self._write(swap, limit)
        with contextlib.suppress(OSError):
            self._write(f"{self._memory}/memory.max_usage_in_bytes", "0")

    def _limit(self, path: str, limit: str) -> None:
        if self._now.get(path) != limit:
            self._write(path, limit)
            self._now[path] = limit

    def _read(self, path: str) -> str:
        try:
            return os.pread(self._open(path), 1 << 14, 0).decode("ascii")
        except OSError:
            return ""

    def _write(self, path: str, text: str) -> None:
        os.pwrite(self._open(path), text.encode(), 0)

    def _open(self, path: str) -> int:
        """Opened once: the files of a group are looked at for each command."""
        fd = self._files.get(path)
        if fd is None:
            try:
                fd = os.open(path, os.O_RDWR)
            except PermissionError:
                fd = os.open(path, os.O_RDONLY)
            self._files[path] = fd
        return fd

    def oom_kills(self) -> int | None:
        """How many processes of the command the kernel killed for memory; None where it does not count."""
        return None if self._memory is None else self._kills() - self._kills_before

    def _kills(self) -> int:
        name = "memory.events" if self._unified else "memory.oom_control"
        return _counted(self._read(f"{self._memory}/{name}"), "oom_kill")

    def refused(self) -> int | None:
        """How many starts of processes and threads of the command the kernel refused; None as above."""
        return None if self._pids is None else self._refusals() - self._refused_before

    def _refusals(self) -> int:
        return _counted(self._read(f"{self._pids}/pids.events"), "max")

    def peak(self) -> int | None:
        """The most memory the group has held since :meth:`set`, in bytes; None where it is not counted."""
        if self._memory is None:
            return None
        text = self._read(f"{self._memory}/{'memory.peak' if self._unified else 'memory.max_usage_in_bytes'}")
        return int(text) if text.strip().isdigit() else None

    def close_door(self) -> None:
        """Let no new process begin, so that those that are can be ended faster than they multiply."""
        if self._pids is not None:
            with contextlib.suppress(OSError):
                self._limit(f"{self._pids}/pids.max", "0")

    def remove(self) -> None:
        """Leave the group and remove it; its other processes have to have ended."""
        for fd in self._files.values():
            os.close(fd)
        self._files = {}
        for folder, home in zip(self.folders, self._homes, strict=True):
            with contextlib.suppress(OSError):
                _write(f"{home}/cgroup.procs", "0")
            _remove(folder)


def bury(groups: list[str]) -> int:
    """Kill all in groups whose keeper was killed, and remove them; how many the kernel killed for memory."""
    kills = 0
    for folder in groups:
        for name in ("memory.events", "memory.oom_control"):
            kills = max(kills, _counted(_read(f"{folder}/{name}"), "oom_kill"))
        with contextlib.suppress(OSError):
            _write(f"{folder}/pids.max", "0")
        for _ in range(_BURIALS):
            left = [int(pid) for pid in _read(f"{folder}/cgroup.procs").split()]
            for pid in left:
                if pid != os.getpid():
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, 9)
            if not left:
                break
            time.sleep(0.01)
        _remove(folder)
    return kills


_BURIALS = 500  # looks at a group, a hundredth of a second apart, until all in it have ended


def _counted(text: str, name: str) -> int:
    """The number beside a name in a file of counters; 0 where it is not counted."""
    return next((int(n) for key, n in (line.split() for line in text.splitlines()) if key == name), 0)


def remove_left_behind() -> None:
    """Remove the groups of sessions that have ended, and kill what is still in them."""
    for where in set(parents(_read("/proc/self/cgroup")).values()):
        for name in os.listdir(where):  # noqa: PTH208
            if not name.startswith(PREFIX) or not is_left_behind(name):
                continue
            folder = f"{where}/{name}"
            for pid in _read(f"{folder}/cgroup.procs").split():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(int(pid), 9)
            _remove(folder)


def _make(where: str, name: str) -> str | None:
    path = f"{where}/{name}"
    try:
        os.mkdir(path)  # noqa: PTH102
    except OSError:
        return None
    if os.access(f"{path}/cgroup.procs", os.W_OK):
        return path
    os.rmdir(path)  # noqa: PTH106
    return None


def _remove(folder: str) -> None:
    for attempt in range(20):  # the kernel lets go of ended processes a moment later
        try:
            os.rmdir(folder)  # noqa: PTH106
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.002 * attempt)
        else:
            return


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
