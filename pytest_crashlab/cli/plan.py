"""``crashlab plan``: what a number of cases and trials would show, before anything is spent."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pytest_crashlab.cli import add_store, lookup, numbers, output
from pytest_crashlab.errors import UsageError

if TYPE_CHECKING:
    from pytest_crashlab.compare.planning import Design

_DESCRIPTION = """\
Say which drop of the pass rate a design would find in 4 of 5 tries, or how many trials a drop needs.
Nothing is run. With --baseline the stored run keeps its trials; without it both runs are planned.

example:
  crashlab plan --cases 20 --trials 3
  crashlab plan --baseline main --trials 5 --drop 10
"""
_MOST = 100_000


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "plan",
        help="say what a number of cases and trials would find",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--cases", metavar="N", help="how many cases (default: those of --baseline)")
    parser.add_argument("--trials", metavar="K", help="trials a case")
    parser.add_argument("--baseline", metavar="RUN", help=lookup.RUN_HELP)
    parser.add_argument("--pass-rate", metavar="RATE", help="assumed without a baseline (default: 0.95)")
    parser.add_argument("--drop", metavar="POINTS", help="the drop to find: how many trials does it need?")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the design and what it would show."""
    from pytest_crashlab.report.json import design_json, dumps

    design = _design(args)
    if args.json:
        output.write(f"{dumps(design_json(design))}\n")
        return 0
    for sentence in design.sentences:
        output.line(sentence)
    return 0


def _design(args: argparse.Namespace) -> Design:
    from pytest_crashlab.compare.planning import assumed_design, measured_design

    cases = numbers.whole("--cases", args.cases, most=_MOST)
    trials = numbers.whole("--trials", args.trials, most=_MOST)
    drop = numbers.points("--drop", args.drop)
    rate = numbers.share("--pass-rate", args.pass_rate)
    if trials is None and drop is None:
        raise UsageError("There is nothing to plan; give --trials, --drop or both.")
    if args.baseline is not None:
        if rate is not None:
            raise UsageError("--pass-rate is for a plan without a baseline; leave one of the two out.")
        stored = lookup.load_run(lookup.open_store(args, args.baseline), args.baseline)
        return measured_design(stored, cases=cases, trials=trials, drop=drop)
    if cases is None:
        raise UsageError("How many cases are to be run? Give --cases, or a --baseline that has them.")
    if rate is not None and not 0 < rate < 1:
        raise UsageError(
            f"--pass-rate={args.pass_rate} leaves nothing to find; write for example --pass-rate=0.95."
        )
    return assumed_design(cases=cases, trials=trials, pass_rate=rate, drop=drop)
