"""Evidence decides nothing: garbage, or what runs code when unpickled, changes no verdict and no list."""

from __future__ import annotations

import pickle
import zlib
from pathlib import Path

import pytest

from pytest_crashlab.cli import main
from pytest_crashlab.store import Store
from tests.stories import record

BASE, WORSE = "20261121T063300Z-base22", "20261122T063300Z-worse2"
COMMANDS = (
    ("runs",),
    ("view", WORSE),
    ("view", WORSE, "--case", "t.py::t[3]"),
    ("diff", BASE, WORSE, "--show", "all"),
    ("diff", BASE, WORSE, "--json"),
    ("gate", WORSE, "--baseline", "main"),
    ("baseline", "list"),
    ("baseline", "explain", "main"),
    ("recover", WORSE),
)


class Bomb:
    """Leaves a file behind wherever it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CRASHLAB_STORE", raising=False)
    store = Store.open(tmp_path / ".crashlab", create=True)
    cases = {f"t.py::t[{i}]": "PPPPP" for i in range(10)}
    record(store, cases, run_id=BASE, created="2026-11-21T06:33:00.000Z", summarise=True)
    worse = {**cases, "t.py::t[3]": "FFFFF", "t.py::t[4]": "FFFFP"}
    record(store, worse, run_id=WORSE, created="2026-11-22T06:33:00.000Z", summarise=True)
    store.refs.promote("main", BASE, expected=None)
    return store


def test_every_command_says_the_same_beside_poison(store, tmp_path, capsys):
    def said():
        answers = []
        for command in COMMANDS:
            code = main(list(command))
            answers.append((command, code, *capsys.readouterr()))
        return answers

    clean = said()
    assert {code for _, code, *_ in clean} == {0, 1}  # the gate fails, and it is not for evidence
    assert all(not complaint for *_, complaint in clean)
    bomb = pickle.dumps(Bomb(tmp_path / "executed"))
    pickle.loads(bomb)  # noqa: S301 - that it would go off
    (tmp_path / "executed").unlink()
    for run, sealed, left in ((BASE, b"\x00\xff" * 9000, b""), (WORSE, bomb, zlib.compress(bomb))):
        folder = store.paths.run(run).folder
        (folder / "evidence.db").write_bytes(sealed)
        (folder / "evidence-main.db").write_bytes(left)
    assert said() == clean
    assert not (tmp_path / "executed").exists()
    assert main(["view", WORSE, "--case", "t.py::t[3]", "--trial", "1"]) == 0
    assert "cannot be read" in capsys.readouterr().out
    assert not (tmp_path / "executed").exists()
