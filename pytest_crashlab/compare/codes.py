"""Numbers in place of case ids: text is compared a hundred times slower than a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


def case_codes(cases: pl.Series) -> pl.Series:
    """The place of each case among the distinct ones in their order, from 1 on: its dense rank."""
    import polars as pl

    names = pl.Enum(cases.unique().sort())
    return cases.cast(names).to_physical().cast(pl.Int64) + 1
