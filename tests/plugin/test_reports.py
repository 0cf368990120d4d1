"""Reports that a session writes, by option and by itself in CI."""

from __future__ import annotations

import json

import pytest

SUITE = """
    import os
    import pytest

    @pytest.mark.parametrize("n", range(3))
    def test_works(n):
        assert os.environ.get("BROKEN") is None, "it is broken"

    def test_stays(): pass
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "CI"):
        monkeypatch.delenv(name, raising=False)
    pytester.makepyfile(test_it=SUITE)
    return pytester


def run(suite, *arguments):
    return suite.runpytest("-p", "pytest_crashlab.plugin", "--trials=6", *arguments)


def test_reports_are_written_as_they_are_named(suite):
    result = run(suite, "--crashlab-report=out/report.md,out/report.json,out/gl.codequality.json,out/j.xml")
    assert result.ret == 0
    assert (suite.path / "out/report.md").read_text("utf-8").startswith("<!-- pytest-crashlab -->\n### ")
    assert json.loads((suite.path / "out/report.json").read_text())["pass_rate"]["value"] == 1.0
    assert json.loads((suite.path / "out/gl.codequality.json").read_text()) == []
    assert "<testsuites" in (suite.path / "out/j.xml").read_text("utf-8")


def test_an_unknown_format_costs_nothing(suite):
    result = run(suite, "--crashlab-report=report.html")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --crashlab-report=report.html names no format; end it in .md*"])
    assert not (suite.path / ".crashlab").exists()


def test_a_folder_that_is_a_file_is_a_sentence_and_the_run_stays(suite):
    (suite.path / "file").touch()
    result = run(suite, "--crashlab-report=file/report.md")
    result.stdout.fnmatch_lines(["The report *report.md cannot be written (*); name another path."])
    assert result.ret == 0
    assert list(suite.path.glob(".crashlab/runs/*/trials.parquet"))


def test_github_gets_a_summary_and_marks_by_itself(suite, monkeypatch):
    assert run(suite, "--save-baseline=main").ret == 0
    page = suite.path / "summary.md"
    page.write_text("another step\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    monkeypatch.setenv("BROKEN", "1")
    result = run(suite, "--baseline=main")
    assert result.ret == 1
    marks = [line for line in result.outlines if line.startswith("::")]
    assert len(marks) == 3
    assert all(mark.startswith("::error file=test_it.py,line=") for mark in marks)
    assert all("title=test_it.py%3A%3Atest_works[" in mark and "it is broken" in mark for mark in marks)
    kept = page.read_text("utf-8")
    assert kept.startswith("another step\n<!-- pytest-crashlab -->\n### 🔴 Regressed")
    assert "`test_it.py::test_works[0]`" in kept


def test_elsewhere_nothing_is_written_by_itself(suite, monkeypatch):
    page = suite.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))  # without the service itself: somebody's leftover
    result = run(suite)
    assert not page.exists()
    assert not [line for line in result.outlines if line.startswith("::")]
