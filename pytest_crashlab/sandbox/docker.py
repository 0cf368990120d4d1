"""The backend ``docker``: each command in a container of its own, by the Docker API.

Needs a daemon on this machine (Docker, or Podman's service), since it shows the sandbox's folder to the
container. The client is the docker SDK, imported when the backend is first asked for.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pytest_crashlab.sandbox import cgroups, processes
from pytest_crashlab.sandbox.base import SandboxFailure, hides_itself, shown
from pytest_crashlab.sandbox.container import SCRIPT, ContainedCommand
from pytest_crashlab.sandbox.kept import Machine
from pytest_crashlab.sandbox.removing import remove

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crashlab.sandbox.base import Command
    from pytest_crashlab.sandbox.limits import Limits

Pull = Literal["never", "missing", "always"]
__tracebackhide__ = hides_itself
LABEL = "pytest-crashlab"
"""On each container: the session that made it, and the boot of the machine."""
_WORK = "/workspace"
_NOBODY = 65534
_TIMEOUT = 120  # seconds for one answer of the daemon; a pull reports its progress more often
_OWN_PROCESSES = 3  # the script, its watch, the start of the program
_WATCH_LATE = 10  # seconds behind the wall clock at which a container ends by itself, its test being gone


class Docker:
    """Containers of one ``image``; ``pull`` when it is fetched, ``readable`` more paths of this machine."""

    name = "docker"
    isolates = "own users, processes, files, network, in a container for each command; the kernel is shared"

    def __init__(
        self, image: str | None = None, pull: Pull = "missing", readable: Sequence[str] = ()
    ) -> None:
        self.image = image
        self._pull = pull
        self._readable = tuple(str(Path(path).resolve()) for path in readable)
        self._machine = Machine()
        self._clients = threading.local()
        self._version: str | None = None
        self._checked: tuple[str | None] | None = None
        self._ready = False
        self._others: dict[tuple[str, Pull], Docker] = {}
        self._lock = threading.Lock()

    def of_image(self, image: str, pull: Pull) -> Docker:
        """The same backend with another image."""
        if (image, pull) == (self.image, self._pull):
            return self
        return self._others.setdefault((image, pull), Docker(image, pull, self._readable))

    def unavailable(self) -> str | None:
        """Why no daemon answers, with what to do; whether the image is there, :meth:`open` finds out."""
        if self._checked is None:
            self._checked = (self._try(),)
        return self._checked[0]

    def _try(self) -> str | None:
        where = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
        try:
            _sdk()
            _knock(where)
            client = self.client()
            client.ping()
        except ImportError:
            return "the docker SDK is not installed; install it with: pip install 'pytest-crashlab[docker]'"
        except Exception as error:  # noqa: BLE001  the SDK lets those of its HTTP client through
            return f"no daemon answers at {where} ({said(error, 120)}); start Docker, or set DOCKER_HOST"
        return None

    def client(self) -> Any:
        """The connection of this thread to the daemon."""
        found = getattr(self._clients, "client", None)
        if found is None:
            found = _sdk().from_env(version=self._version, timeout=_TIMEOUT).api
            self._version = found.api_version  # not asked for again
            self._clients.client = found
        return found

    def disconnect(self) -> None:
        """Close the connection of this thread."""
        found = getattr(self._clients, "client", None)
        if found is not None:
            del self._clients.client
            found.close()

    def open(self, limits: Limits) -> DockerBox:  # noqa: ARG002  each command says its own
        """A fresh sandbox; raises :class:`SandboxFailure` where there is no image for it."""
        if self.image is None:
            raise SandboxFailure(
                "sandbox_error",
                "the sandbox 'docker' needs an image; write for example 'docker image=python:3.12-slim'",
            )
        with self._lock:
            if not self._ready:
                self._have_image(self.image)
                remove_left_behind(self.client())
                self._ready = True
        try:
            return DockerBox(self, self._machine, self._readable)
        except OSError as error:
            raise SandboxFailure("sandbox_error", f"no folder for a sandbox can be made: {error}") from error

    def _have_image(self, image: str) -> None:
        """Pull the image where the policy says so."""
        errors = _sdk().errors
        client = self.client()
        try:
            if self._pull != "always":
                with contextlib.suppress(errors.ImageNotFound):
                    client.inspect_image(image)
                    return
            if self._pull == "never":
                raise SandboxFailure("sandbox_error", f"the image {image!r} is not here, and pull=never")
            name, tag = _tagged(image)
            for said in client.pull(name, tag=tag, stream=True, decode=True):
                if "error" in said:
                    raise SandboxFailure("sandbox_error", _not_pulled(image, said["error"]))
            client.inspect_image(image)
        except (errors.DockerException, OSError) as error:
            raise SandboxFailure("sandbox_error", _not_pulled(image, error)) from error

    def close(self) -> None:
        """Leave no container and no folder behind."""
        for other in self._others.values():
            other.close()
        self._others = {}
        self._machine.close()
        self.disconnect()


def _knock(where: str) -> None:
    """Raise the system's own error where nobody listens; the SDK would also leave a socket open."""
    if where.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as tried:
            tried.settimeout(_TIMEOUT)
            tried.connect(where.removeprefix("unix://"))


