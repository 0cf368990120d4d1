"""Which cases of two runs can be laid beside each other, and why the others cannot.

A pair is a case that both runs decided at least once, asked the same (content) and judged by the same
rule. Every other case of either run is left out under exactly one reason:

``new_in_b``           the candidate has it, the baseline never planned it
``gone_in_b``          the baseline has it, the candidate's suite does not
``unsampled``          planned or there, but not selected or never begun in one of the runs
``content_changed``    it asks something else now
``pass_rule_changed``  what makes it pass is another rule now, or is known in one run only
``skipped_a``, ``skipped_b``       every trial was skipped or an expected failure
``undecided_a``, ``undecided_b``   trials ran, none gave a decision
``no_outcome_a``, ``no_outcome_b`` trials began, none reported an outcome

``_a`` is the baseline, ``_b`` the candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_crashlab.compare.counts import count_cases
from pytest_crashlab.records.comparison import LeftOut

if TYPE_CHECKING:
    from pytest_crashlab.compare.counts import CaseCount, RunCounts
    from pytest_crashlab.store import StoredRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One case in the baseline (``a``) and in the candidate (``b``)."""

    a: CaseCount
    b: CaseCount

    @property
    def case(self) -> str:
        """The id that both share."""
        return self.b.case

    @property
    def rule_known(self) -> bool:
        """Whether it is known what makes the case pass."""
        return self.b.pass_rule is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """The pairs in the candidate's order, and each case that is left out with its reason."""

    pairs: tuple[Pair, ...]
    left_out: tuple[LeftOut, ...]

    def left_out_as(self, reason: str) -> tuple[str, ...]:
        """Ids of the cases that are left out for ``reason``."""
        return tuple(c.case for c in self.left_out if c.reason == reason)


def decided_identities(baseline: StoredRun) -> dict[str, list[str | None]]:
    """Case id -> [content, pass rule] of every case that the baseline decided at least once.

    A candidate's case with the same identity will have a pair, so its trials are the gate's to judge.
    """
    return {c.case: [c.content, c.pass_rule] for c in count_cases(baseline) if c.decided}


def pair(a: RunCounts, b: RunCounts, *, a_partial: bool = False, b_partial: bool = False) -> Pairing:
    """Pair the cases of baseline ``a`` and candidate ``b``.

    ``partial`` says that a run selected some of its suite's cases: a case it does not have is then
    ``unsampled`` rather than new or gone.
    """
    in_a, in_b = a.by_id(), b.by_id()
    pairs: list[Pair] = []
    left_out: list[LeftOut] = []
    for case in b:
        other = in_a.get(case.case)
        reason = ("unsampled" if a_partial else "new_in_b") if other is None else _obstacle(other, case)
        if other is not None and reason is None:
            pairs.append(Pair(a=other, b=case))
        elif reason is not None:
            left_out.append(LeftOut(case=case.case, reason=reason))
    left_out += [
        LeftOut(case=case.case, reason="unsampled" if b_partial else "gone_in_b")
        for case in a
        if case.case not in in_b
    ]
    return Pairing(pairs=tuple(pairs), left_out=tuple(left_out))


def _obstacle(a: CaseCount, b: CaseCount) -> str | None:
    if a.content != b.content:
        return "content_changed"
    if a.pass_rule != b.pass_rule:
        return "pass_rule_changed"
    return _nothing_decided(a, "a") or _nothing_decided(b, "b")


def _nothing_decided(case: CaseCount, arm: str) -> str | None:
    if case.decided:
        return None
    if case.undecided:
        return f"undecided_{arm}"
    if case.no_outcome:
        return f"no_outcome_{arm}"
    if case.scheduled == 0:
        return f"skipped_{arm}"
    return "unsampled"
