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
    waiting: dict[tuple[str | None, ...], tuple[Manifest, RunCounts]] = {}
    found = 0
    for manifest in _earlier(store, candidate):
        version = _version(manifest)
        try:
            counts = count_cases(store.load(manifest.id))
        except StoreError:
            continue  # a damaged run calibrates nothing; who asks for it is told
        other = waiting.pop(version, None)
        if other is None:
            waiting[version] = manifest, counts
            continue
        pairs = pair(counts, other[1]).pairs
        if pairs:
            yield Arms.of(pairs)
            found += 1
        if found == MOST_PAIRS:
            return


def _earlier(store: Store, candidate: Manifest) -> Iterator[Manifest]:
    """Usable runs from the newest on whose version occurs at least twice."""
    usable: list[Manifest] = []
    for run_id in store.run_ids()[:_MOST_RUNS]:
        try:
            manifest = store.manifest(run_id)
        except StoreError:
            continue
        if manifest.id != candidate.id and _is_usable(manifest, candidate):
            usable.append(manifest)
    versions = [_version(m) for m in usable]
    return (m for m in usable if versions.count(_version(m)) > 1)


def _is_usable(manifest: Manifest, candidate: Manifest) -> bool:
    return (
        manifest.status is RunStatus.COMPLETED
        and not manifest.replayed
        and not manifest.cached
        and manifest.created <= candidate.created
        and manifest.target_digest is not None
        and manifest.evaluation_digest is not None
        and (manifest.dataset, manifest.split) == (candidate.dataset, candidate.split)
    )


def _version(manifest: Manifest) -> tuple[str | None, ...]:
    return (manifest.target_digest, manifest.evaluation_digest, manifest.prompt, manifest.model)
