"""One backend of each name for all tests, and a fresh sandbox for each."""

from __future__ import annotations

import pytest

from pytest_crashlab.sandbox.bubblewrap import Bubblewrap
from pytest_crashlab.sandbox.limits import Limits
from pytest_crashlab.sandbox.local import Local
from pytest_crashlab.sandbox.sandbox import Sandbox

MAKERS = {"local": Local, "bubblewrap": Bubblewrap}


@pytest.fixture(scope="session", params=sorted(MAKERS))
def backend(request):
    made = MAKERS[request.param]()
    reason = made.unavailable()
    if reason is not None:
        pytest.skip(f"{request.param}: {reason}")
    yield made
    made.close()


@pytest.fixture
def box(backend):
    made = Sandbox(backend, Limits(wall_clock=20))
    yield made
    made.close()


@pytest.fixture(scope="session")
def bubblewrap():
    made = Bubblewrap()
    reason = made.unavailable()
    if reason is not None:
        pytest.skip(f"bubblewrap: {reason}")
    yield made
    made.close()


@pytest.fixture
def jail(bubblewrap):
    made = Sandbox(bubblewrap, Limits(wall_clock=20))
    yield made
    made.close()
