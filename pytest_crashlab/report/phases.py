"""What a trial's phases took, and how its end reads: a wrong result is not a verifier that never ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_VERIFIER = {
    "not_verified": "A required check was never evaluated: nothing is known of the target's result.",
    "misdeclared": "The test contradicts itself: nothing is known of the target's result.",
    "judge_error": "The judge gave no answer: nothing is known of the target's result.",
}
_INSTRUMENT = {
    "prepare": "Prepare failed: the target never ran.",
    "run": "The instrument failed while the target ran: the verifier never ran.",
    "verify": "The verifier failed itself: nothing is known of the target's result.",
}
_TARGET = {
    "run": "The target failed while it ran.",
    "verify": "The verifier ran, and the target's result is wrong.",
}


def phase_times(row: Mapping[str, Any]) -> tuple[tuple[str, float, float], ...]:
    """(phase, start, duration) in seconds from the trial's start, for the phases that are known.

    A plain test's body is run and verification in one and counts as run.
    """
    found = []
    offset = 0.0
    for phase, column in (
        ("prepare", "prepare_s"),
        ("run", "run_duration"),
        ("verify", "verify_s"),
        ("record", "record_s"),
    ):
        seconds = row.get(column)
        if seconds is not None and row.get("prepare_s") is not None:
            found.append((phase, offset, float(seconds)))
            offset += float(seconds)
    return tuple(found)


def ended(row: Mapping[str, Any]) -> str | None:
    """In a sentence what the end of a trial says, None for a pass, an excluded trial or an unknown phase."""
    kind, phase, label = row.get("kind"), row.get("phase"), row.get("outcome")
    if phase is None:
        return None
    if kind == "instrument":
        return _VERIFIER.get(str(label)) or _INSTRUMENT.get(str(phase))
    if kind == "crash" and phase == "run":
        return "The target ended by an error of its own: the verifier never ran."
    return _TARGET.get(str(phase)) if kind in ("fail", "crash") else None
