"""The fixture in sessions: outcomes, what is named in the header, what a project may ask for."""

from __future__ import annotations

import sys

import pytest

from pytest_crashlab.sandbox.bubblewrap import Bubblewrap
from tests.plugin.conftest import _isolated  # noqa: F401  keeps the outer session out of the inner ones

STORY = """
import pytest
from pytest_crashlab.sandbox.base import EndedBy

def test_exits(sandbox):
    assert sandbox.run(["sh", "-c", "exit 3"]).exit_code == 3

def test_checked(sandbox):
    sandbox.run(["sh", "-c", "exit 3"], check=True)

def test_slow(sandbox):
    sandbox.run(["sleep", "30"], timeout=0.1)

@pytest.mark.crashlab(sandbox={"wall_clock": 0.1, "limit_is": "target"})
def test_slow_by_itself(sandbox):
    assert sandbox.run(["sleep", "30"]).ok

def test_killed(sandbox):
    sandbox.run(["sh", "-c", "kill -9 $$"])

def test_no_program(sandbox):
    sandbox.run(["no-such-program"])

def test_checked_while_verified(sandbox, trial):
    with trial.run():
        sandbox.write("f", "1")
    sandbox.run(["test", "-e", "g"], check=True)

def test_nothing_left_to_read(sandbox, trial):
    with trial.run():
        pass
    assert sandbox.read_json("orders.json")

def test_misspelled(sandbox):
    sandbox.run(["true"], memroy="1G")

def test_server_broken(sandbox):
    sandbox.spawn(["false"]).connect(18799, timeout=60)

def test_server_slow(sandbox):
    sandbox.spawn(["sleep", "60"]).connect(18799)

def test_fresh(sandbox):
    assert sandbox.files() == []
    sandbox.write("f", "1")
"""

OUTCOMES = {
    "exits": "passed",
    "checked": "failed",
    "slow": "wall_clock",
    "slow_by_itself": "failed",
    "killed": "sandbox_error",
    "no_program": "sandbox_error",
    "checked_while_verified": "failed",
    "nothing_left_to_read": "failed",
    "misspelled": "misdeclared",
    "server_broken": "failed",
    "server_slow": "network_error",
    "fresh": "passed",
}


def run(pytester, *arguments):
    return pytester.runpytest_inprocess("-p", "pytest_crashlab.plugin", "-p", "xdist.plugin", *arguments)


def outcomes(pytester):
    from pytest_crashlab.store import Store

    store = Store.open(pytester.path / ".crashlab")
    rows = store.load(store.manifests()[0].id).trials.select("case", "outcome").rows()
    return {(case.rpartition("::test_")[2], label) for case, label in rows}


def test_each_ending_has_its_outcome(pytester):
    pytester.makepyfile(test_story=STORY)
    result = run(pytester, "--trials=2", "--crashlab-sandbox=local")
    assert outcomes(pytester) == set(OUTCOMES.items())
    result.stdout.fnmatch_lines(["crashlab: sandbox: local (private folder, limits, clean environment; *"])


SHORT = """
def test_limit(sandbox):
    sandbox.run(["sleep", "30"], timeout=0.25)

def test_word(sandbox):
    sandbox.run("sleep 30")

def test_missing(sandbox):
    sandbox.read("answer.txt")

def test_link(sandbox):
    sandbox.run(["ln", "-s", "/etc/passwd", "x"])
    sandbox.download("x", "/tmp/never-made")

def test_outside(sandbox):
    sandbox.run(["true"], cwd="..")

def test_asserted(sandbox):
    assert sandbox.run(["sh", "-c", "echo begun; echo 'no such order' >&2; exit 3"]).ok
"""


def test_a_failure_shows_the_tests_own_line_and_a_sentence(pytester):
    pytester.makepyfile(test_short=SHORT)
    result = run(pytester, "--crashlab-sandbox=local")
    text = result.stdout.str()
    assert "pytest_crashlab/sandbox" not in text
    assert "contextlib" not in text
    result.stdout.fnmatch_lines(
        [
            "E  *SandboxFailure: sleep 30 was stopped at the wall-clock limit after * (wall_clock=0.25; if *",
            "E  *WrongArgument: sandbox.run takes a list of words, *",
            "E  *FileMissing: 'answer.txt' is not in the sandbox",
            "E  *LinkRefused: 'x' in the sandbox leads through a link or a special file",
            "E  *PathRefused: '..' leads out of the sandbox; *",
            "E  *<Result: sh -c * exited with 3 after *; stdout ends 'begun'; stderr ends 'no such order'>*",
        ]
    )


def test_workers_have_their_own(pytester):
    pytester.makepyfile(test_story="def test_a(sandbox): assert sandbox.run(['true']).ok")
    run(pytester, "--trials=2", "-n1", "--crashlab-sandbox=local")
    assert outcomes(pytester) == {("a", "passed")}


@pytest.mark.parametrize("trials", [(), ("--trials=2",)])
def test_workers_let_the_controller_name_the_sandbox(pytester, trials):
    pytester.makepyfile("def test_a(sandbox): pass\ndef test_b(sandbox): pass")
    result = run(pytester, "-n2", "--crashlab-sandbox=local", *trials)
    assert result.ret == 0
    assert result.stdout.str().count("crashlab: sandbox: local (private folder") == 1


@pytest.mark.parametrize("trials", [(), ("--trials=2",)])
def test_workers_refuse_what_cannot_be_followed_as_one_process_does(pytester, trials):
    pytester.makepyfile("def test_a(sandbox): pass")
    result = run(pytester, "-n1", "--crashlab-sandbox=local memory=much", *trials)
    assert result.ret == 4
    text = result.stderr.str() + result.stdout.str()
    assert "ERROR: --crashlab-sandbox: memory='much' is no limit; write for example memory=512M" in text
    assert "INTERNALERROR" not in text


