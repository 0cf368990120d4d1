"""What answers out of a cache between test and provider do to a run and to a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.compare.sentences import count
from pytest_crashlab.records.comparison import Note, Reason
from pytest_crashlab.store.repeats import count_cached, count_shared

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_crashlab.store import StoredRun

_ADVICE = "Turn off the cache between test and provider (a gateway, a proxy or an HTTP client)"


def cache_notes(run: StoredRun) -> Iterator[Note]:
    """That trials of ``run`` had answers from a cache."""
    cached = count_cached(run.trials)
    if cached:
        yield Note(code="cached", text=f"{_cached(cached)}: they repeat others. {_ADVICE}.")


def cache_blockers(baseline: StoredRun, candidate: StoredRun) -> Iterator[Reason]:
    """Trials of either run that a cache answered, and those that have the very answers of the other run."""
    for run, arm, name in ((candidate, "b", "this run"), (baseline, "a", "the baseline")):
        cached = count_cached(run.trials)
        if cached:
            again = f"{_ADVICE} and run it again."
            text = f"{_cached(cached, name)}, so they are no samples of their own. {again}"
            yield Reason(code=f"cached_{arm}", text=text)
    shared = count_shared(baseline.trials, candidate.trials)
    if shared:
        yield Reason(
            code="cached_between",
            text=f"{count(shared, 'trial')} of this run had the very answers that the baseline had, with the "
            f"provider's own ids or times, so the runs are not independent. {_ADVICE}, empty it, and run "
            "again.",
        )


def _cached(trials: int, name: str = "") -> str:
    of = f" of {name}" if name else ""
    return f"{count(trials, 'trial')}{of} had answers of the provider out of a cache"
