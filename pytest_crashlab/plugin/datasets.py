"""One case per row: tests that are marked with a data set and ask for ``row``.

Works in every session, with trials or without. What a run keeps of it is in :class:`DatasetUse`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crashlab.datasets.dataset import Dataset
from pytest_crashlab.datasets.selecting import select
from pytest_crashlab.errors import CrashlabError, UsageError
from pytest_crashlab.plugin import compat, process
from pytest_crashlab.plugin.keys import DATASETS_NAME
from pytest_crashlab.plugin.markers import Markers, where
from pytest_crashlab.records.dataset import Row, Split, shares_dataset

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_crashlab.records.dataset import DatasetUse

ROW = "row"
NO_ROW = "no-row"


@dataclass(slots=True)
class _Used:
    """A data set of this session, its cases, and how many test functions make them."""

    dataset: Dataset
    rows: tuple[Row, ...]
    use: DatasetUse
    tests: int = 0


class Datasets:
    """The data sets of a session; registered when the first test asks for one."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._markers = Markers(config)
        self._files: dict[Path, Dataset] = {}
        self._used: dict[str, _Used] = {}
        self._names: dict[int, str] = {}  # id of a row -> its data set's name
        self._problem: str | None = None

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Give a test function its rows; a problem is kept until collection ends, and ends the session."""
        try:
            self._parametrize(metafunc)
        except (CrashlabError, pytest.UsageError) as error:
            self._problem = self._problem or str(error)

    def _parametrize(self, metafunc: pytest.Metafunc) -> None:
        item: Any = metafunc.definition
        settings = self._markers.settings(item)
        given = settings.get("dataset")
        if given is None or _has_own_rows(item):
            return
        if "split" in settings:
            raise UsageError(
                f"{where(item)}: the marker crashlab has split=, and one session measures one split; "
                "choose it with --crashlab-split"
            )
        if not compat.uses_own_fixture(item, ROW):
            if any(mark.name == "crashlab" and "dataset" in mark.kwargs for mark in item.own_markers):
                raise UsageError(
                    f"{where(item)}: {item.name} has a data set and does not take the fixture row, so its "
                    "rows would go unseen; add row to its arguments"
                )
            return
        used = self._of(self._dataset(given, item))
        used.tests += 1
        if used.rows:
            metafunc.parametrize(ROW, used.rows, ids=[row.id for row in used.rows], indirect=True)
        else:
            metafunc.parametrize(ROW, [None], ids=[NO_ROW], indirect=True)

    def _dataset(self, given: object, item: pytest.Item) -> Dataset:
        if isinstance(given, Dataset):
            return given
        if not isinstance(given, str | Path):
            raise UsageError(
                f"{where(item)}: the marker crashlab has dataset={given!r}; give a Dataset or a path"
            )
        path = item.path.parent / given
        if path not in self._files:
            self._files[path] = Dataset.read(path)
        return self._files[path]

    def _of(self, dataset: Dataset) -> _Used:
        known = self._used.get(dataset.name)
        if known is None:
            split, sample, seed = _choice(self._config)
            rows, use = select(dataset, split=split, sample=sample, seed=seed)
            known = self._used[dataset.name] = _Used(dataset, rows, use)
            self._names.update((id(row), dataset.name) for row in rows)
        elif known.dataset is not dataset and not _same(known.dataset, dataset):
            raise UsageError(
                f"two data sets of this session are called {dataset.name} and differ in rows, version or "
                "holdout; give one of them another name"
            )
        return known

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """End a session with a wrong data set; drop what stands for a test without a single case."""
        if self._problem is not None:
            if not process.is_worker(config):
                raise pytest.UsageError(self._problem)
            from pytest_crashlab.plugin import workers

            workers.tell_usage_error(config, self._problem)
            items.clear()
            return
        items[:] = [item for item in items if not _is_placeholder(item)]

    def pytest_report_collectionfinish(self) -> list[str]:
        """Say how many rows are no cases, and why."""
        return dataset_lines(used.use for used in self._used.values())

    def used_by(self, items: Iterable[pytest.Item]) -> list[DatasetUse]:
        """How the data sets of ``items`` are used, in the order they were first asked for."""
        names = {self._names.get(id(_row_of(item))) for item in items}
        return [
            replace(used.use, unsampled_cases=used.use.unsampled * used.tests)
            for name, used in self._used.items()
            if name in names
        ]


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Give a test function the rows of the data set that it is marked with."""
    manager = metafunc.config.pluginmanager
    datasets = manager.get_plugin(DATASETS_NAME)
    if datasets is None:
        datasets = Datasets(metafunc.config)
        manager.register(datasets, DATASETS_NAME)
    datasets.parametrize(metafunc)


