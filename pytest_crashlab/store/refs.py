"""Names of runs: each a small file with a run id, changed by compare-and-swap."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from pytest_crashlab.errors import PromotionConflict, StoreError
from pytest_crashlab.store.atomic import write_whole
from pytest_crashlab.store.layout import is_run_id
from pytest_crashlab.store.lock import FileLock

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_crashlab.store.layout import StorePaths
    from pytest_crashlab.store.ledger import Ledger


class Refs:
    """The names of a store (``main``, ``release/2.3.0``) and the runs they stand for."""

    def __init__(self, paths: StorePaths, ledger: Ledger) -> None:
        self._folder = paths.refs
        self._lock = paths.lock("refs")
        self._ledger = ledger

    def read(self, name: str) -> str | None:
        """The run id that ``name`` stands for, None where nothing was promoted under it.

        Raises :class:`StoreError` for a name that cannot be one and for a file that holds no run id.
        """
        path = self._path(name)
        try:
            text = path.read_text(encoding="ascii").strip()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except (OSError, UnicodeDecodeError) as error:
            if path.is_dir():
                return None
            raise StoreError(f"{path} cannot be read ({error}).") from error
        if not is_run_id(text):
            raise StoreError(f"{path} holds no run id; promote a run as {name!r} again.")
        return text

    def all(self) -> dict[str, str]:
        """Every name and its run id, by name. A file that holds no run id is left out."""
        found: dict[str, str] = {}
        if not self._folder.is_dir():
            return found
        for path in sorted(self._folder.rglob("*")):
            parts = path.relative_to(self._folder).parts
            if any(part.startswith(".") for part in parts) or not path.is_file():
                continue
            name = "/".join(unquote(part) for part in parts)
            try:
                run_id = self.read(name)
            except StoreError:
                continue
            if run_id is not None:
                found[name] = run_id
        return found

    def promote(self, name: str, run_id: str, *, expected: str | None, **details: Any) -> None:
        """Let ``name`` stand for ``run_id`` if it still stands for ``expected`` (None: for nothing).

        The promotion is in the ledger, with ``details``, before the name changes; :meth:`history`
        passes over one that a killed process left there alone. Raises :class:`PromotionConflict`,
        which names both runs, when another promotion came first.
        """
        path = self._path(name)
        if not is_run_id(run_id):
            raise StoreError(f"{run_id!r} cannot be a run id; nothing was promoted as {name!r}.")
        with FileLock(self._lock):
            current = self.read(name)
            if current != expected:
                raise PromotionConflict(
                    f"{name!r} was promoted by another session: it stands for {current or 'no run'} and "
                    f"not for {expected or 'no run'} any more, so {run_id} was not promoted."
                )
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                blocked = path.is_dir() and any(path.iterdir())
            except (FileExistsError, NotADirectoryError):
                blocked = True
            if blocked:
                raise StoreError(
                    f"{name!r} cannot be a name beside {self._in_the_way(path)!r}; choose another."
                )
            if path.is_dir():
                path.rmdir()
            self._ledger.append("promotion", name=name, run=run_id, previous=current, **details)
            write_whole(path, f"{run_id}\n".encode())

    def history(self, name: str) -> list[dict[str, Any]]:
        """The ledger's entries of ``name``'s promotions, newest first, as far back as they connect."""
        entries = [e for e in self._ledger.read("promotion") if e.get("name") == name]
        found: list[dict[str, Any]] = []
        wanted = self.read(name)
        for entry in reversed(entries):
            if wanted is not None and entry.get("run") == wanted:
                found.append(entry)
                wanted = entry.get("previous")
        return found

    def _path(self, name: str) -> Path:
        parts = name.split("/")
        bad = (
            not name
            or len(name) > 200
            or any(not part or part.startswith(".") for part in parts)
            or any(unicodedata.category(char) in ("Cc", "Cs") for char in name)
        )
        if bad:
            raise StoreError(
                f"{name!r} cannot be a baseline's name; use letters, digits and '-._/' as in 'release/2.3'."
            )
        return self._folder.joinpath(*(quote(part, safe="@+=,") for part in parts))

    def _in_the_way(self, path: Path) -> str:
        if path.is_dir():
            path = next(p for p in sorted(path.rglob("*")) if p.is_file())
        else:
            path = next(p for p in path.parents if p.is_file())
        return "/".join(unquote(part) for part in path.relative_to(self._folder).parts)
