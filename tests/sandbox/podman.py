"""A daemon that speaks the Docker API, for tests: podman with settings of its own, and an image made here."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

IMAGE = "localhost/crashlab-test:1"
_SETTINGS = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
_PARTS = {
    "podman": "podman",
    "runc": "runc",
    "/bin/busybox": "busybox-static",
}


def missing() -> str | None:
    """What to install for these tests."""
    packages = [package for program, package in _PARTS.items() if shutil.which(program) is None]
    if packages:
        return f"a container daemon for tests needs: apt-get install {' '.join(packages)}"
    return None if os.getuid() == 0 else "podman is started by root here"


@contextlib.contextmanager
def service(folder: Path):
    """A running service; yields the address for ``DOCKER_HOST``, and ends with all that it keeps."""
    (folder / "containers.conf").write_text(_SETTINGS)
    environment = os.environ | {"CONTAINERS_CONF": str(folder / "containers.conf")}
    run = Path(tempfile.mkdtemp(prefix="pod-", dir="/tmp"))  # podman refuses one of more than 50 characters
    podman = ["podman", "--root", str(folder / "root"), "--runroot", str(run)]
    try:
        yield from _serve(folder, podman, environment)
    finally:
        shutil.rmtree(run, ignore_errors=True)


def _serve(folder: Path, podman: list[str], environment: dict[str, str]):
    made = subprocess.run(
        [*podman, "import", str(_image(folder)), IMAGE],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"podman does not work here: {made.stderr.strip().splitlines()[-1:]}")
    socket = folder / "podman.sock"
    log = (folder / "service.log").open("wb")
    running = subprocess.Popen(
        [*podman, "system", "service", "--time=0", f"unix://{socket}"],
        env=environment,
        stdout=subprocess.DEVNULL,
        cwd=folder,  # it leaves files where it was started
        stderr=log,
    )
    try:
        deadline = time.monotonic() + 30
        while not socket.exists() and time.monotonic() < deadline and running.poll() is None:
            time.sleep(0.05)
        if not socket.exists():
            pytest.skip(f"podman's service does not start here: {(folder / 'service.log').read_text()}")
        yield f"unix://{socket}"
    finally:
        log.close()
        running.terminate()
        running.wait(20)
        subprocess.run([*podman, "rm", "-af"], env=environment, capture_output=True, check=False)
        subprocess.run([*podman, "rmi", "-af"], env=environment, capture_output=True, check=False)
        subprocess.run(["umount", "-l", str(folder / "root" / "overlay")], capture_output=True, check=False)


def _image(folder: Path) -> Path:
    """busybox under all its names, and a folder for temporary files."""
    files = folder / "image"
    (files / "bin").mkdir(parents=True)
    (files / "tmp").mkdir()
    (files / "tmp").chmod(0o1777)
    shutil.copy("/bin/busybox", files / "bin" / "busybox")
    names = subprocess.run(["/bin/busybox", "--list"], capture_output=True, text=True, check=True).stdout
    for name in set(names.split()) - {"busybox"}:
        (files / "bin" / name).symlink_to("busybox")
    archive = folder / "image.tar"
    subprocess.run(["tar", "-C", str(files), "-cf", str(archive), "."], check=True)
    return archive
