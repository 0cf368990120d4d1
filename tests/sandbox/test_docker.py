"""The docker backend, against the Docker API of a real podman."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest

from pytest_crashlab.sandbox import docker
from pytest_crashlab.sandbox.base import EndedBy, SandboxFailure
from pytest_crashlab.sandbox.limits import Limits
from pytest_crashlab.sandbox.sandbox import Sandbox
from pytest_crashlab.testing import SandboxConformance
from tests.sandbox import podman

pytest.importorskip("docker", reason="needs the docker SDK: pip install 'pytest-crashlab[docker]'")


@pytest.fixture(scope="session")
def daemon(tmp_path_factory):
    """Podman's service, which `docker.from_env` finds."""
    if (reason := podman.missing()) is not None:
        pytest.skip(reason)
    with podman.service(tmp_path_factory.mktemp("podman")) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", address)
        yield address


@pytest.fixture(scope="module")
def backend(daemon):
    made = docker.Docker(podman.IMAGE, "never")
    yield made
    made.close()
    assert containers() == []


@pytest.fixture
def box(backend):
    made = Sandbox(backend, Limits(wall_clock=30))
    yield made
    made.close()


def containers(remove=False):
    asking = docker.Docker()
    try:
        return docker.remove_left_behind(asking.client()) if remove else asking.client().containers(all=True)
    finally:
        asking.close()


class TestDocker(SandboxConformance):
    """The suite that every backend is held to."""

    server: ClassVar = ("nc", "-l", "-p", "18767", "-e", "echo", "hello")


def test_a_killed_child_under_a_parent_that_exits_with_0_is_seen(box):
    hog = "head -c 400000000 /dev/zero | tail -n 1"
    with pytest.raises(SandboxFailure) as caught:
        box.run(["sh", "-c", f"({hog}); exit 0"], memory="64M")
    result = caught.value.result
    assert (caught.value.label, result.ended_by, result.exit_code) == ("sandbox_oom", EndedBy.MEMORY_LIMIT, 0)
    assert result.oom_kills >= 1
    assert 32 << 20 <= result.peak_memory <= 64 << 20
    assert result.peak_is == "tree"


def test_a_refused_process_and_a_cut_off_file_are_seen(box):
    many = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do sleep 5 & done; exit 2"
    assert box.run(["sh", "-c", many], processes=4, limit_is="target").ended_by is EndedBy.PROCESS_LIMIT
    big = ["sh", "-c", "head -c 2000000 /dev/zero > big; exit 1"]
    assert box.run(big, file_size="1M", limit_is="target").ended_by is EndedBy.FILE_LIMIT
    assert box.run(["sh", "-c", "exit 3"], file_size="1M").exit_code == 3


def test_no_command_takes_no_time(box):
    assert all(box.run(["true"]).duration > 0 for _ in range(5))


def test_a_duration_is_never_shorter_than_the_program_ran(box):
    """Also where this process is too busy to hear of its beginning at once."""
    over = threading.Event()

    def spin():
        while not over.is_set():
            pass

    with ThreadPoolExecutor(4) as threads:
        for _ in range(4):
            threads.submit(spin)
        try:
            durations = [box.run(["sleep", "0.2"]).duration for _ in range(5)]
        finally:
            over.set()
    assert min(durations) >= 0.2


def test_what_a_hostile_program_finds(box, tmp_path):
    (tmp_path / "secret").write_text("of the host")
    script = f"""
    id -u; grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status
    cat {tmp_path}/secret /etc/shadow /.crashlab/x; ls /root /home
    touch /bin/x /x; mount -t tmpfs none /tmp; kill -9 {os.getpid()} 1; chroot / true
    ls /proc | grep -c '^[0-9]'
    """
    result = box.run(["sh", "-c", script])
    lines = result.stdout.split()
    assert lines[0] == ("65534" if os.getuid() == 0 else str(os.getuid()))
    assert [lines[i + 1] for i, word in enumerate(lines) if word.endswith(":")] == ["0" * 16, "0" * 16, "1"]
    assert int(lines[-1]) < 12  # the script, what it starts, and nothing of the host
    assert "of the host" not in result.stdout
    assert result.stderr.count("No such file") >= 4
    assert result.stderr.count("Read-only file system") == 2
    assert os.getpid() != 1
    assert box.files() == []


def test_its_own_first_process_cannot_be_killed_from_inside(box):
    assert box.run(["sh", "-c", "kill -KILL 1; exit 5"]).exit_code == 5


def test_what_a_program_writes_into_the_report_harms_itself_only(box):
    report = "/.crashlab/report"
    forged = f"printf 'ended 0\nbegan\nstart x\n\033[2J' > {report}; head -c 200000 /dev/zero > {report}"
    result = box.run(["sh", "-c", f"({forged}) & sleep 0.3; exit 4"], limit_is="target", check=False)
    assert result.ended_by in {EndedBy.EXITED, EndedBy.SIGNALLED}
    assert box.run(["sh", "-c", "exit 6"]).exit_code == 6


def test_endless_output_costs_no_memory_here(box):
    result = box.run(["yes"], timeout=1, limit_is="target", output="4k")
    assert result.ended_by is EndedBy.WALL_CLOCK
    assert len(result.out.head) + len(result.out.tail) == 4096
    assert result.out.total > 1 << 20


