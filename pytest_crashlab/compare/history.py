"""How often was compared before: many comparisons, or one again and again, give false alarms by chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_crashlab.compare.sentences import count
from pytest_crashlab.errors import StoreError
from pytest_crashlab.records.comparison import Note, Word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_crashlab.store import Manifest, Store
    from pytest_crashlab.store.heads import RunHead

FALSE_ALARM = 0.025
"""The share of comparisons of equal runs that read Regressed, at most."""

MOST_RUNS = 1000
_WORDS = frozenset({Word.REGRESSED, Word.IMPROVED, Word.NO_CHANGE})


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """``comparisons`` that gave a word, this one included; ``repeats`` of this very one among them before.

    A repeat is an earlier run of the same target, evaluation, prompt and model beside the same baseline.
    """

    comparisons: int
    repeats: int


def history(store: Store, candidate: Manifest, baseline_id: str) -> History:
    """What the newest 1,000 runs of the store tell of earlier comparisons; reads heads of manifests only."""
    comparisons, repeats = 1, 0
    for earlier in _judged(store, candidate):
        comparisons += 1
        same = _version(earlier) == _version(candidate) and None not in _version(candidate)[:2]
        repeats += same and earlier.baseline is not None and earlier.baseline.id == baseline_id
    return History(comparisons=comparisons, repeats=repeats)


def history_notes(known: History | None) -> Iterator[Note]:
    """That one version was held against one baseline more than once."""
    if known is not None and known.repeats:
        yield Note(
            code="repeated_looks",
            text=f"Runs of this version were compared with this baseline {count(known.repeats, 'time')} "
            "before: who looks until a word comes will get one by chance.",
        )


def _judged(store: Store, candidate: Manifest) -> Iterator[RunHead]:
    for run_id in store.run_ids()[:MOST_RUNS]:
        if run_id == candidate.id:
            continue
        try:
            head = store.head(run_id)
        except StoreError:
            continue  # who asks for a damaged run is told
        if head.gate is not None and head.gate.word in _WORDS and head.created <= candidate.created:
            yield head


def _version(manifest: Manifest | RunHead) -> tuple[str | None, ...]:
    return (manifest.target_digest, manifest.evaluation_digest, manifest.prompt, manifest.model)
