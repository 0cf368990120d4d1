"""What a report shows, before anything is drawn: plain values, None where a number is not known.

Every renderer (terminal, JSON, JUnit) reads these and nothing else. Shares are in 0..1; texts are as
they were recorded, and neutralising them is each renderer's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_crashlab.report.checks import CheckLineView


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """Which run it is and how much of its suite it ran; ``judged`` what its own session's gate said.

    ``cached`` trials with an answer out of a cache, None where no answer could be told from others;
    ``amendments`` what was excluded after the fact, and why; ``facts`` sentences about its split, its
    data sets, its prompt and its configuration; ``shared`` sentences about what its trials had in common.
    """

    id: str
    status: str
    name: str | None
    release: str | None
    prompt: str | None
    external_id: str | None
    dataset: str | None
    dataset_version: str | None
    split: str | None
    started: str
    finished: str | None
    cases: int
    total_cases: int
    k: int
    trials: int
    partial: bool
    replayed: bool
    cached: int | None
    judged: str | None
    because: tuple[str, ...]
    warnings: tuple[str, ...]
    amendments: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteView:
    """A place that assigned an outcome, and how often; ``site`` None where it is not known."""

    site: str | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeView:
    """One line of the outcome distribution; ``label`` None for missing trials."""

    label: str | None
    kind: str | None
    count: int
    share: float
    sites: tuple[SiteView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentView:
    """One label as one place assigned it: ``trials`` in the run, ``before`` in its baseline (None: alone)."""

    label: str | None
    kind: str | None
    site: str | None
    trials: int
    before: int | None
    definition: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomesView:
    """The labels of one run; ``unused`` declared ones that no trial came to; ``findings`` of the lint."""

    run: str
    trials: int
    assignments: tuple[AssignmentView, ...]
    unused: tuple[str, ...]
    findings: tuple[ReasonView, ...]
    amendments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRateView:
    """The mean over ``cases`` of the share of their ``trials`` decided trials that passed.

    Intervals for these cases, for new cases of this kind, and of the simple rule (1.96 standard errors).
    """

    value: float | None
    these_low: float | None
    these_high: float | None
    new_low: float | None
    new_high: float | None
    normal_low: float | None
    normal_high: float | None
    cases: int
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RateView:
    """A rate with its interval: ``numerator`` of ``denominator`` trials of ``cases`` cases, in words ``of``.

    The interval is for new cases of this kind, None where one case is all there is.
    """

    name: str
    of: str
    numerator: int
    denominator: int
    cases: int
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointView:
    """pass^j or pass@j over ``cases`` cases with all trials decided."""

    j: int
    value: float | None
    low: float | None
    high: float | None
    cases: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatsView:
    """What repeating told. ``flips`` None: no case has the 3 trials it takes to see one."""

    pass_hat: tuple[PointView, ...]
    pass_at: tuple[PointView, ...]
    flips: int | None
    flips_of: int
    disagreement: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseView:
    """One case of the run. ``outcome``: All pass, Flip, Never, Incomplete or Skipped.

    ``gated``: the gate judges the case, not its single trials.
    """

    case: str
    outcome: str
    gated: bool
    passes: int
    decided: int
    undecided: int
    missing: int
    excluded: int
    planned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCaseView:
    """One compared case; ``proven`` -1 worse, +1 better, 0 not proven.

    ``message`` what the first failed trial of a case that got worse said.
    """

    case: str
    a_pass: int
    a_n: int
    b_pass: int
    b_n: int
    delta: float
    p: float
    proven: int
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutView:
    """Cases that are not compared for one reason: its code and what it means."""

    reason: str
    words: str
    cases: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonView:
    """A reason for no verdict, or a note: a stable code and a sentence."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaView:
    """A number of both runs beside each other; ``why`` a dash stands where one does.

    ``group`` rate, check, outcome or measure; ``a_n`` and ``b_n`` trials behind it, in words ``of``;
    ``proven`` -1 lower, +1 higher, 0 not proven. ``exploratory``: named after the run.
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
    delta: float | None
    low: float | None
    high: float | None
    p: float | None
    proven: int
    why: str | None
    exploratory: bool
    basis: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictView:
    """The verdict card.

    ``headline`` is the word with the cases it would hide; ``a_rate`` and ``b_rate``
    are the pass rates of baseline and candidate over the compared cases; ``moved`` are the compared cases
    that are not as before, clearest first. ``these_method`` and ``new_method`` name the intervals.
    """

    baseline_id: str
    word: str
    headline: str
    sentence: str
    method: str
    margin: float | None
    delta: float | None
    a_rate: float | None
    b_rate: float | None
    p: float | None
    low: float | None
    high: float | None
    of: str | None
    these_method: str | None
    new_low: float | None
    new_high: float | None
    new_shown: bool | None
    new_method: str | None
    half_width: float | None
    possible_drop: float | None
    mde: float | None
    compared: int
    worse: int
    better: int
    unchanged: int
    cases: tuple[ComparedCaseView, ...]
    left_out: tuple[LeftOutView, ...]
    reasons: tuple[ReasonView, ...]
    notes: tuple[ReasonView, ...]
    honesty: str
    interleaved: bool
    aa_factor: float | None
    comparisons: int | None
    expected_false_alarms: float | None
    claim: str | None
    claim_text: str | None
    trial_pairs: int | None
    deltas: tuple[DeltaView, ...]
    new_cases_never_passing: tuple[str, ...]

    @property
    def moved(self) -> tuple[ComparedCaseView, ...]:
        """Cases whose pass share changed, by p-value, worse before better."""
        changed = [c for c in self.cases if c.delta != 0]
        return tuple(sorted(changed, key=lambda c: (c.p, c.delta)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdView:
    """A threshold; ``met`` None while open trials could still settle it."""

    name: str
    case: str | None
    met: bool | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GateView:
    """What the policy made of it, what the exit code means and why it is that."""

    exit_code: int
    policy: str
    means: str
    because: tuple[str, ...]
    failed_cases: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageView:
    """What the target took a trial: ``value`` in ``unit`` with its interval for new cases of this kind.

    ``trials`` of ``of`` trials that ran told it, over ``cases`` cases; ``total`` their sum; ``basis`` what
    a cost rests on; ``why`` the value or a bound is not known.
    """

    name: str
    unit: str
    value: float | None
    low: float | None
    high: float | None
    total: float | None
    trials: int
    of: int
    cases: int
    basis: str | None
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgesView:
    """What the judges took, never part of what the target took; ``usage`` over trials that asked one.

    ``flips`` of ``flips_of`` judgements of two readable votes or more had votes that disagree: the judge is
    unsure, whatever the target did. None where no judgement had two.
    """

    models: tuple[str, ...]
    usage: tuple[UsageView, ...]
    flips: int | None
    flips_of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """A run, alone or beside its baseline.

    ``anomalies`` what asks for a look at the instrument before a number is believed; ``silenced`` what
    the author of a vocabulary said is no mistake, with the reason; ``judges`` None: no trial asked one.
    """

    run: RunView
    outcomes: tuple[OutcomeView, ...]
    pass_rate: PassRateView
    rates: tuple[RateView, ...]
    repeats: RepeatsView
    usage: tuple[UsageView, ...]
    judges: JudgesView | None = None
    anomalies: tuple[ReasonView, ...]
    silenced: tuple[ReasonView, ...] = ()
    checks: tuple[CheckLineView, ...] = ()
    scheduled: int
    decided: int
    undecided: int
    missing: int
    excluded: int
    never: tuple[str, ...]
    skipped: tuple[str, ...]
    cases: tuple[CaseView, ...]
    thresholds: tuple[ThresholdView, ...]
    verdict: VerdictView | None
    gate: GateView | None
    baseline_line: str | None
    next_commands: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLineView:
    """One line of the list of runs, from a manifest alone.

    ``stale``: still running and unchanged for a day, so probably not finished; ``word`` the verdict
    its gate gave and ``exit_code`` what that came to; ``names`` the baselines it stands for;
    ``amended`` whether trials were excluded after the fact.
    """

    id: str
    status: str
    stale: bool
    name: str | None
    release: str | None
    prompt: str | None
    dataset: str | None
    dataset_version: str | None
    split: str | None
    branch: str | None
    commit: str | None
    cases: int
    k: int
    pass_rate: float | None
    undecided: int | None
    missing: int | None
    started: str
    word: str | None
    exit_code: int | None
    names: tuple[str, ...]
    amended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffView:
    """Two runs beside each other; ``shown`` says which of the compared cases were asked for.

    ``gate`` what the gate would say when asked with ``gate_options``; ``assignments`` the labels of both
    runs by the place that assigned them. ``failure_class`` the one asked for, which ``total`` of the
    ``shown_total`` cases have; ``classes`` what those fail as, with how many cases, most first.
    """

    baseline: RunView
    candidate: RunView
    verdict: VerdictView
    gate: GateView
    failure_class: str | None = None
    shown_total: int = 0
    classes: tuple[tuple[str, int], ...] = ()
    shown: str
    cases: tuple[ComparedCaseView, ...]
    total: int
    baseline_line: str | None
    gate_options: tuple[str, ...]
    assignments: tuple[AssignmentView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineLineView:
    """A name and the run it stands for.

    ``status`` None: the run is gone. ``drift``: the pass rate now minus that of the run it stood for
    ``drift_over`` promotions ago; None where either is not known.
    """

    name: str
    run: str
    status: str | None
    promoted: str | None
    commit: str | None
    pass_rate: float | None
    drift: float | None
    drift_over: int