def _sdk() -> Any:
    return importlib.import_module("docker")


def _not_pulled(image: str, error: object) -> str:
    return f"the image {image!r} could not be pulled: {said(error)}"


def said(error: object, width: int = 400) -> str:
    """What a daemon, or the client of it, has to say, without the address of the request."""
    return shown(str(getattr(error, "explanation", None) or error), width)


def _tagged(image: str) -> tuple[str, str | None]:
    """The name and the tag of an image, the latter "latest" unless named; a digest is part of the name."""
    if "@" in image:
        return image, None
    name, colon, tag = image.rpartition(":")
    return (name, tag) if colon and "/" not in tag else (image, "latest")


def _mine() -> dict[str, str]:
    return {LABEL: processes.identity(os.getpid()), f"{LABEL}.boot": _boot()}


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def remove_left_behind(client: Any) -> list[str]:
    """Remove the containers of sessions on this machine that have ended; their ids."""
    removed = []
    for container in client.containers(all=True, filters={"label": [f"{LABEL}.boot={_boot()}"]}):
        if cgroups.is_left_behind(f"{container['Labels'].get(LABEL, '')}-"):
            with contextlib.suppress(Exception):  # another session may be at it
                client.remove_container(container["Id"], force=True, v=True)
                removed.append(container["Id"])
    return removed


