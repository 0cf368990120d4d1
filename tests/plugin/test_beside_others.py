"""A project's own options, fixtures and markers keep working with the plugin installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

CONFTEST = """
import pytest

def pytest_addoption(parser):
    parser.addoption("--model", default="own")
    parser.addoption("--replay", action="store_true")
    parser.addoption("--split", default="all")

def pytest_configure(config):
    config.addinivalue_line("markers", "sandbox(kind): a sandbox of this project")
    config.addinivalue_line("markers", "dataset(name): a dataset of this project")

@pytest.fixture
def sandbox(request):
    return request.node.get_closest_marker("sandbox").args[0]

@pytest.fixture
def provider(request):
    return request.config.getoption("--model")

@pytest.fixture
def trial():
    return "a clinical one"
"""
TESTS = """
import pytest

@pytest.mark.sandbox("box")
@pytest.mark.dataset("orders")
def test_own(sandbox, provider, trial):
    assert (sandbox, provider, trial) == ("box", "x", "a clinical one")
"""


@pytest.mark.parametrize("args", [(), ("--trials=3",)], ids=["plain", "trials"])
def test_own_names(suite: Suite, args: tuple[str, ...]) -> None:
    suite.pytester.makeconftest(CONFTEST)
    suite.files(test_own=TESTS)
    result = suite.run("--model=x", "--replay", "--split=dev", "--strict-markers", *args)
    result.assert_outcomes(passed=3 if args else 1)
    if args:
        assert suite.outcomes() == {"test_own.py::test_own": ["passed"] * 3}
        assert not any(suite.last().cases["uses_trial"])


def test_no_terminal(suite: Suite) -> None:
    suite.files(test_it="def test_it(): pass")
    assert suite.run("--trials=2", "-p", "no:terminal").ret == 0
    assert suite.outcomes() == {"test_it.py::test_it": ["passed", "passed"]}


@pytest.mark.parametrize("verbosity", ["-q", "-v", "-vv", "-qq"])
def test_verbosity(suite: Suite, verbosity: str) -> None:
    suite.files(test_it="def test_it(): pass\ndef test_bad(): assert 0")
    result = suite.run("--trials=2", "--min-pass-rate=0.9", verbosity)
    assert result.ret == 1
    text = result.stdout.str()
    assert ("test_it.py::test_it[trial1]" in text) == verbosity.startswith("-v")


def test_worksteal_and_plain_pytest_agree_on_counts(suite: Suite) -> None:
    suite.files(
        test_it="import pytest\n@pytest.mark.parametrize('i', range(7))\ndef test_it(i): assert i != 3"
    )
    suite.run().assert_outcomes(passed=6, failed=1)
    suite.run("--trials=3").assert_outcomes(passed=18, failed=3)


@pytest.mark.parametrize("option", ["--ff", "--sw", "--nf"])
def test_the_order_that_was_followed_is_told_and_kept(single: Suite, option: str) -> None:
    single.files(test_it="def test_a(): pass\ndef test_b(): pass")
    result = single.run("--trials=2", option)
    result.stdout.fnmatch_lines(["crashlab: trials run case by case, since --sw, --ff and --nf name*"])
    assert single.runs()[0].trial_order == "cases"
    assert list(single.last().trials["trial"]) == [1, 2, 1, 2]
    plain = single.run("--trials=2")
    assert "case by case" not in plain.stdout.str()
    assert single.runs()[0].trial_order == "rounds"


def test_each_folder_has_the_hooks_of_its_own_conftests(single: Suite) -> None:
    seen = single.pytester.path / "seen.txt"
    for folder in ("", "one", "one/two", "other"):
        path = single.pytester.path / folder
        path.mkdir(exist_ok=True)
        name = folder.replace("/", "_") or "top"
        (path / f"test_{name}.py").write_text("def test_it(): pass")
        hook = (
            "import pytest\n"
            "@pytest.hookimpl(wrapper=True)\n"
            "def pytest_runtest_call(item):\n"
            f"    with open({str(seen)!r}, 'a') as file: print({name!r}, item.path.stem, file=file)\n"
            "    return (yield)\n"
        )
        if folder != "other":
            (path / "conftest.py").write_text(hook)
    single.run("--trials=2").assert_outcomes(passed=8)
    assert sorted(seen.read_text().splitlines()) == sorted(
        [
            *["one test_one", "one test_one_two", "one_two test_one_two"] * 2,
            *["top test_top", "top test_one", "top test_one_two", "top test_other"] * 2,
        ]
    )
