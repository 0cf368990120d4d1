"""The fixtures that tests ask for by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_crashlab.plugin.author import Trial
    from pytest_crashlab.provider.bound import Bound
    from pytest_crashlab.provider.judge import Judge
    from pytest_crashlab.records.dataset import Row
    from pytest_crashlab.sandbox.sandbox import Sandbox


@pytest.fixture
def trial(request: pytest.FixtureRequest) -> Trial:
    """The trial in progress: its run phase, checks, outcome, number and seed.

    Works in a plain session too, where a trial that fails, or that gives no decision, fails the test.
    """
    from pytest_crashlab.plugin.lifecycle import trial_for

    return trial_for(request)


@pytest.fixture
def row(request: pytest.FixtureRequest) -> Row:
    """The row of the data set that this case is made of: ``id``, ``input``, ``expected``, ``metadata``.

    For tests marked ``crashlab(dataset=...)``. Each trial gets values of its own.
    """
    from pytest_crashlab.plugin.datasets import fresh_row

    return fresh_row(request)


@pytest.fixture
def provider(request: pytest.FixtureRequest) -> Iterator[Bound]:
    """The model that this test is bound to: clients whose calls are recorded, and a plain question.

    Bound by ``crashlab(provider="openai:gpt-x")``, ``crashlab_provider`` or ``--crashlab-model``.
    """
    from pytest_crashlab.plugin.providers import models_for

    models = models_for(request)
    yield models.target()
    models.close()


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> Iterator[Judge]:
    """A model that judges by a rubric: bound by ``crashlab(judge=...)``, or as the model named "judge"."""
    from pytest_crashlab.plugin.providers import judge_for, models_for

    yield judge_for(request)
    models_for(request).close()


@pytest.fixture(scope="session")
def run_config(pytestconfig: pytest.Config) -> Mapping[str, str]:
    """The declared configuration (``--crashlab-config key=value`` and its ini key) as a read-only mapping.

    The run keeps it, and a comparison says whether it changed.
    """
    from pytest_crashlab.plugin.configuration import declared_config

    return declared_config(pytestconfig)


@pytest.fixture
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A fresh place to run code that may be wrong or hostile: an empty folder, commands, limits.

    Which backend it is of: ``crashlab_sandbox``, or ``crashlab(sandbox=...)`` on the test.
    """
    from pytest_crashlab.plugin.sandboxes import open_for

    opened = open_for(request)
    yield opened
    opened.close()
