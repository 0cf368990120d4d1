"""What the processes of a run tell each other to stop: providers that are down, a budget that is reached."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import StoreError
from pytest_crashlab.store.atomic import write_whole
from pytest_crashlab.store.layout import CONTROL

if TYPE_CHECKING:
    from pathlib import Path

NOT_ASKED = " is not asked any more: "


def stops_in(folder: Path) -> dict[str, dict[str, str]]:
    """Provider -> ``label`` and ``why`` it is not asked any more; empty where nobody has said so."""
    return dict(_said(folder).get("stopped", {}))


def tell_stops(folder: Path, stops: dict[str, dict[str, str]]) -> None:
    """Tell the other processes which providers are not asked any more."""
    _tell(folder, stopped=stops)


def budget_in(folder: Path) -> str | None:
    """Why no trial is started any more; None where the budget is not reached."""
    why = _said(folder).get("budget")
    return None if why is None else str(why)


def tell_budget(folder: Path, why: str) -> None:
    """Tell the other processes that no trial is to be started any more."""
    _tell(folder, budget=why)


def _tell(folder: Path, **said: Any) -> None:
    # this process knows; a disk that is full is told elsewhere
    with contextlib.suppress(StoreError):
        write_whole(folder / CONTROL, json.dumps({**_said(folder), **said}).encode())


def _said(folder: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / CONTROL).read_bytes()))
    except (OSError, ValueError):
        return {}


def sentence(provider: str, stop: dict[str, str], run_id: str) -> str:
    """What a session says of a provider that it does not ask any more."""
    return (
        f"{provider}{NOT_ASKED}{stop['why']}. Trials that need it are undecided and cost nothing; once it is "
        f"back, pytest --crashlab-resume={run_id} runs them."
    )


BUDGET = "The budget is reached: "


def budget_sentence(why: str, run_id: str) -> str:
    """What a session says of a budget that is reached."""
    return f"{BUDGET}{why}. No further trial was started; pytest --crashlab-resume={run_id} runs the rest."
