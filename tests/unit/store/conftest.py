from __future__ import annotations

import pytest
from repositories import Repository

from pytest_crashlab.store.runs import Store


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / ".crashlab", create=True)


@pytest.fixture
def repository(tmp_path):
    """A repository with a first commit on main and a store beside it."""
    made = Repository.make(tmp_path / "project", tmp_path / "store")
    made.commit("first")
    return made
