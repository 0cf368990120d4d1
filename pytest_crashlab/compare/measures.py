"""The measured side of a comparison: numbers from pairs, before any word is given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

import numpy as np

from pytest_crashlab.compare.sentences import points
from pytest_crashlab.records.comparison import CaseDelta, Interval, Word
from pytest_crashlab.stats import (
    case_tests,
    detectable_drop,
    drift_guard,
    is_significant,
    new_cases,
    normal_rule,
    paired_trials_verdict,
    paired_verdict,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from pytest_crashlab.compare.pairing import Pair
    from pytest_crashlab.compare.trialpairs import TrialPairs


class Method(StrEnum):
    """How the verdict's word is tested: exact over trials (mid-p or not), or the simple rule over cases."""

    MID_P = "mid-p"
    EXACT = "exact"
    NORMAL = "normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The mean difference, its test and its interval. ``contradictory``: the test and the mean disagree.

    ``exceeds_noise``: the change is larger than the noise between equal runs, where that is known.
    """

    delta: float
    p: float
    low: float
    high: float
    half_width: float
    contradictory: bool = False
    exceeds_noise: bool = True

    @property
    def word(self) -> Word:
        """What the numbers alone say: a proven direction, or no change."""
        proven = is_significant(self.p) and self.exceeds_noise
        if not proven or self.contradictory or self.delta == 0:
            return Word.NO_CHANGE
        return Word.REGRESSED if self.delta < 0 else Word.IMPROVED

    @property
    def possible_drop(self) -> float:
        """How far the candidate may still be below the baseline."""
        return max(0.0, -self.low)

    @property
    def possible_gain(self) -> float:
        """How far the candidate may still be above the baseline."""
        return max(0.0, self.high)

    def inside(self, margin: float) -> bool:
        """Whether the whole interval lies within ``margin`` of no difference."""
        return -margin <= self.low and self.high <= margin


def guarded(measured: Measured, arms: Arms, factor: float) -> Measured:
    """``measured`` held against the noise between equal runs: the A/A factor widens its interval.

    A change that does not exceed the widened noise is no proven change (``exceeds_noise`` False).
    """
    guard = drift_guard(arms.a_pass, arms.a_n, arms.b_pass, arms.b_n, factor=factor)
    if not guard.limit > 0:
        return measured
    return replace(
        measured,
        low=max(-1.0, min(measured.low, measured.delta - guard.limit)),
        high=min(1.0, max(measured.high, measured.delta + guard.limit)),
        half_width=max(measured.half_width, guard.limit),
        exceeds_noise=guard.exceeded,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """The pairs as arrays, one entry a case."""

    a_pass: npt.NDArray[np.int64]
    a_n: npt.NDArray[np.int64]
    b_pass: npt.NDArray[np.int64]
    b_n: npt.NDArray[np.int64]

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> Arms:
        """The decided trials of each pair."""
        return cls(
            a_pass=_ints([p.a.passes for p in pairs]),
            a_n=_ints([p.a.decided for p in pairs]),
            b_pass=_ints([p.b.passes for p in pairs]),
            b_n=_ints([p.b.decided for p in pairs]),
        )

    def with_undecided_failing(self, pairs: Sequence[Pair]) -> Arms:
        """The same with the candidate's undecided trials counted as fails."""
        return replace(self, b_n=self.b_n + _ints([p.b.undecided for p in pairs]))


def _ints(values: list[int]) -> npt.NDArray[np.int64]:
    return np.asarray(values, dtype=np.int64)


