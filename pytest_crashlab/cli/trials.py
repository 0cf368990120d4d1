"""``crashlab view RUN --case ID --trial N``: one trial with all that was kept of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_crashlab.cli import lookup, output
from pytest_crashlab.errors import StoreError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from pytest_crashlab.store import Store, StoredRun


def show(args: argparse.Namespace, run: StoredRun, store: Store, trial: int, attempt: int | None) -> int:
    """Print the trial; evidence that cannot be read is said in a sentence beside what can."""
    from pytest_crashlab.report.evidence import find_row, trial_json, trial_view
    from pytest_crashlab.report.evidence_text import render_trial

    row = find_row(run, args.case, trial, attempt)
    if row is None:
        which = f"trial {trial}" if attempt is None else f"attempt {attempt} of trial {trial}"
        raise UsageError(
            f"Run {run.manifest.id} has no row of {which} of {args.case}; {_there_are(run, args)}."
        )
    document, problem = kept(args.reference, run, store, row)
    view = trial_view(run, row, document, problem)
    if args.json or args.raw:
        output.write(f"{json.dumps(trial_json(view, raw=args.raw), indent=2)}\n")
        return 0
    screen = output.Screen.of_stdout()
    output.write(render_trial(view, width=screen.width, color=screen.color, encoding=screen.encoding))
    return 0


def kept(
    reference: str, run: StoredRun, store: Store, row: Mapping[str, Any]
) -> tuple[dict[str, Any] | None, str | None]:
    """What was kept of the attempt of ``row``, None where nothing was; and why it cannot be read."""
    try:
        return _evidence(reference, run, store, row), None
    except StoreError as error:
        return None, str(error)


def _evidence(reference: str, run: StoredRun, store: Store, row: Mapping[str, Any]) -> dict[str, Any] | None:
    from pytest_crashlab.store.evidence import read_evidence, read_exported_evidence

    key = (row["case"], row["trial"], row["attempt"])
    if lookup.is_file(reference):
        return read_exported_evidence(reference, *key)
    return read_evidence(store.paths.run(run.manifest.id), *key, start=row["start"])


def _there_are(run: StoredRun, args: argparse.Namespace) -> str:
    trials = sorted(set(run.trials.filter(run.trials["case"] == args.case)["trial"].to_list()))
    if not trials:
        return "none of its trials reported"
    return f"there are rows of trials {trials[0]} to {trials[-1]}"
