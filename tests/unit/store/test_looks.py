"""Looks at holdouts: what counts as one, what counts again, and what deletion does not undo."""

from __future__ import annotations

import pytest

from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store import Manifest, Store
from pytest_crashlab.store.ledger import count_looks, is_sealed, looks_of, record_look


def manifest(name, *, dataset="refunds", version=None, digest="d1", split="holdout", **fields):
    use = {"name": dataset, "version": version, "digest": digest, "split": split}
    return Manifest(id=name, dataset=dataset, dataset_version=version, split=split, datasets=[use], **fields)


@pytest.fixture
def ledger(tmp_path):
    return Store.open(tmp_path / "store", create=True).ledger


def test_a_run_and_its_own_comparison_are_one_look(ledger):
    one = manifest("a", version="2")
    assert record_look(ledger, one, "run", against="base")[0].of_version == 1
    assert record_look(ledger, one, "run", against="base")[0].of_version == 1
    assert record_look(ledger, one, "comparison", against="base")[0].of_version == 1
    assert record_look(ledger, one, "comparison", against="other")[0].of_version == 2
    assert record_look(ledger, one, "comparison", against="other")[0].of_version == 2


def test_every_view_counts(ledger):
    one = manifest("a")
    assert [record_look(ledger, one, "view")[0].of_version for _ in range(3)] == [1, 2, 3]


def test_versions_and_data_sets_are_counted_apart(ledger):
    record_look(ledger, manifest("a", version="1"), "run")
    record_look(ledger, manifest("b", version="2"), "run")
    record_look(ledger, manifest("c", dataset="orders"), "run")
    looks = count_looks(ledger, "refunds", "2")
    assert (looks.of_version, looks.of_dataset) == (1, 2)
    assert looks.sentence == "Look 1 at the holdout of refunds 2, 2 at any version; deleted runs count."


def test_without_a_version_the_rows_stand_for_it(ledger):
    record_look(ledger, manifest("a", digest="d1"), "run")
    record_look(ledger, manifest("b", digest="d2"), "run")
    (looks,) = looks_of(ledger, manifest("c", digest="d2"))
    assert (looks.of_version, looks.of_dataset) == (1, 2)


def test_only_a_holdout_is_looked_at(ledger):
    assert record_look(ledger, manifest("a", split="dev"), "run") == []
    mixed = manifest("b").with_fields(
        datasets=[*manifest("b").datasets, {"name": "plain", "version": None, "digest": "d", "split": None}]
    )
    assert [looks.dataset for looks in record_look(ledger, mixed, "run")] == ["refunds"]
    assert len(ledger.read("look")) == 1


def test_an_imported_run_has_no_rows_and_its_holdout_counts(ledger):
    imported = Manifest(id="a", dataset="refunds", dataset_version="3", split="holdout")
    assert record_look(ledger, imported, "comparison", against="b")[0].sentence == (
        "Look 1 at the holdout of refunds 3; deleted runs count."
    )


@pytest.mark.parametrize(
    ("split", "status", "sealed"),
    [
        ("holdout", RunStatus.COMPLETED, True),
        ("holdout", RunStatus.CANCELLED, True),
        ("holdout", RunStatus.RUNNING, False),
        ("dev", RunStatus.COMPLETED, False),
    ],
)
def test_what_is_sealed(split, status, sealed):
    assert is_sealed(manifest("a", split=split, status=status)) is sealed
