"""From a stored baseline to an exit code, end to end."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from pytest_crashlab.cli import main
from pytest_crashlab.store.export import export_run

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

# Twelve cases. BREAK=2 lets the first two fail every trial, DOWN=3 lets the first three lose the
# network, FLAKE=4 lets the first four fail their first trial.
SUITE = """
import os
import pytest

@pytest.mark.parametrize("i", range(12))
def test_case(i, request):
    if i < int(os.environ.get("DOWN", 0)):
        raise ConnectionError("provider away")
    if i < int(os.environ.get("FLAKE", 0)) and "trial1]" in request.node.nodeid:
        assert False, "flaked"
    assert i >= int(os.environ.get("BREAK", 0)), "broken"
"""


@pytest.fixture
def baselined(suite: Suite) -> Suite:
    """A suite whose baseline ``main`` has five passing trials of every case."""
    suite.files(test_it=SUITE)
    recorded = replace(suite, workers="-n0").run("--trials=5", "--baseline=main", "--save-baseline=main")
    assert recorded.ret == 0, recorded.stdout.str()
    return suite


def test_no_change(baselined: Suite) -> None:
    result = baselined.run("--baseline=main")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*12 cases x 5 trials = 60*", "*No change*"])
    assert baselined.last().manifest.gate is not None
    assert baselined.last().manifest.gate["word"] == "No change"


def test_the_next_commands_of_a_regression_open_it(baselined: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    base = baselined.store.refs.read("main")
    monkeypatch.setenv("BREAK", "2")
    result = baselined.run("--baseline=main")
    run = baselined.runs()[0].id
    result.stdout.fnmatch_lines(
        [
            f"  crashlab diff {base} {run} --show worse",
            f"  crashlab view {run} --case 'test_it.py::test_case?0?'",
        ]
    )


def test_regressed(baselined: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAK", "2")
    result = baselined.run("--baseline=main")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*Regressed*", "*Pass rate 16.7 points lower than the baseline.*"])
    # The trials themselves did not fail the session: no traceback, a category of their own.
    assert "broken" not in "".join(line for line in result.outlines if line.startswith("E "))
    result.stdout.fnmatch_lines(["*50 passed, *10 trials failed*"])


@pytest.mark.parametrize(("policy", "code"), [("strict", 1), ("regressions", 1), ("report", 0)], ids=str)
def test_regressed_by_policy(single: Suite, monkeypatch: pytest.MonkeyPatch, policy: str, code: int) -> None:
    single.files(test_it=SUITE)
    single.run("--trials=5", "--baseline=main", "--save-baseline=main")
    monkeypatch.setenv("BREAK", "2")
    assert single.run("--baseline=main", f"--crashlab-policy={policy}").ret == code


@pytest.mark.parametrize(("policy", "code"), [("strict", 10), ("regressions", 10), ("report", 0)], ids=str)
def test_outage_is_no_verdict(single: Suite, monkeypatch: pytest.MonkeyPatch, policy: str, code: int) -> None:
    """A provider that is away is neither a pass nor a regression."""
    single.files(test_it=SUITE)
    single.run("--trials=5", "--baseline=main", "--save-baseline=main")
    monkeypatch.setenv("DOWN", "3")
    result = single.run("--baseline=main", f"--crashlab-policy={policy}")
    assert result.ret == code
    result.stdout.fnmatch_lines(["*No verdict*"])
    assert "Regressed" not in result.stdout.str()


@pytest.mark.parametrize(("policy", "code"), [("strict", 10), ("regressions", 0), ("report", 0)], ids=str)
def test_not_proven_inside_margin(single: Suite, policy: str, code: int) -> None:
    """With a margin, equal runs that are too small to prove it leave it open."""
    single.files(test_it=SUITE)
    single.run("--trials=1", "--baseline=main", "--save-baseline=main")
    assert single.run("--baseline=main", "--crashlab-margin=1", f"--crashlab-policy={policy}").ret == code


def test_no_baseline_yet(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run goes on gated and ends without a verdict; ``note`` leaves pytest's own exit code."""
    suite.files(test_it=SUITE)
    monkeypatch.setenv("BREAK", "1")
    result = suite.run("--trials=2", "--baseline=main")
    assert result.ret == 10
    result.stdout.fnmatch_lines(["*No verdict*", "*No baseline main yet*"])
    assert suite.run("--trials=2", "--baseline=main", "--crashlab-baseline-missing=note").ret == 1
    monkeypatch.delenv("BREAK")
    assert suite.run("--trials=2", "--baseline=main", "--crashlab-baseline-missing=note").ret == 0