def fresh_row(request: pytest.FixtureRequest) -> Row:
    """The row of the requesting test, with values of its own."""
    given = getattr(request, "param", None)
    if not isinstance(given, Row):
        raise UsageError(
            f"{where(request.node)}: the fixture row has no data set to give a row of; mark the test with "
            '@pytest.mark.crashlab(dataset="cases.jsonl") and take row as an argument'
        )
    return given.fresh()


def used_by(config: pytest.Config, items: Sequence[pytest.Item]) -> list[DatasetUse]:
    """How the data sets of ``items`` are used; none in most sessions."""
    datasets = config.pluginmanager.get_plugin(DATASETS_NAME)
    return [] if datasets is None else datasets.used_by(items)


def refuse_other_baseline(used: Sequence[DatasetUse], measured: dict[str, str | None] | None) -> None:
    """Raise ``UsageError`` where the baseline measured other data sets, or the other split of them.

    ``measured`` the baseline's ``run``, ``dataset`` and ``split``; None without a baseline.
    """
    if measured is None or not used:
        return
    before, now = measured["dataset"], measured_names(used)
    if before is not None and not shares_dataset(before, now):
        raise UsageError(
            f"the baseline {measured['run']} measured the data set {before}, and this session "
            f"measures {now}; name a baseline of the same data set"
        )
    split = measured_split(used)
    if None not in (before, split, measured["split"]) and measured["split"] != split:
        raise UsageError(
            f"the baseline {measured['run']} measured the {measured['split']} split of {before}, and this "
            f"session measures {split}; name a baseline of the same split, or choose it with --crashlab-split"
        )


def measured_names(used: Sequence[DatasetUse]) -> str | None:
    """The data sets of a run in one text, as its manifest has them; None without one."""
    return ", ".join(use.name for use in used) or None


def measured_versions(used: Sequence[DatasetUse]) -> str | None:
    """Their versions in the same order; None where no one has a version."""
    if all(use.version is None for use in used):
        return None
    return ", ".join(use.version or "none" for use in used)


def measured_split(used: Sequence[DatasetUse]) -> str | None:
    """The split that a run measured: that of its data sets with a holdout, None where none has one."""
    return next((use.split for use in used if use.split is not None), None)


def dataset_lines(uses: Iterable[DatasetUse]) -> list[str]:
    """A line for each data set: its cases, and the rows that are none."""
    return [f"crashlab: {use.sentence}" for use in uses]


def _choice(config: pytest.Config) -> tuple[Split, int | None, int | None]:
    """``(split, sample, seed)`` of this session."""
    from pytest_crashlab.plugin.settings import Settings
    from pytest_crashlab.plugin.workers import orders_for

    settings = Settings.of(config)
    if settings.off and settings.split is Split.HOLDOUT:
        raise UsageError(
            "--crashlab-split=holdout is a look that has to be counted, and --trials=off records nothing; "
            "leave one of them out"
        )
    if settings.sample is None:
        return settings.split, None, None
    orders = orders_for(config)
    if orders is not None:
        return settings.split, settings.sample, orders.seed
    starter = config.pluginmanager.get_plugin("crashlab-start")
    seed = 0 if settings.off or starter is None else starter.session_for_process().seed
    return settings.split, settings.sample, seed


def _same(one: Dataset, other: Dataset) -> bool:
    return all(
        getattr(one, name) == getattr(other, name)
        for name in ("version", "holdout", "salt", "requires_expected", "digest")
    )


def _has_own_rows(item: pytest.Item) -> bool:
    """Whether a project's own parametrization gives the argument its values."""
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs.get("argnames", ())
        if ROW in ([name.strip() for name in names.split(",")] if isinstance(names, str) else names):
            return True
    return False


def _row_of(item: pytest.Item) -> object:
    callspec: Any = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get(ROW)


def _is_placeholder(item: pytest.Item) -> bool:
    callspec: Any = getattr(item, "callspec", None)
    return (
        callspec is not None
        and callspec.params.get(ROW, item) is None
        and compat.uses_own_fixture(item, ROW)
        and NO_ROW in callspec.id
    )
