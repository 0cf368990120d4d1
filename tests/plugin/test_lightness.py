"""What a session keeps out of its process and out of the terminal's memory, and that nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from pytest_crashlab import Store
from pytest_crashlab.errors import StoreError

LIBRARIES = ("numpy", "scipy", "polars", "rich")
SESSION = """
import sys
{first}
import pytest
code = pytest.main(["-p", "pytest_crashlab.plugin", "-p", "no:cacheprovider", *{arguments!r}])
print("modules:", *sorted(sys.modules))
raise SystemExit(code)
"""


def run_apart(pytester, *arguments, first=""):
    """A session in a new interpreter: (exit code, output, names of the modules it had at its end)."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", SESSION.format(arguments=arguments, first=first)],
        cwd=pytester.path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    output, _, modules = done.stdout.rpartition("modules:")
    return done.returncode, output + done.stderr, set(modules.split())


def run_here(pytester, *arguments):
    """A session in this interpreter, where its modules do not matter: (exit code, output)."""
    result = pytester.runpytest_inprocess("-p", "pytest_crashlab.plugin", *arguments)
    return result.ret, f"{result.stdout}{result.stderr}"


def manifest(pytester):
    (path,) = pytester.path.glob(".crashlab/runs/*/manifest.json")
    return json.loads(path.read_text("utf-8"))


@pytest.fixture
def suite(pytester):
    pytester.makepyfile("def test_a(): pass\ndef test_b(): assert __import__('os').environ.get('NONE')")
    return pytester


def test_a_session_with_trials_loads_no_library_and_its_run_is_judged(suite):
    code, output, modules = run_apart(suite, "--trials=3")
    assert code == 1
    assert "pytest_crashlab.plugin.session" in modules
    assert modules.isdisjoint(LIBRARIES)
    assert "50.0 %" in output
    kept = manifest(suite)
    assert kept["status"] == "completed"
    assert kept["outcomes"] == {"passed": 3, "failed": 3}
    assert kept["summary"]["pass_rate"] == 0.5
    assert not list(suite.path.glob(".crashlab/runs/*/journal.jsonl"))
    assert not list(suite.path.glob(".crashlab/runs/*/*.lock"))


@pytest.mark.parametrize("interpreter", ["/nowhere/python", "false", ""])
def test_where_no_other_process_can_be_had_the_session_does_it_itself(suite, interpreter):
    code, output, modules = run_apart(suite, "--trials=3", first=f"sys.executable = {interpreter!r}")
    assert code == 1
    assert "polars" in modules
    assert "50.0 %" in output
    assert manifest(suite)["outcomes"] == {"passed": 3, "failed": 3}


def test_a_module_in_the_tests_folder_does_not_take_a_librarys_place(suite):
    suite.makepyfile(random="raise RuntimeError('not mine')", polars="raise RuntimeError('not mine')")
    code, output, modules = run_apart(suite, "--trials=3", "--ignore=random.py", "--ignore=polars.py")
    assert code == 1
    assert "polars" not in modules
    assert "50.0 %" in output
    assert manifest(suite)["status"] == "completed"


def test_a_store_that_is_gone_is_told_by_the_other_process_too(pytester):
    pytester.makepyfile(
        "import shutil\ndef test_a(): pass\ndef test_z(): shutil.rmtree('.crashlab', ignore_errors=True)"
    )
    code, output, modules = run_apart(pytester, "--trials=2")
    assert code == 10
    assert "was removed while the run was written; its trials are lost" in output
    assert "Traceback" not in output
    assert modules.isdisjoint(LIBRARIES)


