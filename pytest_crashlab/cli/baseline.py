"""``crashlab baseline``: which runs names stand for, and why."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_crashlab.cli import add_store, lookup, output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_crashlab.report.views import BaselineLineView
    from pytest_crashlab.store import Manifest, Store
    from pytest_crashlab.store.baselines import Resolution, WalkStep

_DESCRIPTION = """\
Names and the runs they stand for.

example:
  crashlab baseline list
  crashlab baseline promote main 20261130-k3v9q2
  crashlab baseline export main baselines/main.crashrun
  crashlab baseline explain main
"""
_PROMOTIONS_BACK = 10


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its actions."""
    parser = verbs.add_parser(
        "baseline",
        help="list, promote, export or explain baselines",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)

    def action(name: str, help_: str, example: str) -> argparse.ArgumentParser:
        added = actions.add_parser(
            name,
            help=help_,
            description=f"{help_[0].upper()}{help_[1:]}.\n\nexample:\n  crashlab baseline {example}\n",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        add_store(added)
        return added

    listing = action("list", "every name, its run, and how far it moved in ten promotions", "list")
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.set_defaults(run=run_list)

    promote = action("promote", "let a name stand for a run", "promote main latest")
    promote.add_argument(
        "name",
        metavar="NAME",
        help="a branch or any other name, as given to pytest --baseline; it may be new",
    )
    promote.add_argument("reference", metavar="RUN", help=lookup.RUN_HELP)
    promote.add_argument("--from-branch", action="store_true", help="also a run of another branch")
    promote.add_argument(
        "--accept-regression", action="store_true", help="also a run judged worse; needs --reason"
    )
    promote.add_argument("--reason", metavar="TEXT", help="why; kept in the ledger")
    promote.set_defaults(run=run_promote)

    export = action("export", "write a run to one file, small enough to commit", "export main main.crashrun")
    export.add_argument("reference", metavar="RUN", help=lookup.RUN_HELP)
    export.add_argument("path", metavar="FILE", help="for example baselines/main.crashrun")
    export.add_argument("--evidence", action="store_true", help="with inputs, outputs and traces")
    export.set_defaults(run=run_export)

    explain = action("explain", "which run a name means here and why not another", "explain main")
    explain.add_argument("name", metavar="NAME")
    explain.set_defaults(run=run_explain)


def run_list(args: argparse.Namespace) -> int:
    """Print every name."""
    from pytest_crashlab.report.json import baselines_json, dumps
    from pytest_crashlab.report.listing import render_baselines

    store = lookup.open_store(args)
    manifests = {m.id: m for m in store.manifests()}
    lines = [_line(store, name, run_id, manifests) for name, run_id in sorted(store.refs.all().items())]
    if args.json:
        output.write(f"{dumps(baselines_json(lines))}\n")
        return 0
    screen = output.Screen.of_stdout()
    output.write(render_baselines(lines, width=screen.width, color=screen.color, encoding=screen.encoding))
    return 0


def _line(store: Store, name: str, run_id: str, manifests: dict[str, Manifest]) -> BaselineLineView:
    from pytest_crashlab.report.lines import baseline_line

    history = store.refs.history(name)
    if not history:
        return baseline_line(name, run_id, manifests.get(run_id))
    back = min(_PROMOTIONS_BACK, len(history) - 1)
    earlier = manifests.get(str(history[back]["run"]))
    promoted = str(history[0]["at"])
    return baseline_line(name, run_id, manifests.get(run_id), promoted=promoted, earlier=earlier, back=back)


def run_promote(args: argparse.Namespace) -> int:
    """Promote the run."""
    from pytest_crashlab.store.promotion import promote

    store = lookup.open_store(args)
    manifest = lookup.find_run(store, args.reference)
    before = store.refs.read(args.name)
    promote(
        store,
        args.name,
        manifest.id,
        cwd=Path.cwd(),
        expected=before,
        from_branch=args.from_branch,
        accept_regression=args.accept_regression,
        reason=args.reason,
        from_branch_option="--from-branch",
    )
    was = f" (before: {before})" if before else ""
    output.line(f"{args.name} stands for {manifest.id} now{was}.")
    return 0


def run_export(args: argparse.Namespace) -> int:
    """Write the run to a file."""
    from pytest_crashlab.store.export import export_run

    store = lookup.open_store(args)
    manifest = lookup.find_run(store, args.reference)
    path = export_run(store, manifest.id, Path(args.path), evidence=args.evidence)
    output.line(f"Run {manifest.id} is in {path} ({path.stat().st_size / 1024:.1f} KiB).")
    return 0


def run_explain(args: argparse.Namespace) -> int:
    """Print the choice and the walk that led to it."""
    from pytest_crashlab.store.baseline_refs import resolve_baseline

    resolution = resolve_baseline(lookup.open_store(args), args.name, cwd=Path.cwd())
    for sentence in _explained(resolution):
        output.line(sentence)
    return 0


def _explained(resolution: Resolution) -> Iterator[str]:
    yield resolution.reason
    for note in resolution.notes:
        yield f"  Note: {note.text}"
    for step in resolution.walk:
        yield from _step(step, None if resolution.run is None else resolution.run.id)


def _step(step: WalkStep, chosen: str | None) -> Iterator[str]:
    if not (step.candidates or step.refused):
        if step.commit is not None:
            yield f"  {step.distance:>3}  {step.commit[:7]}  no run there"
        return
    place = "elsewhere" if step.commit is None else f"{step.distance:>3}  {step.commit[:7]}"
    for candidate in step.candidates:
        yield f"  {place}  {candidate}  {'chosen' if candidate == chosen else 'not needed: could be chosen'}"
    for refusal in step.refused:
        if refusal.run_id == chosen:
            yield f"  {place}  {refusal.run_id}  chosen all the same, as the newest promotion: {refusal.why}"
        else:
            yield f"  {place}  {refusal.run_id}  refused: {refusal.why}"
