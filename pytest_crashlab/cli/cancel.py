"""``crashlab cancel RUN``: close a run whose session is gone and that nobody resumed."""

from __future__ import annotations

import argparse
import time

from pytest_crashlab.cli import add_store, lookup, output
from pytest_crashlab.cli.recover import seal
from pytest_crashlab.errors import UsageError

STALE_SECONDS = 24 * 3600

_DESCRIPTION = """\
Close a run that is still marked as running and has not changed for 24 hours. What its journal holds is kept,
as with 'crashlab recover', and the run is cancelled. A younger run is left alone: it may still be written.

example:
  crashlab cancel 20261130-k3v9q2
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "cancel",
        help="close a run that has not changed for a day",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("reference", metavar="RUN", help=lookup.RUN_HELP)
    add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Close the run and say what it holds."""
    store = lookup.open_store(args)
    found = lookup.find_run(store, args.reference)
    if found.status.value != "running":
        raise UsageError(f"Run {found.id} is {found.status.value} already; there is nothing to cancel.")
    idle = time.time() - store.changed_at(found.id)
    if idle < STALE_SECONDS:
        raise UsageError(
            f"Run {found.id} changed {idle / 3600:.1f} hours ago; only a run that has not changed for 24 "
            f"hours is cancelled. If its session was killed, 'crashlab recover {found.id}' seals what there "
            "is."
        )
    sentence = seal(store, found.id)
    store.ledger.append("cancellation", run=found.id)
    output.line(sentence)
    return 0
