"""``crashlab diff A B --case ID``: one case in two runs, trial beside trial."""

from __future__ import annotations

import json
import shlex
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING

from pytest_crashlab.cli import output, trials
from pytest_crashlab.cli.numbers import whole
from pytest_crashlab.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from pytest_crashlab.report import views
    from pytest_crashlab.store import Store, StoredRun

_MOST_TRIALS = 1_000_000


def numbers(args: argparse.Namespace) -> tuple[int | None, int | None]:
    """``--trial`` and ``--beside``; refuses what asks for a part of no case."""
    found = whole("--trial", args.trial, most=_MOST_TRIALS), whole("--beside", args.beside, most=_MOST_TRIALS)
    given = {
        "--trial": args.trial is not None,
        "--beside": args.beside is not None,
        "--no-words": args.no_words,
        "--look": args.look and args.copy is None,
    }
    if args.case is None and any(given.values()):
        flag = next(name for name, is_given in given.items() if is_given)
        raise UsageError(f"{flag} is about the trials of one case; name it with --case.")
    if args.case is not None and args.copy is not None:
        raise UsageError("--copy writes a list of cases, and --case names one; leave one of them out.")
    return found


def refuse_unknown(case: str, baseline: StoredRun, candidate: StoredRun) -> None:
    """Raise ``UsageError`` for a case that neither run has, with those that come close."""
    known = list(dict.fromkeys((*candidate.manifest.case_ids, *baseline.manifest.case_ids)))
    if case in known:
        return
    near = [k for k in known if case in k] or get_close_matches(case, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near[:3])}?" if near else "'crashlab diff A B --show all' lists them."
    raise UsageError(f"Neither run has a case {case}; {hint}")


def show(
    args: argparse.Namespace,
    store: Store,
    runs: tuple[StoredRun, StoredRun],
    found: views.DiffView,
    asked: tuple[int | None, int | None],
) -> int:
    """Print the case."""
    from pytest_crashlab.report.case_diff import case_diff_json, case_diff_view
    from pytest_crashlab.report.case_diff_text import render_case_diff
    from pytest_crashlab.report.commands import run_name

    baseline, candidate = runs
    view = case_diff_view(
        baseline,
        candidate,
        found,
        args.case,
        kept=(
            partial(trials.kept, args.baseline, baseline, store),
            partial(trials.kept, args.candidate, candidate, store),
        ),
        trial=asked[0],
        beside=asked[1],
    )
    if all(pair.a is None and pair.b is None for pair in view.pairs) and any(n is not None for n in asked):
        raise UsageError(f"Neither run has a report of these trials of {args.case}; leave the numbers out.")
    if args.json:
        output.write(f"{json.dumps(case_diff_json(view), indent=2)}\n")
        return 0
    screen = output.Screen.of_stdout()
    named = shlex.quote(run_name(args.candidate, candidate.manifest.id))
    output.write(
        render_case_diff(
            view,
            named,
            words=not args.no_words,
            width=screen.width,
            color=screen.color,
            encoding=screen.encoding,
        )
    )
    return 0
