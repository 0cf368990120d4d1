"""``crashlab recover RUN``: seal what a killed session left."""

from __future__ import annotations

import argparse

from pytest_crashlab.cli import add_store, lookup, output
from pytest_crashlab.compare.sentences import count

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
    from pytest_crashlab.compare import run_numbers, summary_fields

    store = lookup.open_store(args)
    found = lookup.find_run(store, args.reference)
    manifest = store.recover(found.id, skip_damaged=args.skip_damaged)
    if found.status.value != "running":
        if manifest.summary is None:  # killed between its seal and its numbers
            store.set_fields(found.id, summary=summary_fields(run_numbers(store.load(found.id))))
        output.line(f"Run {found.id} was sealed already ({manifest.status.value}).")
        return 0
    numbers = run_numbers(store.load(found.id))
    store.set_fields(found.id, summary=summary_fields(numbers))
    counts = numbers.counts
    output.line(
        f"Run {found.id} is sealed as {manifest.status.value}: {count(counts.decided, 'trial')} decided, "
        f"{counts.undecided} undecided, {counts.missing} missing of {counts.scheduled} scheduled."
    )
    if manifest.dropped_lines:
        output.line(f"{count(manifest.dropped_lines, 'line')} of its journal could not be read.")
    return 0
