"""One row per attempt of a trial: what every number is computed from."""

from __future__ import annotations

import json
from enum import StrEnum
from json.encoder import encode_basestring_ascii
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_crashlab.records.outcome import Decision, Kind

if TYPE_CHECKING:
    from collections.abc import Callable


# Begins what an answer without an id of its own is known by: request, text, and the second it was made.
STAMPED = "~"


class Phase(StrEnum):
    """The moments of a trial."""

    PREPARE = "prepare"
    RUN = "run"
    VERIFY = "verify"
    RECORD = "record"


class TrialRow(NamedTuple):
    """What one attempt of one trial came to. Narrow: no inputs, outputs or traces.

    Give and read its fields by name; their order is none to rely on. (A named tuple, since one is made
    for each trial and a frozen data class takes four times as long.)

    ``case`` the case's node id; ``trial`` 1..k; ``attempt`` 1.. (set by whoever records);
    ``phase`` where the outcome was decided; ``start`` seconds since the epoch; ``duration`` seconds
    from set-up to the end of tear-down; ``run_duration`` seconds the target itself took, None where
    it never ran; ``prepare_s``, ``verify_s`` and ``record_s`` seconds of the other phases, one after the
    other around it, None where one never began or is not apart from another; ``worker`` the process
    ("main", "gw0"; "unknown" where nobody could say); ``site`` file:line that assigned the outcome;
    ``message`` one line, at most 300 characters; ``record_error`` what failed in tear-down beside an outcome
    that stands. ``tokens_in``, ``tokens_out`` and ``cost_usd`` (US dollars) are what the target used, without
    what a judge did, None where that was not measured, never 0 for it;
    ``cost_basis`` "billed" or "estimated", None without a cost; ``prompt`` the prompts that it said it
    used (NAME@VERSION, commas between), None where it said nothing; ``models`` those that answered the
    target (PROVIDER:MODEL, commas between), None where no call was seen.

    What begins with ``judge_`` is what the judges used, apart from all of this, None where none was asked:
    ``judge_calls`` attempts at requests, ``judge_s`` seconds of those that were answered; ``judge_voted``
    judgements in which two votes or more could be read, and ``judge_split`` those in which they disagreed.

    ``replayed`` True where answers of a provider came from a recording, so that the trial repeats another
    one and ``run_duration`` is not known; None elsewhere. ``answers`` what the provider's answers are known
    by when they come again, with blanks between, and ``cached`` whether one of them came from a cache; both
    None where no answer could be told from others.
    """

    case: str
    trial: int
    outcome: str | None
    kind: Kind | None
    start: float
    duration: float
    attempt: int = 1
    phase: Phase | None = None
    infra_healthy: bool | None = None
    target_completed: bool | None = None
    t: float | None = None
    horizon: float | None = None
    t_unit: str | None = None
    run_duration: float | None = None
    prepare_s: float | None = None
    verify_s: float | None = None
    record_s: float | None = None
    worker: str = "main"
    site: str | None = None
    failure_class: str | None = None
    message: str | None = None
    record_error: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    cost_basis: str | None = None
    prompt: str | None = None
    models: str | None = None
    judge_calls: int | None = None
    judge_tokens_in: int | None = None
    judge_tokens_out: int | None = None
    judge_s: float | None = None
    judge_cost_usd: float | None = None
    judge_cost_basis: str | None = None
    judge_models: str | None = None
    judge_voted: int | None = None
    judge_split: int | None = None
    replayed: bool | None = None
    answers: str | None = None
    cached: bool | None = None

    @property
    def decision(self) -> Decision | None:
        """What this attempt counts as; None for a row without an outcome."""
        return None if self.kind is None else self.kind.decision

    def to_json(self) -> str:
        """One line of ASCII JSON without the fields that are None."""
        known = [
            key + _LITERALS.get(value.__class__, json.dumps)(value)
            for key, value in zip(_KEYS, self, strict=True)
            if value is not None
        ]
        return f"{{{','.join(known)}}}"

    @classmethod
    def from_mapping(cls, data: dict[str, Any]) -> TrialRow:
        """The row of a decoded ``to_json`` line; keys of later formats are passed over."""
        known = {name: data[name] for name in _FIELDS if name in data}
        known["kind"] = None if data.get("kind") is None else Kind(data["kind"])
        known["phase"] = None if data.get("phase") is None else Phase(data["phase"])
        known.setdefault("outcome", None)
        return cls(**known)


def _float(value: float) -> str:
    return float.__repr__(value) if isfinite(value) else json.dumps(value)


# json.dumps for one short value mostly sets itself up, and a row is written per trial.
_LITERALS: dict[type, Callable[[Any], str]] = {
    str: encode_basestring_ascii,
    int: int.__repr__,
    float: _float,
    bool: lambda value: "true" if value else "false",
    Kind: encode_basestring_ascii,
    Phase: encode_basestring_ascii,
}
_FIELDS = TrialRow._fields
_KEYS = tuple(f'"{name}":' for name in _FIELDS)
