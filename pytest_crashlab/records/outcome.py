"""Outcomes: declared labels that say what happened, and what each means for the gate."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pytest_crashlab.records.line import LONGEST_LINE, is_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Kind(StrEnum):
    """What an outcome speaks of: the system under test, the instrument, or neither."""

    PASS = "pass"
    FAIL = "fail"
    CRASH = "crash"
    INSTRUMENT = "instrument"
    EXCLUDED = "excluded"

    @property
    def decision(self) -> Decision:
        """What a trial with an outcome of this kind counts as."""
        return _DECISIONS[self]


class Decision(StrEnum):
    """What a trial contributes to the gate."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    EXCLUDED = "excluded"


_DECISIONS = {
    Kind.PASS: Decision.PASS,
    Kind.FAIL: Decision.FAIL,
    Kind.CRASH: Decision.FAIL,
    Kind.INSTRUMENT: Decision.INCONCLUSIVE,
    Kind.EXCLUDED: Decision.EXCLUDED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One label of a vocabulary.

    ``completed`` says whether a target that ended so did all it was asked to do: by default yes for
    a pass and a fail, no for a crash and an instrument failure. A used-up horizon is a fail with
    ``completed=False``.
    """

    label: str
    definition: str
    kind: Kind
    completed: bool

    def __post_init__(self) -> None:
        definition: object = self.definition  # authors write anything
        if not is_line(self.label):
            raise ValueError(
                f"Outcome({self.label!r}) needs a label: one line of text, at most {LONGEST_LINE} characters"
            )
        if not isinstance(definition, str):
            raise TypeError(f"Outcome({self.label!r}) has the definition {definition!r}; write a sentence")

    @classmethod
    def passed(cls, label: str, definition: str, *, completed: bool = True) -> Outcome:
        """The system under test did what was asked."""
        return cls(label=label, definition=definition, kind=Kind.PASS, completed=completed)

    @classmethod
    def failed(cls, label: str, definition: str, *, completed: bool = True) -> Outcome:
        """The system under test did something else than was asked."""
        return cls(label=label, definition=definition, kind=Kind.FAIL, completed=completed)

    @classmethod
    def crashed(cls, label: str, definition: str, *, completed: bool = False) -> Outcome:
        """The system under test ended by an error of its own; it fails the trial."""
        return cls(label=label, definition=definition, kind=Kind.CRASH, completed=completed)

    @classmethod
    def instrument(cls, label: str, definition: str, *, completed: bool = False) -> Outcome:
        """Something between the test and the system failed; the trial gives no decision."""
        return cls(label=label, definition=definition, kind=Kind.INSTRUMENT, completed=completed)

    @property
    def decision(self) -> Decision:
        """What a trial with this outcome counts as."""
        return self.kind.decision


PASSED = Outcome.passed("passed", "The test passed.")
FAILED = Outcome.failed("failed", "An assertion or a required check about the target did not hold.")
CRASHED = Outcome.crashed("crashed", "The target raised an exception of its own.")
SKIPPED = Outcome(label="skipped", definition="The test was skipped.", kind=Kind.EXCLUDED, completed=False)
XFAILED = Outcome(
    label="xfailed",
    definition="The test failed as its xfail mark expects.",
    kind=Kind.EXCLUDED,
    completed=False,
)

_INSTRUMENT_DEFINITIONS = {
    "provider_rate_limit": "The model provider refused a call because too many were made.",
    "provider_quota": "The provider account has no balance or quota left.",
    "provider_auth": "The provider refused the credentials.",
    "provider_error": "The provider answered with an error of its own.",
    "provider_timeout": "The provider did not answer in time.",
    "bad_response": "The provider's answer could not be read.",
    "network_error": "A connection, DNS look-up or transfer failed.",
    "sandbox_error": "The sandbox could not be built, started or used.",
    "sandbox_oom": "The sandbox ran out of the memory its machine gave it.",
    "wall_clock": "A limit of the machine's clock ended the trial.",
    "setup_error": "A fixture failed before the target ran.",
    "teardown_error": "A fixture failed after the target had been judged.",
    "verifier_error": "The code that judges the target failed itself.",
    "judge_error": "The judge model gave no usable answer.",
    "not_verified": "A required check was declared and never evaluated.",
    "misdeclared": "The test assigned an outcome that its own checks or vocabulary contradict.",
    "worker_lost": "The process that ran the trial ended before it reported.",
    "interrupted": "The session was stopped while the trial ran.",
    "budget_spent": "The trial used up its own budget, or its case's, and made no further call.",
    "replay_missing": "The recording that answers in the provider's place has no answer to a request.",
}

INSTRUMENT_OUTCOMES: dict[str, Outcome] = {
    label: Outcome.instrument(label, definition) for label, definition in _INSTRUMENT_DEFINITIONS.items()
}

BUILTIN_OUTCOMES: dict[str, Outcome] = {
    **{o.label: o for o in (PASSED, FAILED, CRASHED, SKIPPED, XFAILED)},
    **INSTRUMENT_OUTCOMES,
}


FINDINGS = {
    "no_definition": "a label without a definition",
    "or_in_definition": 'a definition with "or" in it, which may be two labels',
    "duplicate_label": "a label that is declared twice",
    "no_pass_label": "a vocabulary without a label of the kind pass",
    "kinds_differ": "a label that two vocabularies of a session give different kinds",
    "never_assigned": "a label that many trials never came to",
    "several_phases": "a label that is assigned in different phases of a trial",
    "mixed_causes": "a label of a crash, a time-out or a pass that several places assign",
}
OF_THE_WHOLE = frozenset({"no_pass_label"})


class Vocabulary:
    """The outcomes that a test may end with.

    ``failed``, ``crashed``, the excluded labels and the instrument labels are always there; a label
    given here with the same name replaces the built-in definition, never its kind. ``silence`` names
    findings about it (see :data:`FINDINGS`) that are no mistakes, each with the reason:
    ``{"mixed_causes:crashed": "both lines catch the same exception"}``.
    """

    __slots__ = ("_by_label", "declared", "silence")

    def __init__(self, *outcomes: Outcome, silence: Mapping[str, str] | None = None) -> None:
        self.declared: tuple[Outcome, ...] = outcomes
        for outcome in outcomes:
            if not isinstance(outcome, Outcome):
                raise TypeError(
                    "Vocabulary takes Outcome values such as Outcome.passed(label, definition), "
                    f"got {outcome!r}"
                )
            builtin = BUILTIN_OUTCOMES.get(outcome.label)
            if builtin is not None and outcome.kind is not builtin.kind:
                raise ValueError(
                    f"the label {outcome.label!r} is built in and of the kind {builtin.kind.value}; give the "
                    f"outcome of the kind {outcome.kind.value} another label"
                )
        base = {label: o for label, o in BUILTIN_OUTCOMES.items() if label != PASSED.label}
        if not outcomes:
            base[PASSED.label] = PASSED
        self._by_label: dict[str, Outcome] = {**base, **{o.label: o for o in outcomes}}
        self.silence: dict[str, str] = dict(silence or {})
        for key, reason in self.silence.items():
            self._refuse_silence(key, reason)

    def _refuse_silence(self, key: str, reason: object) -> None:
        finding, _, label = key.partition(":")
        whole = finding in OF_THE_WHOLE
        if finding not in FINDINGS or (label not in self._by_label and not (whole and not label)):
            raise ValueError(
                f"silence={{{key!r}: ...}} names no finding about this vocabulary; write "
                f"'finding:label' with one of {', '.join(FINDINGS)}"
            )
        if not isinstance(reason, str) or not reason.strip():
            raise ValueError(f"silence={{{key!r}: ...}} needs the reason why it is no mistake")

    def __contains__(self, label: object) -> bool:
        return isinstance(label, str) and label in self._by_label

    def __getitem__(self, label: str) -> Outcome:
        return self._by_label[label]

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self._by_label.values())

    @property
    def default_pass(self) -> Outcome:
        """The first pass label: what a trial gets that names no outcome and fails nothing."""
        return next((o for o in self.declared if o.kind is Kind.PASS), PASSED)


DEFAULT_VOCABULARY = Vocabulary()
