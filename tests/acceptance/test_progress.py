"""The progress line in a real terminal: it is written over, never below itself, also by Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import struct
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import pytest

from pytest_crashlab.plugin.progress import Progress, fitted

fcntl = pytest.importorskip("fcntl", reason="no terminal to open on this system")
pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")

SUITE = """
import time
import pytest

@pytest.mark.parametrize("n", range(12))
def test_agent(n):
    time.sleep(0.05)
    if n == 3:
        pytest.skip("not today")
    if n == 4:
        raise ConnectionError("down")
    assert n != 5
"""
PROGRESS = re.compile(r"(?:crashlab: )?\d+/\d+ trials, ")
STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
WORKERS = pytest.mark.parametrize("workers", ["0", "2"])


class Terminal:
    """A session of 80 columns or another number, as a user sees it."""

    def __init__(self, folder, *arguments, columns=80):
        self.shown = ""
        self._main, session = pty.openpty()
        fcntl.ioctl(session, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        plugins = "-p pytest_crashlab.plugin -p xdist -p no:cacheprovider"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *plugins.split(), *arguments],
            cwd=folder,
            env={
                **{name: value for name, value in os.environ.items() if name not in {"COLUMNS", "CI"}},
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "TERM": "xterm",
            },
            stdin=session,
            stdout=session,
            stderr=session,
            start_new_session=True,
        )
        os.close(session)

    def read(self):
        """Some more of what is shown; False at its end."""
        try:
            more = os.read(self._main, 4096)
        except OSError:  # how Linux says that nobody writes any more
            more = b""
        self.shown += STEERING.sub("", more.decode("utf-8", "replace"))
        return bool(more)

    def wait_for(self, pattern):
        while not re.search(pattern, self.shown):
            assert self.read(), self.shown

    def end(self):
        """The exit code, once all is read."""
        while self.read():
            pass
        os.close(self._main)
        return self.process.wait()

    @property
    def writings(self):
        """Each progress line that was written, without the blanks that clear the rest of its row."""
        return [part.rstrip() for part in re.split(r"[\r\n]+", self.shown) if PROGRESS.match(part)]

    @property
    def rows(self):
        """What stays of each row after all that was written over it."""
        found = []
        for line in self.shown.replace("\r\n", "\n").split("\n"):
            row = ""
            for part in line.split("\r"):
                row = part + row[len(part) :]
            found.append(row.rstrip())
        return found


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "test_agent.py").write_text(SUITE)
    return tmp_path


def test_what_is_left_is_not_known_before_a_trial_is_over():
    cases = [SimpleNamespace(planned=3)]
    recorder = SimpleNamespace(reported=0, decisions=Counter(), cost=None, slowest=None)
    session = SimpleNamespace(recorder=recorder, selection=SimpleNamespace(cases=cases))
    progress = Progress(None, session)
    assert fitted(progress.parts(65.0), 80) == "crashlab: 0/3 trials, 0 passed, about -:-- left"
    recorder.reported = 1
    assert progress.parts(1800.0)[-1] == "about 1:00:00 left"
    assert progress.parts(65.0, over=True)[-1] == "stopped after 1:05"


@pytest.mark.parametrize(
    ("cost", "costless", "slowest", "said"),
    [
        (None, 3, (0.99, "t.py::test_a"), []),
        (0.0123, 0, None, ["0.0123 USD"]),
        (1.5, 1, (2.04, "t.py::TestIt::test_a[b::c]"), ["at least 1.5 USD", "slowest test_a[b::c] 2.04 s"]),
        (0.0, 0, (61.0, f"t.py::test_{'n' * 40}"), ["0 USD", f"slowest test_{'n' * 22}... 61.00 s"]),
        (None, 0, (5.0, "t.py::test_a[\x1b[2J]"), ["slowest test_a[\\x1b[2J] 5.00 s"]),
    ],
)
def test_cost_and_the_slowest_case_are_told_as_far_as_known(cost, costless, slowest, said):
    recorder = SimpleNamespace(reported=3, decisions=Counter(), cost=cost, costless=costless, slowest=slowest)
    session = SimpleNamespace(
        recorder=recorder, selection=SimpleNamespace(cases=[SimpleNamespace(planned=6)])
    )
    progress = Progress(None, session)
    assert progress.parts(10.0) == ["3/6 trials", "0 passed", *said, "about 0:10 left"]
    over = [part for part in said if not part.startswith("slowest")]
    assert progress.parts(10.0, over=True) == ["3/6 trials", "0 passed", *over, "stopped after 0:10"]


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (80, "crashlab: 5/9 trials, 3 passed, 2 failed, 1 undecided, about 0:04 left"),
        (70, "crashlab: 5/9 trials, 3 passed, 2 failed, 1 undecided, about 0:04 left"),
        (69, "5/9 trials, 3 passed, 2 failed, 1 undecided, about 0:04 left"),
        (59, "5/9 trials, 3 passed, 2 failed, about 0:04 left"),
        (40, "5/9 trials, 3 passed, about 0:04 left"),
        (30, "5/9 trials, about 0:04 left"),
        (12, "5/9 trials, "),
    ],
)
def test_the_least_is_left_out_first(width, line):
    parts = ["5/9 trials", "3 passed", "2 failed", "1 undecided", "about 0:04 left"]
    assert fitted(parts, width) == line


@WORKERS
@pytest.mark.parametrize("columns", [80, 30])
def test_the_line_is_never_wider_than_the_terminal_and_is_written_over(folder, workers, columns):
    terminal = Terminal(folder, f"-n{workers}", "--trials=3", columns=columns)
    assert terminal.end() == 1
    *live, last = terminal.writings
    assert live
    assert [line for line in live if len(line) >= columns] == []
    assert re.fullmatch(
        r"crashlab: 36/36 trials, 27 passed, 3 failed, 3 undecided, 3 excluded, in \d:\d\d", last
    )
    (row,) = (row for row in terminal.rows if PROGRESS.match(row))
    assert row.startswith(last)


@WORKERS
def test_ctrl_c_leaves_one_whole_line_and_how_to_go_on(folder, workers):
    terminal = Terminal(folder, f"-n{workers}", "--trials=20")
    terminal.wait_for(r"\d+/240 trials.* left")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 2
    (row,) = (row for row in terminal.rows if PROGRESS.match(row))
    assert re.match(r"crashlab: \d+/240 trials, .*, stopped after \d:\d\d", row)
    assert re.search(r"\nNext\r?\n  pytest --crashlab-resume=\S+\r?\n", terminal.shown)
