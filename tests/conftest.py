"""Shared by all tests."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil

# pytester restores sys.modules after an in-process session; a compiled module that was first imported
# inside one cannot be imported a second time, so those that sessions use are loaded before.
import numpy as np
import polars as pl
import scipy.special

import pytest_crashlab

pytest_plugins = ["pytester"]

_PRELOADED = (np, pl, scipy.special)

# For the same reason: a package keeps its submodule as an attribute when sys.modules forgets it, and
# the next session would mix old and new classes.
for _module in pkgutil.walk_packages(pytest_crashlab.__path__, "pytest_crashlab."):
    importlib.import_module(_module.name)

# And these map each other's exceptions: one that is loaded a second time raises what the other does not know.
for _name in ("httpcore", "httpcore2", "httpx", "httpx2"):
    with contextlib.suppress(ImportError):
        importlib.import_module(_name)
