"""``crashlab amend RUN``: exclude trials after the fact, stated before anything was compared."""

from __future__ import annotations

import argparse

from pytest_crashlab.cli import add_store, lookup, output

_DESCRIPTION = """\
Exclude the trials of a label, or those that one line assigned, from a run, with the reason. Possible
only before the run was compared with any other; kept in the ledger and shown in every report.

example:
  crashlab amend latest --exclude agent.py:41 --reason "the account had no balance from 14:10 on"
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "amend",
        help="exclude trials of a run after the fact, with the reason",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("reference", metavar="RUN", help=lookup.RUN_HELP)
    parser.add_argument(
        "--exclude",
        metavar="LABEL|SITE",
        nargs="+",
        required=True,
        help="labels, or file:line as 'crashlab outcomes RUN' lists them",
    )
    parser.add_argument("--reason", metavar="TEXT", required=True, help="why; shown in every report")
    add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Amend the run and say what is left of it."""
    from pytest_crashlab.compare import run_numbers, summary_fields
    from pytest_crashlab.store.amendments import amend, amendment_lines

    store = lookup.open_store(args)
    manifest = amend(store, lookup.find_run(store, args.reference).id, args.exclude, args.reason)
    numbers = run_numbers(store.load(manifest.id))
    store.set_fields(manifest.id, summary=summary_fields(numbers))
    output.line(amendment_lines(manifest)[-1])
    counts = numbers.counts
    output.line(f"{counts.decided} of {counts.scheduled} scheduled trials are decided now.")
    return 0
