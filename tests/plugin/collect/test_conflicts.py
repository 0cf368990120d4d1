"""Other plugins that repeat tests are refused in a session with trials."""

from __future__ import annotations

import pytest

from pytest_crashlab.plugin import conflicts

RERUN = ("-p", "pytest_rerunfailures")


def refusal(pytester, *args):
    """The sentence with which ``args`` are refused, or None."""
    config = pytester.parseconfigure(*args)
    try:
        conflicts.refuse(config)
    except pytest.UsageError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("args", "what"),
    [
        ([*RERUN, "--reruns=2"], "--reruns cannot be used in a session with trials: it hides failures"),
        ([*RERUN, "--force-reruns=1"], "--force-reruns cannot be used"),
        (["-p", "xdist.plugin", "--dist=each", "--tx=2*popen"], "--dist each cannot be used"),
        (["-p", "repeat", "--count=2"], "pytest-repeat's --count cannot be used"),
        (["-p", "flakefinder", "--flake-finder"], "pytest-flakefinder's --flake-finder cannot be used"),
        (["-p", "flaky", "--force-flaky"], "--force-flaky cannot be used"),
    ],
)
def test_options_that_repeat_tests_are_refused(pytester, options_of_others, args, what):
    sentence = refusal(pytester, *args)
    assert sentence.startswith(what)
    assert "\n" not in sentence


@pytest.fixture
def options_of_others(pytester):
    """Plugins with the options of packages that are not installed here."""
    pytester.makepyfile(
        repeat="def pytest_addoption(parser): parser.addoption('--count', type=int, default=1)",
        flakefinder="def pytest_addoption(parser):\n"
        "    parser.addoption('--flake-runs', dest='flake_runs', type=int, default=50)\n"
        "    parser.addoption('--flake-max-minutes', dest='flake_max_minutes', type=int, default=0)\n"
        "    parser.addoption('--flake-finder', dest='flake_finder_enable', action='store_true')",
        flaky="def pytest_addoption(parser): parser.addoption('--force-flaky', action='store_true')",
    )
    pytester.syspathinsert()


@pytest.mark.parametrize(
    "args",
    [
        [],
        [*RERUN],
        [*RERUN, "--reruns=0"],
        [*RERUN, "--reruns=2", "--force-reruns=0"],
        ["-p", "xdist.plugin", "--dist=load", "--tx=2*popen"],
        ["-p", "repeat", "--count=1"],
        ["-p", "flakefinder"],
        ["-p", "flakefinder", "--flake-runs=2"],
    ],
)
def test_the_same_plugins_at_rest_are_no_conflict(pytester, options_of_others, args):
    assert refusal(pytester, *args) is None


def test_the_ini_key_of_rerunfailures_is_refused(pytester):
    pytester.makeini("[pytest]\nreruns = 1\n")
    assert refusal(pytester, *RERUN).startswith("the ini key reruns cannot be used")
    assert refusal(pytester, *RERUN, "--reruns=0") is None


@pytest.mark.parametrize("marker", ["flaky", "flaky(reruns=1)", "flaky(2)"])
def test_a_flaky_marker_is_refused_with_its_place(pytester, session, marker):
    pytester.makepyfile(f"import pytest\n@pytest.mark.{marker}\ndef test_a(): pass\n")
    ran = session(*RERUN)
    assert ran.result.ret == pytest.ExitCode.USAGE_ERROR
    assert any(":2: the marker flaky reruns this test" in line for line in ran.result.errlines)
    session(*RERUN, "--force-reruns=0").result.assert_outcomes(passed=3)


def test_a_flaky_marker_without_its_plugin_or_reruns_is_fine(pytester, session):
    pytester.makeini("[pytest]\nmarkers = flaky: reruns\n")
    pytester.makepyfile("import pytest\n@pytest.mark.flaky\ndef test_a(): pass\n")
    session().result.assert_outcomes(passed=3)
    pytester.makepyfile("import pytest\n@pytest.mark.flaky(reruns=0)\ndef test_a(): pass\n")
    session(*RERUN).result.assert_outcomes(passed=3)


def test_a_repeat_marker_is_refused_with_its_place(pytester, session, options_of_others):
    pytester.makeini("[pytest]\nmarkers = repeat: copies\n")
    pytester.makepyfile("import pytest\n@pytest.mark.repeat(2)\ndef test_a(): pass\n")
    ran = session("-p", "repeat")
    assert ran.result.ret == pytest.ExitCode.USAGE_ERROR
    assert any(":2: the marker repeat makes several cases" in line for line in ran.result.errlines)
    session().result.assert_outcomes(passed=3)
    pytester.makepyfile("import pytest\n@pytest.mark.repeat(1)\ndef test_a(): pass\n")
    session("-p", "repeat").result.assert_outcomes(passed=3)
