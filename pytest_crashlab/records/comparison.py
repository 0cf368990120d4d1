"""Two runs beside each other: the verdict and everything it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Word(StrEnum):
    """The verdict of a comparison."""

    REGRESSED = "Regressed"
    IMPROVED = "Improved"
    NO_CHANGE = "No change"
    NO_VERDICT = "No verdict"


class Policy(StrEnum):
    """How a verdict becomes an exit code."""

    STRICT = "strict"
    REGRESSIONS = "regressions"
    REPORT = "report"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why no verdict can be given: a stable ``code`` and a sentence for people.

    ``measurable`` is True only for "not proven inside the margin": something was measured, and more
    trials would settle it.
    """

    code: str
    text: str
    measurable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something a reader should know that does not change the verdict."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A 95 % interval with the name of what it covers ("these cases", "new cases") and its method."""

    low: float
    high: float
    of: str
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A case that is not compared, and why (``unsampled``, ``skipped_b``, ``pass_rule_changed`` ...)."""

    case: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseDelta:
    """One compared case: passes over decided trials in each run.

    ``p`` two-sided p-value of the case alone; ``proven`` -1 proven worse, +1 proven better, 0 not
    proven, after the correction for looking at every case.
    """

    case: str
    a_pass: int
    a_n: int
    b_pass: int
    b_n: int
    p: float
    proven: int = 0

    @property
    def delta(self) -> float:
        """Candidate pass share minus baseline pass share, in -1..1."""
        return self.b_pass / self.b_n - self.a_pass / self.a_n


class ClaimKind(StrEnum):
    """What a comparison can be about."""

    CHANGE = "change"
    SAME_SOURCE = "same-source control"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Whether what is measured changed between two runs, as far as they declare it, in a sentence."""

    kind: ClaimKind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """A number of both runs beside each other, and their difference with its 95 % interval.

    ``group`` rate, check, outcome or measure; ``unit`` "share" or what the number is counted in.
    ``a`` and ``b`` as measured over what both have; ``a_n`` and ``b_n`` trials behind them. ``p`` of
    the test where there is one; ``proven`` -1 lower, +1 higher, 0 not proven, after the correction for
    looking at several. ``why`` says why a value is not known. ``exploratory``: named after the run.
    """

    group: str
    name: str
    unit: str
    a: float | None
    b: float | None
    a_n: int
    b_n: int
    of: str
    cases: int
    delta: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    proven: int = 0
    why: str | None = None
    exploratory: bool = False
    kind: str | None = None
    basis: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A candidate run (B) beside its baseline (A). Shares are in 0..1, not percent.

    ``delta``, ``p``, ``these`` and ``half_width`` are None where nothing could be measured.
    ``possible_drop`` is how far the candidate may still be below the baseline; ``mde`` the drop that
    trials of this number would detect in four of five tries. ``interleaved`` whether the trials of
    both ran in turn, so that a change of the day or the provider hits both; ``aa_factor`` how much
    noisier equal runs were than their trials explain, None while not calibrated; ``comparisons`` how many
    gave a word in this store so far, this one included. ``claim`` what the
    difference can be about; ``trial_pairs`` how many pairs of trials were compared where both runs
    share their seeds, None where trials are no pairs; ``deltas`` what else differs.
    """

    baseline_id: str
    candidate_id: str
    word: Word
    sentence: str
    method: str
    margin: float | None = None
    delta: float | None = None
    p: float | None = None
    these: Interval | None = None
    new: Interval | None = None
    new_shown: bool | None = None
    half_width: float | None = None
    possible_drop: float | None = None
    mde: float | None = None
    cases: tuple[CaseDelta, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    reasons: tuple[Reason, ...] = ()
    notes: tuple[Note, ...] = ()
    honesty: str = ""
    new_cases_never_passing: tuple[str, ...] = ()
    interleaved: bool = False
    aa_factor: float | None = None
    comparisons: int | None = None
    claim: Claim | None = None
    trial_pairs: int | None = None
    deltas: tuple[Delta, ...] = ()

    @property
    def proven_worse(self) -> tuple[CaseDelta, ...]:
        """Cases that are proven worse on their own."""
        return tuple(c for c in self.cases if c.proven < 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdResult:
    """A threshold of a case or of the run: ``met`` None while undecided trials could still settle it.

    ``case`` is None for a threshold on the whole run.
    """

    name: str
    case: str | None
    met: bool | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What a policy made of a comparison and the thresholds: 0 passes, 1 fails, 10 no verdict."""

    exit_code: int
    policy: Policy
    because: tuple[str, ...] = ()
    failed_cases: tuple[str, ...] = ()
