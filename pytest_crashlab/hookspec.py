"""Every hook that a project or another plugin may implement.

Implement them in a ``conftest.py`` or a plugin as plain functions of these names, or mark them with
``pytest_crashlab.hookimpl``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crashlab.records.trial import TrialRow
    from pytest_crashlab.sandbox.base import Backend

hookspec = pluggy.HookspecMarker("pytest")
hookimpl = pluggy.HookimplMarker("pytest")


@hookspec(firstresult=True)
def pytest_crashlab_classify_exception(exception: BaseException, phase: str) -> str | None:
    """Name the outcome label of an exception, or None to leave it to the next.

    ``exception`` what was raised; ``phase`` "run" (the target), "prepare" or "verify". The first
    answer counts; without one the built-in table decides.
    """


@hookspec
def pytest_crashlab_redact(text: str) -> str:  # type: ignore[empty-body]
    """Return ``text`` without the secrets that you know and the package does not.

    Called with every text before it is stored, and before the package looks for secrets itself; each
    implementation is given what the one before it returned. Called in the processes that run tests,
    often. Where it raises or returns no text, the text is not stored at all.
    """


@hookspec
def pytest_crashlab_trial_recorded(row: TrialRow) -> None:
    """Called in the controlling process after one attempt of a trial was written to the journal."""


@hookspec
def pytest_crashlab_run_finished(run_id: str, status: str) -> None:
    """Called in the controlling process after a run was sealed, before it is compared."""


@hookspec
def pytest_crashlab_gate_decided(run_id: str, exit_code: int, word: str | None) -> None:
    """Called in the controlling process when the gate has decided (``word`` None: no comparison)."""


@hookspec
def pytest_crashlab_register_sandboxes() -> Sequence[Backend]:  # type: ignore[empty-body]
    """Give the backends of sandboxes that tests may ask for by name.

    What each of their methods does is said in ``pytest_crashlab.sandbox.base``. One that has the
    name of a built-in backend takes its place.
    """