class DockerBox:
    """A folder that the containers of its commands share, one after the other or at the same time."""

    def __init__(self, backend: Docker, machine: Machine, readable: Sequence[str]) -> None:
        self._backend = backend
        self._machine = machine
        self._readable = readable
        self._user = _NOBODY if os.getuid() == 0 else os.getuid()
        self.workspace = machine.new_folder(self._user if os.getuid() == 0 else None)
        self._running: list[ContainedCommand] = []
        self._reports: list[Path] = []

    def start(self, command: Command, limits: Limits) -> ContainedCommand:
        """Start a command; raises :class:`SandboxFailure` where its container cannot be made or started."""
        report = self._machine.new_folder(None)
        report.chmod(0o711)
        self._reports.append(report)

        def make() -> Container:
            made = self._backend.client().create_container_from_config(self._config(command, limits, report))
            return Container(self._backend, made["Id"])

        try:
            running = ContainedCommand(command, limits, self.workspace, report, make)
        except SandboxFailure:
            raise
        except Exception as error:  # the SDK lets those of its HTTP client through
            raise SandboxFailure("sandbox_error", f"no container can be started: {said(error)}") from error
        self._running = [other for other in self._running if not other.has_ended]
        self._running.append(running)
        return running

    def _config(self, command: Command, limits: Limits, report: Path) -> dict[str, Any]:
        env = {"HOME": _WORK, "TMPDIR": "/tmp", "LANG": "C.UTF-8", **command.env}  # noqa: S108  inside
        return {
            "Image": self._backend.image,
            "Entrypoint": ["/bin/sh", "-c", SCRIPT, "sandbox", f"{_WORK}/{command.cwd}", *_numbers(limits)],
            "Cmd": list(command.argv),
            "Env": [f"{name}={value}" for name, value in env.items()],
            "User": f"{self._user}:{self._user}",
            "WorkingDir": _WORK,
            "Hostname": "sandbox",
            "Labels": _mine(),
            "Tty": False,
            "OpenStdin": True,
            "StdinOnce": True,
            "AttachStdin": True,
            "AttachStdout": True,
            "AttachStderr": True,
            "HostConfig": self._host_config(limits, report),
        }

    def _host_config(self, limits: Limits, report: Path) -> dict[str, Any]:
        binds = [f"{self.workspace}:{_WORK}:rw", f"{report}:/.crashlab:ro"]
        binds += [f"{path}:{path}:ro" for path in self._readable]
        size = "" if limits.disk is None else f",size={limits.disk}"
        found: dict[str, Any] = {
            "Binds": binds,
            "NetworkMode": "bridge" if limits.network == "on" else "none",
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "ReadonlyRootfs": True,
            "Tmpfs": {"/tmp": f"rw,nosuid,nodev,mode=1777{size}"},  # noqa: S108  inside
            "LogConfig": {"Type": "none"},  # what is written goes to the test, not to a file of the daemon
        }
        if limits.memory is not None:
            found |= {"Memory": limits.memory, "MemorySwap": limits.memory}
        if limits.processes is not None:
            found["PidsLimit"] = limits.processes + _OWN_PROCESSES
        if limits.disk is not None:
            found["ShmSize"] = limits.disk
        return found

    def close(self) -> None:
        """End what runs and remove the folders."""
        for running in self._running:
            running.request_stop()
        for running in self._running:
            running.abandon()
        self._running = []
        for folder in (self.workspace, *self._reports):
            remove(folder)
        self._reports = []


def _numbers(limits: Limits) -> tuple[str, str, str]:
    """What the script sets by itself: a daemon that is given some limits forgets its own others."""
    late = 0 if limits.wall_clock is None else math.ceil(limits.wall_clock) + _WATCH_LATE
    cpu = 0 if limits.cpu is None else max(1, math.ceil(limits.cpu))
    blocks = 0 if limits.file_size is None else max(1, limits.file_size // 512)
    return str(late), str(cpu), str(blocks)


class Attached:
    """What the SDK gives for the streams of a container: a file of a socket of a response."""

    def __init__(self, found: Any) -> None:
        self._found = found
        self.sock: socket.socket = getattr(found, "_sock", found)

    def close(self) -> None:
        """Close all three: each keeps the connection open by itself."""
        for held in (getattr(self._found, "_response", None), self._found, self.sock):
            if held is not None:
                with contextlib.suppress(OSError, ValueError):  # closed with another of them
                    held.close()


class Container:
    """One container of a backend, from any thread."""

    def __init__(self, backend: Docker, name: str) -> None:
        self._backend = backend
        self._name = name

    def attach(self) -> Attached:
        """Connect to its streams, before it starts."""
        params = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        return Attached(self._backend.client().attach_socket(self._name, params=params))

    def start(self) -> None:
        """Start it."""
        self._backend.client().start(self._name)

    def kill(self) -> None:
        """End it where it runs, and let go of what this thread holds of the daemon."""
        with contextlib.suppress(_sdk().errors.APIError):  # it has ended
            self._backend.client().kill(self._name)
        self._disconnect()

    def state(self) -> dict[str, Any]:
        """What the daemon says of it."""
        return dict(self._backend.client().inspect_container(self._name)["State"])

    def remove(self) -> None:
        """End and remove it, and let go of what this thread holds of the daemon."""
        with contextlib.suppress(_sdk().errors.NotFound):
            self._backend.client().remove_container(self._name, force=True, v=True)
        self._disconnect()

    def _disconnect(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            self._backend.disconnect()
