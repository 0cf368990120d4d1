"""``crashlab history CASE``: one case over the runs that had it."""

from __future__ import annotations

import argparse
from difflib import get_close_matches
from typing import TYPE_CHECKING

from pytest_crashlab.cli import add_store, lookup, output
from pytest_crashlab.compare.sentences import count
from pytest_crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crashlab.store import Manifest

_DEFAULT_LIMIT = 25
_DESCRIPTION = """\
Show one case over the sealed runs that had it, newest first: a mark a trial, and a line of its pass shares.

example:
  crashlab history "tests/test_agent.py::test_refund[order-42]"
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "history",
        help="show one case over runs",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("case", metavar="CASE", help="a case's id")
    parser.add_argument("--limit", type=int, default=_DEFAULT_LIMIT, metavar="N", help="at most N (0: all)")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the case's history."""
    from pytest_crashlab.report.history import HistoryView, history_json, history_line, render_history
    from pytest_crashlab.report.json import dumps

    store = lookup.open_store(args)
    sealed = [manifest for manifest in store.manifests() if manifest.status.value != "running"]
    having = [manifest for manifest in sealed if args.case in manifest.case_ids]
    if not having:
        raise UsageError(f"No sealed run has a case {args.case}; {_hint(args.case, sealed)}")
    shown = having[: args.limit] if args.limit > 0 else having
    view = HistoryView(
        case=args.case,
        lines=tuple(history_line(store.load(manifest.id), args.case) for manifest in shown),
        more=len(having) - len(shown),
    )
    if args.json:
        output.write(f"{dumps(history_json(view))}\n")
        return 0
    screen = output.Screen.of_stdout()
    output.write(render_history(view, width=screen.width, color=screen.color, encoding=screen.encoding))
    return 0


def _hint(case: str, manifests: Sequence[Manifest]) -> str:
    known = list(dict.fromkeys(name for manifest in manifests for name in manifest.case_ids))
    near = [name for name in known if case in name] or get_close_matches(case, known, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near[:3])}?"
    return f"the store knows {count(len(known), 'case')}, 'crashlab view RUN' lists those of a run."
