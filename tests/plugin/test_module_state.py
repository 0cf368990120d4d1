"""What trials of one process share: told of every run, and watched where that is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.cli import main

if TYPE_CHECKING:
    import pytest

    from tests.plugin.conftest import Suite

AGENT = """
import functools

CACHE = {}
CALLS = 0
TOOLS = ["search"]

class Client:
    sessions = []
    retries = 2

@functools.lru_cache
def price(n): return n

def answer(n):
    global CALLS
    CALLS += 1
    CACHE[n] = n
    Client.sessions.append(n)
    return price(n)
"""
SUITE = """
import agent, pytest

@pytest.mark.parametrize("n", range(2))
def test_agent(n):
    assert agent.answer(n) == n

def test_quiet():
    assert agent.TOOLS == ["search"]
"""
WATCH = "--crashlab-watch-state"


def test_names_that_trials_left_changed_are_told(served: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    served.files(agent=AGENT, test_it=SUITE)
    result = served.run("--trials=3", WATCH)
    assert result.ret == 0
    kept = served.runs()[0].module_state
    assert kept is not None
    # CACHE and price know a number after its first trial
    assert kept == {
        "trials": 9,
        "changed": {"agent.CALLS": 6, "agent.Client.sessions": 6, "agent.CACHE": 2, "agent.price": 2},
    }
    told = " ".join(result.stdout.str().split())
    assert (
        "Warning: Trials changed module state that later trials of their process find: agent.CALLS "
        "(after 6 of 9 trials), agent.Client.sessions (after 6 of 9 trials), agent.CACHE (after 2 of 9"
    ) in told
    capsys.readouterr()
    assert main(["view", "latest", "--store", str(served.root / ".crashlab")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "All trials ran in one process and shared its module state" in shown


def test_nothing_that_was_changed_is_told_too(single: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    single.files(agent=AGENT, test_it="import agent\ndef test_it(): assert agent.TOOLS")
    assert "Warning" not in single.run("--trials=2", WATCH).stdout.str()
    assert single.runs()[0].module_state == {"trials": 2, "changed": {}}
    capsys.readouterr()
    main(["view", "latest", "--store", str(single.root / ".crashlab")])
    assert "Module state was watched in 2 trials: no name" in capsys.readouterr().out


def test_nothing_is_watched_unless_it_is_asked_for(single: Suite) -> None:
    single.files(agent=AGENT, test_it=SUITE)
    single.run("--trials=2")
    assert single.runs()[0].module_state is None


def test_looking_runs_no_code_of_the_project(single: Suite) -> None:
    single.files(
        odd="""
        class Touchy:
            def __eq__(self, other): raise RuntimeError("compared")
            def __hash__(self): raise RuntimeError("hashed")
            def __getattr__(self, name): raise RuntimeError("asked for " + name)
            def __repr__(self): raise RuntimeError("shown")
        ONE = Touchy()
        MANY = [Touchy(), {"a": Touchy()}]
        """,
        test_it="import odd\ndef test_it(): odd.MANY.append(1)",
    )
    assert single.run("--trials=2", WATCH).ret == 0
    assert single.runs()[0].module_state == {"trials": 2, "changed": {"odd.MANY": 2}}


def test_processes_and_hash_seeds_are_told(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.plugin.conftest import Suite

    suite = Suite(pytester, "-n2")
    suite.files(test_it="import pytest\n@pytest.mark.parametrize('i', range(6))\ndef test_it(i): pass")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    suite.run("--trials=2", "--dist=worksteal")
    assert suite.runs()[0].hash_seed == "7"
    capsys.readouterr()
    main(["view", "latest", "--store", str(suite.root / ".crashlab")])
    shown = " ".join(capsys.readouterr().out.split())
    assert "Trials by process: gw" in shown
    assert "session fixtures. All processes had the hash seed 7." in shown