def test_without_an_option_the_strongest_that_works(pytester):
    pytester.makepyfile("def test_a(sandbox): print('by', sandbox.backend)")
    result = run(pytester, "-s")
    backend = Bubblewrap()
    works = backend.unavailable() is None
    backend.close()
    name = "bubblewrap" if works else "local"
    result.stdout.fnmatch_lines([f"crashlab: sandbox: {name} (*", f"*by {name}*"])
    if not works:
        result.stdout.fnmatch_lines(["crashlab: note: no stronger sandbox: bubblewrap: *"])


def test_a_session_without_it_imports_nothing_of_it(pytester):
    pytester.makepyfile("def test_a(): pass")
    code = "import sys, pytest; pytest.main(['-p', 'pytest_crashlab.plugin']); "
    code += "print('LOADED', [m for m in sys.modules if m.startswith('pytest_crashlab.sandbox')])"
    result = pytester.run(sys.executable, "-c", code)
    result.stdout.fnmatch_lines(["*LOADED []"])


def test_a_project_may_have_its_own_fixture_of_that_name(pytester):
    pytester.makepyfile(
        "import pytest\n@pytest.fixture\ndef sandbox(): return 7\n"
        "@pytest.mark.crashlab(sandbox='theirs')\ndef test_a(sandbox): assert sandbox == 7"
    )
    result = run(pytester)
    assert result.ret == 0
    assert "crashlab: sandbox" not in result.stdout.str()


@pytest.mark.parametrize(
    ("ini", "mark", "sentence"),
    [
        ("jail", "None", "crashlab_sandbox: there is no sandbox 'jail'; choose of bubblewrap, docker, local"),
        (
            "local local",
            "None",
            "crashlab_sandbox: sandbox names backend twice in 'local local'; write it once",
        ),
        (
            "local memory=much",
            "None",
            "crashlab_sandbox: memory='much' is no limit; write for example memory=512M",
        ),
        ("local", "{'wall': 3}", "test_a.py:2: sandbox has no limit 'wall'; choose of *wall_clock"),
        (
            "local",
            "{'wall_clock': -1}",
            "test_a.py:2: wall_clock=-1 is no limit; write for *",
        ),
        (
            "local",
            "{'network': 'wifi'}",
            "test_a.py:2: network='wifi' is not known; choose of *",
        ),
        (
            "local timeout=no",
            "None",
            "crashlab_sandbox: timeout='no' is no limit; write for example timeout=30",
        ),
        (
            "local",
            "{'timeout': 3, 'wall_clock': 4}",
            "test_a.py:2: timeout and wall_clock are one limit; write it once",
        ),
        (
            "local memory=512",
            "None",
            "crashlab_sandbox: memory='512' is 512 bytes, and nothing starts with *",
        ),
        (
            "local image=x",
            "None",
            "crashlab_sandbox: image= is for the sandbox 'docker', and this one is 'local'",
        ),
        ("docker", "None", "crashlab_sandbox: the sandbox 'docker' needs an image; write for example *"),
        ("docker image=", "None", "crashlab_sandbox: image='' is none; write for example *"),
        ("bubblewrap readable=/no/such", "None", "crashlab_sandbox: readable=/no/such is not there; give *"),
        ("bubblewrap readable=usr", "None", "crashlab_sandbox: readable=usr is not there; give absolute *"),
        ("local", "7", "test_a.py:2: sandbox=7 is unknown; write 'local' or *"),
        ("local", "{'output': None}", "test_a.py:2: output needs a limit; write for *"),
    ],
)
def test_what_cannot_be_followed_is_a_sentence_and_exit_4(pytester, ini, mark, sentence):
    pytester.makeini(f"[pytest]\ncrashlab_sandbox = {ini}\n")
    pytester.makepyfile(
        test_a=f"import pytest\n@pytest.mark.crashlab(sandbox={mark})\ndef test_a(sandbox): pass\n"
    )
    result = run(pytester)
    assert result.ret == 4
    text = result.stderr.str() + result.stdout.str()
    result.stderr.fnmatch_lines([f"ERROR: {sentence.replace('[', '[[]')}"])
    assert "Traceback" not in text


def test_a_test_may_leave_the_sessions_image(pytester):
    pytester.makepyfile(
        "import pytest\n@pytest.mark.crashlab(sandbox='local')\n"
        "def test_a(sandbox): assert sandbox.backend == 'local'"
    )
    assert run(pytester, "--crashlab-sandbox=docker image=localhost/none:9 pull=never").ret == 0


def test_local_does_not_pretend_to_cut_the_network(pytester):
    pytester.makepyfile("def test_a(sandbox): pass")
    result = run(pytester, "--crashlab-sandbox=local network=off", "--trials=2")
    assert outcomes(pytester) == {("a", "sandbox_error")}
    result.stdout.fnmatch_lines(["*'local' cannot keep network='off'; use bubblewrap, or network='on'*"])


def test_a_project_registers_its_own_backend(pytester):
    pytester.makeconftest(
        """
        from pytest_crashlab.sandbox.local import Local

        class Theirs(Local):
            name = "theirs"
            isolates = "what they say"

        def pytest_crashlab_register_sandboxes():
            return [Theirs()]
        """
    )
    pytester.makepyfile("def test_a(sandbox): assert sandbox.backend == 'theirs'; sandbox.run(['true'])")
    result = run(pytester, "--crashlab-sandbox=theirs")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["crashlab: sandbox: theirs (what they say)"])
