"""How noisy equal runs are: the A/A factor from earlier runs of one version in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.compare.counts import count_cases
from pytest_crashlab.compare.measures import Arms
from pytest_crashlab.compare.pairing import pair
from pytest_crashlab.errors import StoreError
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.stats import noise_factor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_crashlab.compare.counts import RunCounts
    from pytest_crashlab.store import Manifest, Store
    from pytest_crashlab.store.heads import RunHead

MOST_PAIRS = 5
_MOST_RUNS = 200


def aa_factor(store: Store, candidate: Manifest) -> float | None:
    """The A/A factor of the store's newest pairs of equal runs, at least 1; None: not calibrated.

    Equal are completed runs with the same digests of target and evaluation, both known, and the same
    prompt, model, data set and split as each other. The candidate is in no pair: it is what is judged.
    At most five pairs, each run in one pair only, so that one odd run does not count twice.
    """
    if candidate.target_digest is None or candidate.evaluation_digest is None:
        return None
    return noise_factor(
        (arms.a_pass, arms.a_n, arms.b_pass, arms.b_n) for arms in _equal_runs(store, candidate)
    )


def _equal_runs(store: Store, candidate: Manifest) -> Iterator[Arms]:
    waiting: dict[tuple[str | None, ...], RunHead] = {}
    found = 0
    for head in _earlier(store, candidate):
        version = _version(head)
        other = waiting.pop(version, None)
        if other is None:
            waiting[version] = head  # its tables are read when there is a run to pair it with
            continue
        counts, others = _counts(store, head), _counts(store, other)
        if counts is None or others is None:
            waiting[version] = head if others is None else other
            continue
        pairs = pair(counts, others).pairs
        if pairs:
            yield Arms.of(pairs)
            found += 1
        if found == MOST_PAIRS:
            return


def _counts(store: Store, head: RunHead) -> RunCounts | None:
    """The counts of a run; None for a damaged one, which calibrates nothing: who asks for it is told."""
    try:
        return count_cases(store.load(head.id))
    except StoreError:
        return None


def _earlier(store: Store, candidate: Manifest) -> Iterator[RunHead]:
    """Usable runs from the newest on whose version occurs at least twice."""
    usable: list[RunHead] = []
    for run_id in store.run_ids()[:_MOST_RUNS]:
        try:
            head = store.head(run_id)
        except StoreError:
            continue
        if head.id != candidate.id and _is_usable(head, candidate):
            usable.append(head)
    versions = [_version(head) for head in usable]
    return (head for head in usable if versions.count(_version(head)) > 1)


def _is_usable(head: RunHead, candidate: Manifest) -> bool:
    return (
        head.status is RunStatus.COMPLETED
        and not head.replayed
        and not head.cached
        and head.created <= candidate.created
        and head.target_digest is not None
        and head.evaluation_digest is not None
        and (head.dataset, head.split) == (candidate.dataset, candidate.split)
    )


def _version(head: RunHead) -> tuple[str | None, ...]:
    return (head.target_digest, head.evaluation_digest, head.prompt, head.model)
