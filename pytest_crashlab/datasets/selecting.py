"""Which rows of a data set are cases of a session, and how many are not for which reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.records.dataset import DatasetUse, Split, share_of

if TYPE_CHECKING:
    from pytest_crashlab.datasets.dataset import Dataset
    from pytest_crashlab.records.dataset import Row


def select(
    dataset: Dataset, *, split: Split, sample: int | None = None, seed: int | None = None
) -> tuple[tuple[Row, ...], DatasetUse]:
    """The rows that are cases, in their order, and how the data set was used.

    A row is counted under the first reason that keeps it out: no input, no expected, other split,
    unsampled. ``sample`` rows are drawn by ``seed`` and their ids, so that every process draws the same.
    """
    no_input = no_expected = other_split = 0
    found: list[Row] = []
    for row in dataset.rows:
        if row.input is None:
            no_input += 1
        elif row.expected is None and dataset.requires_expected:
            no_expected += 1
        elif dataset.split_of(row) is not split:
            other_split += 1
        else:
            found.append(row)
    kept = found if sample is None else _drawn(found, sample, f"{seed} {dataset.name}")
    use = DatasetUse(
        name=dataset.name,
        version=dataset.version,
        digest=dataset.digest,
        split=None if dataset.holdout is None else split.value,
        rows=len(dataset.rows),
        cases=len(kept),
        no_input=no_input,
        no_expected=no_expected,
        other_split=other_split,
        unsampled=len(found) - len(kept),
        sample=sample,
        seed=None if sample is None else seed,
    )
    return tuple(kept), use


def _drawn(rows: list[Row], sample: int, salt: str) -> list[Row]:
    first = sorted(rows, key=lambda row: share_of(row.id, salt))[:sample]
    ids = {row.id for row in first}
    return [row for row in rows if row.id in ids]
