"""What a reader hands over, and how bad rows are told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crashlab.importing.rows import SourceRow

_SHOWN = 3


@dataclass(slots=True, kw_only=True)
class Source:
    """The rows of one source. ``kind`` its format; ``sha256`` of its bytes.

    ``planned`` trials a case where the source says it; ``cases`` all of its cases, also those without a
    trial; ``status`` how the source says it ended; ``labels`` fields of the manifest it knows.
    """

    kind: str
    path: str
    sha256: str
    rows: list[SourceRow]
    planned: int | None = None
    cases: list[str] = field(default_factory=list)
    status: str = "completed"
    labels: dict[str, Any] = field(default_factory=dict)


def refuse(path: str, problems: Sequence[tuple[str, str]]) -> None:
    """Raise `UsageError` that names the first bad rows and counts them all; nothing for none."""
    if not problems:
        return
    first = "; ".join(f"{where}: {why}" for where, why in problems[:_SHOWN])
    more = f" and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    rows = "1 bad row" if len(problems) == 1 else f"{len(problems)} bad rows"
    raise UsageError(f"{path} has {rows} ({first}{more}); nothing was imported.")
