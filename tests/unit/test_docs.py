"""The documentation says what there is: every option, ini key, marker, label, column; its examples parse."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from pytest_crashlab.cli import VERBS
from pytest_crashlab.plugin.marker_names import MARKERS
from pytest_crashlab.records.outcome import INSTRUMENT_OUTCOMES
from pytest_crashlab.store.schema import Manifest, case_columns, check_columns, trial_columns

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])


def page(name):
    return (ROOT / "docs" / name).read_text("utf-8")


def ours(names):
    return {name for name in names if "crashlab" in name}


def test_configuration_names_every_option_and_ini_key(pytestconfig):
    group = next(g for g in pytestconfig._parser._groups if g.name == "crashlab")
    options = {name for option in group.options for name in option.names()}
    keys = ours(pytestconfig._parser._inidict)
    table = page("configuration.md").split("What starts a run")[0]
    assert set(re.findall(r"`(--[a-z][a-z-]+)[ `]", table)) == options
    assert set(re.findall(r"`(crashlab_[a-z_]+)`", table)) == keys


def test_configuration_names_every_marker():
    text = page("configuration.md")
    assert [name for name in MARKERS if f"`{name}(" not in text] == []


def test_exit_codes_names_every_reason_for_no_verdict():
    source = "".join(path.read_text("utf-8") for path in (ROOT / "pytest_crashlab" / "compare").glob("*.py"))
    codes = re.findall(r'\bReason\(\s*code=f?"([a-z_{}]+)"', source)
    assert len(codes) > 10
    expected = {code.replace("{arm}", arm) for code in codes for arm in "ab"}
    rows = re.findall(r"^\| (`.+?`) \|", page("exit-codes.md").split("## No verdict")[1], re.MULTILINE)
    assert set(re.findall(r"`([a-z_]+)`", " ".join(rows))) == expected


def test_command_line_names_every_verb():
    named = re.findall(r"`crashlab ([a-z]+)", page("command-line.md").split("`RUN` is")[0])
    assert set(named) == set(VERBS)


def test_outcomes_names_every_instrument_label():
    text = page("outcomes.md").split("## Instrument labels")[1].partition("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", text)) == set(INSTRUMENT_OUTCOMES)


def test_store_format_names_every_field_and_column():
    text = page("store-format.md")
    manifest, rest = text.split("## `manifest.json`")[1].split("## `cases.parquet`")
    cases, rest = rest.split("## `trials.parquet`")
    trials, rest = rest.split("## `checks.parquet`")
    checks = rest.split("## Exported runs")[0]

    def named(part):
        return set(re.findall(r"`(\w+)`", part))

    assert set(Manifest.model_fields) - named(manifest) == set()
    assert set(case_columns()) - named(cases) == set()
    assert set(trial_columns()) - named(trials) == set()
    assert set(check_columns()) - named(checks) == set()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_python_examples_parse(path):
    for block in re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.DOTALL):
        ast.parse(block)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#\s]+)", path.read_text("utf-8")):
        if not target.startswith("https://"):
            assert (path.parent / target).exists(), target


def test_first_two_shell_blocks_of_the_readme_are_the_demo_and_the_tests():
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert [block.strip() for block in blocks[:2]] == ["python3 dev.py demo", "python3 dev.py test"]


def test_picture_names_no_address():
    svg = (ROOT / "docs" / "images" / "demo.svg").read_text("utf-8")
    assert set(re.findall(r"https?://[^\"' ]+", svg)) == {"http://www.w3.org/2000/svg"}
    assert "Regressed" in svg


def test_pictures_of_statistics_show_what_the_package_says(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("draw_statistics", ROOT / "docs" / "draw_statistics.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "IMAGES", tmp_path)
    for name, draw in module.PICTURES.items():
        assert draw() == (ROOT / "docs" / "images" / name).read_text("utf-8"), name
        assert f"](images/{name})" in page("statistics.md")
