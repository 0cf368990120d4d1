"""Every recipe of the page runs in a real sandbox."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from pytest_crashlab.sandbox.base import EndedBy
from pytest_crashlab.sandbox.limits import Limits

PAGE = (Path(__file__).parents[2] / "docs" / "sandboxes.md").read_text("utf-8")
RECIPES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.skipif(sys.platform != "linux", reason="sandboxes need Linux")
def test_the_recipes_run(pytester, monkeypatch):
    for name in ("PYTEST_ADDOPTS", "CI", "GITHUB_ACTIONS", "CRASHLAB_STORE", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    assert len(RECIPES) >= 5
    for number, recipe in enumerate(RECIPES):
        pytester.makepyfile(**{f"test_recipe_{number}": recipe})
    result = pytester.runpytest_inprocess("-p", "pytest_crashlab.plugin", "--trials=1", "-q")
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines([f"*{len(RECIPES)} of {len(RECIPES)} trials decided*"])


def test_the_page_names_every_limit_and_every_ending():
    limits = PAGE.split("## Limits")[1].split("## ")[0]
    assert {f.name for f in fields(Limits)} - {"limit_is"} <= set(re.findall(r"`(\w+)`", limits))
    endings = PAGE.split("## What an ending means")[1].split("## ")[0]
    assert {str(ended) for ended in EndedBy} <= set(re.findall(r"`(\w+)`", endings))


def test_what_bubblewrap_needs_is_said_as_the_session_says_it():
    from pytest_crashlab.sandbox.bubblewrap import Bubblewrap

    backend = Bubblewrap()
    reason = backend.unavailable()
    backend.close()
    if shutil.which("bwrap") is None and sys.platform == "linux":
        assert reason == "bwrap is not installed; install it, for example with: apt-get install bubblewrap"
    assert "apt-get install bubblewrap" in PAGE
    assert Bubblewrap.isolates in PAGE
