"""What cannot be followed gets exit 4 and one sentence that says what, where and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

OPTIONS = [
    ("--trials=0", "*--trials=0 is not a number of trials*"),
    ("--trials=-1", "*--trials=-1 is not a number of trials*"),
    ("--trials=x", "*--trials=x is not a number of trials*"),
    ("--crashlab-policy=lenient", "*--crashlab-policy=lenient is not known*regressions, strict, report*"),
    ("--crashlab-method=bayes", "*--crashlab-method=bayes is not known*mid-p, exact, normal*"),
    ("--trial-order=random", "*--trial-order=random is not known*rounds, cases*"),
    ("--crashlab-margin=0", "*--crashlab-margin=0 is out of range*"),
    ("--crashlab-margin=five", "*--crashlab-margin=five is out of range*"),
    ("--min-pass-rate=2", "*--min-pass-rate=2 is out of range*"),
    ("--crashlab-seed=1.5", "*--crashlab-seed=1.5 is no whole number*"),
    ("--baseline=", "*--baseline is empty*"),
    ("--baseline=release:9.9", "*release*9.9*"),
    ("--baseline=main@newest", "*main*"),
    ("--baseline=20260101T000000Z-abcdef", "*20260101T000000Z-abcdef*"),
    ("--baseline=nowhere.crashrun", "*nowhere.crashrun*"),
]


def refused(suite: Suite, *args: str, subprocess: bool = False) -> str:
    """The one sentence of a session that ends with exit 4 and no traceback."""
    result = suite.run(*args, subprocess=subprocess)
    text = f"{result.stdout.str()}\n{result.stderr.str()}"
    assert result.ret == pytest.ExitCode.USAGE_ERROR, text
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
    errors = [line for line in text.splitlines() if line.startswith("ERROR: ")]
    assert len(errors) == 1, text
    return errors[0]


@pytest.mark.parametrize(("option", "pattern"), OPTIONS, ids=[option for option, _ in OPTIONS])
def test_options(single: Suite, option: str, pattern: str) -> None:
    single.files(test_it="def test_it(): pass")
    sentence = refused(single, option)
    pytest.LineMatcher([sentence]).fnmatch_lines([pattern])


def test_the_process_says_it_too(suite: Suite) -> None:
    """What a shell and CI see."""
    suite.files(test_it="def test_it(): pass")
    assert "--trials=0" in refused(suite, "--trials=0", subprocess=True)


def test_near_miss_of_a_name(single: Suite) -> None:
    """A typing error of an existing name is no new name."""
    single.files(test_it="def test_it(): pass")
    assert single.run("--trials=1", "--baseline=main", "--save-baseline=main").ret == 0
    assert "main" in refused(single, "--baseline=mian").replace("mian", "")


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        ("trials(0)", "trials"),
        ("trials('five')", "trials"),
        ("trials(True)", "trials"),
        ("trials()", "trials"),
        ("trials(3, min_passes=4)", "min_passes"),
        ("trials(3, repeat=1)", "repeat"),
        ("outcomes('passed')", "Vocabulary"),
        ("checks('amount')", "Check"),
    ],
)
def test_markers(single: Suite, marker: str, words: str) -> None:
    """The message names the file and the line."""
    refuses_marker(single, marker, words)


def test_markers_that_workers_find(suite: Suite) -> None:
    refuses_marker(suite, "trials(0)", "trials")


def refuses_marker(suite: Suite, marker: str, words: str) -> None:
    suite.files(
        test_it=f"""
        import pytest

        @pytest.mark.{marker}
        def test_it(): pass
        """
    )
    sentence = refused(suite, "--trials=2")
    assert words in sentence
    assert "test_it.py:" in sentence


def test_markers_of_others_are_left_alone(suite: Suite) -> None:
    suite.pytester.makeini("[pytest]\nmarkers =\n    trials: clinical trials\n    outcomes(x): of ours\n")
    suite.files(
        test_it="""
        import pytest

        @pytest.mark.trials("phase 2")
        @pytest.mark.outcomes("remission")
        def test_it(): pass
        """
    )
    suite.run("--strict-markers").assert_outcomes(passed=1)
    suite.run("--trials=2", "--strict-markers").assert_outcomes(passed=2)


def test_store_is_a_file(single: Suite) -> None:
    (single.root / ".crashlab").write_text("not a folder")
    single.files(test_it="def test_it(): pass")
    assert ".crashlab" in refused(single, "--trials=2")


def test_store_of_a_newer_format(single: Suite) -> None:
    single.files(test_it="def test_it(): pass")
    single.run("--trials=2", "--baseline=main", "--save-baseline=main")
    manifest = next((single.root / ".crashlab").glob("runs/*/manifest.json"))
    manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 9'))
    assert "format 9" in refused(single, "--baseline=main")


@pytest.mark.parametrize("name", ["manifest.json", "trials.parquet", "cases.parquet"])
def test_corrupt_baseline(single: Suite, name: str) -> None:
    """A broken file of the baseline is never read as "no baseline yet"."""
    single.files(test_it="def test_it(): pass")
    single.run("--trials=2", "--baseline=main", "--save-baseline=main")
    next((single.root / ".crashlab").glob(f"runs/*/{name}")).write_text("{broken")
    assert name in refused(single, "--baseline=main")


def test_no_case_in_common(suite: Suite) -> None:
    """Nothing to pair: said before a trial is spent."""
    suite.files(test_it="def test_it(): pass")
    suite.run("--trials=2", "--baseline=main", "--save-baseline=main")
    (suite.root / "test_it.py").unlink()
    suite.files(test_other="def test_other(): pass")
    assert "test_other.py::test_other" in refused(suite, "--baseline=main")
    assert len(suite.runs()) == 1


@pytest.mark.parametrize("option", ["--dist=each", "--reruns=2"])
def test_what_would_hide_or_double_trials_is_refused(pytester: pytest.Pytester, option: str) -> None:
    from tests.plugin.conftest import Suite

    suite = Suite(pytester, "-n2")
    suite.files(test_it="def test_it(): pass")
    sentence = refused(suite, "--trials=2", option, "-p", "pytest_rerunfailures", subprocess=True)
    assert ("each" if "each" in option else "rerun") in sentence
