"""A run: one session with its trials."""

from __future__ import annotations

import secrets
import time
from enum import StrEnum

_ALPHABET = "abcdefghjkmnpqrstvwxyz23456789"


class RunStatus(StrEnum):
    """How a session ended, or that it has not."""

    RUNNING = "running"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"


def new_run_id(now: float | None = None) -> str:
    """A run id that sorts by start: ``20261130T063300Z-k3v9q2`` (UTC, six random characters)."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    return f"{stamp}-{''.join(secrets.choice(_ALPHABET) for _ in range(6))}"