def test_much_input_and_output_at_a_time(box):
    data = os.urandom(3 << 20)
    result = box.run(["cat"], stdin=data, output="8M")
    assert result.out.head + result.out.tail == data


def test_temporary_files_have_room_and_end_with_the_command(box):
    assert box.run(["sh", "-c", "echo 1 > /tmp/f && cat /tmp/f"]).stdout == "1\n"
    assert box.run(["sh", "-c", "ls /tmp"]).stdout == ""


@pytest.mark.parametrize(
    ("image", "pull", "why"),
    [
        ("localhost/none:9", "never", "the image 'localhost/none:9' is not here, and pull=never"),
        ("localhost:1/none:9", "missing", "the image 'localhost:1/none:9' could not be pulled: "),
        (None, "missing", "the sandbox 'docker' needs an image"),
    ],
)
def test_without_its_image_there_is_no_sandbox(daemon, image, pull, why):
    made = docker.Docker(image, pull)
    assert made.unavailable() is None
    with pytest.raises(SandboxFailure) as caught:
        made.open(Limits())
    made.close()
    assert caught.value.label == "sandbox_error"
    assert str(caught.value).startswith(why)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the SDK leaves a socket
def test_without_a_daemon_one_sentence(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    said = docker.Docker("x").unavailable()
    assert said.startswith("no daemon answers at unix:///nowhere/docker.sock (")
    assert said.endswith("); start Docker, or set DOCKER_HOST")
    assert "\n" not in said
    gc.collect()


@pytest.mark.parametrize(
    ("image", "name", "tag"),
    [
        ("python", "python", "latest"),
        ("python:3.12", "python", "3.12"),
        ("host:5000/a/b", "host:5000/a/b", "latest"),
        ("host:5000/a/b:1", "host:5000/a/b", "1"),
        ("a@sha256:0123", "a@sha256:0123", None),
    ],
)
def test_the_tag_of_an_image(image, name, tag):
    assert docker._tagged(image) == (name, tag)


KILLED = """
import sys
import threading
from pytest_crashlab.sandbox.docker import Docker
from pytest_crashlab.sandbox.limits import Limits
from pytest_crashlab.sandbox.sandbox import Sandbox
box = Sandbox(Docker(sys.argv[1], "never"), Limits(wall_clock=60))
process = box.spawn(["sh", "-c", "echo up; exec sleep 600"])
while "up" not in process.stdout: pass
print("up", flush=True)
process.wait()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=lambda s: s.name)
def test_a_session_that_is_killed_or_interrupted_leaves_no_container(daemon, how):
    session = subprocess.Popen(
        [sys.executable, "-c", KILLED, podman.IMAGE], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert session.stdout.readline() == b"up\n"
    (before,) = [c["Id"] for c in containers()]
    session.send_signal(how)
    session.communicate(timeout=60)
    if how is signal.SIGKILL:  # the next session that uses the backend removes it
        assert containers(remove=True) == [before]
    deadline = time.monotonic() + 10
    while containers() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert containers() == []


@pytest.mark.slow
def test_a_container_that_nobody_watches_ends_behind_its_wall_clock(daemon):
    script = KILLED.replace("wall_clock=60", "wall_clock=5")
    session = subprocess.Popen([sys.executable, "-c", script, podman.IMAGE], stdout=subprocess.PIPE)
    assert session.stdout.readline() == b"up\n"
    session.kill()
    session.communicate()
    assert [c["State"] for c in containers()] == ["running"]
    deadline = time.monotonic() + 30
    while containers()[0]["State"] == "running" and time.monotonic() < deadline:
        time.sleep(0.2)
    assert [c["State"] for c in containers()] == ["exited"]
    assert len(containers(remove=True)) == 1


TEST = """
import pytest

@pytest.mark.crashlab(sandbox={MARK})
def test_inside(sandbox):
    assert sandbox.backend == "docker"
    assert sandbox.run(["sh", "-c", "echo $HOME"]).stdout == "/workspace\\n"
"""


@pytest.fixture
def inner(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(mark, *arguments):
        pytester.makepyfile(test_it=TEST.replace("{MARK}", repr(mark)))
        return pytester.runpytest_inprocess("-p", "pytest_crashlab.plugin", *arguments)

    return run


def test_by_marker_and_by_setting(daemon, inner):
    result = inner({"backend": "docker", "image": podman.IMAGE, "pull": "never"}, "--trials=2")
    result.assert_outcomes(passed=2)
    setting = f"--crashlab-sandbox=docker image={podman.IMAGE} pull=never memory=64M"
    result = inner({}, setting)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["crashlab: sandbox: docker (own users, processes, files, network, in a container*"]
    )
    assert containers() == []


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        (
            "docker",
            "*: the sandbox 'docker' needs an image; write for example 'docker image=python:3.12-slim'*",
        ),
        ("local image=x", "*: image= is for the sandbox 'docker', and this one is 'local'*"),
        ("docker image=x pull=often", "*: pull='often' is not known; choose of never, missing, always*"),
    ],
)
def test_settings_that_cannot_be_followed(inner, mark, why):
    result = inner(mark)
    assert result.ret == 4
    (result.stderr if "ERROR" in result.stderr.str() else result.stdout).fnmatch_lines([why])
