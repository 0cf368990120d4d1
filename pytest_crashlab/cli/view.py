"""``crashlab view RUN``: everything one run says."""

from __future__ import annotations

import argparse
import shlex
from difflib import get_close_matches
from typing import TYPE_CHECKING

from pytest_crashlab.cli import add_store, looks, lookup, output, trials
from pytest_crashlab.cli.numbers import whole
from pytest_crashlab.errors import UsageError
from pytest_crashlab.records.case import trial_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crashlab.store import Manifest, StoredRun

_MOST_TRIALS = 1_000_000
_DESCRIPTION = """\
Show one run: outcomes, rates, repeats, cases.

example:
  crashlab view latest
  crashlab view 20261130-k3v9q2 --json
  crashlab view latest --case "tests/test_agent.py::test_refund" --trial 3
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "view",
        help="show one run",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("reference", metavar="RUN", help=lookup.RUN_HELP)
    parser.add_argument("--case", metavar="ID", help="only this case: every trial, and what it said")
    parser.add_argument("--trial", metavar="N", help="with --case: one trial, and all that was kept of it")
    parser.add_argument("--attempt", metavar="N", help="with --trial: this attempt, not the one that counts")
    parser.add_argument("--json", action="store_true", help="as JSON, with at most 200 cases")
    parser.add_argument("--raw", action="store_true", help="with --trial: as JSON, nothing left out")
    parser.add_argument("--look", action="store_true", help="with --case: of a holdout too, and count it")
    add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the run."""
    from pytest_crashlab.compare import recorded_thresholds, run_numbers
    from pytest_crashlab.report.build import session_summary
    from pytest_crashlab.report.commands import run_name
    from pytest_crashlab.report.json import dumps, session_json
    from pytest_crashlab.report.terminal import render_text

    trial, attempt = _numbers(args)
    store = lookup.open_store(args, args.reference)
    stored = lookup.load_run(store, args.reference)
    if args.case is not None:
        _refuse_unknown(stored, args.case)
        looks.count_view(store, stored.manifest, look=args.look)
    if args.case is not None and trial is not None:
        return trials.show(args, stored, store, trial, attempt)
    if args.case is not None:
        return _case(stored, args.case)
    figures = run_numbers(stored)
    failing = [c.case for c in figures.counts if c.passes < c.decided]
    view = session_summary(
        stored,
        figures,
        thresholds=recorded_thresholds(stored),
        baseline_line=(stored.manifest.baseline or {}).get("reason"),
        next_commands=_next(stored.manifest, run_name(args.reference, stored.manifest.id), failing),
    )
    if args.json:
        output.write(f"{dumps(session_json(view))}\n")
        return 0
    screen = output.Screen.of_stdout()
    output.write(
        render_text(view, width=screen.width, color=screen.color, encoding=screen.encoding, full=True)
    )
    return 0


def _numbers(args: argparse.Namespace) -> tuple[int | None, int | None]:
    """``--trial`` and ``--attempt``; refuses what asks for a trial of no case."""
    trial = whole("--trial", args.trial, most=_MOST_TRIALS)
    attempt = whole("--attempt", args.attempt, most=_MOST_TRIALS)
    if trial is not None and args.case is None:
        raise UsageError(f"--trial={args.trial} is of no case; name it with --case.")
    if trial is None and (args.raw or attempt is not None):
        raise UsageError("--raw and --attempt show one trial; name it with --case and --trial.")
    return trial, attempt


def _refuse_unknown(run: StoredRun, case: str) -> None:
    known = run.manifest.case_ids
    if case not in known:
        if (of := trial_of(case)) is not None and of[0] in known:
            raise UsageError(f"{case} is a trial: name it with --case {shlex.quote(of[0])} --trial {of[1]}.")
        near = [k for k in known if case in k] or get_close_matches(case, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near[:3])}?" if near else f"it has {len(known)} cases."
        raise UsageError(f"Run {run.manifest.id} has no case {case}; {hint}")


def _case(run: StoredRun, case: str) -> int:
    from pytest_crashlab.report.messages import trial_lines

    output.line(case)
    for line in trial_lines(run, case):
        output.line(f"  {line}")
    return 0


def _next(manifest: Manifest, name: str, failing: Sequence[str]) -> list[str]:
    run = shlex.quote(name)
    baseline = (manifest.baseline or {}).get("id")
    case = next(iter((*failing, *manifest.case_ids)), None)
    diff = [f"crashlab diff {baseline} {run}"] if baseline else []
    return [*diff, *([f"crashlab view {run} --case {shlex.quote(case)}"] if case else [])]
