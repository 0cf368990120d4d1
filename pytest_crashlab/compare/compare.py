"""Two runs in, a verdict out, with everything it rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_crashlab.compare import blockers, sentences
from pytest_crashlab.compare.caching import cache_blockers
from pytest_crashlab.compare.claims import are_interleaved, claim_of, share_seeds
from pytest_crashlab.compare.counts import count_cases
from pytest_crashlab.compare.deltas import all_deltas
from pytest_crashlab.compare.history import history_notes
from pytest_crashlab.compare.judges import judge_blockers, judge_notes
from pytest_crashlab.compare.labels import label_blockers
from pytest_crashlab.compare.measures import (
    Arms,
    Measured,
    Method,
    case_deltas,
    detectable,
    guarded,
    measure,
    new_interval,
    sensitivity,
    these_interval,
)
from pytest_crashlab.compare.notes import manifest_notes, pairing_notes
from pytest_crashlab.compare.pairing import Pair, Pairing, pair
from pytest_crashlab.compare.trialpairs import TrialPairs, only_paired, trial_pairs
from pytest_crashlab.errors import UsageError
from pytest_crashlab.records.comparison import Comparison, LeftOut, Note, Reason, Word
from pytest_crashlab.stats import is_significant, more_rounds

if TYPE_CHECKING:
    from pytest_crashlab.compare.counts import RunCounts
    from pytest_crashlab.compare.history import History
    from pytest_crashlab.records.comparison import CaseDelta
    from pytest_crashlab.store import StoredRun


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """What the user may ask of a comparison.

    ``method`` "mid-p", "exact" or "normal"; ``margin`` the smallest drop that matters, as a share
    (0.05 for 5 points), None for none; ``split`` the split that the gate wants measured;
    ``aa_factor`` how noisy equal runs are, None while not calibrated; ``outcomes`` labels, named now,
    whose rates to compare; ``history`` what was compared before, None where no store tells.
    Raises `UsageError` for a method or margin that cannot be.
    """

    method: str = Method.MID_P
    margin: float | None = None
    split: str | None = None
    aa_factor: float | None = None
    outcomes: tuple[str, ...] = ()
    history: History | None = None

    def __post_init__(self) -> None:
        if self.method not in list(Method):
            raise UsageError(f"There is no method {self.method!r}: use one of {', '.join(Method)}.")
        if self.margin is not None and not 0 < self.margin < 1:
            raise UsageError(
                f"The margin has to be a share between 0 and 1, not {self.margin}: write 0.05 for 5 points."
            )


def compare_runs(
    baseline: StoredRun, candidate: StoredRun, options: CompareOptions | None = None
) -> Comparison:
    """Compare ``candidate`` with ``baseline`` by case, and say what can be said about the difference.

    Reads the manifests and the narrow tables only. Every case of either run is compared or left out
    under one reason; every No verdict has at least one reason.
    """
    options = options or CompareOptions()
    method = Method(options.method)
    a, b = count_cases(baseline), count_cases(candidate)
    pairing = pair(a, b, a_partial=baseline.manifest.partial, b_partial=candidate.manifest.partial)
    unpaired = pairing
    trials = None
    if method is not Method.NORMAL and share_seeds(baseline.manifest, candidate.manifest):
        pairing, trials = _by_trials(baseline, candidate, pairing)
    reasons = [
        *blockers.manifest_blockers(baseline.manifest, candidate.manifest, split=options.split),
        *cache_blockers(baseline, candidate),
        *label_blockers(baseline, candidate),
        *blockers.undecided_blockers(a, b),
        *blockers.pairing_blockers(
            pairing, minimum=blockers.NORMAL_MINIMUM if method is Method.NORMAL else 1
        ),
        *judge_blockers(baseline, candidate, pairing),
        *blockers.balance_blockers(a, b),
        *blockers.cluster_blockers(baseline, candidate),
    ]
    beyond: list[Note] = []
    if method is Method.NORMAL:
        reasons, beyond = blockers.split_for_normal(reasons)
    new = pairing.left_out_as("new_in_b")
    notes = [
        *beyond,
        *pairing_notes(unpaired, b, new_never_passing := _never_passing(new, b)),
        *manifest_notes(baseline.manifest, candidate.manifest),
        *judge_notes(baseline, candidate, pairing),
        *history_notes(options.history),
    ]
    base = Comparison(
        baseline_id=baseline.manifest.id,
        candidate_id=candidate.manifest.id,
        word=Word.NO_VERDICT,
        sentence=sentences.no_verdict(None),
        method=method.value,
        margin=options.margin,
        left_out=pairing.left_out,
        reasons=tuple(reasons),
        honesty=_HONESTY[method],
        new_cases_never_passing=new_never_passing,
        interleaved=are_interleaved(baseline.manifest, candidate.manifest),
        aa_factor=options.aa_factor,
        comparisons=None if options.history is None else options.history.comparisons,
        claim=claim_of(baseline.manifest, candidate.manifest),
        trial_pairs=None if trials is None else trials.total,
        deltas=all_deltas(baseline, candidate, (a, b), options.outcomes),
    )
    if not pairing.pairs:
        return replace(base, notes=tuple(notes))
    arms = Arms.of(pairing.pairs)
    measured = measure(arms, method, trials)
    factor = None if method is Method.NORMAL else options.aa_factor
    if factor is not None:
        measured = guarded(measured, arms, factor)
    deltas = case_deltas(pairing.pairs, arms)
    if not reasons:
        doubts, more_notes = _doubts(measured, deltas, method, options.margin, arms)
        reasons += doubts
        notes += more_notes
        text = sensitivity(
            measured.word,
            pairing.pairs,
            _undecided_pairs(pairing, a, b),
            method,
            factor=factor,
            trials=None
            if trials is None
            else lambda cases: trial_pairs(baseline, candidate, cases, undecided_fail=True),
        )
        if text:
            notes.append(Note(code="sensitivity", text=text))
    word = Word.NO_VERDICT if reasons else measured.word
    new_of_kind, shown = new_interval(arms)
    return replace(
        base,
        word=word,
        sentence=_sentence(word, measured, method, options.margin),
        delta=measured.delta,
        p=_known(measured.p),
        these=None
        if math.isnan(measured.low)
        else these_interval(measured, method, paired=trials is not None, factor=factor),
        new=new_of_kind,
        new_shown=shown,
        half_width=_known(measured.half_width),
        possible_drop=None if math.isnan(measured.low) else measured.possible_drop,
        mde=detectable(arms),
        cases=deltas,
        reasons=tuple(reasons),
        notes=tuple(notes),
    )


def _by_trials(baseline: StoredRun, candidate: StoredRun, pairing: Pairing) -> tuple[Pairing, TrialPairs]:
    """The pairing by trials of one seed; a case without such a pair is left out."""
    found = trial_pairs(baseline, candidate, [p.case for p in pairing.pairs])
    kept, without = only_paired(pairing.pairs, found)
    if without:
        found = trial_pairs(baseline, candidate, [p.case for p in kept])
    left_out = (*pairing.left_out, *(LeftOut(case=c, reason="no_trial_pair") for c in without))
    return Pairing(pairs=kept, left_out=left_out), found


def no_baseline(
    candidate: StoredRun, why: str | None = None, options: CompareOptions | None = None
) -> Comparison:
    """The comparison of a run whose baseline has no run yet; ``why`` it is missing, as a sentence."""
    options = options or CompareOptions()
    reason = blockers.NO_BASELINE
    if why:
        reason = replace(reason, text=why)
    return Comparison(
        baseline_id="",
        candidate_id=candidate.manifest.id,
        word=Word.NO_VERDICT,
        sentence=reason.text,
        method=options.method,
        margin=options.margin,
        reasons=(reason,),
        honesty=_HONESTY[Method(options.method)],
    )


def _doubts(
    measured: Measured, deltas: tuple[CaseDelta, ...], method: Method, margin: float | None, arms: Arms
) -> tuple[list[Reason], list[Note]]:
    """Reasons that come from the numbers themselves, where nothing spoke against measuring."""
    if measured.contradictory and is_significant(measured.p):
        return [blockers.CONTRADICTORY], []
    if measured.word is Word.REGRESSED:
        return [], []
    reasons: list[Reason] = []
    notes: list[Note] = []
    if not measured.exceeds_noise and is_significant(measured.p):
        notes.append(Note(code="aa_noise", text=sentences.AA_NOISE))
    if broken := blockers.broken(deltas):
        reasons.append(blockers.broken_reason(broken))
    if margin is not None and measured.word is Word.NO_CHANGE and not measured.inside(margin):
        counts = (arms.a_pass, arms.a_n, arms.b_pass, arms.b_n)
        alone = more_rounds(*counts, margin=margin)
        together = None if alone else more_rounds(*counts, margin=margin, both=True)
        text = sentences.not_inside_margin(
            measured.possible_drop, measured.possible_gain, margin, rounds=(alone, together)
        )
        reasons.append(Reason(code="not_inside_margin", text=text, measurable=True))
    if method is Method.NORMAL:
        reasons, beyond = blockers.split_for_normal(reasons)
        notes += beyond
    return reasons, notes


def _sentence(word: Word, measured: Measured, method: Method, margin: float | None) -> str:
    if word is Word.NO_VERDICT:
        return sentences.no_verdict(measured.delta)
    if word is not Word.NO_CHANGE:
        return sentences.outside(measured.delta, measured.half_width, measured.p)
    if margin is not None:
        return sentences.inside_margin(measured.half_width, measured.possible_drop, margin)
    if method is Method.NORMAL:
        return sentences.inside_normal(measured.half_width)
    return sentences.inside(measured.half_width, measured.possible_drop)


_HONESTY = {
    Method.NORMAL: sentences.NORMAL_HONESTY,
    Method.EXACT: sentences.TRIALS_HONESTY,
    Method.MID_P: sentences.TRIALS_HONESTY,
}


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


def _never_passing(new: tuple[str, ...], b: RunCounts) -> tuple[str, ...]:
    cases = b.by_id()
    return tuple(c for c in new if cases[c].uses_trial and cases[c].decided > 0 and cases[c].passes == 0)


def _undecided_pairs(pairing: Pairing, a: RunCounts, b: RunCounts) -> list[Pair]:
    in_a, in_b = a.by_id(), b.by_id()
    return [Pair(a=in_a[case], b=in_b[case]) for case in pairing.left_out_as("undecided_b")]
