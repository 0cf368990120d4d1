"""What the trials of one process had in common, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.compare.sentences import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_crashlab.store import StoredRun
    from pytest_crashlab.store.schema import Manifest

_MOST = 5
STATE_OPENING = "Trials changed module state"


def shared(run: StoredRun) -> tuple[str, ...]:
    """In which processes the trials of ``run`` ran, what those of one shared, and what was watched of it.

    Nothing for a run that no session made (an import), or in which no trial reported.
    """
    manifest = run.manifest
    if manifest.imported is not None or run.trials.is_empty():
        return ()
    return (_processes(run), *_watched(manifest))


def _processes(run: StoredRun) -> str:
    manifest = run.manifest
    trials = dict(run.trials["worker"].cast(str).value_counts(sort=True).iter_rows())
    in_common = "module state, caches and session fixtures"
    if manifest.hash_seed == "random":
        in_common += ", and one hash seed"
    fixed = manifest.hash_seed not in (None, "random")
    seed = f" All processes had the hash seed {manifest.hash_seed}." if fixed else ""
    if manifest.isolation == "round":
        return (
            f"Each round of trials ran in fresh processes, {len(trials)} in all: no two trials of a case "
            f"shared {in_common}.{seed}"
        )
    if len(trials) == 1:
        return f"All trials ran in one process and shared its {in_common}.{seed}"
    parts = ", ".join(f"{name} {n}" for name, n in list(trials.items())[:_MOST])
    more = f" and {len(trials) - _MOST} more" if len(trials) > _MOST else ""
    return f"Trials by process: {parts}{more}. Those of one process shared {in_common}.{seed}"


def _watched(manifest: Manifest) -> Iterator[str]:
    if manifest.module_state is None:
        return
    trials, changed = manifest.module_state["trials"], manifest.module_state["changed"]
    if not changed:
        yield (
            f"Module state was watched in {count(trials, 'trial')}: no name of the project's modules was "
            "left changed."
        )


def state_warning(manifest: Manifest) -> str | None:
    """The warning about names of modules that trials left changed; None where there are none."""
    watched = manifest.module_state
    if watched is None or not watched["changed"]:
        return None
    names = list(watched["changed"].items())
    shown = ", ".join(f"{name} (after {n} of {watched['trials']} trials)" for name, n in names[:_MOST])
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return (
        f"{STATE_OPENING} that later trials of their process find: {shown}{more}. Trials that share it are "
        "not independent; set it back in a fixture."
    )
