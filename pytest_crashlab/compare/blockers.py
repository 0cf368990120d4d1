"""Why two runs give no verdict, as far as their manifests and narrow tables can tell.

A reason that is not ``measurable`` says that the numbers cannot carry a verdict at all; policies treat
it otherwise than a difference that more trials would settle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.compare.clusters import failure_cluster
from pytest_crashlab.compare.sentences import SIGNIFICANT, count, p_words, several
from pytest_crashlab.records.comparison import CaseDelta, Note, Reason
from pytest_crashlab.records.run import RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_crashlab.compare.counts import CaseCount, RunCounts
    from pytest_crashlab.compare.pairing import Pairing
    from pytest_crashlab.store import Manifest, StoredRun

NORMAL_MINIMUM = 20
# What the simple rule does not know of: under it these are said, and the word stays its own.
BEYOND_NORMAL = frozenset(
    {
        "broken_case",
        "case_lost",
        "clustered_failures_a",
        "clustered_failures_b",
        "t_unit",
        "unbalanced_instrument",
    }
)
_BROKEN_TRIALS = 3
_LOST_TRIALS = 3

NO_BASELINE = Reason(code="no_baseline", text="There is no baseline yet.")
CONTRADICTORY = Reason(
    code="contradictory",
    text=(
        "The two runs have different numbers of trials, and the weighted test and the mean difference point "
        "in opposite directions. Run both with the same number of trials."
    ),
)


def manifest_blockers(baseline: Manifest, candidate: Manifest, *, split: str | None) -> Iterator[Reason]:
    """What the manifests alone say against a verdict; ``split`` is the one the gate asks for."""
    for manifest, arm, name in ((candidate, "b", "This run"), (baseline, "a", "The baseline")):
        if manifest.status != RunStatus.COMPLETED:
            yield Reason(code=f"not_finished_{arm}", text=f"{name} is not finished ({manifest.status}).")
    for manifest, arm, name in ((candidate, "b", "This run"), (baseline, "a", "The baseline")):
        if manifest.replayed:
            yield Reason(
                code=f"replayed_{arm}",
                text=f"{name} holds replayed trials: they repeat an earlier run and measure nothing.",
            )
    if split == "holdout" and candidate.split != "holdout":
        yield Reason(
            code="holdout_wanted",
            text="The gate asks for a holdout run, and this run measured "
            f"{f'{candidate.split} cases' if candidate.split else 'cases of no split'}.",
        )


def undecided_blockers(a: RunCounts, b: RunCounts) -> Iterator[Reason]:
    """More than 10 % of the scheduled trials of the selected cases without a decision, in either run.

    The selected cases are the candidate's; the baseline is asked only about those of them it has.
    """
    selected = {case.case for case in b}
    shared = [case for case in a if case.case in selected]
    for cases, arm, name in ((list(b), "b", "this run"), (shared, "a", "the baseline")):
        undecided, missing = sum(c.undecided for c in cases), sum(c.missing for c in cases)
        scheduled = sum(c.scheduled for c in cases)
        if (undecided + missing) * 10 > scheduled:
            yield Reason(
                code=f"too_many_undecided_{arm}",
                text=(
                    f"More than 10 % of the trials of {name} gave no decision or never arrived: "
                    f"{undecided} undecided and {missing} missing of {scheduled}."
                ),
            )
    lost = _lost_cases(a, b)
    if lost:
        yield Reason(
            code="case_lost",
            text=(
                f"{count(len(lost), 'case')} gave a decision in the baseline and none in "
                f"{_LOST_TRIALS} or more trials now: {several(lost)}."
            ),
        )


def _lost_cases(a: RunCounts, b: RunCounts) -> list[str]:
    """Cases that the baseline decided and of which not one of several trials decides now.

    What hits every trial of one case and hardly any other may well be the system, so it must not
    vanish in a small share of undecided trials.
    """
    decided = {case.case for case in a if case.decided}
    return [c.case for c in b if c.case in decided and c.scheduled >= _LOST_TRIALS and not c.decided]


def pairing_blockers(pairing: Pairing, *, minimum: int) -> Iterator[Reason]:
    """Nothing left to compare, fewer cases than the method needs, or units that cannot be compared."""
    compared = len(pairing.pairs)
    if compared == 0 and (changed := pairing.left_out_as("pass_rule_changed")):
        yield Reason(
            code="pass_rules",
            text=(
                "The two runs use different pass rules, or one of them has none, for "
                f"{count(len(changed), 'case')}, and no other case can be compared."
            ),
        )
    elif compared == 0:
        yield Reason(code="nothing_to_pair", text="No case can be compared between the two runs.")
    elif compared < minimum:
        yield Reason(
            code="too_few_cases",
            text=f"Fewer than {minimum} cases can be compared between the two runs ({compared}).",
        )
    units = [(p.case, p.a.units, p.b.units) for p in pairing.pairs if p.a.units and p.b.units]
    if differing := [(case, a, b) for case, a, b in units if len(a | b) > 1]:
        case, a, b = differing[0]
        yield Reason(
            code="t_unit",
            text=(
                f"The two runs measure how far the target got in different units: {', '.join(sorted(a))} in "
                f"the baseline and {', '.join(sorted(b))} in this run ({case})."
            ),
        )


def balance_blockers(a: RunCounts, b: RunCounts) -> Iterator[Reason]:
    """Instrument failures that hit one run more than chance would, by Fisher's exact test at 5 %.

    Counted over the trials that reported, in the cases that both runs planned.
    """
    from pytest_crashlab.stats import fisher_imbalance

    in_a, in_b = a.by_id(), b.by_id()
    shared = [case for case in in_b if case in in_a]
    bad_a, total_a = _instrument(in_a[case] for case in shared)
    bad_b, total_b = _instrument(in_b[case] for case in shared)
    if not total_a or not total_b or not bad_a + bad_b:
        return
    p = fisher_imbalance(bad_a, total_a, bad_b, total_b)
    if p < SIGNIFICANT:
        yield Reason(
            code="unbalanced_instrument",
            text=(
                f"Instrument failures are not balanced: {bad_b} of {total_b} trials in this run, {bad_a} of "
                f"{total_a} in the baseline ({p_words(p)})."
            ),
        )


def cluster_blockers(baseline: StoredRun, candidate: StoredRun) -> Iterator[Reason]:
    """Failures of either run that come together in time over cases that have nothing in common."""
    for run, arm, name in ((candidate, "b", "this run"), (baseline, "a", "the baseline")):
        cluster = failure_cluster(run)
        if cluster is not None:
            yield Reason(
                code=f"clustered_failures_{arm}",
                text=(
                    f"Failures of {name} cluster in time: from {cluster.when}, {cluster.failures} of "
                    f"{cluster.trials} trials failed, over {count(cluster.cases, 'case')}. Something other "
                    "than the cases may have failed; run them again."
                ),
            )


def _instrument(cases: Iterable[CaseCount]) -> tuple[int, int]:
    bad = total = 0
    for case in cases:
        bad += case.undecided
        total += case.undecided + case.decided
    return bad, total


def split_for_normal(reasons: Iterable[Reason]) -> tuple[list[Reason], list[Note]]:
    """Reasons that the simple rule knows, and as notes those that it does not."""
    kept, notes = [], []
    for reason in reasons:
        if reason.code in BEYOND_NORMAL:
            notes.append(Note(code=reason.code, text=reason.text))
        else:
            kept.append(reason)
    return kept, notes


def broken(cases: Sequence[CaseDelta]) -> tuple[CaseDelta, ...]:
    """Cases that passed all of at least 3 baseline trials and none of at least 3 now, unproven.

    Three trials can never prove a single broken case (3/3 -> 0/3 has p = 0.05 exactly), so silence
    about it would let it hide in the mean.
    """
    return tuple(
        c
        for c in cases
        if c.a_pass == c.a_n >= _BROKEN_TRIALS and c.b_pass == 0 and c.b_n >= _BROKEN_TRIALS and c.proven == 0
    )


def broken_reason(cases: Sequence[CaseDelta]) -> Reason:
    """The reason that ``broken`` cases make, asking for more trials."""
    names = several([f"{c.case} ({c.a_pass}/{c.a_n} -> {c.b_pass}/{c.b_n})" for c in cases])
    return Reason(
        code="broken_case",
        text=(
            f"{count(len(cases), 'case')} passed every baseline trial and no trial now, which so few trials "
            f"cannot prove: {names}. Run them with 5 or more trials."
        ),
    )
