"""Which process this is: the single one, xdist's controller, or one of its workers.

Imports nothing of the package, as every session asks.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

# What a controller's orders are called among the things that xdist gives to a worker.
WORKER_INPUT = "crashlab"
# What a worker's refusal of the session's arguments is called among the things that it returns.
USAGE_OUTPUT = "crashlab_usage_error"
# The attribute of a worker's first report that says what it is going to run.
PLAN = "_crashlab_plan"

# The key in a worker's first serialized report under which it names the sandbox that its tests use.
SANDBOX = "_crashlab_sandbox"


def worker_name(config: pytest.Config) -> str:
    """``gw0`` ... in a worker, ``main`` elsewhere."""
    return str(getattr(config, "workerinput", {}).get("workerid", "main"))


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs tests for a controller."""
    return hasattr(config, "workerinput")


def is_asked_for_trials(config: pytest.Config) -> bool:
    """Whether this is a worker whose controller was asked for trials by option or ini key."""
    orders = getattr(config, "workerinput", {}).get(WORKER_INPUT)
    return orders is not None and bool(json.loads(orders)["active"])


def distributes(config: pytest.Config) -> bool:
    """Whether this process is a controller that leaves the tests to workers.

    Read from the options, since xdist registers its own session only when it is configured, before
    or after this package.
    """
    option = config.option
    return getattr(option, "dist", "no") != "no" and not option.collectonly and not is_worker(config)
