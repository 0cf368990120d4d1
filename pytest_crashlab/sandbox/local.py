"""The backend ``local``: a private folder, limits and a clean environment, and no isolation at all."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_crashlab.sandbox.base import SandboxFailure, hides_itself
from pytest_crashlab.sandbox.folders import MARK
from pytest_crashlab.sandbox.kept import KeptBox, Machine

if TYPE_CHECKING:
    from pytest_crashlab.sandbox.limits import Limits
__tracebackhide__ = hides_itself


class Local:
    """Processes of this user: they see and may do all that the test itself can."""

    name = "local"
    isolates = "private folder, limits, clean environment; nothing is kept from a hostile program"

    def __init__(self) -> None:
        self._machine = Machine()

    def unavailable(self) -> str | None:
        """None on Linux."""
        return None if sys.platform == "linux" else f"needs Linux, and this is {sys.platform}"

    def open(self, limits: Limits) -> KeptBox:
        """A fresh folder; raises :class:`SandboxFailure` where the network is to be cut."""
        refuse_network(limits)
        workspace, scratch = (self._machine.new_folder(None) for _ in range(2))
        return KeptBox(self._machine, workspace, _describe, scratch)

    def close(self) -> None:
        """Leave nothing behind."""
        self._machine.close()


def refuse_network(limits: Limits) -> None:
    """The network of the machine is there, whatever is declared: say so instead of pretending."""
    if limits.network in ("off", "loopback"):
        raise SandboxFailure(
            "sandbox_error",
            f"the sandbox 'local' cannot keep network={limits.network!r}; use bubblewrap, or network='on'",
        )


def _describe(box: KeptBox) -> dict[str, Any]:
    python = str(Path(sys.executable).parent)
    env = {
        "PATH": f"{python}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(box.workspace),
        "TMPDIR": str(box.scratch),
        "LANG": "C.UTF-8",
        MARK: box.mark,
    }
    cwd = str(box.workspace)
    return {"env": env, "cwd": cwd, "cage": True, "counts_user": False, "check": refuse_network}
