"""Shared by all tests."""

from __future__ import annotations

# pytester restores sys.modules after an in-process session; a compiled module that was first imported
# inside one cannot be imported a second time, so those that sessions use are loaded before.
import numpy as np
import polars as pl
import scipy.special

pytest_plugins = ["pytester"]

_PRELOADED = (np, pl, scipy.special)
