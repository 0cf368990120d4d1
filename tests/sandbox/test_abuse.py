"""Hostile programs in the bubblewrap sandbox: each is refused or contained, and what it tried is seen."""

# ruff: noqa: S108  /tmp and /dev/shm are the sandbox's own

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_crashlab.sandbox.base import EndedBy, SandboxFailure
from pytest_crashlab.sandbox.limits import Limits
from pytest_crashlab.sandbox.sandbox import Sandbox

TRY = """
import os, sys
def attempt(name, do):
    try: print(name, "DONE", do())
    except OSError as error: print(name, error.strerror)
"""


def python(box, text, **given):
    return box.run(["python3", "-c", TRY + text], **given)


def attempts(result):
    assert result.ok, result.stderr
    return dict(line.split(" ", 1) for line in result.stdout.splitlines())


def test_the_hosts_files_are_not_there(jail, tmp_path, monkeypatch):
    (tmp_path / "secret").write_text("of the host")
    monkeypatch.setenv("PROVIDER_KEY", "sk-host")
    paths = [
        "/etc/shadow",
        "/etc/ssh",
        "/root",
        "/home",
        "/var",
        "/sys",
        "/run",
        str(tmp_path / "secret"),
        __file__,
    ]
    found = python(jail, f"for p in {paths!r}: attempt(p, lambda: os.stat(p))")
    assert set(attempts(found).values()) == {"No such file or directory"}
    everything = "import glob\nfor f in glob.glob('/proc/*/environ') + glob.glob('/proc/*/cmdline'):\n"
    everything += "    try: print(open(f).read())\n    except OSError: pass\n"
    seen = python(jail, everything)
    assert "sk-host" not in seen.stdout
    assert str(jail._box.workspace) not in seen.stdout


def test_nothing_outside_is_written(jail):
    places = ["/x", "/usr/x", "/usr/bin/x", "/etc/x", "/proc/sys/kernel/hostname", "/dev/x"]
    tried = attempts(python(jail, f"for p in {places!r}: attempt(p, lambda: open(p, 'w'))"))
    assert all(not answer.startswith("DONE") for answer in tried.values())
    assert set(tried) == set(places)
    assert python(jail, "open('/tmp/x', 'w').write('mine'); open('/dev/shm/y', 'w')").ok
    assert not Path("/dev/shm/y").exists()
    assert jail.run(["ls", "/tmp"]).stdout == ""
    assert jail.changed() == set()


def test_no_network_but_its_own_loopback(jail):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        name = f"crashlab-test-{os.getpid()}"
        abstract.bind(f"\0{name}")
        abstract.listen()
        text = f"""
import socket
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", {server.getsockname()[1]}), 2))
attempt("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\\0{name}"))
print("devices", [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]])
print("routes", len(open("/proc/net/route").readlines()) - 1)
"""
        tried = attempts(python(jail, text))
    assert tried == {
        "tcp": "Connection refused",
        "abstract": "Connection refused",
        "devices": "['lo']",
        "routes": "0",
    }


def test_the_network_is_there_where_it_is_asked_for(bubblewrap):
    box = Sandbox(bubblewrap, Limits(network="on"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
        assert box.run(["python3", "-c", code]).ok
    box.close()


def test_it_has_no_privileges_and_gets_none(jail):
    status = jail.run(["cat", "/proc/self/status"]).stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert {fields[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert fields["NoNewPrivs"] == "1"
    assert set(fields["Uid"].split()) == {"1000"}
    mounts = [line.split() for line in jail.run(["cat", "/proc/self/mounts"]).stdout.splitlines()]
    assert [mount[1] for mount in mounts if "nosuid" not in mount[3].split(",")] == []
    jail.run(["sh", "-c", "cp /usr/bin/id mine; chmod 6755 mine"], check=True)
    assert "uid=1000" in jail.run(["./mine"]).stdout
    outside = (jail._box.workspace / "mine").stat().st_uid
    assert outside == (65534 if os.getuid() == 0 else os.getuid())


@pytest.mark.parametrize(
    "argv",
    [
        ["unshare", "-U", "true"],
        ["unshare", "-r", "-m", "true"],
        ["mount", "-t", "tmpfs", "none", "/tmp"],
        ["/usr/sbin/chroot", "/tmp", "true"],
        ["su", "-c", "true"],
    ],
    ids=" ".join,
)
def test_no_way_up(jail, argv):
    result = jail.run(argv)
    assert result.ended_by is EndedBy.EXITED
    assert result.exit_code != 0


def test_the_hosts_processes_are_out_of_reach(jail):
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        text = f"""
for pid in ({victim.pid}, {os.getpid()}, {os.getppid()}):
    if pid > 30: attempt(str(pid), lambda: os.kill(pid, 9))
print("seen", max(int(p) for p in os.listdir("/proc") if p.isdigit()) < 30)
print("open", os.listdir("/proc/self/fd"))
"""
        tried = attempts(python(jail, text))
        assert tried.pop("seen") == "True"
        assert tried.pop("open") == "['0', '1', '2', '3']"  # 3 is the listing itself
        assert set(tried.values()) <= {"No such process"}
        with contextlib.suppress(SandboxFailure):
            python(jail, "os.kill(-1, 9)")
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()
    assert jail.run(["true"]).ok


def test_it_cannot_say_that_it_ended_otherwise(jail):
    """What it does to everything it can see gives no decision at best, and never another exit code."""
    for text in ("os.kill(2, 9); import time; time.sleep(5)", "os.kill(1, 9); os.kill(os.getpid(), 9)"):
        with pytest.raises(SandboxFailure) as caught:
            python(jail, text)
        assert caught.value.result.ended_by is EndedBy.KILLED_UNKNOWN
        assert caught.value.result.signal == signal.SIGKILL


def test_a_fork_bomb_stays_within_its_number(jail):
    bomb = """
import time
made = 0
try:
    while made < 200:
        if os.fork() == 0: time.sleep(30); os._exit(0)
        made += 1
except BlockingIOError: print("refused after", made < 25)
"""
    result = python(jail, bomb, processes=20)
    assert result.stdout == "refused after True\n"
    storm = "while True:\n    try: os.fork()\n    except OSError: pass"
    with pytest.raises(SandboxFailure) as caught:
        python(jail, storm, processes=20, timeout=0.3)
    assert caught.value.label == "wall_clock"
    assert jail.run(["true"]).ok


def test_a_full_scratch_folder_is_its_own_problem(jail):
    for place in ("/tmp/x", "/dev/shm/x"):
        result = jail.run(["dd", "if=/dev/zero", f"of={place}", "bs=1M", "count=9"], disk="3M")
        assert result.ended_by is EndedBy.EXITED
        assert "No space left" in result.stderr


def test_there_is_no_terminal_to_type_into(jail):
    tried = attempts(python(jail, "attempt('tty', lambda: os.open('/dev/tty', os.O_RDWR))"))
    assert tried == {"tty": "No such device or address"}
