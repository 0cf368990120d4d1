"""Load scipy without what it takes along from numpy and nobody here uses."""

from __future__ import annotations

import sys
from types import ModuleType


def load_scipy() -> None:
    """Import scipy.special, and spare this process numpy's Fortran compiler.

    scipy takes all public names of numpy, and numpy loads f2py with what it needs when it is asked for that
    name: a tenth of the time that a short-lived process takes to start. Only for a process that runs
    nobody else's code, since ``numpy.f2py`` is an empty module in it afterwards.
    """
    import numpy as np

    if "numpy.f2py" not in sys.modules:
        np.__dict__.setdefault("f2py", ModuleType("numpy.f2py"))
    import scipy.special  # noqa: F401
