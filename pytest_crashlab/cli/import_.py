"""``crashlab import``: trials of other tools as sealed runs."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_crashlab.cli import add_store, lookup, output
from pytest_crashlab.errors import UsageError
from pytest_crashlab.records.outcome import Kind

if TYPE_CHECKING:
    from pytest_crashlab.importing.source import Source
    from pytest_crashlab.store import Store, StoredRun

_DESCRIPTION = """\
Import trials of other tools: JSON lines (also .gz), Parquet, JUnit XML, logs of Inspect. One run per arm.

example:
  crashlab import trials.jsonl.gz --map case=task_id --instrument unknown_agent_error
  crashlab import reports/ --instrument error --name nightly
  crashlab import logs/refunds.eval --instrument error --dry-run
"""
_KINDS = {
    "passed": (Kind.PASS, "labels that are passes"),
    "failed": (Kind.FAIL, "labels that are fails"),
    "crashed": (Kind.CRASH, "labels of a target that ended by its own error"),
    "instrument": (Kind.INSTRUMENT, "labels of failures that are not the target's: no decision"),
    "excluded": (Kind.EXCLUDED, "labels of trials that do not count, as a skip"),
}
_DECLARED = ("name", "release", "prompt", "dataset", "dataset_version", "split")


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "import",
        help="make runs of other tools' trials",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file, or JUnit files or their folder")
    parser.add_argument(
        "--format", choices=["jsonl", "parquet", "junit", "inspect"], help="(by the file's name)"
    )
    parser.add_argument(
        "--map", action="append", default=[], metavar="FIELD=COLUMN", help="a column's own name"
    )
    for flag, (_, help_) in _KINDS.items():
        parser.add_argument(f"--{flag}", action="append", default=[], metavar="LABELS", help=help_)
    parser.add_argument(
        "--not-completed", action="append", default=[], metavar="LABELS", help="labels of a target cut short"
    )
    parser.add_argument("--pass-at", type=float, metavar="SCORE", help="the score from which a trial passes")
    parser.add_argument("--score", metavar="NAME", help="which of an Inspect sample's scores counts")
    parser.add_argument("--arm", metavar="NAME", help="only this arm")
    parser.add_argument("--number-trials", action="store_true", help="number each case's rows as they come")
    parser.add_argument(
        "--trials", metavar="N|own", help="planned trials a case (default: the most that one has)"
    )
    for label in _DECLARED:
        choices = ["dev", "holdout"] if label == "split" else None
        parser.add_argument(f"--{label.replace('_', '-')}", choices=choices, metavar="LABEL")
    parser.add_argument("--branch", metavar="NAME", help="the branch that the trials were made on")
    parser.add_argument("--commit", metavar="SHA", help="the commit that the trials were made on")
    parser.add_argument("--dry-run", action="store_true", help="say what would come, store nothing")
    add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read, check, store and say what there is now."""
    from pytest_crashlab.importing.arms import build_run, choose_arm, number_trials, split_arms
    from pytest_crashlab.importing.labels import meanings, parse_labels
    from pytest_crashlab.importing.turns import taken_in_turn
    from pytest_crashlab.records.run import RunStatus
    from pytest_crashlab.store.imported import add_sealed

    given = {kind: getattr(args, flag) for flag, (kind, _) in _KINDS.items()}
    labels = parse_labels(given, args.not_completed, args.pass_at)
    names = _columns(args.map)
    source = _read(args, names)
    in_turn = source.sha256 if taken_in_turn(source.rows) else None
    choose_arm(source, args.arm)
    found = meanings(source.rows, labels, source.path)
    imported = {
        "format": source.kind,
        "source": Path(source.path).name,
        "sha256": source.sha256,
        "columns": names,
        "kinds": {label: kind.value for label, kind in labels.kinds.items()},
        "not_completed": sorted(labels.not_completed),
        "pass_at": labels.pass_at,
    }
    runs = []
    for arm in split_arms(source.rows, found):
        number_trials(arm, source.path, in_order=args.number_trials)
        declared = _declared(args, source)
        declared["name"] = declared["name"] or arm.name
        declared["interleaved"] = in_turn
        runs.append(
            build_run(
                arm,
                imported=imported,
                labels=declared,
                planned=_planned(args.trials) or source.planned,
                cases=source.cases,
                status=RunStatus(source.status),
            )
        )
    if args.dry_run:
        for one in runs:
            _say(one, "Would import")
        return 0
    store = _store(args)
    for one in runs:
        add_sealed(store, one)
        _say(one, f"Run {one.manifest.id}:")
    ids = [one.manifest.id for one in runs]
    output.line(
        f"Next: crashlab diff {ids[0]} {ids[1]}" if len(ids) == 2 else f"Next: crashlab view {ids[0]}"
    )
    return 0


