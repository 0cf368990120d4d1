"""``crashlab outcomes``: what the labels mean, and which line of the tests assigned which."""

from __future__ import annotations

import argparse

from pytest_crashlab.cli import add_store, lookup, output

_DESCRIPTION = """\
Without RUN: the label that each exception comes to, and the labels that are always there.
With RUN: its labels by kind and by the line that assigned them, with their definitions.

example:
  crashlab outcomes
  crashlab outcomes latest
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "outcomes",
        help="what labels mean, and which line assigned which",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("reference", metavar="RUN", nargs="?", help=lookup.RUN_HELP)
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the tables."""
    from pytest_crashlab.report.json import builtin_outcomes_json, dumps, outcomes_json
    from pytest_crashlab.report.outcomes import outcomes_view, render_builtin, render_run

    screen = output.Screen.of_stdout()
    if args.reference is None:
        if args.json:
            output.write(f"{dumps(builtin_outcomes_json())}\n")
        else:
            output.write(render_builtin(width=screen.width, color=screen.color, encoding=screen.encoding))
        return 0
    view = outcomes_view(lookup.load_run(lookup.open_store(args, args.reference), args.reference))
    if args.json:
        output.write(f"{dumps(outcomes_json(view))}\n")
    else:
        output.write(render_run(view, width=screen.width, color=screen.color, encoding=screen.encoding))
    return 0
