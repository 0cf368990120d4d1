"""The built-in backends under the suite that other backends are held to, and what that suite finds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_crashlab.testing import CLAIMS, SandboxConformance


class TestBuiltin(SandboxConformance):
    """With the fixture ``backend`` of this folder: each built-in one that works here."""


POOR = """
import dataclasses, pytest
from pytest_crashlab.sandbox.base import EndedBy
from pytest_crashlab.sandbox.local import Local
from pytest_crashlab.testing import CLAIMS, SandboxConformance

class Liar:
    def __init__(self, box):
        self._box, self.workspace = box, box.workspace
    def close(self):  # ends what runs, and leaves the folder
        for running in self._box._running:
            running.abandon()
    def start(self, command, limits):
        running = self._box.start(command, limits)
        told = running.wait
        def wait(timeout=None):
            result = told(timeout)
            if result.exit_code == 137:
                return dataclasses.replace(result, exit_code=None, signal=9, ended_by=EndedBy.KILLED_UNKNOWN)
            return result
        running.wait = wait
        return running

class Poor(Local):
    def open(self, limits):
        return Liar(super().open(limits))

@pytest.fixture(scope="module")
def backend():
    made = Poor()
    yield made
    made.close()

class TestPoor(SandboxConformance):
    claims = {claims}
"""


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)


def run(pytester, claims, chosen):
    pytester.makepyfile(POOR.replace("{claims}", claims))
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-rs", "-k", chosen)


def test_a_backend_that_reads_exit_codes_as_signals_or_leaves_its_folder_fails(pytester):
    chosen = "test_exit_code or test_nothing_is_left or test_memory or test_duration"
    result = run(pytester, 'CLAIMS - {"memory_limit"}', chosen)
    result.assert_outcomes(failed=2, skipped=1, passed=1)
    result.stdout.fnmatch_lines(["*SKIPPED*local does not claim memory_limit*"])


def test_a_claim_that_does_not_exist_is_named(pytester):
    result = run(pytester, 'frozenset({"memory"})', "test_duration")
    result.stdout.fnmatch_lines(["*'memory'* is no claim; choose of cpu_limit, *"])


def test_the_recipe_of_the_page_runs(pytester):
    page = (Path(__file__).parents[2] / "docs" / "sandboxes.md").read_text("utf-8")
    (recipe,) = re.findall(r"^```py\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", page.split("`claims` is")[1].split(";")[0])) - {"connect"} == CLAIMS
    pytester.makepyfile(
        my_sandbox="from pytest_crashlab.sandbox.local import Local as Mine", test_mine=recipe
    )
    result = pytester.runpytest_inprocess(
        "-p", "no:cacheprovider", "-rs", "-k", "test_ports or test_exit_code"
    )
    result.assert_outcomes(skipped=1, passed=1)
