"""For authors of sandbox backends: a conformance suite that states the protocol, one test a sentence.

Not imported by the plugin; import it in your own tests.
"""

# ruff: noqa: S101  these are tests, collected as methods of your class

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from pytest_crashlab.sandbox.base import (
    Command,
    EndedBy,
    FileMissing,
    LinkRefused,
    NotJson,
    PathRefused,
    Result,
    SandboxFailure,
    TargetError,
)
from pytest_crashlab.sandbox.limits import Limits
from pytest_crashlab.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_crashlab.sandbox.base import Backend

__all__ = ["CLAIMS", "SandboxConformance"]

CLAIMS = frozenset(
    {"memory_limit", "cpu_limit", "file_size_limit", "disk_limit", "process_limit", "ports", "signals"}
)
"""What a backend may leave undone; everything else is asked of each."""

_ON_AND_ON = (
    "(while :; do echo x >> one; sleep 0.05; done) & "
    "setsid sh -c 'while :; do echo x >> two; sleep 0.05; done' & sleep 0.2; "
)
_GREETER = """
import socket
with socket.create_server(("127.0.0.1", 18767)) as server:
    client, _ = server.accept()
    client.sendall(b"hello")
    client.close()
"""


class SandboxConformance:
    """What the protocol in ``pytest_crashlab.sandbox.base`` asks of a backend, as tests.

    Subclass it, with a name that pytest collects, and beside it give a fixture ``backend``, best of scope
    "module" or "session", that makes one and closes it.
    The tests need ``sh`` and the usual small programs inside, and no more.
    """

    claims: ClassVar[frozenset[str]] = CLAIMS
    """What of :data:`CLAIMS` your backend does; the tests of the others are skipped by name."""

    wall_clock: ClassVar[float] = 30.0
    """Seconds that a command of these tests gets; more where starting one is slow."""

    hog: ClassVar[str] = "head -c 400000000 /dev/zero | tail -n 1"
    """A shell command that takes more than 64 MiB of memory."""

    server: ClassVar[tuple[str, ...]] = ("python3", "-c", _GREETER)
    """A program that listens on the loopback port ``port`` and says ``hello`` to who connects."""

    port: ClassVar[int] = 18767
    """The port of ``server``."""

    @pytest.fixture
    def box(self, backend: Backend) -> Iterator[Sandbox]:
        """A fresh sandbox of the backend."""
        unknown = self.claims - CLAIMS
        if unknown:
            pytest.fail(f"{sorted(unknown)} is no claim; choose of {', '.join(sorted(CLAIMS))}")
        made = Sandbox(backend, Limits(wall_clock=self.wall_clock))
        yield made
        made.close()

    def _claims(self, box: Sandbox, claim: str) -> None:
        if claim not in self.claims:
            pytest.skip(f"{box.backend} does not claim {claim}")

    def test_it_says_what_it_is(self, backend: Backend) -> None:
        """``name`` is one word, ``isolates`` one line, and ``unavailable`` None where it works."""
        assert backend.name.split() == [backend.name]
        assert backend.isolates
        assert "\n" not in backend.isolates
        assert backend.unavailable() is None

    def test_exit_code(self, box: Sandbox) -> None:
        """The target's own exit code is a result, whatever it is: 137 is not a signal."""
        for code in (0, 3, 137):
            result = box.run(_sh(f"exit {code}"))
            assert _end(result) == (EndedBy.EXITED, code, None)
        with pytest.raises(TargetError):
            box.run(_sh("exit 3"), check=True)

    def test_duration(self, box: Sandbox) -> None:
        """``duration`` is the command's time in seconds."""
        assert 0.19 <= box.run(["sleep", "0.2"]).duration < self.wall_clock  # seen from outside

    def test_signal(self, box: Sandbox) -> None:
        """A signal is told from the wait status, with no exit code."""
        self._claims(box, "signals")
        assert _end(box.run(_sh("kill -SEGV $$"))) == (EndedBy.SIGNALLED, None, signal.SIGSEGV)

    def test_a_kill_that_nothing_explains(self, box: Sandbox) -> None:
        """SIGKILL by nobody known is ``killed_unknown``, and gives no decision."""
        self._claims(box, "signals")
        result = _failure(box, _sh("kill -KILL $$"), "sandbox_error")
        assert result.ended_by is EndedBy.KILLED_UNKNOWN

    def test_output_is_told_apart(self, box: Sandbox) -> None:
        """Standard output and standard error are two streams, bytes unchanged."""
        result = box.run(_sh(r"printf 'out\000\377'; printf err >&2"))
        assert (result.out.head, result.err.head) == (b"out\x00\xff", b"err")

    def test_output_is_bounded_and_the_cut_is_marked(self, box: Sandbox) -> None:
        """At most ``output`` bytes of each stream are kept, the first and the last; all are counted."""
        result = box.run(_sh("echo first; yes middle | head -n 20000; echo last"), output="8k")
        assert len(result.out.head) + len(result.out.tail) <= 8192
        assert result.out.total == len("first\nlast\n") + 20000 * len("middle\n")
        assert result.out.truncated
        assert result.stdout.startswith("first\n")
        assert result.stdout.endswith("last\n")
        assert "bytes left out" in result.stdout

    def test_stdin(self, box: Sandbox) -> None:
        """``stdin`` arrives whole and ends; a target that does not read it is none the worse."""
        assert box.run(["cat"], stdin=b"a\x00b").out.head == b"a\x00b"
        assert box.run(["cat"]).stdout == ""
        text = "0123456789abcdef" * 20_000
        assert box.run(["cat"], stdin=text).stdout == text
        assert box.run(["true"], stdin=text).ok

    def test_environment(self, box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
        """Variables of the test's process are not there, those of ``env`` are; ``HOME`` is the folder."""
        monkeypatch.setenv("CONFORMANCE_SECRET", "of-the-host")
        result = box.run(["env"], env={"GREETING": "hi there"})
        assert "of-the-host" not in result.stdout
        assert "GREETING=hi there" in result.stdout.splitlines()
        home, here = box.run(_sh("echo $HOME; pwd")).stdout.splitlines()
        assert home == here

    def test_cwd(self, box: Sandbox) -> None:
        """``cwd`` is a folder of the sandbox; one that is not there is no exit code of the target."""
        box.write("sub/file", "x")
        assert box.run(["ls"], cwd="sub").stdout == "file\n"
        with pytest.raises(PathRefused):
            box.run(["true"], cwd="..")
        assert _failure(box, ["true"], "sandbox_error", cwd="gone").ended_by is EndedBy.START_FAILED

    def test_wall_clock(self, box: Sandbox) -> None:
        """At ``wall_clock`` all is ended: no exit code, what was written is kept, and no decision."""
        result = _failure(box, _sh("echo begun; exec sleep 60"), "wall_clock", timeout=1)
        assert (result.ended_by, result.exit_code) == (EndedBy.WALL_CLOCK, None)
        assert result.stdout == "begun\n"

    def test_a_limit_that_is_the_targets(self, box: Sandbox) -> None:
        """With ``limit_is="target"`` a limit that was reached comes back as a result."""
        result = box.run(["sleep", "60"], timeout=0.5, limit_is="target")
        assert (result.ended_by, result.ok) == (EndedBy.WALL_CLOCK, False)

    def test_memory_limit(self, box: Sandbox) -> None:
        """More than ``memory`` is ``memory_limit``, never an exit code of 137."""
        self._claims(box, "memory_limit")
        result = _failure(box, _sh(self.hog), "sandbox_oom", memory="64M")
        assert result.ended_by is EndedBy.MEMORY_LIMIT
        assert box.run(["true"]).ok

    def test_cpu_limit(self, box: Sandbox) -> None:
        """``cpu`` seconds of processor time are ``cpu_limit``."""
        self._claims(box, "cpu_limit")
        result = _failure(box, _sh("while :; do :; done"), "wall_clock", cpu=1)
        assert result.ended_by is EndedBy.CPU_LIMIT

    def test_file_size_limit(self, box: Sandbox) -> None:
        """A file beyond ``file_size`` is ``file_limit``."""
        self._claims(box, "file_size_limit")
        argv = ["dd", "if=/dev/zero", "of=big", "bs=64k", "count=40"]
        assert _failure(box, argv, "sandbox_error", file_size="1M").ended_by is EndedBy.FILE_LIMIT

    def test_disk_limit(self, box: Sandbox) -> None:
        """Files that together go beyond ``disk`` are ``file_limit``, or cannot be written."""
        self._claims(box, "disk_limit")
        fill = "for i in 1 2 3; do dd if=/dev/zero of=f$i bs=1M count=2 2>/dev/null || exit 9; done; sleep 20"
        result = box.run(_sh(fill), disk="3M", limit_is="target")
        assert (result.ended_by, result.exit_code) in {(EndedBy.FILE_LIMIT, None), (EndedBy.EXITED, 9)}

    def test_process_limit(self, box: Sandbox) -> None:
        """More than ``processes`` at a time are ``process_limit``, or cannot be started."""
        self._claims(box, "process_limit")
        fork = "n=0; while [ $n -lt 60 ]; do sleep 2 & n=$((n+1)); done; echo all; wait"
        result = box.run(_sh(fork), processes=10, limit_is="target")
        assert "all" not in result.stdout
        assert not result.ok

    def test_no_network(self, backend: Backend) -> None:
        """``network="off"`` is kept, or refused before anything runs; never ignored."""
        try:
            made = Sandbox(backend, Limits(wall_clock=self.wall_clock, network="off"))
        except SandboxFailure as error:
            assert error.label == "sandbox_error"  # noqa: PT017  one of two ways to be right
            return
        try:
            table = made.run(["cat", "/proc/net/dev"], check=True).stdout
        finally:
            made.close()
        assert {line.partition(":")[0].strip() for line in table.splitlines() if ":" in line} <= {"lo"}

    def test_a_program_that_is_not_there(self, box: Sandbox) -> None:
        """``start_failed`` is a result of the backend; of a program of the system it gives no decision."""
        result = _failure(box, ["no-such-program"], "sandbox_error")
        assert _end(result) == (EndedBy.START_FAILED, None, None)
        assert box.run(["./made-by-the-target"]).ended_by is EndedBy.START_FAILED
        box.write("text", "no program")
        assert box.run(["./text"]).ended_by is EndedBy.START_FAILED

    def test_files_go_both_ways(self, box: Sandbox, tmp_path: Path) -> None:
        """The target sees what the test writes, may run, change and remove it, and the other way round."""
        box.write("a/data.json", '{"x": 1}')
        box.write_file("tool", b"#!/bin/sh\ncat a/data.json; rm a/data.json\n", executable=True)
        assert json.loads(box.run(["./tool"], check=True).stdout) == {"x": 1}
        box.run(_sh("""echo '{"y": 2}' > answer.json; mkdir b; echo z > b/c"""), check=True)
        assert box.read_json("answer.json") == {"y": 2}
        with pytest.raises(FileMissing):
            box.read("a/data.json")
        with pytest.raises(NotJson):
            box.read_json("b/c")
        (tmp_path / "up").mkdir()
        (tmp_path / "up" / "f").write_text("from outside", encoding="utf-8")
        box.upload(tmp_path / "up", "there")
        assert box.run(["cat", "there/f"]).stdout == "from outside"
        box.download("b", tmp_path / "down")
        assert (tmp_path / "down" / "c").read_text(encoding="utf-8") == "z\n"

    def test_changed_and_snapshot(self, box: Sandbox) -> None:
        """A sandbox begins empty; ``changed`` is what the target did and nothing else."""
        assert box.files() == []
        for name in ("kept", "altered", "removed"):
            box.write(name, "1")
        assert box.changed() == set()
        box.run(_sh("cat kept; echo 2 > altered; rm removed; echo 3 > made"), check=True)
        assert box.changed() == {"altered", "removed", "made"}
        assert box.snapshot() == {"kept": "1", "altered": "2\n", "made": "3\n"}

    def test_paths_that_lead_out(self, box: Sandbox, tmp_path: Path) -> None:
        """``..`` and absolute paths are refused, whoever asks."""
        for path in ("../x", "/etc/passwd", "a/../../x"):
            for use in (box.read, lambda p: box.write(p, "x"), lambda p: box.download(p, tmp_path / "x")):
                with pytest.raises(PathRefused):
                    use(path)

    def test_links_of_the_target(self, box: Sandbox, tmp_path: Path) -> None:
        """A link that the target made is never followed, neither read, nor written through."""
        (tmp_path / "secret").write_text("of the host", encoding="utf-8")
        box.run(_sh(f"ln -s {tmp_path}/secret file; ln -s {tmp_path} dir"), check=True)
        for path in ("file", "dir/secret"):
            with pytest.raises(LinkRefused):
                box.read(path)
        with pytest.raises(LinkRefused):
            box.write("dir/secret", "overwritten")
        with pytest.raises(LinkRefused):
            box.download(".", tmp_path / "out")
        assert (tmp_path / "secret").read_text(encoding="utf-8") == "of the host"

    def test_spawn(self, box: Sandbox) -> None:
        """A command goes on beside others, is read meanwhile, and ``stop`` tells who ended it."""
        process = box.spawn(_sh("echo up; exec sleep 60"))
        deadline = time.monotonic() + self.wall_clock
        while "up" not in process.stdout and time.monotonic() < deadline:
            time.sleep(0.02)
        with pytest.raises(TimeoutError):
            process.wait(0.05)
        assert box.run(["true"]).ok
        result = process.stop()
        assert _end(result)[:2] == (EndedBy.STOPPED, None)
        assert result.stdout == "up\n"
        assert process.stop() is result

    def test_ports(self, box: Sandbox) -> None:
        """``connect`` reaches a port on the command's loopback; ``OSError`` where nothing listens."""
        self._claims(box, "ports")
        process = box.spawn(self.server)
        with pytest.raises(OSError, match=str(self.port + 1)):  # first, as it may end with its client
            process.connect(self.port + 1)
        with process.connect(self.port, timeout=self.wall_clock) as client:
            client.settimeout(self.wall_clock)
            assert client.recv(5) == b"hello"
        process.stop()

    def test_sandboxes_do_not_meet(self, backend: Backend) -> None:
        """Two sandboxes at a time have a folder each."""
        first, second = (Sandbox(backend, Limits(wall_clock=self.wall_clock)) for _ in range(2))
        first.run(_sh("echo 1 > f"), check=True)
        assert second.run(["ls"], check=True).stdout == ""
        first.close()
        assert second.run(["true"]).ok
        second.close()

    def test_no_process_outlives_the_command(self, box: Sandbox) -> None:
        """When a command has ended, so has all that it started, also what left its session."""
        assert box.run(_sh(f"{_ON_AND_ON} exit 0")).ok
        self._rests(box)
        process = box.spawn(_sh(f"{_ON_AND_ON} echo up; sleep 60"))
        deadline = time.monotonic() + self.wall_clock
        while "up" not in process.stdout and time.monotonic() < deadline:
            time.sleep(0.02)
        process.stop()
        self._rests(box)

    def _rests(self, box: Sandbox) -> None:
        before = box.snapshot()
        assert set(before) == {"one", "two"}
        time.sleep(0.4)
        assert box.snapshot() == before

    def test_nothing_is_left_behind(self, backend: Backend) -> None:
        """``close`` ends what runs and removes the folder, whatever the target did to it; and once more."""
        made = backend.open(Limits(wall_clock=self.wall_clock))
        command = Command(argv=("sh", "-c", "mkdir -p a/b; echo x > a/b/c; chmod 000 a; exit 1"))
        assert made.start(command, Limits()).wait().exit_code == 1
        made.start(Command(argv=("sleep", "600")), Limits())
        made.close()
        assert not os.path.lexists(made.workspace)
        made.close()
        after = Sandbox(backend, Limits(wall_clock=self.wall_clock))
        assert after.run(["true"]).ok
        after.close()


def _sh(text: str) -> list[str]:
    return ["sh", "-c", text]


def _end(result: Result) -> tuple[EndedBy, int | None, int | None]:
    return result.ended_by, result.exit_code, result.signal


def _failure(
    box: Sandbox, argv: list[str], label: str, cwd: str = ".", timeout: float | None = None, **limits: Any
) -> Result:
    """The result of a command that gives no decision, by the label it is due."""
    with pytest.raises(SandboxFailure) as caught:
        box.run(argv, cwd=cwd, timeout=timeout, **limits)
    assert caught.value.label == label
    assert caught.value.result is not None
    return caught.value.result
