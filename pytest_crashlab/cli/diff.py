"""``crashlab diff A B``: two runs case by case."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_crashlab.cli import add_store, lookup, numbers, output
from pytest_crashlab.errors import UsageError
from pytest_crashlab.report.difference import SHOWN, diff_view

if TYPE_CHECKING:
    from pytest_crashlab.store import Manifest, Store, StoredRun

_DESCRIPTION = """\
Compare run B with baseline A and list the cases. Always ends with 0: 'gate' is the verb that judges.

example:
  crashlab diff main latest --show worse
"""
_DEFAULT_LIMIT = 50


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "diff",
        help="compare two runs case by case",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("baseline", metavar="A", help=f"the baseline: {lookup.RUN_HELP}")
    parser.add_argument("candidate", metavar="B", help="the run to compare with it, named likewise")
    parser.add_argument(
        "--show",
        choices=list(SHOWN),
        help="which cases (default: worse after Regressed, else moved)",
    )
    parser.add_argument("--limit", type=int, default=_DEFAULT_LIMIT, metavar="N", help="at most N (0: all)")
    parser.add_argument("--method", choices=["mid-p", "exact", "normal"], default="mid-p")
    parser.add_argument("--margin", metavar="POINTS", help="the smallest drop that matters, in points")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the comparison."""
    from pytest_crashlab.compare import CompareOptions, compare_runs, decide
    from pytest_crashlab.records.comparison import Policy, Word
    from pytest_crashlab.report.json import diff_json, dumps
    from pytest_crashlab.report.listing import render_diff

    store = lookup.open_store(args)
    options = CompareOptions(method=args.method, margin=numbers.points("--margin", args.margin))
    candidate = lookup.load_run(store, args.candidate)
    baseline = _baseline(store, args.baseline, candidate.manifest)
    _refuse_unlike(baseline.manifest, candidate.manifest)
    comparison = compare_runs(baseline, candidate, options)
    show = args.show or ("worse" if comparison.word is Word.REGRESSED else "moved")
    limit = args.limit if args.limit > 0 else None
    gate = decide(Policy.REGRESSIONS, comparison)
    view = diff_view(baseline.manifest, candidate.manifest, comparison, gate, show=show, limit=limit)
    if args.json:
        output.write(f"{dumps(diff_json(view))}\n")
        return 0
    screen = output.Screen.of_stdout()
    output.write(render_diff(view, width=screen.width, color=screen.color, encoding=screen.encoding))
    return 0


def _baseline(store: Store, reference: str, candidate: Manifest) -> StoredRun:
    """A run by its id whatever its state, so that its reasons show; else what ``--baseline`` would mean."""
    if reference.endswith(".crashrun") or (run_id := lookup.run_by_id(store, reference)) is None:
        from pytest_crashlab.store.baseline_refs import resolve_baseline

        return resolve_baseline(store, reference, cwd=Path.cwd(), own_run=candidate.id).load()
    return store.load(run_id)


def _refuse_unlike(baseline: Manifest, candidate: Manifest) -> None:
    if baseline.id == candidate.id:
        raise UsageError(f"Run {candidate.id} cannot be compared with itself; name two runs.")
    for what, a, b in (
        ("dataset", baseline.dataset, candidate.dataset),
        ("split", baseline.split, candidate.split),
    ):
        if a != b:
            raise UsageError(
                f"The runs are of different {what}s ({a or 'none'} and {b or 'none'}) and cannot be compared."
            )
