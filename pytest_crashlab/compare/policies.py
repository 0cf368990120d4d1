"""From evidence to an exit code. A policy never changes the evidence.

=========================================================  ======  ===========  ======
..                                                         strict  regressions  report
=========================================================  ======  ===========  ======
Regressed, a case proven worse, a threshold missed         1       1            0
Improved, No change                                        0       0            0
No verdict: not proven inside the margin                   10      0            0
No verdict: not measurable, or a threshold not settled     10      10           0
=========================================================  ======  ===========  ======

Under ``strict`` a new eval case that never passes fails as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.compare.sentences import count, several
from pytest_crashlab.records.comparison import Gate, Policy, Word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crashlab.records.comparison import Comparison, ThresholdResult

PASSES, FAILS, NO_VERDICT = 0, 1, 10


def decide(
    policy: Policy,
    comparison: Comparison | None,
    thresholds: Sequence[ThresholdResult] = (),
    *,
    bootstrap: bool = False,
) -> Gate:
    """Apply ``policy`` to a comparison (None: none was asked for) and to thresholds.

    ``bootstrap`` says that this run becomes the baseline that is not there yet: "no baseline yet" is
    then no reason to withhold a pass. A case that is proven worse counts unless the whole comparison
    cannot be measured; a missed threshold always counts.
    """
    failures, failed_cases = _failures(policy, comparison, thresholds)
    open_questions = _open_questions(policy, comparison, thresholds, bootstrap=bootstrap)
    if policy is Policy.REPORT:
        because = ("The policy report never fails a session.",) if failures or open_questions else ()
        return Gate(exit_code=PASSES, policy=policy, because=because)
    if failures:
        return Gate(exit_code=FAILS, policy=policy, because=tuple(failures), failed_cases=tuple(failed_cases))
    if open_questions:
        return Gate(exit_code=NO_VERDICT, policy=policy, because=tuple(open_questions))
    return Gate(exit_code=PASSES, policy=policy, because=tuple(_passing(comparison, bootstrap=bootstrap)))


def _failures(
    policy: Policy, comparison: Comparison | None, thresholds: Sequence[ThresholdResult]
) -> tuple[list[str], dict[str, None]]:
    because: list[str] = []
    cases: dict[str, None] = {}
    if comparison is not None:
        if comparison.word is Word.REGRESSED:
            because.append("The pass rate regressed.")
            cases.update(dict.fromkeys(c.case for c in comparison.cases if c.delta < 0))
        if _trusted(comparison) and (worse := [c.case for c in comparison.proven_worse]):
            verb = "is" if len(worse) == 1 else "are"
            because.append(f"{count(len(worse), 'case')} {verb} proven worse: {several(worse)}.")
            cases.update(dict.fromkeys(worse))
        if policy is Policy.STRICT and (new := comparison.new_cases_never_passing):
            verb = "passes" if len(new) == 1 else "pass"
            because.append(f"{count(len(new), 'new case')} never {verb}: {several(new)}.")
            cases.update(dict.fromkeys(new))
    for threshold in thresholds:
        if threshold.met is False:
            because.append(threshold.text)
            if threshold.case is not None:
                cases[threshold.case] = None
    return because, cases


def _trusted(comparison: Comparison) -> bool:
    """Whether single cases may be judged: nothing that was found speaks against the data.

    What the simple rule only notes is a doubt all the same.
    """
    return not any(n.code in _DOUBTS for n in comparison.notes) and all(
        r.measurable or r.code in _ABOUT_CERTAINTY for r in comparison.reasons
    )


_DOUBTS = frozenset({"case_lost", "clustered_failures_a", "clustered_failures_b", "unbalanced_instrument"})
# These say that something is not certain enough, not that the trials themselves are doubtful.
_ABOUT_CERTAINTY = frozenset({"broken_case", "contradictory"})


def _open_questions(
    policy: Policy,
    comparison: Comparison | None,
    thresholds: Sequence[ThresholdResult],
    *,
    bootstrap: bool,
) -> list[str]:
    reasons = () if comparison is None else comparison.reasons
    because = [
        r.text
        for r in reasons
        if (policy is not Policy.REGRESSIONS or not r.measurable)
        and not (bootstrap and r.code == "no_baseline")
    ]
    return because + [t.text for t in thresholds if t.met is None]


def _passing(comparison: Comparison | None, *, bootstrap: bool) -> list[str]:
    if comparison is None:
        return []
    because = [r.text for r in comparison.reasons if r.measurable]
    if because:
        because.append(_NO_PROOF_ASKED)
    if bootstrap:
        because += [r.text for r in comparison.reasons if r.code == "no_baseline"]
    return because


_NO_PROOF_ASKED = "The policy regressions does not ask for proof inside the margin; strict does."


def headline(comparison: Comparison) -> str:
    """The word of a comparison with the cases that it would hide: those proven worse one by one.

    "No change of the mean; 1 case is proven worse". Where the trials themselves are doubtful, or the
    mean has regressed, it is the word alone.
    """
    word, worse = comparison.word, len(comparison.proven_worse)
    if not worse or word is Word.REGRESSED or not _trusted(comparison):
        return word.value
    of = "" if word is Word.NO_VERDICT else " of the mean"
    said = "Improvement" if word is Word.IMPROVED else word.value
    return f"{said}{of}; {count(worse, 'case')} {'is' if worse == 1 else 'are'} proven worse"
