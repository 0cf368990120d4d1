"""What holds for the package as a whole: its names, its cost when unused, its layers, what it allows."""

from __future__ import annotations

import configparser
import importlib
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import pytest_crashlab

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
HEAVY = ("numpy", "scipy", "polars", "pydantic", "rich")
PUBLIC = {"Check", "Outcome", "Vocabulary"}


def run_python(code, **environment):
    """What a fresh interpreter prints."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST", "CRASHLAB", "COV_"))
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**kept, **environment},
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded(code, names=HEAVY):
    """Which of ``names`` a fresh interpreter has imported after ``code``."""
    report = f"import sys; print('loaded:', *[name for name in {names!r} if name in sys.modules])"
    return run_python(f"{code}\n{report}").rpartition("loaded:")[2].split()


def test_version_is_the_installed_one():
    assert pytest_crashlab.__version__ == version("pytest-crashlab") == PROJECT["project"]["version"]


def test_all_is_sorted_and_every_name_is_there():
    names = pytest_crashlab.__all__
    assert names == sorted(names)
    assert set(names) > PUBLIC
    for name in names:
        assert getattr(pytest_crashlab, name) is not None
    assert set(names) <= set(dir(pytest_crashlab))


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'pytest_crashlab' has no attribute 'Vocabluary'"):
        pytest_crashlab.Vocabluary  # noqa: B018


def test_every_name_that_is_typed_is_public_and_the_other_way_round():
    source = (ROOT / "pytest_crashlab" / "__init__.py").read_text("utf-8")
    typed = set(re.findall(r"import \w+ as (\w+)\n", source))
    assert typed | {"__version__"} == set(pytest_crashlab.__all__)


def test_importing_the_package_imports_no_module_of_it():
    assert loaded("import pytest_crashlab", (*HEAVY, "pytest", "pytest_crashlab.records")) == []


def test_taking_the_nouns_imports_no_library():
    assert loaded("from pytest_crashlab import Check, Outcome, Vocabulary", (*HEAVY, "pytest")) == []


UNUSED = """
import pytest
assert pytest.main(["-q", "-p", "no:cacheprovider", {path!r}]) == 0
"""


@pytest.fixture
def plain_suite(tmp_path):
    path = tmp_path / "test_plain.py"
    path.write_text("def test_one():\n    assert 1 + 1 == 2\n", "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
    return str(path)


# A session that loads every installed plugin would be slower and show what those import.
ONLY_THIS_ONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_crashlab.plugin"}


def test_a_session_that_does_not_use_the_plugin_imports_no_library(plain_suite):
    code = UNUSED.format(path=plain_suite)
    report = f"import sys; print('loaded:', *[name for name in {HEAVY!r} if name in sys.modules])"
    printed = run_python(f"{code}\n{report}", **ONLY_THIS_ONE)
    assert "1 passed" in printed
    assert printed.rpartition("loaded:")[2].split() == []


def test_a_session_that_does_not_use_the_plugin_keeps_nothing(plain_suite, tmp_path):
    before = {path.name for path in tmp_path.iterdir()}
    run_python(UNUSED.format(path=plain_suite), **ONLY_THIS_ONE)
    assert {path.name for path in tmp_path.iterdir()} - before <= {"__pycache__"}


def modules():
    found = []
    for path in sorted((ROOT / "pytest_crashlab").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


FIRST = """
import importlib, sys, traceback
for name in {names!r}:
    for known in [m for m in sys.modules if m.partition(".")[0] == "pytest_crashlab"]:
        del sys.modules[known]
    try:
        importlib.import_module(name)
    except Exception:
        print(name, traceback.format_exc())
"""


def test_every_module_can_be_imported_first():
    names = [name for name in modules() if not name.endswith("__main__")]
    assert "pytest_crashlab.records.trial" in names
    assert run_python(FIRST.format(names=names)) == ""


def test_layers_hold():
    pytest.importorskip("importlinter", reason="the layers are held where the lint extra is installed")
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_package_has_its_layer():
    layers = next(c for c in PROJECT["tool"]["importlinter"]["contracts"] if c["type"] == "layers")["layers"]
    placed = {name.strip(" ()") for layer in layers for name in layer.split("|")}
    here = {path.parent.name for path in (ROOT / "pytest_crashlab").glob("*/__init__.py")}
    assert here <= placed


def test_lowest_environment_pins_what_the_project_allows():
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", "utf-8")
    lines = [line for line in tox["testenv:lowest"]["deps"].splitlines() if line]
    pinned = dict(line.split("==") for line in lines)
    allowed = dict(line.split(">=") for line in PROJECT["project"]["dependencies"])
    # What the tests compare with is pinned as well, as later versions would raise numpy.
    assert pinned.keys() - allowed.keys() == {"statsmodels", "pandas"}
    for name, lowest in allowed.items():
        assert re.fullmatch(rf"{re.escape(lowest)}(\.0)*", pinned[name]), name


def test_entry_points_lead_somewhere():
    assert PROJECT["project"]["entry-points"]["pytest11"] == {"crashlab": "pytest_crashlab.plugin"}
    module, _, function = PROJECT["project"]["scripts"]["crashlab"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))
