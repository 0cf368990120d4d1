"""Rows of a data set: what a case is asked, what is expected of it, and which side of a split it is on."""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_HEX = 32


class Split(StrEnum):
    """The side of a data set: cases that one tunes on, or those kept from tuning."""

    DEV = "dev"
    HOLDOUT = "holdout"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Row:
    """One row of a data set, as a test's ``row`` fixture gives it.

    ``id`` the row's own, or the start of its ``content`` where it has none; ``input`` and
    ``expected`` plain JSON values, None where the row has none; ``labels`` and ``metadata`` what else
    is known of it, which is no part of what it asks; ``content`` the digest of input and expected;
    ``where`` the place it was read from ("refunds.jsonl:3").
    """

    id: str
    input: Any
    expected: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    content: str
    where: str = ""

    def __repr__(self) -> str:
        """The id alone: inputs are long, and those of a holdout are not to be read by the way."""
        return f"Row(id={self.id!r})"

    def fresh(self) -> Row:
        """The same row with values of its own: what one trial changes in them, no other one sees."""
        return replace(
            self,
            input=copy.deepcopy(self.input),
            expected=copy.deepcopy(self.expected),
            metadata=copy.deepcopy(dict(self.metadata)),
        )


def content_of(asked: Any, expected: Any) -> str:
    """32 hex digits that stand for input and expected. Raises ``ValueError`` for NaN and infinities."""
    text = json.dumps([asked, expected], sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_HEX]


def digest_of(rows: Iterable[Row]) -> str:
    """32 hex digits that stand for the ids and contents of ``rows`` in any order."""
    lines = sorted(f"{len(row.id)}:{row.id}:{row.content}" for row in rows)
    return hashlib.sha256("\n".join(lines).encode(errors="surrogatepass")).hexdigest()[:_HEX]


def share_of(row_id: str, salt: str) -> float:
    """A number in 0..1 that follows from a row's id and ``salt`` alone, uniform over ids."""
    text = f"{salt}\0{row_id}".encode(errors="surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") / 2**64


def split_of(row_id: str, holdout: float | None, salt: str) -> Split:
    """The side of a row: the share ``holdout`` of ids is kept from tuning. Other rows change nothing."""
    return Split.HOLDOUT if holdout and share_of(row_id, salt) < holdout else Split.DEV


def shares_dataset(one: str | None, other: str | None) -> bool:
    """Whether two runs, each with the names of its data sets in one text, have a data set in common."""
    return one == other or bool({*(one or "").split(", ")} & {*(other or "").split(", ")} - {""})


def are_same_split(one: str | None, other: str | None) -> bool:
    """Whether two runs measured the same side; before a data set got its holdout, all of it was dev."""
    return one == other or {one, other} == {Split.DEV, None}


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetUse:
    """A data set as one session used it; the counts are of rows.

    ``cases`` were run (selections of tests aside). The others were not: ``no_input`` and
    ``no_expected`` lack what a case needs, ``other_split`` are on the other side of the holdout,
    ``unsampled`` were not drawn, which is ``unsampled_cases`` over all tests. ``split`` None where the
    data set has no holdout; ``sample`` how many rows were asked for, None for all; ``seed`` what the
    sample follows from.
    """

    name: str
    version: str | None = None
    digest: str
    split: str | None = None
    rows: int
    cases: int
    no_input: int = 0
    no_expected: int = 0
    other_split: int = 0
    unsampled: int = 0
    unsampled_cases: int = 0
    sample: int | None = None
    seed: int | None = None

    @property
    def sentence(self) -> str:
        """The data set, its cases, and the rows that are none, with the reason of each."""
        other = "in dev" if self.split == Split.HOLDOUT else "in the holdout"
        if self.split is None:
            other = "on no holdout, as it has none"
        left_out = [
            f"{count} {why}"
            for count, why in (
                (self.other_split, other),
                (self.no_expected, "without expected"),
                (self.no_input, "without input"),
                (self.unsampled, f"not drawn (seed {self.seed})"),
            )
            if count
        ]
        name = " ".join(filter(None, ("data set", self.name, self.version)))
        split = "" if self.split is None else f", split {self.split}"
        count = f"{self.cases} of {self.rows} rows are cases" if left_out else f"{self.rows} rows"
        return f"{name}{split}: {count}{'; not run: ' if left_out else ''}{', '.join(left_out)}"