def measure(arms: Arms, method: Method, trials: TrialPairs | None = None) -> Measured:
    """Test the mean difference by ``method``; there has to be at least one pair.

    ``trials`` the pairs of trials of the same cases, where both runs share their seeds.
    """
    if method is Method.NORMAL:
        rule = normal_rule(arms.a_pass, arms.a_n, arms.b_pass, arms.b_n)
        return Measured(
            delta=rule.delta,
            p=rule.p_value,
            low=rule.delta - rule.half_width,
            high=rule.delta + rule.half_width,
            half_width=rule.half_width,
        )
    variant: Literal["mid-p", "exact"] = "exact" if method is Method.EXACT else "mid-p"
    if trials is None:
        verdict = paired_verdict(arms.a_pass, arms.a_n, arms.b_pass, arms.b_n, variant=variant)
    else:
        verdict = paired_trials_verdict(
            trials.both, trials.only_a, trials.only_b, trials.neither, variant=variant
        )
    return Measured(
        delta=verdict.delta,
        p=verdict.p_value,
        low=verdict.low,
        high=verdict.high,
        half_width=min(1.0, verdict.half_width),  # the distance to a far bound can be longer than any change
        contradictory=verdict.contradictory,
    )


def these_interval(
    measured: Measured, method: Method, *, paired: bool = False, factor: float | None = None
) -> Interval:
    """The measured interval by its name; ``paired`` by pairs of trials, ``factor`` what widened it."""
    over = "pairs of trials" if paired else "trials"
    name = f"exact over {over}" + (f", {method}" if method is Method.MID_P else "")
    if method is Method.NORMAL:
        name = "normal approximation over cases"
    elif factor is not None:
        name += f", widened by the A/A factor {factor:.2f}"
    of = "new cases" if method is Method.NORMAL else "these cases"
    return Interval(low=measured.low, high=measured.high, of=of, method=name)


def new_interval(arms: Arms) -> tuple[Interval | None, bool | None]:
    """The interval for new cases of this kind, and whether a change is shown for them; None below two."""
    result = new_cases(arms.a_pass, arms.a_n, arms.b_pass, arms.b_n)
    if not (np.isfinite(result.low) and np.isfinite(result.high)):
        return None, None
    interval = Interval(low=result.low, high=result.high, of="new cases", method="clustered MOVER-Wilson")
    return interval, bool(result.shown)


def detectable(arms: Arms) -> float | None:
    """The drop that this number of trials would detect in four of five tries."""
    return detectable_drop(arms.a_pass, arms.a_n, arms.b_n)


def case_deltas(pairs: Sequence[Pair], arms: Arms) -> tuple[CaseDelta, ...]:
    """Each pair with its own test and, corrected for looking at all of them, whether it is proven."""
    tests = case_tests(arms.a_pass, arms.a_n, arms.b_pass, arms.b_n)
    return tuple(
        CaseDelta(
            case=pair.case,
            a_pass=pair.a.passes,
            a_n=pair.a.decided,
            b_pass=pair.b.passes,
            b_n=pair.b.decided,
            p=float(p),
            proven=int(proven),
        )
        for pair, p, proven in zip(pairs, tests.p, tests.proven, strict=True)
    )


def sensitivity(
    word: Word,
    pairs: Sequence[Pair],
    undecided_only: Sequence[Pair],
    method: Method,
    *,
    factor: float | None = None,
    trials: Callable[[Sequence[str]], TrialPairs] | None = None,
) -> str | None:
    """What would change if the candidate's undecided trials were fails; None if the word would stand.

    ``undecided_only`` are cases the candidate never decided, left out of the comparison itself;
    ``factor`` the A/A factor; ``trials`` gives the pairs of trials where both runs share their seeds.
    """
    everything = [*pairs, *undecided_only]
    undecided = sum(p.b.undecided for p in everything)
    if not undecided:
        return None
    arms = Arms.of(everything).with_undecided_failing(everything)
    counted = measure(arms, method, None if trials is None else trials([p.case for p in everything]))
    if factor is not None and method is not Method.NORMAL:
        counted = guarded(counted, arms, factor)
    if counted.word is word:
        return None
    open_ = "1 undecided trial" if undecided == 1 else f"{undecided} undecided trials"
    return (
        f"With the {open_} of this run counted as failed the verdict would be {counted.word} "
        f"({points(counted.delta)} points {'lower' if counted.delta < 0 else 'higher'})."
    )
