"""Sessions that share a store at the same time: none disturbs another, one promotion wins."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store import Store

if TYPE_CHECKING:
    from pathlib import Path

# No session goes on before all of them have begun: SESSIONS names how many there are.
SUITE = """
import os, pathlib, time, pytest

MEETING = pathlib.Path(__file__).with_name("meeting")

@pytest.fixture(scope="session", autouse=True)
def together():
    MEETING.mkdir(exist_ok=True)
    (MEETING / str(os.getpid())).touch()
    end = time.monotonic() + 120
    while len(list(MEETING.iterdir())) < int(os.environ["SESSIONS"]):
        assert time.monotonic() < end
        time.sleep(0.02)

@pytest.mark.parametrize("i", range(5))
def test_case(i):
    assert i != int(os.environ["NUMBER"]) % 7
"""


def at_once(folder: Path, sessions: int, *args: str) -> list[tuple[int, str]]:
    """``(exit code, output)`` of sessions that overlap for sure."""
    (folder / "test_it.py").write_text(SUITE)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "CRASHLAB_"))}
    load = ("-p", "pytest_crashlab.plugin", "-p", "no:cacheprovider", "--trials=4")
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "pytest", *load, f"--crashlab-external-id={number}", *args],
            cwd=folder,
            env={
                **clean,
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "SESSIONS": str(sessions),
                "NUMBER": str(number),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number in range(sessions)
    ]
    return [(process.wait(), out) for process in processes for out, _ in [process.communicate(timeout=300)]]


def undisturbed(folder: Path, sessions: int) -> None:
    ended = at_once(folder, sessions)
    store = Store.open(folder / ".crashlab")
    runs = {str(m.external_id): m for m in store.manifests()}
    assert store.problems == []
    assert sorted(runs, key=int) == [str(number) for number in range(sessions)]
    for number, (code, said) in enumerate(ended):
        failing = number % 7 < 5
        assert code == (1 if failing else 0), said
        run = runs[str(number)]
        assert run.status is RunStatus.COMPLETED
        assert run.outcomes == ({"passed": 16, "failed": 4} if failing else {"passed": 20})
        assert store.load(run.id).trials.height == 20
        assert run.id in said


def test_four_sessions_on_one_store(tmp_path: Path) -> None:
    undisturbed(tmp_path, 4)


@pytest.mark.slow
def test_twenty_sessions_on_one_store(tmp_path: Path) -> None:
    undisturbed(tmp_path, 20)


def test_of_two_promotions_one_wins(tmp_path: Path) -> None:
    """Both began when the name stood for nothing: the second exits 1 and names both runs."""
    ended = at_once(tmp_path, 2, "--baseline=main", "--save-baseline=main")
    store = Store.open(tmp_path / ".crashlab")
    assert sorted(code for code, _ in ended) == [0, 1], ended
    winner = store.refs.read("main")
    assert winner is not None
    [loser] = [run for run in store.run_ids() if run != winner]
    [said] = [out for code, out in ended if code == 1]
    assert winner in said
    assert f"{loser} was not promoted" in said
    assert [entry["run"] for entry in store.ledger.read("promotion")] == [winner]
