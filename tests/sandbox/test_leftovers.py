"""Nothing of a sandbox is left behind, however the process that used it ends."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_crashlab.sandbox import cgroups, folders
from pytest_crashlab.sandbox.base import SandboxFailure
from pytest_crashlab.sandbox.limits import Limits
from pytest_crashlab.sandbox.local import Local
from pytest_crashlab.sandbox.sandbox import Sandbox

HOLDER = """
import sys, time
from pytest_crashlab.sandbox.{name} import {Name}
from pytest_crashlab.sandbox.limits import Limits
from pytest_crashlab.sandbox.sandbox import Sandbox
backend = {Name}()
box = Sandbox(backend, Limits())
daemon = "import os,time\\nif os.fork() == 0:\\n    os.setsid()\\n"
daemon += "    if os.fork() == 0:\\n        time.sleep(600)\\n"
box.spawn(["python3", "-uc", daemon + "print('up'); time.sleep(600)"])
process = box._processes[0]
while "up" not in process.stdout: time.sleep(0.02)
print("ready", flush=True)
{then}
"""


def left(pid):
    """What carries the mark of process ``pid``: folders, processes, control groups, mounts."""
    marks = [folder.name for folder in folders.base_folder().iterdir() if folder.name.startswith(f"{pid}-")]
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                if f"{folders.MARK}={pid}-".encode() in (entry / "environ").read_bytes():
                    marks.append(f"process {entry.name}")
                if f"{folders.base_folder()}/{pid}-".encode() in (entry / "cmdline").read_bytes():
                    marks.append(f"keeper {entry.name}")
    for where in set(cgroups.parents(Path("/proc/self/cgroup").read_text()).values()):
        marks += [f"group {g.name}" for g in Path(where).iterdir() if g.name.startswith(f"crashlab-{pid}-")]
    marks += [line for line in Path("/proc/mounts").read_text().splitlines() if f"/{pid}-" in line]
    return marks


def until_nothing_is_left(pid, patience=15.0):
    deadline = time.monotonic() + patience
    while left(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left(pid)


def start_holder(backend, then):
    name = backend.name
    source = HOLDER.format(name=name, Name=type(backend).__name__, then=then)
    process = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    assert left(process.pid)
    return process


@pytest.mark.parametrize(
    ("then", "sent"),
    [
        ("time.sleep(600)", signal.SIGKILL),
        ("try: time.sleep(600)\nexcept KeyboardInterrupt: backend.close()", signal.SIGINT),
    ],
    ids=["kill -9", "Ctrl-C"],
)
def test_a_process_that_is_ended_leaves_nothing(backend, then, sent):
    process = start_holder(backend, then)
    process.send_signal(sent)
    process.communicate()
    assert until_nothing_is_left(process.pid) == []


def test_what_is_left_when_the_keepers_die_too_is_removed_at_the_next_start(backend):
    process = start_holder(backend, "time.sleep(600)")
    keepers = [int(mark.split()[1]) for mark in left(process.pid) if mark.startswith("keeper")]
    assert keepers
    # All at once: one that outlives the others begins to clean up, and takes its own children with it.
    for sent in (signal.SIGSTOP, signal.SIGKILL):
        for pid in (*keepers, process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sent)
    process.communicate()
    assert left(process.pid)  # at least the folder
    deadline = time.monotonic() + 15
    while left(process.pid) and time.monotonic() < deadline:
        folders.remove_left_behind()  # what is still on its way out is the next start's to remove
        time.sleep(0.05)
    assert left(process.pid) == []


def test_success_failure_and_timeout_leave_nothing_in_this_process(backend):
    def story():
        box = Sandbox(backend, Limits(wall_clock=20))
        box.write("f", "x")
        box.run(["sh", "-c", "mkdir -p a/b; chmod 000 a; sleep 600 & exit 1"])
        with pytest.raises(SandboxFailure):
            box.run(["sleep", "60"], timeout=0.05)
        box.spawn(["sleep", "600"])
        workspace = box._box.workspace
        box.close()
        gc.collect()
        return list(Path("/proc/self/fd").iterdir()), workspace

    story()
    first, folder = story()
    second, _ = story()
    assert len(first) == len(second)
    assert not folder.exists()
    assert not [mark for mark in left(os.getpid()) if mark.startswith("process")]


def test_names_tell_whose_it_is():
    own = cgroups.own_name(os.getpid(), "1")
    _, pid, start, namespace, _ = own.split("-")
    assert not cgroups.is_left_behind(own)
    assert cgroups.is_left_behind(f"crashlab-{pid}-1-{namespace}-1")  # the pid was another's before
    assert cgroups.is_left_behind(f"{2**22 + 1}-{start}-{namespace}-x")
    assert not cgroups.is_left_behind(f"{2**22 + 1}-{start}-1-x")  # of another container
    assert not cgroups.is_left_behind("somebody-elses")


def test_where_groups_may_be_made(tmp_path):
    for path in ("memory/a", "pids", "user.slice/app.slice/x.scope"):
        (tmp_path / path).mkdir(parents=True)
    root = str(tmp_path)
    assert cgroups.parents("4:memory:/a\n3:pids:/\n2:cpu:/\n", root) == {
        "memory": f"{root}/memory/a",
        "pids": f"{root}/pids/",
    }
    table = "0::/user.slice/app.slice/x.scope\n"
    assert cgroups.parents(table, root) == {}
    (tmp_path / "user.slice/app.slice/cgroup.subtree_control").write_text("cpu memory pids\n")
    found = cgroups.parents(table, root)
    assert found == {
        "unified": f"{root}/user.slice/app.slice",
        "home": f"{root}/user.slice/app.slice/x.scope",
    }


def test_two_backends_of_one_process_have_a_group_each():
    made = [Local(), Local()]
    boxes = [Sandbox(backend, Limits()) for backend in made]
    counts = [box.run(["true"]).oom_kills for box in boxes]
    for box, backend in zip(boxes, made, strict=True):
        box.close()
        backend.close()
    assert counts[0] == counts[1]  # both counted by the kernel, or neither
