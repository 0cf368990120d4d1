from __future__ import annotations

import pytest

from pytest_crashlab.store import Store


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / ".crashlab", create=True)
