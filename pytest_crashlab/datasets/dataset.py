"""``Dataset``: named rows that become cases."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import UsageError
from pytest_crashlab.records.dataset import Row, digest_of, split_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pytest_crashlab.records.dataset import Split

FIELDS = ("id", "input", "expected", "metadata", "labels")


class Dataset:
    """Named rows; each is a case of every test that is marked with it.

    Made by :meth:`read` from a file or by :meth:`from_rows`. The rows are read when they are first
    asked for; one that is wrong raises :class:`~pytest_crashlab.errors.UsageError`, which names it.

    ``name`` and ``version`` as runs keep them; ``holdout`` the share of rows that is kept from tuning,
    None for no holdout; ``salt`` what that draw follows from beside the row's id;
    ``requires_expected`` whether a row without ``expected`` is no case.
    """

    def __init__(
        self,
        load: Callable[[], tuple[Row, ...]],
        *,
        name: str,
        version: str | None,
        holdout: float | None,
        salt: str,
        requires_expected: bool,
    ) -> None:
        self.name = _named(name, "name")
        self.version = None if version is None else _named(str(version), "version")
        self.holdout = _share(holdout, name)
        self.salt = salt
        self.requires_expected = requires_expected
        self._load = load
        self._rows: tuple[Row, ...] | None = None
        self._digest: str | None = None

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        version: str | None = None,
        holdout: float | None = None,
        salt: str = "",
        columns: Mapping[str, str] | None = None,
        requires_expected: bool = True,
    ) -> Dataset:
        """The rows of a file: ``.jsonl``, ``.csv`` or ``.parquet``.

        A relative ``path`` starts at the folder of the file that calls this. ``name`` is the file's
        without its suffix unless given. ``columns`` says under which names the file keeps a field:
        ``{"input": "question"}``.
        """
        found = Path(path)
        if not found.is_absolute():
            caller = sys._getframe(1)  # noqa: SLF001 - the public ways read source files to tell the same
            found = _folder_of(caller.f_code.co_filename) / found
        return cls(
            lambda: _read(found, columns),
            name=found.stem if name is None else name,
            version=version,
            holdout=holdout,
            salt=salt,
            requires_expected=requires_expected,
        )

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Mapping[str, Any]],
        *,
        name: str,
        version: str | None = None,
        holdout: float | None = None,
        salt: str = "",
        requires_expected: bool = True,
    ) -> Dataset:
        """Rows that are there already, each a mapping with ``input`` and what else it has."""
        kept = list(rows)
        return cls(
            lambda: _checked(kept, name),
            name=name,
            version=version,
            holdout=holdout,
            salt=salt,
            requires_expected=requires_expected,
        )

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows in the order they are written, the holdout's among them."""
        if self._rows is None:
            self._rows = self._load()
        return self._rows

    @property
    def digest(self) -> str:
        """32 hex digits for ids, inputs and expected values: labels, metadata and order change nothing."""
        if self._digest is None:
            self._digest = digest_of(self.rows)
        return self._digest

    def split_of(self, row: Row) -> Split:
        """The side of ``row``: it follows from its id, ``holdout`` and ``salt``."""
        return split_of(row.id, self.holdout, self.salt)

    def __iter__(self) -> Iterator[Row]:
        """The rows."""
        return iter(self.rows)

    def __len__(self) -> int:
        """How many rows."""
        return len(self.rows)

    def __bool__(self) -> bool:
        """True, also without a row: asking reads nothing."""
        return True

    def __repr__(self) -> str:
        """Name and version."""
        return f"Dataset({' '.join(filter(None, (self.name, self.version)))!r})"


def _read(path: Path, columns: Mapping[str, str] | None) -> tuple[Row, ...]:
    from pytest_crashlab.datasets.files import read_file

    return read_file(path, columns or {})


def _checked(rows: list[Mapping[str, Any]], name: str) -> tuple[Row, ...]:
    from pytest_crashlab.datasets.checking import check_rows

    places = ((f"row {number} of {name}", row) for number, row in enumerate(rows, 1))
    return check_rows(places, columns={}, source=name)


def _folder_of(filename: str) -> Path:
    """The folder of a source file; of code without one, the current folder."""
    file = Path(filename)
    return file.parent if file.is_file() else Path.cwd()


def _named(text: str, what: str) -> str:
    if not text or text != text.strip() or "," in text or not text.isprintable():
        raise UsageError(
            f"{text!r} cannot be the {what} of a data set; write one without commas or blank ends"
        )
    return text


def _share(holdout: float | None, name: str) -> float | None:
    if holdout is None:
        return None
    share: object = holdout  # authors write anything
    if not isinstance(share, float) or not 0 < share < 1:
        raise UsageError(
            f"data set {name}: holdout={holdout!r} is no share of the rows; write for example holdout=0.3"
        )
    return holdout
