"""``crashlab runs``: the stored runs, newest first. Reads the heads of manifests only."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import TYPE_CHECKING

from pytest_crashlab.cli import add_store, lookup, numbers, output
from pytest_crashlab.compare.sentences import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crashlab.store import Store
    from pytest_crashlab.store.heads import RunHead

_STALE_SECONDS = 24 * 3600
_DEFAULT_LIMIT = 25
_MOST = 1_000_000
_ENDS = {"failed": "failed or cancelled", "cancelled": "failed or cancelled"}

_DESCRIPTION = """\
List the stored runs, newest first.

example:
  crashlab runs --release 2.3.0 --limit 5
  crashlab runs --branch main --page 2
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "runs",
        help="list the stored runs",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--status", choices=["running", "completed", "failed", "cancelled"])
    parser.add_argument("--release", metavar="LABEL")
    parser.add_argument("--dataset", metavar="NAME")
    parser.add_argument("--split", choices=["dev", "holdout"])
    parser.add_argument("--branch", metavar="NAME")
    parser.add_argument("--name", metavar="TEXT", help="a part of the run's name")
    parser.add_argument("--limit", metavar="N", help=f"N a page (default: {_DEFAULT_LIMIT}; 0: all)")
    parser.add_argument("--page", metavar="N", help="page N, counted from 1")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the list."""
    from pytest_crashlab.report.json import dumps, runs_json
    from pytest_crashlab.report.lines import run_line
    from pytest_crashlab.report.listing import render_runs

    store = lookup.open_store(args)
    names: dict[str, list[str]] = {}
    for name, run_id in store.refs.all().items():
        names.setdefault(run_id, []).append(name)
    limit = numbers.whole("--limit", args.limit, least=0, most=_MOST)
    limit = _DEFAULT_LIMIT if limit is None else limit
    page = numbers.whole("--page", args.page, most=_MOST) or 1
    heads = [head for head in store.heads() if _wanted(head, args)]
    older = heads[limit * (page - 1) :]
    shown = older[:limit] if limit else heads
    lines = [run_line(head, names.get(head.id, ()), stale=_stale(store, head)) for head in shown]
    problems = [problem.text for problem in store.problems]
    if args.json:
        output.write(f"{dumps(runs_json(lines, problems))}\n")
        return 0
    screen = output.Screen.of_stdout()
    output.write(
        render_runs(
            lines,
            problems,
            head=_counts(store, heads),
            more=_more(len(older) - len(shown), page) if limit else None,
            width=screen.width,
            color=screen.color,
            encoding=screen.encoding,
        )
    )
    return 0


def _counts(store: Store, heads: Sequence[RunHead]) -> str | None:
    """How many runs the filters left, by how they ended; None for an empty store."""
    if not heads and not store.run_ids():
        return None
    ended = Counter(
        "not finished" if _stale(store, head) else _ENDS.get(head.status.value, head.status.value)
        for head in heads
    )
    parts = [f"{ended[end]} {end}" for end in ("completed", "running", "not finished", "failed or cancelled")]
    said = [part for part in parts if not part.startswith("0 ")]
    return f"{count(len(heads), 'run')}{': ' if said else ''}{', '.join(said)}"


def _more(left: int, page: int) -> str | None:
    return f"{count(left, 'older run')}: --page {page + 1} shows the next, --limit 0 all." if left else None


def _wanted(head: RunHead, args: argparse.Namespace) -> bool:
    return all(
        wanted is None or value == wanted
        for wanted, value in (
            (args.status, head.status.value),
            (args.release, head.release),
            (args.dataset, head.dataset),
            (args.split, head.split),
            (args.branch, None if head.git is None else head.git.branch),
        )
    ) and (args.name is None or args.name.lower() in (head.name or "").lower())


def _stale(store: Store, head: RunHead) -> bool:
    running = head.status.value == "running"
    return running and time.time() - store.changed_at(head.id) > _STALE_SECONDS
