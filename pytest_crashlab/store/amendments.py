"""An exclusion after the fact: stated with its reason, before anything was compared, and shown ever after."""

from __future__ import annotations

import contextlib
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import StoreError, UsageError
from pytest_crashlab.records.outcome import Kind
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store.schema import utc_now
from pytest_crashlab.store.seal import count_trials, mark_deciding

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from pytest_crashlab.store.runs import Store, StoredRun
    from pytest_crashlab.store.schema import Manifest

COMPARED = "comparison"


def amend(store: Store, run_id: str, exclude: Sequence[str], reason: str) -> Manifest:
    """Exclude the trials of a sealed run whose label or assignment site is in ``exclude``.

    Their rows stay; they are excluded whenever the run is loaded. The ledger keeps it, the manifest
    says so. Raises :class:`UsageError` for a run that was compared, is not sealed or has nothing of the
    kind, and for no reason.
    """
    if not reason.strip():
        raise UsageError("An amendment needs its reason: --reason 'why these trials say nothing'.")
    manifest = store.manifest(run_id)
    if manifest.status is RunStatus.RUNNING:
        raise UsageError(f"Run {run_id} is not finished; seal it first ('crashlab recover {run_id}').")
    compared = first_comparison(store, run_id)
    if compared is not None:
        raise UsageError(
            f"Run {run_id} {compared}, so it cannot be amended any more: to leave out trials when it is "
            "known which way a comparison went would choose its result. Give the cause a label of its own "
            "and run the tests again."
        )
    run = store.load(run_id)
    counts = _matching(run, exclude)
    entry = {"at": utc_now(), "exclude": counts, "reason": reason.strip()}
    store.ledger.append("amendment", run=run_id, exclude=counts, reason=reason.strip())
    store.set_fields(run_id, amendments=[*manifest.amendments, entry])
    amended = store.load(run_id)
    return store.set_fields(run_id, counts=count_trials(amended.cases, amended.trials))


def first_comparison(store: Store, run_id: str) -> str | None:
    """How ``run_id`` has been compared, as the end of a sentence; None where it never was.

    A run that was another one's baseline has been compared as much as that one has.
    """
    if kept := sorted(store.comparisons(run_id)):
        return f"has been compared with {kept[0]}"
    for other in store.run_ids():
        if (store.paths.run(other).comparisons / f"{run_id}.json").exists():
            return f"has been the baseline of {other}"
    for entry in store.ledger.read(COMPARED):
        if run_id in (entry.get("run"), entry.get("baseline")):
            pair = {str(entry.get("run")), str(entry.get("baseline"))}
            return f"has been compared with {', '.join(pair - {run_id})}"
    return None


def note_comparison(store: Store, run_id: str, baseline_id: str) -> None:
    """Keep in the ledger that somebody has seen these two runs compared; once is enough.

    A store that cannot be written is read all the same.
    """
    with contextlib.suppress(StoreError):
        known = store.ledger.read(COMPARED)
        if not any((entry.get("run"), entry.get("baseline")) == (run_id, baseline_id) for entry in known):
            store.ledger.append(COMPARED, run=run_id, baseline=baseline_id)


def apply_amendments(manifest: Manifest, trials: pl.DataFrame) -> pl.DataFrame:
    """The rows of a run as its amendments leave them: what they name is excluded, nothing is dropped."""
    named = [name for entry in manifest.amendments for name in (entry.get("exclude") or {})]
    if not named:
        return trials
    import polars as pl

    hit = pl.col("outcome").is_in(named) | pl.col("site").is_in(named)
    kind = pl.when(hit.fill_null(value=False)).then(pl.lit(Kind.EXCLUDED.value))
    left = trials.drop("decision", "deciding").with_columns(
        kind.otherwise(pl.col("kind").cast(pl.String)).cast(trials.schema["kind"]).alias("kind")
    )
    return mark_deciding(left)


def amendment_lines(manifest: Manifest) -> tuple[str, ...]:
    """What was excluded after the fact, when and why: one sentence an amendment."""
    return tuple(_line(entry) for entry in manifest.amendments)


def _line(entry: dict[str, Any]) -> str:
    what = ", ".join(f"{name} ({count})" for name, count in (entry.get("exclude") or {}).items())
    return f"Amended {str(entry.get('at'))[:10]}: trials of {what} are excluded: {entry.get('reason')}"


def _matching(run: StoredRun, exclude: Sequence[str]) -> dict[str, int]:
    """Name -> how many deciding trials it excludes."""
    rows = run.trials.filter(run.trials["deciding"])
    known = {*rows["outcome"].drop_nulls(), *rows["site"].drop_nulls()}
    counts = {}
    for name in dict.fromkeys(exclude):
        if name not in known:
            near = get_close_matches(name, known, n=2, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else "'crashlab outcomes RUN' lists them."
            raise UsageError(f"Run {run.manifest.id} has no label and no line {name}; {hint}")
        hit = (rows["outcome"] == name) | (rows["site"] == name)
        counts[name] = int(hit.fill_null(value=False).sum())
    return counts