def test_promotion_beside_a_baseline(baselined: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A regressed run never becomes the baseline; an unchanged one does."""
    first = baselined.store.refs.read("main")
    monkeypatch.setenv("BREAK", "3")
    assert baselined.run("--baseline=main", "--save-baseline=main").ret == 1
    assert baselined.store.refs.read("main") == first
    monkeypatch.delenv("BREAK")
    assert baselined.run("--baseline=main", "--save-baseline=main").ret == 0
    assert baselined.store.refs.read("main") == baselined.runs()[0].id != first


def test_a_first_run_that_fails_names_the_command_that_makes_it_the_baseline(
    single: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    single.files(test_it=SUITE)
    monkeypatch.setenv("BREAK", "1")
    result = single.run("--trials=2", "--save-baseline=main")
    assert result.ret == 1
    (run,) = single.runs()
    command = f"crashlab baseline promote main {run.id}"
    said = (
        f"Not saved as baseline main: the session ends with exit code 1; '{command}' saves it all the same."
    )
    assert said in result.outlines
    assert main([*command.split()[1:], "--store", str(single.root / ".crashlab")]) == 0
    assert single.store.refs.read("main") == run.id


def test_a_verdict_against_promotion_is_no_error_of_its_own(
    single: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    single.files(test_it=SUITE)
    single.run("--trials=5", "--baseline=main", "--save-baseline=main")
    first = single.store.refs.read("main")
    monkeypatch.setenv("BREAK", "12")
    result = single.run("--baseline=main", "--save-baseline=main", "--crashlab-policy=report")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*Not saved as baseline main: the verdict is Regressed.*"])
    assert single.store.refs.read("main") == first


def test_a_file_is_named_from_where_the_command_is_typed(
    single: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    single.files(test_it=SUITE)
    single.pytester.makeini("[pytest]\n")
    single.run("--trials=2", "--save-baseline=main")
    (single.root / "sub").mkdir()
    export_run(single.store, single.runs()[0].id, single.root / "sub" / "base.crashrun")
    monkeypatch.chdir(single.root / "sub")
    result = single.run("--baseline=./base.crashrun", "..")
    assert result.ret == 0
    # No store holds the run of a file, so the next command names the file.
    result.stdout.fnmatch_lines([f"*crashlab diff ./base.crashrun {single.runs()[0].id}"])


def test_selection_is_compared_and_not_promoted(baselined: Suite) -> None:
    result = baselined.run("--baseline=main", "-k", "case and (1 or 2)", "--save-baseline=main")
    result.stdout.fnmatch_lines(["*of 12 cases selected*", "*No change*"])
    assert baselined.last().manifest.partial
    assert baselined.store.refs.read("main") != baselined.runs()[0].id


def test_a_path_that_leaves_files_out_is_a_selection(single: Suite) -> None:
    """Files of the baseline that are there and were not collected: not selected, not gone."""
    single.files(test_it=SUITE, test_other="def test_other(): pass")
    assert single.run("--trials=2", "--baseline=main", "--save-baseline=main").ret == 0
    first = single.store.refs.read("main")
    result = single.run("test_it.py", "--baseline=main", "--save-baseline=main")
    result.stdout.fnmatch_lines(["*a selection of cases*", "*unsampled*test_other*"])
    assert single.last().manifest.partial
    assert single.store.refs.read("main") == first
    (single.root / "test_other.py").unlink()
    assert single.run("test_it.py", "--baseline=main", "--save-baseline=main").ret == 0
    assert not single.last().manifest.partial


def test_what_the_command_leaves_out_is_a_selection(single: Suite) -> None:
    """What the project's own addopts leave out is not: it is how the suite is defined."""
    single.files(test_it=SUITE, test_other="def test_other(): pass")
    assert single.run("--trials=1", "--ignore=test_other.py", "--save-baseline=main").ret == 1
    assert single.last().manifest.partial
    single.pytester.makeini("[pytest]\naddopts = -k 'not other'\n")
    assert single.run("--trials=1", "--save-baseline=main").ret == 0
    assert not single.last().manifest.partial


def test_two_tests_of_one_id(single: Suite) -> None:
    """They cannot be told apart: refused, or the second is left to plain pytest and never hidden."""
    single.pytester.makeconftest(
        """
        import pytest

        class It(pytest.Item):
            def __init__(self, *, ok, **kwargs):
                super().__init__(**kwargs)
                self.ok = ok

            def runtest(self):
                assert self.ok

        class Cases(pytest.File):
            def collect(self):
                for ok in (True, False):
                    yield It.from_parent(self, name="case", ok=ok)

        def pytest_collect_file(file_path, parent):
            if file_path.suffix == ".cases":
                return Cases.from_parent(parent, path=file_path)
        """
    )
    (single.root / "test_it.cases").write_text("")
    assert single.run("--min-pass-rate=1").ret == 4
    single.pytester.makeini("[pytest]\ncrashlab_unsupported = once\n")
    result = single.run("--min-pass-rate=1")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*another test has the same id*"])


def test_k_from_baseline_and_marker(baselined: Suite) -> None:
    """k: the flag unless the marker is fixed, else the marker, else ini, else the baseline's."""
    baselined.files(
        test_marked="""
        import pytest

        @pytest.mark.trials(2)
        def test_two(): pass

        @pytest.mark.trials(3, fixed=True)
        def test_three_always(): pass

        def test_bare(): pass
        """
    )

    def planned() -> dict[str, int]:
        cases = baselined.last().cases.select("case", "planned").rows()
        return {case.partition("::test_")[2]: k for case, k in cases if "marked" in case}

    baselined.run("--baseline=main")
    assert planned() == {"two": 2, "three_always": 3, "bare": 5}
    baselined.run("--trials=4")
    assert planned() == {"two": 4, "three_always": 3, "bare": 4}
    baselined.pytester.makeini("[pytest]\ncrashlab_trials = 6\n")
    baselined.run("test_marked.py")
    assert planned() == {"two": 2, "three_always": 3, "bare": 6}


def test_marker_alone_starts_a_run(suite: Suite) -> None:
    suite.files(
        test_marked="""
        import pytest

        @pytest.mark.trials(3)
        def test_three(): pass

        def test_one(): pass
        """
    )
    result = suite.run()
    result.assert_outcomes(passed=4)
    assert {case: len(labels) for case, labels in suite.outcomes().items()} == {
        "test_marked.py::test_three": 3,
        "test_marked.py::test_one": 1,
    }


def test_ungated_cases_fail_as_in_plain_pytest(baselined: Suite) -> None:
    """A case that is new to the baseline fails the session with its traceback."""
    baselined.files(test_new="def test_new(): assert 1 == 2")
    result = baselined.run("--baseline=main")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*assert 1 == 2*", "FAILED test_new.py::test_new*trial*"])


def test_x_and_maxfail_do_not_fire_on_gated_cases(baselined: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAK", "2")
    for option in ("-x", "--maxfail=3"):
        result = baselined.run("--baseline=main", option)
        assert result.ret == 1
        assert baselined.runs()[0].status == "completed"
        assert len(baselined.last().trials) == 60


def test_foreign_failures_are_never_hidden(baselined: Suite) -> None:
    """A collection error, and a plugin that fails the session, keep their exit codes."""
    baselined.files(test_broken="import no_such_module")
    assert baselined.run("--baseline=main").ret in (1, 2)
    (baselined.root / "test_broken.py").unlink()
    baselined.pytester.makeconftest(
        """
        import pytest

        @pytest.hookimpl(wrapper=True)
        def pytest_runtestloop(session):
            result = yield
            session.testsfailed += 1
            return result
        """
    )
    assert baselined.run("--baseline=main").ret == 1


def test_min_passes(single: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missed only where even the undecided trials could not reach it; open where they could."""
    single.files(
        test_min="""
        import os, pytest

        @pytest.mark.trials(4, min_passes=3)
        def test_min(request):
            nodeid = request.node.nodeid
            if any(f"trial{n}]" in nodeid for n in os.environ.get("FAIL", "")): assert False
            if any(f"trial{n}]" in nodeid for n in os.environ.get("DOWN", "")): raise ConnectionError
        """
    )
    for fail, down, code in (
        ("", "", 0),
        ("1", "", 0),
        ("12", "", 1),
        ("1", "2", 10),
        ("12", "3", 1),
        ("", "1", 0),
    ):
        monkeypatch.setenv("FAIL", fail)
        monkeypatch.setenv("DOWN", down)
        assert single.run().ret == code, (fail, down)


def test_min_pass_rate(single: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    single.files(test_it=SUITE)
    monkeypatch.setenv("BREAK", "3")  # 9 of 12
    assert single.run("--trials=2", "--min-pass-rate=75%").ret == 0
    assert single.run("--trials=2", "--min-pass-rate=0.8").ret == 1
    monkeypatch.setenv("BREAK", "0")
    monkeypatch.setenv("DOWN", "3")
    assert single.run("--trials=2", "--min-pass-rate=0.8").ret == 10
    assert single.run("--trials=2", "--min-pass-rate=0.7").ret == 0


def test_a_broken_case_never_hides_in_the_mean(baselined: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """One case of twelve breaks: proven worse on its own."""
    monkeypatch.setenv("BREAK", "1")
    result = baselined.run("--baseline=main")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*5/5 -> 0/5*proven worse*test_case?0?"])


def test_a_case_that_the_instrument_takes_away_never_hides(
    single: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All trials of one case undecided, far under 10 % of the run: no verdict, and no promotion."""
    single.files(test_it=SUITE, test_more=SUITE)
    single.run("--trials=3", "--baseline=main", "--save-baseline=main")
    first = single.store.refs.read("main")
    monkeypatch.setenv("DOWN", "1")
    result = single.run("--baseline=main", "--save-baseline=main")
    assert result.ret == 10
    result.stdout.fnmatch_lines(
        [
            "*gave a decision in the baseline and none in 3 or more trials*",
            "Next",
            "  crashlab inspect * --outcome network_error",
        ]
    )
    assert single.store.refs.read("main") == first


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_that_leaks_owns_nothing_of_the_run(single: Suite) -> None:
    single.files(
        test_fork="""
        import os

        def test_fork():
            if os.fork() == 0:
                raise AssertionError("the child goes on")
            os.wait()

        def test_other(): pass
        """
    )
    single.run("--trials=2", "--trial-order=cases", subprocess=True)
    assert single.last().manifest.status == "completed"
    assert single.outcomes() == {
        "test_fork.py::test_fork": ["passed", "passed"],
        "test_fork.py::test_other": ["passed", "passed"],
    }


def test_last_failed_holds_the_cases_that_the_gate_failed(
    baselined: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BREAK", "2")
    assert baselined.run("--baseline=main").ret == 1
    cached = json.loads((baselined.root / ".pytest_cache/v/cache/lastfailed").read_text())
    assert sorted(cached) == ["test_it.py::test_case[0]", "test_it.py::test_case[1]"]
    again = baselined.run("--baseline=main", "--lf")
    again.stdout.fnmatch_lines(["*2 cases x 5 trials = 10*", "*a selection of cases*"])
    assert baselined.last().manifest.planned_trials == 10
    plain = baselined.run("--trials=off", "--lf")
    plain.assert_outcomes(failed=2)


def test_junit(baselined: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest's own file stays valid, ours has one test case per case."""
    monkeypatch.setenv("BREAK", "2")
    baselined.run("--baseline=main", "--junitxml=own.xml", "--crashlab-junit=cases.xml")
    own = ET.parse(baselined.root / "own.xml").getroot()  # noqa: S314  written just now
    names = [(case.get("classname"), case.get("name")) for case in own.iter("testcase")]
    assert len(names) == len(set(names)) == 60
    cases = ET.parse(baselined.root / "cases.xml").getroot()  # noqa: S314  written just now
    failed = {case.get("name"): case.find("failure") is not None for case in cases.iter("testcase")}
    assert failed == {f"test_case[{i}]": i < 2 for i in range(12)}


def test_collect_only_stores_nothing(suite: Suite) -> None:
    suite.files(test_it=SUITE)
    result = suite.run("--trials=5", "--collect-only", "-q")
    result.stdout.fnmatch_lines(["test_it.py::test_case?3-trial2?"])
    assert not (suite.root / ".crashlab").exists()


def test_worker_crash_is_counted_once(pytester: pytest.Pytester) -> None:
    """A worker that dies in a trial leaves an undecided row, and the session's verdict to the gate."""
    from tests.plugin.conftest import Suite

    suite = Suite(pytester, "-n2")
    suite.files(
        test_it="""
        import os, pytest

        @pytest.mark.parametrize("i", range(12))
        def test_case(i, request):
            if os.environ.get("KILL") and i == 4 and "trial3]" in request.node.nodeid:
                os._exit(1)
        """
    )
    assert suite.run("--trials=5", "--baseline=main", "--save-baseline=main").ret == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KILL", "1")
        result = suite.run("--baseline=main")
    assert result.ret == 0, result.stdout.str()
    rows = suite.last().trials
    assert len(rows) == 60
    lost = rows.filter(outcome="worker_lost")
    assert lost.select("case", "trial", "decision").rows() == [
        ("test_it.py::test_case[4]", 3, "inconclusive")
    ]


@pytest.mark.parametrize("dist", ["load", "loadfile", "loadscope", "worksteal"])
def test_every_distribution_gives_the_same_run(pytester: pytest.Pytester, dist: str) -> None:
    from tests.plugin.conftest import Suite

    suite = Suite(pytester, "-n2")
    suite.files(test_it=SUITE, test_more=SUITE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLAKE", "4")
        suite.run("--trials=3", f"--dist={dist}")
    outcomes = suite.outcomes()
    assert len(outcomes) == 24
    for case, labels in outcomes.items():
        flaky = int(case.partition("[")[2][:-1]) < 4
        assert labels == (["failed", "passed", "passed"] if flaky else ["passed"] * 3)


def test_x_ends_a_cancelled_run(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """``-x`` on ungated failures stops as in plain pytest; the run says that it was cut short."""
    suite.files(test_it=SUITE)
    monkeypatch.setenv("BREAK", "12")
    assert suite.run("--trials=5", "-x").ret in (1, 2)
    assert suite.runs()[0].status == "cancelled"
    assert len(suite.last().trials) < 60
