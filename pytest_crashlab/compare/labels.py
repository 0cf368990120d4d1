"""What the labels of two runs count as: one that is a fail here and no decision there is another rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.compare.sentences import several
from pytest_crashlab.records.comparison import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from pytest_crashlab.store import StoredRun


def label_blockers(baseline: StoredRun, candidate: StoredRun) -> Iterator[Reason]:
    """Labels that count as something else in each run, and imports by different pass marks.

    What an import was told of a label counts also where the label did not occur; of sessions it is
    what the trials of one case came to.
    """
    a, b = (run.manifest.imported or {} for run in (baseline, candidate))
    kinds = a.get("kinds") or {}, b.get("kinds") or {}
    told = sorted(label for label in {*kinds[0]} & {*kinds[1]} if kinds[0][label] != kinds[1][label])
    if told:
        first = told[0]
        yield Reason(
            code="kinds_differ",
            text=(
                f"The two runs were imported with labels read differently: {several(told)} "
                f"({first} as {kinds[0][first]} in the baseline, as {kinds[1][first]} in this run). "
                "Import both with the same options."
            ),
        )
    else:
        yield from _counted_differently(baseline, candidate)
    marks = a.get("pass_at"), b.get("pass_at")
    if None not in marks and marks[0] != marks[1]:
        yield Reason(
            code="pass_marks_differ",
            text=(
                f"The two runs were imported with different pass marks: {marks[0]:g} in the baseline, "
                f"{marks[1]:g} in this run (--pass-at). Import both with the same."
            ),
        )


def _counted_differently(baseline: StoredRun, candidate: StoredRun) -> Iterator[Reason]:
    import polars as pl

    labels = _kinds(baseline, ["outcome"]).join(_kinds(candidate, ["outcome"]), on="outcome", suffix="_b")
    doubtful = labels.filter(pl.col("kind") != pl.col("kind_b"))["outcome"]
    if doubtful.is_empty():
        return
    # Cases may have vocabularies of their own, so a label is held against itself within a case.
    key = ["case", "outcome"]
    a, b = (_kinds(run, key, doubtful) for run in (baseline, candidate))
    differing = a.join(b, on=key, suffix="_b").filter(pl.col("kind") != pl.col("kind_b")).sort(key[::-1])
    if differing.height:
        case, label, kind_a, kind_b = differing.row(0)
        others = several(differing["outcome"].unique(maintain_order=True).to_list())
        yield Reason(
            code="kinds_differ",
            text=(
                f"Labels count as something else in each run: {others} ({label} as {'/'.join(kind_a)} in the "
                f"baseline, as {'/'.join(kind_b)} in this run, in {case}). Compare runs of one vocabulary."
            ),
        )


def _kinds(run: StoredRun, key: list[str], labels: pl.Series | None = None) -> pl.DataFrame:
    import polars as pl

    rows = run.trials.filter(pl.col("kind").is_not_null() & pl.col("outcome").is_not_null())
    columns = [pl.col(name).cast(pl.String) for name in (*key, "kind")]
    if labels is not None:
        rows = rows.filter(pl.col("outcome").cast(pl.String).is_in(labels.implode()))
    return (
        rows.group_by(*key, "kind").len().select(*columns).group_by(key).agg(pl.col("kind").unique().sort())
    )
