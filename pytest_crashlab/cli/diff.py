"""``crashlab diff A B``: two runs case by case."""

from __future__ import annotations

import argparse
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_crashlab.cli import add_store, cases, copying, looks, lookup, numbers, output
from pytest_crashlab.errors import UsageError
from pytest_crashlab.records.dataset import are_same_split, shares_dataset
from pytest_crashlab.report.difference import SHOWN, diff_view

if TYPE_CHECKING:
    from pytest_crashlab.store import Manifest, Store, StoredRun

_DESCRIPTION = """\
Compare run B with baseline A and list the cases. Always ends with 0: 'gate' is the verb that judges.

example:
  crashlab diff main latest --show worse
  crashlab diff main latest --show worse --case "tests/test_agent.py::test_refund"
  crashlab diff main latest --class fabrication --copy cases.txt && pytest @cases.txt --trials=10
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
    parser.add_argument(
        "--class",
        dest="failure_class",
        metavar="NAME",
        help="only cases with a trial that failed as this: a failure class, or an outcome's label",
    )
    parser.add_argument(
        "--copy",
        metavar="FILE",
        help="write the ids of these cases to FILE: 'pytest @FILE' runs them; to FILE.jsonl their inputs and "
        "what was expected, as a data set",
    )
    parser.add_argument("--limit", type=int, default=_DEFAULT_LIMIT, metavar="N", help="at most N (0: all)")
    parser.add_argument("--method", choices=["mid-p", "exact", "normal"], help="(as recorded)")
    parser.add_argument("--margin", metavar="POINTS", help="the smallest drop that matters (as recorded)")
    parser.add_argument(
        "--outcome", metavar="LABELS", help="compare how often these outcomes occur (exploratory)"
    )
    parser.add_argument(
        "--case", metavar="ID", help="this case, trial beside trial, with the words that changed"
    )
    parser.add_argument("--trial", metavar="N", help="with --case: only trial N of B")
    parser.add_argument("--beside", metavar="N", help="with --case: beside trial N of A, not the same number")
    parser.add_argument("--no-words", action="store_true", help="with --case: texts whole, no words marked")
    parser.add_argument(
        "--look", action="store_true", help="with --case or --copy: of a holdout too, and count it"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the comparison."""
    from pytest_crashlab.compare import CompareOptions, compare_runs, judge
    from pytest_crashlab.compare.calibration import aa_factor
    from pytest_crashlab.compare.history import history
    from pytest_crashlab.records.comparison import Word
    from pytest_crashlab.report.commands import run_name
    from pytest_crashlab.report.json import diff_json, dumps
    from pytest_crashlab.report.listing import render_diff
    from pytest_crashlab.store.amendments import note_comparison

    numbers_of_case = cases.numbers(args)
    store = lookup.open_store(args, args.baseline, args.candidate)
    margin = numbers.points("--margin", args.margin)
    candidate = lookup.load_run(store, args.candidate)
    baseline, line = _baseline(store, args, candidate.manifest)
    _refuse_unlike(baseline.manifest, candidate.manifest)
    if args.case is not None:
        cases.refuse_unknown(args.case, baseline, candidate)
        for sealed in (baseline.manifest, candidate.manifest):
            looks.count_view(store, sealed, look=args.look)
    options = CompareOptions(
        method=args.method or candidate.manifest.method or "mid-p",
        margin=candidate.manifest.margin if margin is None else margin,
        aa_factor=aa_factor(store, candidate.manifest),
        outcomes=numbers.labels(args.outcome),
        history=history(store, candidate.manifest, baseline.manifest.id),
    )
    note_comparison(store, candidate.manifest.id, baseline.manifest.id)
    looks.count_comparison(store, candidate.manifest, baseline.manifest.id)
    comparison = compare_runs(baseline, candidate, options)
    show = args.show or ("worse" if comparison.word is Word.REGRESSED else "moved")
    limit = args.limit if args.limit > 0 else None
    _, gate = judge(candidate, comparison)
    listed = partial(
        diff_view,
        baseline,
        candidate,
        comparison,
        gate,
        show=show,
        failure_class=args.failure_class,
        baseline_line=line,
        gate_options=_gate_options(args, baseline.manifest),
    )
    view = listed(limit=limit if args.case is None else None)
    if args.case is not None:
        return cases.show(args, store, (baseline, candidate), view, numbers_of_case)
    copied = None
    if args.copy is not None:
        names = [case.case for case in listed(limit=None).cases]  # also those that the page has no room for
        runs = ((args.candidate, candidate), (args.baseline, baseline))
        copied = copying.copy(Path(args.copy), names, store, runs, look=args.look)
    if args.json:
        output.write(f"{dumps(diff_json(view))}\n")
        return 0
    screen = output.Screen.of_stdout()
    named = shlex.quote(run_name(args.candidate, candidate.manifest.id))
    output.write(render_diff(view, named, width=screen.width, color=screen.color, encoding=screen.encoding))
    if copied is not None:
        output.line(copied)
    return 0


def _gate_options(args: argparse.Namespace, baseline: Manifest) -> tuple[str, ...]:
    from pytest_crashlab.report.commands import run_name

    name = shlex.quote(run_name(args.baseline, baseline.id))
    given = (("--baseline", name), ("--method", args.method), ("--margin", args.margin))
    return tuple(part for flag, value in given if value is not None for part in (flag, value))


def _baseline(store: Store, args: argparse.Namespace, candidate: Manifest) -> tuple[StoredRun, str | None]:
    """A run by its id whatever its state, so that its reasons show; else what ``--baseline`` would mean.

    With it the reason for the choice where a name was resolved.
    """
    from pytest_crashlab.errors import BaselineError

    reference: str = args.baseline
    if lookup.is_file(reference) or (run_id := lookup.run_by_id(store, reference)) is None:
        from pytest_crashlab.store.baseline_refs import resolve_baseline

        try:
            found = resolve_baseline(store, reference, cwd=Path.cwd(), own_run=candidate.id)
            return found.load(), found.reason
        except BaselineError:
            if lookup.named(store, reference) != candidate.id:
                raise
            run_id = candidate.id
    if run_id == candidate.id:
        raise UsageError(
            f"{reference} and {args.candidate} are the same run, {candidate.id}, so there is nothing to "
            "compare; name another one ('crashlab runs' lists them)."
        )
    return store.load(run_id), None


def _refuse_unlike(baseline: Manifest, candidate: Manifest) -> None:
    if baseline.id == candidate.id:
        raise UsageError(f"Both are the same run, {candidate.id}, so there is nothing to compare.")
    for what, a, b, alike in (
        ("dataset", baseline.dataset, candidate.dataset, shares_dataset),
        ("split", baseline.split, candidate.split, are_same_split),
    ):
        if not alike(a, b):
            raise UsageError(
                f"The runs are of different {what}s ({a or 'none'} and {b or 'none'}) and cannot be compared."
            )
