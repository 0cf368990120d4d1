"""``crashlab gate RUN``: judge a stored run again; the exit code is the judgement."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_crashlab.cli import add_store, looks, lookup, numbers, output
from pytest_crashlab.errors import UsageError

if TYPE_CHECKING:
    from pytest_crashlab.compare import CompareOptions
    from pytest_crashlab.records.comparison import Comparison
    from pytest_crashlab.store import Store, StoredRun

_DESCRIPTION = """\
Judge a stored run against a baseline and thresholds. Ends with 0 when the gate passes, 1 when it fails,
10 when there is no verdict and 4 when it cannot be asked.

example:
  crashlab gate latest --baseline main --policy strict --margin 5
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "gate",
        help="judge a run; the exit code says how",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("reference", metavar="RUN", help=lookup.RUN_HELP)
    parser.add_argument("--baseline", metavar="REF", help="a branch, a run, release:X ... as for pytest")
    parser.add_argument(
        "--policy",
        choices=["strict", "regressions", "report"],
        help="default: as the run was recorded, else regressions",
    )
    parser.add_argument(
        "--method", choices=["mid-p", "exact", "normal"], help="default: as recorded, else mid-p"
    )
    parser.add_argument("--margin", metavar="POINTS", help="the smallest drop that matters (as recorded)")
    parser.add_argument("--min-pass-rate", metavar="RATE", help="fail below it: 0.9, 90%% (as recorded)")
    parser.add_argument("--holdout", action="store_true", help="no verdict unless the run is of that split")
    parser.add_argument("--junit", metavar="PATH", help="write JUnit XML with one test case per case")
    parser.add_argument("-q", "--quiet", action="store_true", help="at most three lines")
    parser.add_argument(
        "--outcome", metavar="LABELS", help="compare how often these outcomes occur (exploratory)"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the judgement and return the gate's exit code."""
    from pytest_crashlab.compare import CompareOptions, judge, recorded_thresholds, run_numbers
    from pytest_crashlab.compare.calibration import aa_factor
    from pytest_crashlab.report.build import session_summary
    from pytest_crashlab.report.commands import after_comparison
    from pytest_crashlab.report.json import dumps, session_json
    from pytest_crashlab.report.terminal import render_text

    store = lookup.open_store(args, args.reference, *([] if args.baseline is None else [args.baseline]))
    least = numbers.share("--min-pass-rate", args.min_pass_rate)
    margin = numbers.points("--margin", args.margin)
    stored = lookup.load_run(store, args.reference)
    manifest = stored.manifest
    if args.baseline is None and not recorded_thresholds(stored, least):
        raise UsageError(
            f"There is nothing to judge run {manifest.id} by; name a --baseline or a --min-pass-rate."
        )
    options = CompareOptions(
        method=args.method or manifest.method or "mid-p",
        margin=manifest.margin if margin is None else margin,
        split="holdout" if args.holdout else None,
        aa_factor=None if args.baseline is None else aa_factor(store, manifest),
        outcomes=numbers.labels(args.outcome),
    )
    comparison, baseline_line = _compare(store, stored, args.baseline, options)
    thresholds, gate = judge(stored, comparison, policy=args.policy, min_pass_rate=least)
    view = session_summary(
        stored,
        run_numbers(stored),
        comparison,
        thresholds,
        gate,
        baseline_line=baseline_line,
        next_commands=after_comparison(comparison, args.baseline, candidate=args.reference),
    )
    if args.junit is not None:
        from pytest_crashlab.report.junit import write_junit

        write_junit(args.junit, stored, view)
    if args.json:
        output.write(f"{dumps(session_json(view))}\n")
        return gate.exit_code
    screen = output.Screen.of_stdout()
    output.write(
        render_text(view, width=screen.width, color=screen.color, encoding=screen.encoding, quiet=args.quiet)
    )
    return gate.exit_code


def _compare(
    store: Store, run: StoredRun, reference: str | None, options: CompareOptions
) -> tuple[Comparison | None, str | None]:
    if reference is None:
        return None, None
    from pytest_crashlab.compare import compare_runs, no_baseline
    from pytest_crashlab.compare.history import history
    from pytest_crashlab.store.amendments import note_comparison
    from pytest_crashlab.store.baseline_refs import resolve_baseline

    manifest = run.manifest
    resolution = resolve_baseline(
        store,
        reference,
        cwd=Path.cwd(),
        dataset=manifest.dataset,
        split=manifest.split,
        own_run=manifest.id,
        environment=manifest.environment,
    )
    if resolution.run is None:
        return no_baseline(run, resolution.reason, options), resolution.reason
    note_comparison(store, manifest.id, resolution.run.id)
    looks.count_comparison(store, manifest, resolution.run.id)
    options = replace(options, history=history(store, manifest, resolution.run.id))
    return compare_runs(resolution.load(), run, options), resolution.reason
