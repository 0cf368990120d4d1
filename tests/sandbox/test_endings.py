"""What ended a command, on the real backends: who saw it says so."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_crashlab.errors import UsageError
from pytest_crashlab.sandbox import cgroups
from pytest_crashlab.sandbox.base import (
    Command,
    EndedBy,
    FileMissing,
    NothingListens,
    SandboxFailure,
    TargetError,
)
from pytest_crashlab.sandbox.endings import ended
from pytest_crashlab.sandbox.limits import Limits
from pytest_crashlab.sandbox.sandbox import Sandbox

HOG = "x = bytearray(300 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nimport time; time.sleep(5)"


def failure(box, argv, **given):
    with pytest.raises(SandboxFailure) as caught:
        box.run(argv, **given)
    return caught.value.label, caught.value.result


def shell(text):
    return ["sh", "-c", text]


def test_a_command_gets_its_input_and_gives_its_output_and_code(box):
    result = box.run(shell("cat; echo oops >&2; exit 3"), stdin="hello")
    assert (result.ended_by, result.exit_code, result.signal) == (EndedBy.EXITED, 3, None)
    assert (result.stdout, result.stderr) == ("hello", "oops\n")
    assert result.peak_memory > 0
    assert result.cpu is not None


@pytest.mark.parametrize("code", [137, 139, 152])
def test_an_exit_code_is_never_read_as_a_signal(box, code):
    result = box.run(shell(f"exit {code}"))
    assert (result.ended_by, result.exit_code, result.signal) == (EndedBy.EXITED, code, None)


def test_a_signal_is_the_kernels_word(box):
    result = box.run(shell("kill -SEGV $$"))
    assert (result.ended_by, result.exit_code, result.signal) == (EndedBy.SIGNALLED, None, signal.SIGSEGV)


def test_a_kill_that_nothing_explains_gives_no_decision(box):
    label, result = failure(box, shell("kill -KILL $$"))
    assert label == "sandbox_error"
    assert (result.ended_by, result.exit_code, result.signal) == (EndedBy.KILLED_UNKNOWN, None, 9)


def test_a_program_that_is_not_there_is_no_exit_code(box):
    label, result = failure(box, ["no-such-program"])
    assert (label, result.ended_by, result.exit_code) == ("sandbox_error", EndedBy.START_FAILED, None)
    assert "no-such-program" in result.sentence


def test_a_program_that_the_target_should_have_made_is_the_targets_failure(box):
    result = box.run(["./program"])
    assert (result.ended_by, result.ok) == (EndedBy.START_FAILED, False)
    with pytest.raises(TargetError, match="could not be started"):
        box.run(["./program"], check=True)


def test_the_wall_clock_is_the_supervisors_own(box):
    label, result = failure(box, shell("echo begun; exec sleep 30"), timeout=0.3)
    assert (label, result.ended_by, result.exit_code) == ("wall_clock", EndedBy.WALL_CLOCK, None)
    assert result.stdout == "begun\n"


def test_memory(box):
    label, result = failure(box, ["python3", "-c", HOG], memory="100M")
    assert (label, result.ended_by) == ("sandbox_oom", EndedBy.MEMORY_LIMIT)


def test_a_child_killed_for_memory_is_seen_under_a_parent_that_exits_0(box):
    box.write("hog.py", HOG)
    probe = box.run(["true"])
    if probe.oom_kills is None:
        pytest.skip("no control group for memory may be made here")
    label, result = failure(box, shell("python3 hog.py; exit 0"), memory="100M")
    assert (label, result.ended_by, result.exit_code) == ("sandbox_oom", EndedBy.MEMORY_LIMIT, 0)
    assert result.oom_kills == 1
    assert box.run(["true"]).oom_kills == 0


def test_cpu_time(box):
    label, result = failure(box, shell("while :; do :; done"), cpu=1)
    assert (label, result.ended_by) == ("wall_clock", EndedBy.CPU_LIMIT)


def test_files(box):
    label, result = failure(box, ["dd", "if=/dev/zero", "of=big", "bs=1M", "count=5"], file_size="1M")
    assert (label, result.ended_by) == ("sandbox_error", EndedBy.FILE_LIMIT)
    fill = "for i in 1 2 3 4; do dd if=/dev/zero of=f$i bs=1M count=5 2>/dev/null; done; sleep 20"
    label, result = failure(box, shell(fill), disk="10M")
    assert (label, result.ended_by) == ("sandbox_error", EndedBy.FILE_LIMIT)


# Python ignores the kernel's signal, and of a child's end its parent only tells a number
CUT_OFF = {
    "by an exception": ["python3", "-c", "open('big', 'wb').write(bytes(2 << 20))"],
    "in a child": shell("head -c 2000000 /dev/zero > big"),
}


@pytest.mark.parametrize("how", CUT_OFF)
def test_a_file_that_was_cut_off_is_seen_where_no_signal_says_so(box, how):
    label, result = failure(box, CUT_OFF[how], file_size="1M")
    assert (label, result.ended_by) == ("sandbox_error", EndedBy.FILE_LIMIT)
    assert "'big' is as large as a file may be" in result.sentence


def test_a_file_that_was_cut_off_before_is_not_the_next_commands(box):
    box.run(CUT_OFF["in a child"], file_size="1M", limit_is="target")
    box.run(["sleep", "0.1"])
    assert box.run(shell("exit 3"), file_size="1M").exit_code == 3


def test_a_file_of_the_largest_size_is_no_failure(box):
    assert box.run(shell("head -c 1048576 /dev/zero > big"), file_size="1M").ok


def test_a_process_that_the_kernel_refused_is_no_behaviour(box):
    where = cgroups.parents(Path("/proc/self/cgroup").read_text("ascii"))
    if not os.access(where.get("unified") or where.get("pids") or "-", os.W_OK):
        pytest.skip("no control group for processes may be made here")
    many = "import subprocess\nfor _ in range(50): subprocess.Popen(['sleep', '20'])"
    label, result = failure(box, ["python3", "-c", many], processes=10)
    assert (label, result.ended_by) == ("sandbox_error", EndedBy.PROCESS_LIMIT)
    assert "the kernel refused" in result.sentence
    few = "import subprocess\nfor _ in range(8): subprocess.Popen(['sleep', '20'])\nraise SystemExit(3)"
    assert box.run(["python3", "-c", few], processes=10).exit_code == 3


def test_a_limit_declared_as_the_targets_is_behaviour(box):
    result = box.run(["sleep", "30"], timeout=0.2, limit_is="target")
    assert (result.ended_by, result.ok) == (EndedBy.WALL_CLOCK, False)
    result = box.run(["python3", "-c", HOG], memory="100M", limit_is="target")
    assert result.ended_by is EndedBy.MEMORY_LIMIT
    with pytest.raises(TargetError, match="wall-clock"):
        box.run(["sleep", "30"], timeout=0.2, limit_is="target", check=True)


def test_check_blames_the_target_and_shows_no_control_characters(box):
    with pytest.raises(TargetError) as caught:
        box.run(["python3", "-c", r"import sys; sys.exit('\x1b[31mred\x07')"], check=True)
    assert isinstance(caught.value, AssertionError)
    assert r"\x1b[31mred\x07" in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_endless_output_is_bounded_and_the_cut_is_marked(box):
    label, result = failure(box, ["yes", "endless"], timeout=0.4, output="8k")
    assert label == "wall_clock"
    assert result.out.truncated
    assert len(result.out.head) + len(result.out.tail) == 8192
    assert f"[... {result.out.total - 8192} bytes left out ...]" in result.stdout


def test_large_input_and_output_at_once_do_not_block(box):
    text = "0123456789abcdef" * 40_000
    result = box.run(["cat"], stdin=text, output="2M")
    assert result.stdout == text
    assert box.run(["true"], stdin=text).ok


def test_daemons_end_with_the_command(box):
    script = "import os, time\nif os.fork() == 0:\n    os.setsid()\n"
    script += "    if os.fork() == 0:\n        time.sleep(60)\n"
    before = time.monotonic()
    assert box.run(["python3", "-c", f"{script}    os._exit(0)\n"]).ok
    assert time.monotonic() - before < 30


def test_the_environment_is_clean(box, monkeypatch):
    monkeypatch.setenv("API_KEY", "secret-of-the-host")
    result = box.run(["env"], env={"GREETING": "hi"})
    assert "secret" not in result.stdout
    assert "GREETING=hi" in result.stdout
    home = box.run(shell("echo $HOME; pwd")).stdout.split()
    assert home[0] == home[1]


def test_a_spawned_server_is_reached_and_stopped(box):
    server = box.spawn(["python3", "-u", "-m", "http.server", "18765", "--bind", "127.0.0.1"])
    with server.connect(18765, timeout=15) as connection:
        connection.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.0 200")
    with pytest.raises(TimeoutError):
        server.wait(0.05)
    assert "HEAD" in server.stderr
    with pytest.raises(ConnectionRefusedError, match="18766"):
        server.connect(18766)
    result = server.stop()
    assert (result.ended_by, result.exit_code) == (EndedBy.STOPPED, None)
    assert server.stop() is result
    assert box.run(["true"]).ok


# what ends a server before anybody can connect -> what that says
GONE = {
    "its own error": (
        shell("echo no config >&2; exit 3"),
        {},
        TargetError,
        "exited with 3 .*it wrote: no config",
    ),
    "its own end": (["true"], {}, TargetError, "exited with 0"),
    "a limit": (["sleep", "60"], {"timeout": 0.2}, SandboxFailure, "wall-clock limit"),
    "its own limit": (
        ["sleep", "60"],
        {"timeout": 0.2, "limit_is": "target"},
        TargetError,
        "wall-clock limit",
    ),
    "no program": (["no-such-program"], {}, SandboxFailure, "could not be started"),
}


@pytest.mark.parametrize("what", GONE)
def test_a_server_that_has_ended_is_told_apart_from_one_that_is_slow(box, what):
    argv, limits, kind, sentence = GONE[what]
    server = box.spawn(argv, **limits)
    before = time.monotonic()
    with pytest.raises(kind, match=sentence) as caught:
        server.connect(18767, timeout=3600)
    assert not isinstance(caught.value, OSError)
    assert time.monotonic() - before < 300  # an hour was given


def test_a_server_that_runs_and_does_not_listen(box):
    with pytest.raises(ConnectionRefusedError, match=r"nothing listened for 0\.1 s"):
        box.spawn(["sleep", "60"]).connect(18768, timeout=0.1)
    with pytest.raises(NothingListens, match="port 18768"):
        box.spawn(["sleep", "60"], limit_is="target").connect(18768, timeout=0.1)
    server = box.spawn(["sleep", "60"])
    server.stop()
    with pytest.raises(ConnectionRefusedError, match="the command has ended"):
        server.connect(18768)


def test_a_stop_that_comes_too_late_is_not_the_next_commands(box):
    process = box.spawn(["true"])
    select.select([process._running._keeper.sock], [], [], 20)  # its report is there
    assert process.stop().exit_code == 0
    assert box.run(shell("exit 4")).exit_code == 4


def test_the_async_twin_and_its_cancellation(box):
    async def story():
        results = await asyncio.gather(*(box.run_async(shell(f"exit {n}")) for n in range(3)))
        task = asyncio.ensure_future(box.run_async(["sleep", "60"]))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return [result.exit_code for result in results]

    before = time.monotonic()
    assert asyncio.run(story()) == [0, 1, 2]
    assert time.monotonic() - before < 40


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("disk", "1536k", "1536k"),
        ("memory", "512M", "512M"),
        ("disk", 3 << 30, "3G"),
        ("file_size", 1001, "1001"),
        ("wall_clock", 0.25, "0.25"),
        ("processes", None, "none"),
        ("network", "off", "off"),
        ("network", None, "none"),
    ],
)
def test_a_limit_is_said_as_it_may_be_written(name, value, text):
    limits = Limits() if value is None and name == "network" else Limits().but({name: value}, "here")
    assert limits.text(name) == text


# (report of a keeper) -> what ended it; statuses as waitpid gives them
WITNESSES = {
    "a failed start before all": ({"start_error": "no", "oom_kills": 1}, EndedBy.START_FAILED),
    "the supervisor's own deed before a start that it cut short": (
        {"start_error": "OSError: [Errno 12] Cannot allocate memory", "reason": "stopped"},
        EndedBy.STOPPED,
    ),
    "the counter before the clock": (
        {"oom_kills": 1, "reason": "wall_clock", "status": 9},
        EndedBy.MEMORY_LIMIT,
    ),
    "the counter before exit 0": ({"oom_kills": 2, "status": 0}, EndedBy.MEMORY_LIMIT),
    "the clock before the status": ({"reason": "wall_clock", "status": 0}, EndedBy.WALL_CLOCK),
    "too many processes": ({"reason": "processes", "status": 9}, EndedBy.PROCESS_LIMIT),
    "the supervisor's own deed before processes not started": (
        {"reason": "wall_clock", "refused": 3, "status": 9},
        EndedBy.WALL_CLOCK,
    ),
    "processes not started before an exit code": ({"refused": 1, "status": 256}, EndedBy.PROCESS_LIMIT),
    "processes not started before a crash": ({"refused": 1, "status": 6}, EndedBy.PROCESS_LIMIT),
    "exit 0 before processes not started": ({"refused": 1, "status": 0}, EndedBy.EXITED),
    "no process that was not started": ({"refused": 0, "status": 256}, EndedBy.EXITED),
    "a file that was cut off before an exit code": (
        {"file_at_limit": "f", "status": 256},
        EndedBy.FILE_LIMIT,
    ),
    "SIGXCPU": ({"status": signal.SIGXCPU}, EndedBy.CPU_LIMIT),
    "SIGXCPU long before its time": ({"status": signal.SIGXCPU, "cpu": 0.1}, EndedBy.SIGNALLED),
    "the clock before a failed start": (
        {"reason": "wall_clock", "start_error": "OSError: [Errno 12]"},
        EndedBy.WALL_CLOCK,
    ),
    "a file at the limit before a crash": (
        {"status": signal.SIGABRT, "file_at_limit": "f"},
        EndedBy.FILE_LIMIT,
    ),
    "the signal before a file": ({"status": 9, "file_at_limit": "f"}, EndedBy.KILLED_UNKNOWN),
    "another's CPU time, of which its parent says 1": (
        {"status": 1 << 8, "cpu_of_another": True, "cpu": 2.1},
        EndedBy.CPU_LIMIT,
    ),
    "another that ended before its time": (
        {"status": 1 << 8, "cpu_of_another": True, "cpu": 1.2},
        EndedBy.EXITED,
    ),
    "SIGKILL at the hard limit": ({"status": 9, "cpu": 3.0}, EndedBy.CPU_LIMIT),
    "SIGKILL before it": ({"status": 9, "cpu": 0.1}, EndedBy.KILLED_UNKNOWN),
    "SIGXFSZ": ({"status": signal.SIGXFSZ}, EndedBy.FILE_LIMIT),
    "a core dump": ({"status": signal.SIGSEGV | 0x80}, EndedBy.SIGNALLED),
    "no status": ({"status": None}, EndedBy.KILLED_UNKNOWN),
}


@pytest.mark.parametrize("name", WITNESSES)
def test_the_strongest_witness_decides(name):
    report, expected = WITNESSES[name]
    assert ended({"status": None, **report}, Limits(cpu=2))[0] is expected


def seen(box, argv, **given):
    result = box.run(argv, limit_is="target", **given)
    return result.ended_by, result.exit_code


def test_a_limit_that_a_process_below_the_target_met_is_seen(box):
    spin = "python3 -c 'while True: pass'"
    assert seen(box, shell(f"{spin}; exit 1"), cpu=1) == (EndedBy.CPU_LIMIT, 1)
    write = "dd if=/dev/zero of=big bs=1M count=3"
    assert seen(box, shell(f"{write}; exit 1"), file_size="1M") == (EndedBy.FILE_LIMIT, 1)


def test_a_program_that_gets_an_error_instead_of_a_signal_met_the_limit_too(box):
    write = "f = open('big', 'wb')\nfor _ in range(3): f.write(b'x' * (1 << 20))"
    assert seen(box, ["python3", "-c", write], file_size="1M") == (EndedBy.FILE_LIMIT, 1)
    box.write("before", "x" * (2 << 20))
    time.sleep(0.05)  # the clock of files goes in steps
    assert seen(box, ["false"], file_size="2M") == (EndedBy.EXITED, 1)  # the test's own is no sign


def test_starts_of_processes_that_the_kernel_refused_are_counted(box):
    if box._box.start(Command(argv=("true",)), box.limits)._keeper.cage.get("pids") is not True:
        pytest.skip("no control group for processes may be made here")
    start = "import subprocess\n"
    start += "for _ in range(30): subprocess.Popen(['sleep', '9'])"
    assert seen(box, ["python3", "-c", start], processes=8) == (EndedBy.PROCESS_LIMIT, 1)
    assert seen(box, ["false"]) == (EndedBy.EXITED, 1)


def test_a_cpu_signal_that_nothing_explains_is_the_targets_own(box):
    assert seen(box, shell("kill -XCPU $$")) == (EndedBy.SIGNALLED, None)
    handled = "import os, signal\nsignal.signal(signal.SIGXCPU, lambda *_: os._exit(0))\nwhile True: pass"
    assert seen(box, ["python3", "-c", handled], cpu=1) == (EndedBy.EXITED, 0)


def test_what_the_command_line_cannot_hold_is_no_failure_of_the_targets(box):
    box.write_file("program", b"#!/bin/sh\n", executable=True)
    for words in (["x" * 200_000], ["a\0b"], ["\ud800"]):
        label, result = failure(box, ["./program", *words])
        assert (label, result.ended_by) == ("sandbox_error", EndedBy.START_FAILED)
    label, result = failure(box, ["true"], env={"A=B": "c"})
    assert (label, result.ended_by) == ("sandbox_error", EndedBy.START_FAILED)
    assert box.run(["./program"]).ok


def test_the_clock_is_told_also_where_it_comes_before_the_start(box):
    box.write_file("program", b"#!/bin/sh\nsleep 9\n", executable=True)
    label, result = failure(box, ["./program"], timeout=1e-9)
    assert (label, result.ended_by) == ("wall_clock", EndedBy.WALL_CLOCK)


def test_disk_counts_every_file_once_and_none_can_be_hidden(box):
    link = "dd if=/dev/zero of=f bs=1M count=6; for i in 1 2 3; do ln f g$i; done; sleep 0.3"
    assert seen(box, shell(link), disk="10M") == (EndedBy.EXITED, 0)
    nameless = "import os, time\nf = open('h', 'wb'); os.unlink('h')\nf.write(b'x' * (12 << 20)); f.flush()\n"
    assert seen(box, ["python3", "-c", f"{nameless}time.sleep(15)"], disk="10M")[0] is EndedBy.FILE_LIMIT
    deep = "import os, time\nfor _ in range(40): os.mkdir('d' * 200); os.chdir('d' * 200)\ntime.sleep(15)"
    assert seen(box, ["python3", "-c", deep], disk="10M")[0] is EndedBy.FILE_LIMIT


@pytest.mark.parametrize(
    "given", [{"cpu": 1e30}, {"file_size": 10**30}, {"processes": 10**9}, {"disk": 2**70}]
)
def test_a_limit_beyond_all_measure_is_a_sentence(box, given):
    with pytest.raises(UsageError, match="is more than can be limited; write None for no limit"):
        box.run(["true"], **given)


def test_less_memory_than_the_sandbox_itself_takes_is_a_sentence(box):
    if box.run(["true"]).oom_kills is None:
        pytest.skip("no control group for memory may be made here")
    with pytest.raises(UsageError, match="nothing starts with less than 4M"):
        box.run(["true"], memory=4096)
    with pytest.raises(SandboxFailure, match="memory= is less than the sandbox itself takes"):
        box._box.start(Command(argv=("true",)), Limits(memory=4096)).wait()
    assert box.run(["true"]).ok


def test_a_server_that_takes_no_connection_does_not_hold_up_the_clock(box):
    deaf = "import socket, time\ns = socket.socket(); s.bind(('127.0.0.1', 18768)); s.listen(0)\n"
    server = box.spawn(["python3", "-c", f"{deaf}time.sleep(60)"], timeout=3)
    held = [server.connect(18768, timeout=10)]

    def connect_until_refused():
        while len(held) < 9:
            held.append(server.connect(18768))

    with pytest.raises(SandboxFailure, match="wall-clock limit"):  # which ended it meanwhile
        connect_until_refused()
    with pytest.raises(SandboxFailure) as caught:
        server.wait()
    for connection in held:
        connection.close()
    assert caught.value.label == "wall_clock"
    assert caught.value.result.duration < 8


def test_a_process_is_used_from_many_threads_at_a_time(box):
    greet = "import socket\ns = socket.create_server(('127.0.0.1', 18769))\nprint('up', flush=True)\n"
    greet += "while True:\n    c, _ = s.accept(); c.sendall(b'hi'); c.close()"
    server = box.spawn(["python3", "-c", greet])

    def use(number):
        for _ in range(10):
            if number % 2:
                with server.connect(18769, timeout=15) as client:
                    assert client.recv(2) == b"hi"
            else:
                assert server.stdout in {"", "up\n"}

    with ThreadPoolExecutor(5) as threads:
        waiting = threads.submit(server.wait)
        for used in [threads.submit(use, number) for number in range(4)]:
            used.result(60)
        server.stop()
        assert waiting.result(60) is server.stop()


def test_a_target_that_has_its_supervisor_killed_for_memory_ran_into_the_limit(box):
    """The kernel takes the largest; nobody may keep a target from saying that others go first."""
    if box.run(["true"]).oom_kills is None:
        pytest.skip("no control group for memory may be made here")
    many = "import os, time\nopen('/proc/self/oom_score_adj', 'w').write('0')\n"
    many += "for _ in range(80):\n    if os.fork() == 0:\n        x = bytearray(3 << 20)\n"
    many += "        for i in range(0, len(x), 4096): x[i] = 1\n        time.sleep(60)\ntime.sleep(60)"
    assert seen(box, ["python3", "-c", many], memory="100M")[0] is EndedBy.MEMORY_LIMIT
    assert box.run(["true"]).ok


def test_what_a_killed_supervisor_leaves_is_ended_at_once(box):
    process = box.spawn(shell("(while :; do date +%N > beat; sleep 0.02; done) & echo up; sleep 60"))
    while "up" not in process.stdout:
        time.sleep(0.02)
    if not process._running._keeper.cage:
        pytest.skip("no control group may be made here")
    process._running._keeper._process.kill()
    with pytest.raises(SandboxFailure, match="its keeper ended: exit code -9"):
        process.wait()
    before = box.snapshot()
    time.sleep(0.3)
    assert box.snapshot() == before
    assert box.run(["true"]).ok


def test_the_next_command_has_a_folder_whatever_the_one_before_did_to_it(box):
    box.run(shell("touch f; chmod 0 ."), check=True)
    assert box.run(["ls"]).stdout == "f\n"
    box.run(shell('rm -r "$HOME"'))  # in bubblewrap it is a mount, and stays
    if box.backend == "local":
        with pytest.raises(FileMissing):
            box.files()
    assert box.run(["ls"]).stdout == ""


def test_a_closed_sandbox_says_so(backend):
    closed = Sandbox(backend, Limits())
    closed.close()
    for use in (closed.files, lambda: closed.run(["true"]), lambda: closed.write("f", "x"), closed.changed):
        with pytest.raises(SandboxFailure, match="the sandbox is closed: each is for one trial"):
            use()
    closed.close()


def test_async_commands_do_not_wait_for_each_others_threads(box):
    async def story():
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        waits = [box.run_async(shell("while ! test -e go; do sleep 0.02; done")) for _ in range(3)]
        results = await asyncio.gather(*waits, box.run_async(["touch", "go"]))
        early = asyncio.ensure_future(box.run_async(["sleep", "60"]))
        await asyncio.sleep(0)
        early.cancel()  # while it starts
        with pytest.raises(asyncio.CancelledError):
            await early
        return results

    assert [result.exit_code for result in asyncio.run(story())] == [0, 0, 0, 0]
    assert all(running.has_ended for running in box._box._running)


@pytest.mark.parametrize("port", [0, -1, 1 << 16, "80", None])
def test_what_is_no_port_is_a_sentence(box, port):
    with pytest.raises(ValueError, match="is no TCP port; give a number from 1 to 65535"):
        box.spawn(["sleep", "9"]).connect(port)
