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
    is_significant,
    new_cases,
    normal_rule,
    paired_verdict,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pytest_crashlab.compare.pairing import Pair


class Method(StrEnum):
    """How the verdict's word is tested: exact over trials (mid-p or not), or the simple rule over cases."""

    MID_P = "mid-p"
    EXACT = "exact"
    NORMAL = "normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The mean difference, its test and its interval. ``contradictory``: the test and the mean disagree."""

    delta: float
    p: float
    low: float
    high: float
    half_width: float
    contradictory: bool = False

    @property
    def word(self) -> Word:
        """What the numbers alone say: a proven direction, or no change."""
        if not is_significant(self.p) or self.contradictory or self.delta == 0:
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


def measure(arms: Arms, method: Method) -> Measured:
    """Test the mean difference by ``method``; there has to be at least one pair."""
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
    verdict = paired_verdict(arms.a_pass, arms.a_n, arms.b_pass, arms.b_n, variant=variant)
    return Measured(
        delta=verdict.delta,
        p=verdict.p_value,
        low=verdict.low,
        high=verdict.high,
        half_width=verdict.half_width,
        contradictory=verdict.contradictory,
    )


def these_interval(measured: Measured, method: Method) -> Interval:
    """The measured interval by its name."""
    name = "normal approximation over cases" if method is Method.NORMAL else f"exact over trials, {method}"
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
    word: Word, pairs: Sequence[Pair], undecided_only: Sequence[Pair], method: Method
) -> str | None:
    """What would change if the candidate's undecided trials were fails; None if the word would stand.

    ``undecided_only`` are cases the candidate never decided, left out of the comparison itself.
    """
    everything = [*pairs, *undecided_only]
    undecided = sum(p.b.undecided for p in everything)
    if not undecided:
        return None
    counted = measure(Arms.of(everything).with_undecided_failing(everything), method)
    if counted.word is word:
        return None
    trials = "1 undecided trial" if undecided == 1 else f"{undecided} undecided trials"
    return (
        f"With the {trials} of this run counted as failed the verdict would be {counted.word} "
        f"({points(counted.delta)} points {'lower' if counted.delta < 0 else 'higher'})."
    )
