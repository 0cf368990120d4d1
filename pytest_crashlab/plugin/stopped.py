"""Which providers the processes of a run do not ask any more, as they say it to each other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_crashlab.store.layout import CONTROL

if TYPE_CHECKING:
    from pathlib import Path

NOT_ASKED = " is not asked any more: "


def stops_in(folder: Path) -> dict[str, dict[str, str]]:
    """Provider -> ``label`` and ``why`` it is not asked any more; empty where nobody has said so."""
    try:
        said: Any = json.loads((folder / CONTROL).read_bytes())
    except (OSError, ValueError):
        return {}
    return dict(said["stopped"])


def sentence(provider: str, stop: dict[str, str], run_id: str) -> str:
    """What a session says of a provider that it does not ask any more."""
    return (
        f"{provider}{NOT_ASKED}{stop['why']}. Trials that need it are undecided and cost nothing; once it is "
        f"back, pytest --crashlab-resume={run_id} runs them."
    )
