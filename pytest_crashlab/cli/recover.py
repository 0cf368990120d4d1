"""``crashlab recover RUN``: seal what a killed session left."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pytest_crashlab.cli import add_store, lookup, output
from pytest_crashlab.compare.sentences import count

if TYPE_CHECKING:
    from pytest_crashlab.compare import RunNumbers
    from pytest_crashlab.store import Manifest, Store

_DESCRIPTION = """\
Seal a run whose session was killed: what its journal holds becomes a stored run. Nothing is run again.

example:
  crashlab recover latest
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "recover",
        help="seal what a killed session left",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("reference", metavar="RUN", help=lookup.RUN_HELP)
    parser.add_argument(
        "--skip-damaged", action="store_true", help="drop damaged lines of the journal instead of stopping"
    )
    add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Seal the run and say what it holds."""
    store = lookup.open_store(args)
    found = lookup.find_run(store, args.reference)
    manifest = store.recover(found.id, skip_damaged=args.skip_damaged)
    if found.status.value != "running":
        if manifest.summary is None:  # killed between its seal and its numbers
            _numbers(store, found.id)
        output.line(f"Run {found.id} was sealed already ({manifest.status.value}).")
        return 0
    output.line(_sealed(store, manifest))
    if manifest.dropped_lines:
        output.line(f"{count(manifest.dropped_lines, 'line')} of its journal could not be read.")
    return 0


def seal(store: Store, run_id: str) -> str:
    """Seal a running run; return what it holds, in a sentence."""
    return _sealed(store, store.recover(run_id))


def _sealed(store: Store, manifest: Manifest) -> str:
    counts = _numbers(store, manifest.id).counts
    return (
        f"Run {manifest.id} is sealed as {manifest.status.value}: {count(counts.decided, 'trial')} decided, "
        f"{counts.undecided} undecided, {counts.missing} missing of {counts.scheduled} scheduled."
    )


def _numbers(store: Store, run_id: str) -> RunNumbers:
    """Give a sealed run what a session's end would have given it: its numbers and its warnings."""
    from pytest_crashlab.compare import run_numbers, summary_fields
    from pytest_crashlab.compare.independence import with_warning

    run = store.load(run_id)
    numbers = run_numbers(run)
    store.set_fields(
        run_id, summary=summary_fields(numbers), warnings=with_warning(run.manifest.warnings, run)
    )
    return numbers
