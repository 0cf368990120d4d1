"""Answers of a provider that came more than once: trials that share one are no independent samples.

Trials run in several processes, so what their answers are known by is brought together here, at the end. A
trial is a repeat when another had the same answer first, which may have been drawn for its request. Of trials
that ran side by side, the first is one whose answer did not say that it came from a cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.records.trial import STAMPED

if TYPE_CHECKING:
    import polars as pl

# A stamp tells seconds, and clocks are set: the same stamp so many seconds later is an old answer's.
_LATER = 2.0


def mark_repeats(trials: pl.DataFrame) -> pl.DataFrame:
    """``trials`` with ``cached`` True also where an answer had come in an earlier attempt."""
    import polars as pl

    if trials["answers"].null_count() == trials.height:
        return trials
    answers = _answers(trials)
    first = answers.group_by("answer", maintain_order=True).first().rename({"row": "in", "end": "before"})
    again = answers.join(first.drop("start"), on="answer").filter(
        (pl.col("row") != pl.col("in")) & _is_old(pl.col("before"))
    )
    is_repeat = pl.int_range(pl.len()).is_in(again["row"].unique().to_list())
    return trials.with_columns(pl.when(is_repeat).then(statement=True).otherwise("cached").alias("cached"))


def count_cached(trials: pl.DataFrame) -> int | None:
    """Trials whose deciding attempt has an answer from a cache; None where no answer is known by anything."""
    import polars as pl

    known = trials.filter(pl.col("deciding") & pl.col("cached").is_not_null())
    return int(known["cached"].sum()) if known.height else None


def count_shared(earlier: pl.DataFrame, later: pl.DataFrame) -> int:
    """Trials of one run with an answer that a trial of another run had; only attempts that decide count."""
    import polars as pl

    if any(run["answers"].null_count() == run.height for run in (earlier, later)):
        return 0
    a, b = (_answers(run.filter(pl.col("deciding"))) for run in (earlier, later))
    both = b.join(a, on="answer", suffix="_a")
    apart = _is_old(pl.col("end_a")) | (pl.col("start_a") > pl.col("end") + _LATER)
    return both.filter(apart)["row"].n_unique()


def _answers(trials: pl.DataFrame) -> pl.DataFrame:
    """One row an answer: row, start and end of its trial; as they began, those that say a cache last."""
    import polars as pl

    return (
        trials.select("start", "answers", "cached", (pl.col("start") + pl.col("duration")).alias("end"))
        .with_row_index("row")
        .filter(pl.col("answers").is_not_null())
        .sort(pl.col("cached").fill_null(value=False), "start", "row")
        .select("row", "start", "end", pl.col("answers").str.split(" ").alias("answer"))
        .explode("answer")
    )


def _is_old(before: pl.Expr) -> pl.Expr:
    """Whether the answer has an id, or was there so long ago that another would have a later stamp."""
    import polars as pl

    return ~pl.col("answer").str.starts_with(STAMPED) | (pl.col("start") > before + _LATER)
