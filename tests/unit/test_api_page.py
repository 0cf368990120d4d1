"""The API reference says what the docstrings say, of every public name."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import pytest_crashlab

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def make_api():
    spec = importlib.util.spec_from_file_location("make_api", DOCS / "make_api.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_docstrings_say(make_api):
    written = (DOCS / "api.md").read_text("utf-8")
    assert written == make_api.page(), "run python docs/make_api.py"


def test_every_public_name_has_a_heading_and_a_sentence():
    text = (DOCS / "api.md").read_text("utf-8")
    parts = text.split("\n### `")[1:]
    said = {part.partition("`")[0].partition("(")[0]: part.partition("\n")[2].strip() for part in parts}
    assert set(said) == set(pytest_crashlab.__all__) - {"__version__"}
    assert [name for name, sentence in said.items() if not sentence.partition("\n")[0].endswith(".")] == []