SLOW_POLARS = """
import pathlib, sys, time
pathlib.Path({folder!r}, "waiting").touch()
while not pathlib.Path({folder!r}, "go").exists():
    time.sleep(0.01)
sys.path.remove({folder!r})
del sys.modules["polars"]
import polars
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows does it in the session's process")
def test_a_session_killed_while_its_end_is_under_way(suite, tmp_path):
    """The other process goes on, and nobody recovers the run before it is done."""
    folder = tmp_path / "slow"
    folder.mkdir()
    (folder / "polars.py").write_text(SLOW_POLARS.format(folder=str(folder)))
    session = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "pytest_crashlab.plugin", "--trials=3"],
        cwd=suite.path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(folder)},
        stdout=subprocess.DEVNULL,
    )
    wait_for((folder / "waiting").exists)
    session.kill()
    session.wait()
    store = Store.open(suite.path / ".crashlab")
    (run_id,) = store.run_ids()
    with pytest.raises(StoreError, match="being written by another process"):
        store.recover(run_id)
    (folder / "go").touch()
    sealed = wait_for(lambda: recovered(store, run_id))
    assert sealed.status == "completed"
    assert sealed.outcomes == {"passed": 3, "failed": 3}
    assert sealed.summary["pass_rate"] == 0.5
    assert store.load(run_id).trials.height == 6


def recovered(store, run_id):
    """The manifest, or None as long as somebody writes the run."""
    try:
        return store.recover(run_id)
    except StoreError:
        return None


def wait_for(condition):
    end = time.monotonic() + 60
    while not (result := condition()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return result


def test_the_gate_of_a_session_is_decided_apart(suite):
    code, output, modules = run_apart(suite, "--trials=3", "--min-pass-rate=0.9")
    assert code == 1
    assert modules.isdisjoint(LIBRARIES)
    assert manifest(suite)["gate"]["exit_code"] == 1
    assert "exit code 1" in output


def test_a_session_without_trials_loads_next_to_nothing_of_the_package(suite):
    code, _, modules = run_apart(suite)
    assert code == 1
    assert {name for name in modules if name.startswith("pytest_crashlab.")} <= {
        f"pytest_crashlab.{name}"
        for name in (
            *("hookspec", "plugin"),
            *("plugin.fixtures", "plugin.marker_names", "plugin.options", "plugin.process", "plugin.watch"),
        )
    }


def test_a_marker_alone_starts_a_run(pytester):
    pytester.makepyfile(
        "import pytest\n@pytest.mark.trials(3)\ndef test_a(): pass\ndef test_b(): pass\ndef test_c(): pass"
    )
    code, output = run_here(pytester, "-k", "not test_c")
    assert code == 0
    assert "4 passed" in output
    assert "crashlab: 2 of 3 cases selected" in output
    assert manifest(pytester)["planned_trials"] == 4


def test_durations_of_setups_are_still_there(pytester):
    pytester.makepyfile(
        """
        import pytest, time
        @pytest.fixture
        def slow():
            time.sleep(0.02)
        def test_a(slow): pass
        """
    )
    _, output = run_here(pytester, "--trials=2", "--durations=4", "--durations-min=0.01")
    assert output.count("s setup    test_durations_of_setups_are_still_there.py::test_a[trial") == 2


def test_a_plugin_that_has_a_letter_for_setups_is_asked(pytester):
    pytester.makeconftest(
        """
        def pytest_report_teststatus(report):
            if report.when == "setup" and report.passed:
                return "set up", "S", "SET UP"
        """
    )
    pytester.makepyfile("def test_a(): pass")
    code, output = run_here(pytester, "--trials=2")
    assert code == 0
    assert "2 passed, 2 set up" in output


def test_a_passed_setup_is_counted_nowhere(pytester):
    """The counts at the end are the same whether or not the terminal was spared."""
    pytester.makepyfile("import pytest\ndef test_a(): pass\ndef test_b(): pytest.skip()")
    _, plain = run_here(pytester, "--trials=off")
    _, spared = run_here(pytester, "--trials=2")
    assert "1 passed, 1 skipped" in plain
    assert "2 passed, 2 skipped" in spared


@pytest.mark.parametrize("arguments", [("-n1",), ("-n1", "--crashlab-store=elsewhere")])
def test_a_marker_that_workers_find_starts_a_run_on_the_controller(pytester, arguments):
    pytester.makepyfile(
        "import pytest\n@pytest.mark.trials(3)\ndef test_a(trial): trial.check('seeded', trial.seed)\n"
        "def test_b(): pass\n"
    )
    code, output, modules = run_apart(pytester, "-p", "xdist", *arguments)
    assert code == 1  # a seed is no answer to a check: one that is not 0 shows that workers have one
    assert "pytest_crashlab.plugin.session" in modules
    (path,) = pytester.path.glob("*/runs/*/manifest.json")
    kept = json.loads(path.read_text("utf-8"))
    assert kept["planned_trials"] == 4
    assert kept["outcomes"] == {"misdeclared": 3, "passed": 1}
    assert "2 cases, 4 planned trials" in output


def test_a_session_without_trials_leaves_xdists_controller_alone(suite):
    code, output, modules = run_apart(suite, "-p", "xdist", "-n1")
    assert code == 1
    assert "1 failed, 1 passed" in output
    assert "pytest_crashlab.plugin.watch" in modules
    assert modules.isdisjoint({"pytest_crashlab.plugin.session", "pydantic", *LIBRARIES})


def test_what_a_marker_asks_for_is_refused_by_workers_in_one_sentence(pytester):
    pytester.makepyfile("import pytest\n@pytest.mark.trials(0)\ndef test_a(): pass\n")
    code, output = run_here(pytester, "-p", "xdist.plugin", "-n1")
    assert code == 4
    assert "write trials(5, min_passes=4)" in output
    assert "Traceback" not in output
