"""``crashlab view RUN``: everything one run says."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pytest_crashlab.cli import add_store, lookup, output

if TYPE_CHECKING:
    from pytest_crashlab.store import Manifest

_DESCRIPTION = """\
Show one run: outcomes, rates, repeats, cases.

example:
  crashlab view latest
  crashlab view 20261130-k3v9q2 --json
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
    parser.add_argument("--json", action="store_true", help="as JSON, with at most 200 cases")
    add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the run."""
    from pytest_crashlab.compare import check_thresholds, run_numbers
    from pytest_crashlab.report.build import session_summary
    from pytest_crashlab.report.json import dumps, session_json
    from pytest_crashlab.report.terminal import render_text

    stored = lookup.load_run(lookup.open_store(args), args.reference)
    view = session_summary(
        stored, run_numbers(stored), thresholds=check_thresholds(stored), next_commands=_next(stored.manifest)
    )
    if args.json:
        output.write(f"{dumps(session_json(view))}\n")
        return 0
    screen = output.Screen.of_stdout()
    output.write(
        render_text(view, width=screen.width, color=screen.color, encoding=screen.encoding, full=True)
    )
    return 0


def _next(manifest: Manifest) -> list[str]:
    baseline = (manifest.baseline or {}).get("id")
    return [f"crashlab diff {baseline} {manifest.id}"] if baseline else []
