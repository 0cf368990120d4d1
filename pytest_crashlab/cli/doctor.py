"""``crashlab doctor``: what works on this machine and in this store, and what to do about what does not."""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pytest_crashlab.cli import add_store, lookup, output
from pytest_crashlab.errors import CrashlabError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DESCRIPTION = """\
Say what works here: versions, the store, and what is there for sandboxes and model providers.
Ends with 1 where something that every run needs does not work.

example:
  crashlab doctor
"""
_PACKAGES = ("pytest-crashlab", "pytest", "pytest-xdist", "polars", "numpy", "scipy", "pydantic", "rich")
_OPTIONAL = {
    "openai": "openai",
    "anthropic": "anthropic",
    "genai-prices": "genai_prices",
    "hypothesis": "hypothesis",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line: ``works`` None for what nobody needs; ``remedy`` what to do where it does not."""

    about: str
    what: str
    works: bool | None
    remedy: str | None = None


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "doctor",
        help="say what works here",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the findings; 1 where something needed does not work."""
    findings = [*_versions(), *_store(args), *_sandboxes(), *_extras()]
    if args.json:
        from pytest_crashlab.report.json import dumps

        found = [asdict(finding) for finding in findings]
        output.write(f"{dumps({'schema': 'crashlab.doctor', 'version': 1, 'findings': found})}\n")
    else:
        marks = {True: "ok", False: "NO", None: "-"}
        for finding in findings:
            output.line(f"{marks[finding.works]:<3} {finding.about:<9} {finding.what}")
            if finding.remedy:
                output.line(f"{'':<14}{finding.remedy}")
    return int(any(finding.works is False for finding in findings))


def _versions() -> Iterator[Finding]:
    yield Finding(about="python", what=f"{platform.python_version()} on {platform.platform()}", works=True)
    for package in _PACKAGES:
        found = _version(package)
        what = f"{package} {found}" if found else f"{package} is not installed"
        remedy = None if found else "Install it with 'pip install pytest-crashlab'."
        yield Finding(about="package", what=what, works=found is not None, remedy=remedy)


def _store(args: argparse.Namespace) -> Iterator[Finding]:
    try:
        store = lookup.open_store(args)
    except CrashlabError as error:
        yield Finding(about="store", what=str(error), works=None)
        return
    manifests = store.manifests()
    yield Finding(about="store", what=f"{store.root}: {len(manifests)} runs", works=True)
    yield _writable(store.root)
    for problem in store.problems:
        yield Finding(about="run", what=problem.text, works=False, remedy="Repair it or delete the run.")
    running = [manifest.id for manifest in manifests if manifest.status.value == "running"]
    for run_id in running:
        yield Finding(
            about="run",
            what=f"{run_id} is not finished",
            works=None,
            remedy=f"If its session is gone, 'crashlab recover {run_id}' seals what there is.",
        )
    for number in store.ledger.damaged():
        yield Finding(about="ledger", what=f"line {number} holds no entry and is passed over", works=None)


def _writable(root: Path) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=root) as file:
            file.write(b"\0" * 4096)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return Finding(
            about="store",
            what=f"cannot be written ({error.strerror or error})",
            works=False,
            remedy="Runs can be read; to record one give another --crashlab-store.",
        )
    return Finding(about="store", what="can be written", works=True)


def _sandboxes() -> Iterator[Finding]:
    """Which built-in sandboxes can be made here; a start of each is tried."""
    from pytest_crashlab.sandbox.bubblewrap import Bubblewrap
    from pytest_crashlab.sandbox.docker import Docker
    from pytest_crashlab.sandbox.local import Local

    for backend in (Bubblewrap(), Docker(), Local()):
        reason = backend.unavailable()
        what = f"{backend.name}: {backend.isolates}" if reason is None else f"{backend.name}: {reason}"
        yield Finding(about="sandbox", what=what, works=True if reason is None else None)
        backend.close()


def _extras() -> Iterator[Finding]:
    for package, module in _OPTIONAL.items():
        if find_spec(module) is not None:
            yield Finding(about="beside", what=f"{package} {_version(package) or ''}".rstrip(), works=True)
        else:
            yield Finding(about="beside", what=f"{package} is not installed", works=None)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
