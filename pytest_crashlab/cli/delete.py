"""``crashlab delete RUN``: remove a run for good; the ledger keeps that it was there."""

from __future__ import annotations

import argparse

from pytest_crashlab.cli import add_store, lookup, output
from pytest_crashlab.errors import UsageError

_DESCRIPTION = """\
Remove a run with its tables and its evidence. It cannot be restored. The ledger keeps that there was one:
a look at a holdout counts on, and a baseline that is gone is told from one that never was.

example:
  crashlab delete 20261130-k3v9q2 --reason "the sandbox had no network"
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "delete",
        help="remove a run for good",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("reference", metavar="RUN", help=lookup.RUN_HELP)
    parser.add_argument("--reason", metavar="TEXT", help="kept in the ledger")
    parser.add_argument("--force", action="store_true", help="although a baseline's name stands for it")
    add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Remove the run."""
    store = lookup.open_store(args)
    found = lookup.find_run(store, args.reference)
    names = sorted(name for name, run_id in store.refs.all().items() if run_id == found.id)
    if names and not args.force:
        raise UsageError(
            f"Run {found.id} is the baseline {', '.join(names)}; promote another one first "
            f"('crashlab baseline promote {names[0]} RUN'), or delete it with --force."
        )
    store.delete(found.id, reason=args.reason)
    output.line(f"Run {found.id} is deleted; the ledger keeps that it was there.")
    if names:
        output.line(f"The baseline {', '.join(names)} has no run now.")
    return 0
