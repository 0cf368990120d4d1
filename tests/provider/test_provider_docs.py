"""Every recipe of the documents runs, against the loopback server where it calls a provider."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

OWN = "http://127.0.0.1:8080/v1"  # where the recipes have a server of the reader's own
DOCS = Path(__file__).parents[2] / "docs"


def recipes(page):
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [block for block in blocks if "def test_" in block]


@pytest.mark.parametrize("page", ["providers.md", "judges.md"])
def test_the_recipes_run(page, pytester, server, monkeypatch):
    for sdk in ("openai", "anthropic"):
        pytest.importorskip(sdk)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("PYTEST_ADDOPTS", "CI", "GITHUB_ACTIONS", "CRASHLAB_STORE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-loopback")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url() + "/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url())
    found = recipes(page)
    assert found
    server.seen.clear()
    assert (page == "providers.md") == any(OWN in block for block in found)
    for number, block in enumerate(found):
        pytester.makepyfile(**{f"test_recipe_{number}": block.replace(OWN, f"{server.url('own')}/v1")})
    result = pytester.runpytest_inprocess("-p", "pytest_crashlab.plugin", "--trials=2", "-q")
    assert result.ret == 0, result.stdout.str()
    tests = sum(block.count("\ndef test_") for block in found)
    result.stdout.fnmatch_lines([f"*{2 * tests} of {2 * tests} trials decided*"])
    assert server.seen["own"] == (2 if page == "providers.md" else 0)
