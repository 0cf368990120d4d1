"""What a large store costs who asks it: ``python benchmarks/store_size.py [PART ...] [--rounds N]``.

A store of 2,000 runs, four of them of 100,000 trials: two of 2,000 cases x 50 and two of 20,000 x 5. Each
command is a process of its own and takes turns with one that imports the modules which the command loads,
and does nothing. "more" is what the command takes beyond that one. The least of all rounds counts: what else
the machine does only ever adds to it.

Parts: runs, view, diff, gate, history, import (a file of 100,000 rows). ``--keep FOLDER`` makes the store
there, or asks the one that is there. Ends with 1 where an aim is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PARTS = ("runs", "view", "diff", "gate", "history", "import")
_COMMAND = "import sys; from pytest_crashlab.cli import main; code = main(sys.argv[1:])\n"
_ASK = f"{_COMMAND}sys.exit(code)"
_NAMES = f"{_COMMAND}open('modules', 'w').write('\\n'.join(sys.modules))"
_IMPORT = """
import contextlib, importlib
for name in open('modules').read().split():
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds on the clock, seconds of the processor, and peak megabytes."""

    wall: float
    cpu: float
    peak: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A command; ``aim`` seconds that it may take beyond its imports, None where nothing was promised."""

    part: str
    what: str
    arguments: tuple[str, ...]
    aim: float | None = None


def questions(ids: dict[str, str]) -> list[Question]:
    """What is asked of the store, by part."""
    small, case = ids["small"], "test_agent.py::test_case[7]"
    asked = [
        Question(part="runs", what="runs", arguments=("runs",), aim=0.3),
        Question(
            part="runs",
            what="runs --release 2.3.0 --branch main",
            arguments=("runs", "--release", "2.3.0", "--branch", "main"),
            aim=0.3,
        ),
        Question(part="runs", what="runs --json", arguments=("runs", "--json"), aim=0.3),
        Question(part="runs", what="runs --page 79", arguments=("runs", "--page", "79"), aim=0.3),
        Question(part="runs", what="runs --limit 0", arguments=("runs", "--limit", "0")),
        Question(part="view", what="view, 100 x 5", arguments=("view", small)),
        Question(part="gate", what="gate, 100 x 5", arguments=("gate", small, "--baseline", ids["before"])),
        Question(part="history", what="history", arguments=("history", case)),
        Question(part="history", what="history --limit 0", arguments=("history", case, "--limit", "0")),
        Question(part="import", what="import, 100,000 rows", arguments=("import", "rows.jsonl")),
    ]
    for size in ("2,000 x 50", "20,000 x 5"):
        a, b = ids[f"A {size}"], ids[f"B {size}"]
        asked += [
            Question(part="view", what=f"view, {size}", arguments=("view", b)),
            Question(part="view", what=f"view --json, {size}", arguments=("view", b, "--json")),
            Question(part="diff", what=f"diff, {size}", arguments=("diff", a, b), aim=1.0),
            Question(part="diff", what=f"diff --json, {size}", arguments=("diff", a, b, "--json"), aim=1.0),
            Question(part="gate", what=f"gate, {size}", arguments=("gate", b, "--baseline", a)),
        ]
    return sorted(asked, key=lambda question: PARTS.index(question.part))


def process(folder: Path, code: str, *arguments: str, ends: tuple[int, ...] = (0,)) -> Cost:
    """What a new interpreter takes for ``code``; raises where it ends otherwise."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CRASHLAB")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    started = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], cwd=folder, env=environment, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(started.pid, 0)
    wall = time.perf_counter() - start
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode not in ends:
        raise SystemExit(f"{' '.join(arguments)} ended with {started.returncode}")
    return Cost(wall=wall, cpu=usage.ru_utime + usage.ru_stime, peak=usage.ru_maxrss / 1024)


def ask(folder: Path, question: Question, rounds: int) -> tuple[Cost, Cost]:
    """The command's cost and that of its imports."""
    ends = (0, 1, 10) if question.part == "gate" else (0,)
    seen: tuple[list[Cost], list[Cost]] = ([], [])
    for number in range(rounds + 1):
        arguments = question.arguments
        if question.part == "import":  # each into a store of its own
            arguments = (*arguments, "--store", "imported")
            shutil.rmtree(folder / "imported", ignore_errors=True)
        if number == 0:  # also brings the files of the store into the system's memory
            process(folder, _NAMES, *arguments)
            continue
        seen[0].append(process(folder, _ASK, *arguments, ends=ends))
        seen[1].append(process(folder, _IMPORT))
    shutil.rmtree(folder / "imported", ignore_errors=True)
    return _least(seen[0]), _least(seen[1])


def _least(costs: list[Cost]) -> Cost:
    return Cost(
        wall=min(c.wall for c in costs), cpu=min(c.cpu for c in costs), peak=min(c.peak for c in costs)
    )


def measure(folder: Path, parts: list[str], rounds: int) -> int:
    """Print the table; how many aims are missed."""
    print("| command | s | of it importing | more s | aim | more CPU s | peak MB | more MB |")
    print("|---|---|---|---|---|---|---|---|")
    missed = 0
    for question in questions(json.loads((folder / "ids.json").read_text("utf-8"))):
        if question.part not in parts:
            continue
        whole, imports = ask(folder, question, rounds)
        more = whole.wall - imports.wall
        late = question.aim is not None and more > question.aim
        missed += late
        aim = "-" if question.aim is None else f"{question.aim:g}{', missed' if late else ''}"
        print(
            f"| {question.what} | {whole.wall:.2f} | {imports.wall:.2f} | {more:.2f} | {aim} "
            f"| {whole.cpu - imports.cpu:.2f} | {whole.peak:.0f} | {whole.peak - imports.peak:.0f} |",
            flush=True,
        )
    return missed


def made(folder: Path) -> Path:
    """``folder`` with a store in it. Made by another process, whose memory would count as its children's."""
    if not (folder / "ids.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, str(Path(__file__).with_name("large_store.py")), str(folder)], check=True
        )
        print(f"2,000 runs stored in {time.perf_counter() - start:.0f} s")
    return folder


def store(rounds: int) -> None:
    """All parts, in a store that goes again."""
    print("\n### A store of 2,000 runs, four of them of 100,000 trials\n")
    with tempfile.TemporaryDirectory() as folder:
        measure(made(Path(folder)), list(PARTS), rounds)


def main() -> int:
    """Measure what the command line names, or all of it; 1 where an aim is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="part", help=", ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    parts = options.parts or list(PARTS)
    if options.keep is not None:
        return int(measure(made(options.keep.resolve()), parts, options.rounds) > 0)
    with tempfile.TemporaryDirectory() as folder:
        return int(measure(made(Path(folder)), parts, options.rounds) > 0)


if __name__ == "__main__":
    sys.exit(main())
