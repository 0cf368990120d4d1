"""The package itself: its names, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_crashlab import stats


def test_names_are_sorted_and_there():
    assert stats.__all__ == sorted(stats.__all__)
    for name in stats.__all__:
        value = getattr(stats, name)
        assert callable(value), name
        assert value.__doc__, name
        assert value.__module__.startswith(("pytest_crashlab.stats.", "pytest_crashlab.errors")), name
    assert set(stats.__all__) <= set(dir(stats))


def test_no_name_is_hidden_by_a_module_of_the_same_name():
    for name in stats.__all__:
        getattr(stats, name)
    modules = {name.rpartition(".")[2] for name in sys.modules if name.startswith("pytest_crashlab.stats.")}
    assert not modules & set(stats.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'median'"):
        _ = stats.median


def loaded_after(code):
    watched = ("numpy", "scipy", "scipy.stats", "scipy.optimize", "pytest", "polars")
    report = f"import sys; print(*[name for name in {watched!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_importing_it_imports_no_library():
    assert loaded_after("import pytest_crashlab.stats") == []


def test_using_all_of_it_needs_no_statistics_package():
    code = "from pytest_crashlab import stats; [getattr(stats, n) for n in stats.__all__]"
    assert loaded_after(code) == ["numpy", "scipy"]
