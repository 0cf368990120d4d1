"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING

from pytest_crashlab.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path


def temporary_beside(path: Path) -> Path:
    """A name in the folder of ``path`` that no other process uses and that no listing shows."""
    return path.with_name(f".tmp-{os.getpid()}-{secrets.token_hex(4)}-{path.name}"[:200])


def sync_folder(folder: Path) -> None:
    """Make a rename in ``folder`` last through a power cut, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return  # Windows opens no folders
    try:
        os.fsync(handle)
    except OSError:
        pass  # some network file systems refuse it
    finally:
        os.close(handle)


def move_into_place(temporary: Path, path: Path) -> None:
    """Flush ``temporary`` to disk and give it the name ``path``."""
    handle = os.open(temporary, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    temporary.replace(path)
    sync_folder(path.parent)


def write_whole(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content``: a reader sees the old file or the new one.

    Raises :class:`StoreError` when the disk or the permissions do not allow it.
    """
    temporary = temporary_beside(path)
    try:
        temporary.write_bytes(content)
        move_into_place(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise StoreError(f"{path} cannot be written ({error.strerror or error}).") from error
