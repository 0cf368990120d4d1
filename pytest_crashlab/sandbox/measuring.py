"""What a command's files take, and what they tell of a limit that was reached."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CLOCK_OF_FILES = 5  # CLOCK_REALTIME_COARSE, for which Python has no name
_MAX_ENTRIES = 200_000  # of a folder, counted for its size
MORE_THAN_CAN_BE_COUNTED = 1 << 62


def folder_bytes(path: str) -> int:
    """What the files below a folder take on the disk; a file of several names counts once.

    A folder of more entries than are looked at, or of a path too long to be opened, holds more than any
    limit: that is where a program would hide what it writes.
    """
    total = 0
    linked: set[tuple[int, int]] = set()
    for _, about in _entries(path):
        if about is None:
            return MORE_THAN_CAN_BE_COUNTED
        if about.st_nlink > 1 and not stat.S_ISDIR(about.st_mode):
            if (about.st_dev, about.st_ino) in linked:
                continue
            linked.add((about.st_dev, about.st_ino))
        total += about.st_blocks * 512
    return total


def unlinked_bytes(pids: Iterable[int], path: str) -> int:
    """What files take on the disk of ``path`` that the processes hold open and that have no name any more."""
    with contextlib.suppress(OSError):
        device = os.stat(path).st_dev  # noqa: PTH116
        found = {about.st_ino: about for about in _open_files(pids) if about.st_dev == device}
        return sum(about.st_blocks * 512 for about in found.values() if about.st_nlink == 0)
    return 0


def now() -> int:
    """Nanoseconds of the clock that files are stamped by; it goes in steps, a little behind the other one."""
    return time.clock_gettime_ns(_CLOCK_OF_FILES)


def file_at_limit(folders: Iterable[str], size: int | None, since: int) -> str | None:
    """A file changed ``since`` (see :func:`now`) that is as large as one may be: there it was cut off.

    The signal for that kills few. Python and others get an error instead, and of a child's end its
    parent only tells a number.
    """
    if size is None:
        return None
    for folder in folders:
        for path, about in _entries(folder):
            if about is not None and _has_grown_to(about, size, since):
                return os.path.relpath(path, folder)
    return None


def _has_grown_to(about: os.stat_result, size: int, since: int) -> bool:
    return about.st_size == size and stat.S_ISREG(about.st_mode) and about.st_ctime_ns >= since


def _entries(path: str) -> Iterator[tuple[str, os.stat_result | None]]:
    """What is below a folder; None where it is more than can be looked at, and nothing after that."""
    todo = [path]
    entries = 0
    while todo:
        folder = todo.pop()
        if len(folder) > _LONGEST:
            yield folder, None
            return
        try:
            found = list(os.scandir(folder))
        except OSError:
            continue
        entries += len(found)
        if entries > _MAX_ENTRIES:
            yield folder, None
            return
        for entry in found:
            with contextlib.suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(about.st_mode):
                    todo.append(entry.path)
                yield entry.path, about


_LONGEST = os.pathconf("/", "PC_PATH_MAX") - 1 - 256  # and a name in it


def _open_files(pids: Iterable[int]) -> Iterator[os.stat_result]:
    for pid in pids:
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                with contextlib.suppress(OSError):
                    yield os.stat(f"/proc/{pid}/fd/{fd}")  # noqa: PTH116
