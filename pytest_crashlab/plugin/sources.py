"""What a run measures and what judges it, as digests of the files that the project names for it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pytest_crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_SKIPPED = frozenset({"__pycache__", ".git", ".crashlab", ".pytest_cache", ".mypy_cache", ".ruff_cache"})


def digests(key: str, root: Path, patterns: Sequence[str]) -> dict[str, str]:
    """Pattern -> digest of the names and contents of its files, below ``root``.

    A pattern is a file, a folder (all files below it) or a glob. Byte code and caches count for
    nothing. Raises `UsageError`, naming the ini key ``key``, for a pattern without a file.
    """
    found = {}
    for pattern in patterns:
        files = sorted(set(_files(root, pattern)))
        if not files:
            raise UsageError(
                f"{key} names {pattern}, and there is no such file in {root}; correct the line or remove it"
            )
        digest = hashlib.sha256()
        for file in files:
            digest.update(file.relative_to(root).as_posix().encode(errors="surrogatepass") + b"\0")
            digest.update(hashlib.sha256(file.read_bytes()).digest())
        found[pattern] = digest.hexdigest()[:16]
    return found


def combined(parts: dict[str, str]) -> str | None:
    """One digest of several; None where nothing was named, which is not known and not "the same"."""
    if not parts:
        return None
    text = "\n".join(f"{name}\0{digest}" for name, digest in sorted(parts.items()))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def changed(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """The patterns whose digests differ, and those that only one of the two names."""
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def _files(root: Path, pattern: str) -> Iterator[Path]:
    try:
        starts = [root / pattern] if (root / pattern).exists() else list(root.glob(pattern))
    except (ValueError, NotImplementedError):  # an absolute or an empty glob
        return
    for start in starts:
        for file in start.rglob("*") if start.is_dir() else (start,):
            below = file.is_relative_to(root)
            if below and file.is_file() and file.suffix != ".pyc" and not _SKIPPED & set(file.parts):
                yield file
