"""What a reader of a verdict should know that does not change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.compare.sentences import count, several
from pytest_crashlab.records.comparison import Note
from pytest_crashlab.store.amendments import amendment_lines
from pytest_crashlab.store.candidates import failed_gate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_crashlab.compare.counts import RunCounts
    from pytest_crashlab.compare.pairing import Pairing
    from pytest_crashlab.store import Manifest


def pairing_notes(pairing: Pairing, b: RunCounts, new_never_passing: Sequence[str]) -> Iterator[Note]:
    """Cases that ran before and are skipped now, changed pass rules, new cases that never pass."""
    if skipped := pairing.left_out_as("skipped_b"):
        yield Note(
            code="skipped_now",
            text=f"{_cases(skipped)} gave a decision in the baseline and {_be(skipped)} skipped now: "
            f"{several(skipped, most=10)}.",
        )
    if pairing.pairs and (changed := pairing.left_out_as("pass_rule_changed")):
        yield Note(
            code="pass_rule_changed",
            text=f"{_cases(changed)} {_be(changed)} left out because of a changed pass rule.",
        )
    if new_never_passing:
        yield Note(
            code="new_never_passing",
            text=f"{count(len(new_never_passing), 'new case')} without a single pass: "
            f"{several(new_never_passing)}.",
        )
    if unknown := [p for p in pairing.pairs if not p.rule_known]:
        yield Note(
            code="pass_rule_unknown",
            text=f"What makes {count(len(unknown), 'compared case')} pass is not known in either run.",
        )
    k_a, k_b = ({p.a.planned for p in pairing.pairs}, {p.b.planned for p in pairing.pairs})
    if any(p.a.planned != p.b.planned for p in pairing.pairs):
        yield Note(
            code="trial_counts",
            text=f"The two runs have different numbers of trials a case: {_numbers(k_a)} in the baseline, "
            f"{_numbers(k_b)} in this run.",
        )
    unsampled = set(pairing.left_out_as("unsampled"))
    if missing := [c for c in unsampled if c not in b.by_id()]:
        yield Note(
            code="selection",
            text=f"{_cases(missing)} of the baseline {_be(missing)} not in this run's selection; "
            "a selection cannot be promoted.",
        )


def manifest_notes(baseline: Manifest, candidate: Manifest) -> Iterator[Note]:
    """What the two sessions say of themselves that differs."""
    if (failed := failed_gate(baseline)) is not None:
        yield failed
    for run, which in ((baseline, "The baseline"), (candidate, "This run")):
        for line in amendment_lines(run):
            yield Note(code="amended", text=f"{which} was amended before it was compared. {line}")
    if baseline.prompt != candidate.prompt:
        yield Note(
            code="prompt",
            text="The two runs declare different prompts: "
            f"{baseline.prompt or 'none'} in the baseline, {candidate.prompt or 'none'} in this run.",
        )
    if baseline.model != candidate.model:
        yield Note(
            code="model",
            text="The two runs declare different models: "
            f"{baseline.model or 'none'} in the baseline, {candidate.model or 'none'} in this run.",
        )
    if baseline.models and candidate.models and baseline.models != candidate.models:
        yield Note(
            code="models",
            text="The two runs were answered by different models: "
            f"{several(baseline.models)} in the baseline, {several(candidate.models)} in this run.",
        )
    if baseline.dataset_version != candidate.dataset_version:
        yield Note(
            code="dataset_version",
            text="The two runs use different versions of the dataset: "
            f"{baseline.dataset_version or 'none'} and {candidate.dataset_version or 'none'}.",
        )
    digests = baseline.evaluation_digest, candidate.evaluation_digest
    if None not in digests and digests[0] != digests[1]:
        yield Note(
            code="evaluation",
            text="What evaluates changed between the two runs (crashlab_evaluation).",
        )
    keys = sorted(
        key
        for key in {*baseline.environment, *candidate.environment}
        if baseline.environment.get(key) != candidate.environment.get(key)
    )
    if keys:
        text = f"The two runs ran in different environments ({', '.join(keys)})."
        yield Note(code="environment", text=text)


def _cases(cases: Sequence[str]) -> str:
    return count(len(cases), "case")


def _be(cases: Sequence[str]) -> str:
    return "is" if len(cases) == 1 else "are"


def _numbers(numbers: set[int]) -> str:
    return " or ".join(str(n) for n in sorted(numbers))
