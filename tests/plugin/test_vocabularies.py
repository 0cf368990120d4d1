"""Where a test's vocabulary comes from, and what a session says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

VOCABULARY = 'Vocabulary(Outcome.passed("{0}", "It passed."), Outcome.failed("{0}_wrong", "It did not."))'


@pytest.fixture
def suite(served: Suite) -> Suite:
    """How many workers there are makes no difference here."""
    return served


def named(name: str) -> str:
    return VOCABULARY.format(name)


IMPORTS = "import pytest\nfrom pytest_crashlab import Outcome, Vocabulary\n"
MARK = "pytest.mark.outcomes(" + VOCABULARY + ")"


def test_the_nearest_vocabulary_wins(suite: Suite) -> None:
    """Function before class before module before conftest before ini."""
    root = suite.root
    (root / "shop.py").write_text(f"{IMPORTS}WORDS = {named('ini')}\n")
    (root / "deep" / "deeper").mkdir(parents=True)
    plain = "def test_plain(): pass\n"
    (root / "test_top.py").write_text(plain)
    (root / "deep" / "conftest.py").write_text(f"{IMPORTS}crashlab_outcomes = {named('folder')}\n")
    (root / "deep" / "test_mid.py").write_text(plain)
    (root / "deep" / "deeper" / "conftest.py").write_text(f"{IMPORTS}crashlab_outcomes = {named('deeper')}\n")
    (root / "deep" / "deeper" / "test_low.py").write_text(
        f"{IMPORTS}def test_plain(): pass\n"
        f"@{MARK.format('class')}\nclass TestClass:\n"
        f"    def test_plain(self): pass\n"
        f"    @{MARK.format('function')}\n    def test_marked(self): pass\n"
    )
    (root / "deep" / "deeper" / "test_module.py").write_text(
        f"{IMPORTS}pytestmark = {MARK.format('module')}\ndef test_plain(): pass\n"
    )
    suite.pytester.makeini("[pytest]\npythonpath = .\ncrashlab_outcomes = shop:WORDS\n")
    suite.run("--trials=2")
    assert {case: labels[0] for case, labels in suite.outcomes().items()} == {
        "test_top.py::test_plain": "ini",
        "deep/test_mid.py::test_plain": "folder",
        "deep/deeper/test_low.py::test_plain": "deeper",
        "deep/deeper/test_low.py::TestClass::test_plain": "class",
        "deep/deeper/test_low.py::TestClass::test_marked": "function",
        "deep/deeper/test_module.py::test_plain": "module",
    }
    kept = {v["outcomes"][0]["label"]: v["where"] for v in suite.last().manifest.vocabularies}
    assert kept["function"] == "deep/deeper/test_low.py::TestClass::test_marked"
    assert set(kept) == {"ini", "folder", "deeper", "class", "function", "module"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("nowhere:WORDS", "cannot be followed (No module named 'nowhere')"),
        ("shop:NOTHING", "has no attribute 'NOTHING'"),
        ("shop", "is no Vocabulary; name one as package.module:NAME"),
        ("shop:NUMBER", "is no Vocabulary"),
    ],
)
def test_an_ini_vocabulary_that_is_none(single: Suite, given: str, words: str) -> None:
    """One sentence and exit code 4, before anything runs."""
    (single.root / "shop.py").write_text("NUMBER = 3\n")
    single.files(test_plain="def test_plain(): pass")
    single.pytester.makeini(f"[pytest]\npythonpath = .\ncrashlab_outcomes = {given}\n")
    result = single.run("--trials=2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = result.stderr.str()
    assert words in said
    assert "Traceback" not in said


def test_a_conftest_vocabulary_that_is_none(single: Suite) -> None:
    """Named by its file."""
    single.pytester.makeconftest("crashlab_outcomes = ['passed']")
    single.files(test_plain="def test_plain(): pass")
    result = single.run("--trials=2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*conftest.py: crashlab_outcomes is ?'passed'?; write *Vocabulary(...)*"])


LINTED = """
import pytest
from pytest_crashlab import Outcome, Vocabulary

WORDS = Vocabulary(
    Outcome.passed("solved", "The task is solved."),
    Outcome.failed("stuck", "It gave up or ran out of turns."),
    Outcome.crashed("crashed", "The agent ended by an exception."),
    silence={"or_in_definition:stuck": "no way to tell them apart"},
)
pytestmark = pytest.mark.outcomes(WORDS)

@pytest.mark.parametrize("n", range(3))
def test_fix(trial, n):
    with trial.run():
        if trial.number == 1:
            trial.outcome("crashed")
    if trial.number == 2:
        trial.outcome("crashed")
"""


def test_findings_are_said_at_collection_at_the_end_and_kept(suite: Suite) -> None:
    """What was silenced is shown with its reason, and is no warning."""
    suite.files(
        test_fix=LINTED,
        test_other="""
        import pytest
        from pytest_crashlab import Outcome, Vocabulary

        @pytest.mark.outcomes(Vocabulary(Outcome.failed("bad", "")))
        def test_other(): pass
        """,
    )
    result = suite.run("--trials=3", "--crashlab-run-name=x")
    warnings = suite.last().manifest.warnings
    expected = (
        "The vocabulary of test_other.py::test_other has no definition of bad: write down",
        "The vocabulary of test_other.py::test_other has no label of the kind pass, so a trial",
        "crashed is assigned in different phases of a trial, in run (test_fix.py:16) and in verify",
        "crashed is assigned at 2 places in test_fix.py::test_fix: test_fix.py:16 (3), test_fix.py:18 (3).",
    )
    assert len(warnings) == len(expected)
    for warning, words in zip(warnings, expected, strict=True):
        assert warning.startswith(f"Vocabulary: {words}")
    assert warnings[0].endswith('(No mistake? silence={"no_definition:bad": "why"})')
    said = " ".join(result.stdout.str().split())
    assert "crashlab: The vocabulary of test_other.py::test_other has no definition of bad" in said
    assert "Warning: Vocabulary: crashed is assigned at 2 places" in said
    assert "Silenced: no way to tell them apart" in said


def test_the_phase_in_which_a_label_was_named(single: Suite) -> None:
    """A label named inside ``trial.run()`` was assigned in the run, one named after it in verify."""
    single.files(test_fix=LINTED)
    single.run("--trials=3")
    rows = single.last().trials.filter(single.last().trials["case"] == "test_fix.py::test_fix[0]")
    assert rows.sort("trial")["phase"].to_list() == ["run", "verify", "verify"]