def _columns(given: list[str]) -> dict[str, str]:
    from pytest_crashlab.importing.rows import FIELDS

    names: dict[str, str] = {}
    for text in given:
        field, _, column = text.partition("=")
        if field not in FIELDS or not column:
            raise UsageError(f"--map {text}: write FIELD=COLUMN with a field of {', '.join(FIELDS)}.")
        names[field] = column
    return names


def _read(args: argparse.Namespace, names: dict[str, str]) -> Source:
    from pytest_crashlab.importing.inspect_log import read_inspect
    from pytest_crashlab.importing.junit import read_junit
    from pytest_crashlab.importing.table import read_json_lines, read_parquet

    paths = [Path(text) for text in args.files]
    format_ = args.format or _format(paths[0])
    if format_ == "junit":
        files = [f for path in paths for f in (sorted(path.rglob("*.xml")) if path.is_dir() else [path])]
        return read_junit(files, args.files[0] if len(paths) == 1 else f"{len(files)} files")
    if len(paths) > 1:
        raise UsageError("Only JUnit reports come as several files; import the others one by one.")
    if format_ == "inspect":
        return read_inspect(paths[0], args.score)
    return read_parquet(paths[0], names) if format_ == "parquet" else read_json_lines(paths[0], names)


def _format(path: Path) -> str:
    if path.is_dir() or path.suffix == ".xml":
        return "junit"
    name = path.name.removesuffix(".gz")
    for ending, format_ in ((".jsonl", "jsonl"), (".ndjson", "jsonl"), (".parquet", "parquet")):
        if name.endswith(ending):
            return format_
    if name.endswith((".eval", ".json")):
        return "inspect"
    raise UsageError(
        f"{path} does not say by its name what it is; use --format jsonl, parquet, junit or inspect."
    )


def _planned(text: str | None) -> int | str | None:
    from pytest_crashlab.importing.arms import OWN

    if text is None or text == OWN:
        return text
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1_000_000:
        raise UsageError(
            f"--trials {text}: write a number of trials, or '{OWN}' for as many as each case has."
        )
    return int(text)


def _declared(args: argparse.Namespace, source: Source) -> dict[str, Any]:
    declared = {label: getattr(args, label) or source.labels.get(label) for label in _DECLARED}
    declared["environment"] = source.labels.get("environment", {})
    if args.branch or args.commit:
        declared["git"] = {"branch": args.branch, "commit": args.commit, "dirty": False}
    return declared


def _store(args: argparse.Namespace) -> Store:
    """The store, made where there is none: an import may be the first thing anyone does."""
    from pytest_crashlab.store import Store

    given = args.store or os.environ.get("CRASHLAB_STORE")
    return Store.open(Path(given) if given else lookup.nearest_store(Path.cwd()), create=True)


def _say(run: StoredRun, begin: str) -> None:
    from pytest_crashlab.compare.sentences import count

    manifest, counts = run.manifest, run.manifest.counts or {}
    name = f"{manifest.name}, " if manifest.name else ""
    output.line(
        f"{begin} {name}{count(manifest.planned_cases, 'case')}, {counts['passed'] + counts['failed']} of "
        f"{count(counts['scheduled'], 'trial')} decided, {counts['passed']} passed, {counts['undecided']} "
        f"undecided, {counts['missing']} missing, {counts['excluded']} excluded."
    )
    for warning in manifest.warnings:
        output.line(f"  Note: {warning}.")
