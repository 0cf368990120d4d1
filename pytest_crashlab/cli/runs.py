"""``crashlab runs``: the stored runs, newest first. Reads manifests only."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from pytest_crashlab.cli import add_store, lookup, output

if TYPE_CHECKING:
    from pytest_crashlab.store import Manifest, Store

_STALE_SECONDS = 24 * 3600
_DEFAULT_LIMIT = 25

_DESCRIPTION = """\
List the stored runs, newest first.

example:
  crashlab runs --release 2.3.0 --limit 5
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
    parser.add_argument("--limit", type=int, default=_DEFAULT_LIMIT, metavar="N", help="at most N (0: all)")
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
    manifests = [m for m in store.manifests() if _wanted(m, args)]
    shown = manifests[: args.limit] if args.limit > 0 else manifests
    lines = [run_line(m, names.get(m.id, ()), stale=_stale(store, m)) for m in shown]
    problems = [problem.text for problem in store.problems]
    if args.json:
        output.write(f"{dumps(runs_json(lines, problems))}\n")
        return 0
    screen = output.Screen.of_stdout()
    output.write(
        render_runs(
            lines,
            problems,
            more=len(manifests) - len(shown),
            width=screen.width,
            color=screen.color,
            encoding=screen.encoding,
        )
    )
    return 0


def _wanted(manifest: Manifest, args: argparse.Namespace) -> bool:
    return all(
        wanted is None or value == wanted
        for wanted, value in (
            (args.status, manifest.status.value),
            (args.release, manifest.release),
            (args.dataset, manifest.dataset),
            (args.split, manifest.split),
        )
    )


def _stale(store: Store, manifest: Manifest) -> bool:
    running = manifest.status.value == "running"
    return running and time.time() - store.changed_at(manifest.id) > _STALE_SECONDS
