"""``crashlab inspect RUN``: the labels of a run and its trials, one a line."""

from __future__ import annotations

import argparse

from pytest_crashlab.cli import add_store, lookup, numbers, output
from pytest_crashlab.errors import UsageError

_DEFAULT_LIMIT = 50
_MOST = 10_000_000
_DESCRIPTION = """\
Show which line assigned which label in a run, and its trials, one a line. --csv and --json give them to
other programs.

example:
  crashlab inspect latest --outcome failed,crashed
  crashlab inspect latest --case refund --csv --limit 0 > refund.csv
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "inspect",
        help="list the trials of a run by what they came to",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("reference", metavar="RUN", help=lookup.RUN_HELP)
    parser.add_argument("--outcome", metavar="LABELS", help="trials with one of these labels, or 'missing'")
    parser.add_argument("--case", metavar="TEXT", help="trials of cases whose id has this in it")
    parser.add_argument(
        "--limit", metavar="N", default=str(_DEFAULT_LIMIT), help=f"at most N ({_DEFAULT_LIMIT}; 0: all)"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--csv", action="store_true", help="the trials as CSV")
    add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the trials."""
    from pytest_crashlab.report.json import dumps
    from pytest_crashlab.report.rows import inspection, inspection_csv, inspection_json, render_inspection

    limit = numbers.whole("--limit", args.limit, least=0, most=_MOST) or 0
    stored = lookup.load_run(lookup.open_store(args, args.reference), args.reference)
    labels = numbers.labels(args.outcome)
    known = {*stored.manifest.outcomes, "missing"}
    if unknown := [label for label in labels if label not in known]:
        raise UsageError(
            f"Run {stored.manifest.id} has no outcome {unknown[0]}; it has {', '.join(sorted(known))}."
        )
    view = inspection(stored, labels=labels, cases=args.case, limit=limit)
    if args.json:
        output.write(f"{dumps(inspection_json(view))}\n")
    elif args.csv:
        output.write(inspection_csv(view))
    else:
        screen = output.Screen.of_stdout()
        output.write(
            render_inspection(view, width=screen.width, color=screen.color, encoding=screen.encoding)
        )
    return 0
