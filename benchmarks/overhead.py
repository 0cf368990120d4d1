"""What trials cost beside pytest-repeat, and what a session costs that does not use the plugin.

    python benchmarks/overhead.py [trials collection finish growth workers unused isolation transport store]
        [--rounds N]

Each figure comes from real sessions in processes of their own. The variants of a row take turns, and
the least processor time of all rounds counts: what else the machine does only ever adds to it.
Memory is the largest peak of any one process of the session.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

CRASHLAB = ("-p", "pytest_crashlab.plugin")
REPEAT = ("-p", "pytest_repeat")
XDIST = ("-p", "xdist")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Processor seconds and peak megabytes of a session."""

    cpu: float
    peak: float


def write_suite(folder: Path, tests: int) -> None:
    """``tests`` trivial tests, fifty a file."""
    for number in range(0, tests, 50):
        names = range(number, min(number + 50, tests))
        text = "".join(f"def test_{i}():\n    assert True\n\n\n" for i in names)
        (folder / f"test_{number // 50:04}.py").write_text(text)


def session(folder: Path, *arguments: str) -> Cost:
    """Run pytest in ``folder``; raises where it does not end in 0."""
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    started = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {started.returncode}")
    return Cost(cpu=usage.ru_utime + usage.ru_stime, peak=usage.ru_maxrss / 1024)


def in_turn(folder: Path, rounds: int, variants: dict[str, tuple[str, ...]]) -> dict[str, Cost]:
    """The least cost of each variant over ``rounds`` rounds in which all of them run."""
    seen: dict[str, list[Cost]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, arguments in variants.items():
            seen[name].append(session(folder, *arguments))
    return {
        name: Cost(cpu=min(c.cpu for c in costs), peak=min(c.peak for c in costs))
        for name, costs in seen.items()
    }


def table(costs: dict[str, Cost], *, beside: str) -> None:
    """Print the costs and their ratios to those of ``beside``."""
    print("| | CPU s | ratio | peak MB | ratio |\n|---|---|---|---|---|")
    base = costs[beside]
    for name, cost in costs.items():
        print(
            f"| {name} | {cost.cpu:.2f} | {cost.cpu / base.cpu:.2f} "
            f"| {cost.peak:.0f} | {cost.peak / base.peak:.2f} |"
        )


def trials(rounds: int) -> None:
    """1,000 tests x 10."""
    print("\n### 1,000 trivial tests x 10 trials, recorded\n")
    with tempfile.TemporaryDirectory() as folder:
        write_suite(Path(folder), 1000)
        costs = in_turn(
            Path(folder),
            rounds,
            {
                "pytest-repeat --count=10": (*REPEAT, "--count=10"),
                "pytest-crashlab --trials=10": (*CRASHLAB, "--trials=10"),
            },
        )
    table(costs, beside="pytest-repeat --count=10")


def collection(rounds: int) -> None:
    """Collection alone, 100,000 trials."""
    print("\n### Collection of 10,000 tests x 10 trials (--collect-only)\n")
    with tempfile.TemporaryDirectory() as folder:
        write_suite(Path(folder), 10_000)
        costs = in_turn(
            Path(folder),
            rounds,
            {
                "pytest-repeat --count=10": (*REPEAT, "--count=10", "--co", "-qq"),
                "pytest-crashlab --trials=10": (*CRASHLAB, "--trials=10", "--co", "-qq"),
                "pytest alone, 10,000 tests": ("--co", "-qq"),
            },
        )
    table(costs, beside="pytest-repeat --count=10")


_FINISH = """
import json, resource, sys, time
from pathlib import Path
from pytest_crashlab.compare.compare import CompareOptions
from pytest_crashlab.conclude.brief import Brief, Display
from pytest_crashlab.conclude.conclude import conclude
from pytest_crashlab.records.case import CasePlan
from pytest_crashlab.records.comparison import Policy
from pytest_crashlab.records.outcome import Kind
from pytest_crashlab.records.run import RunStatus, new_run_id
from pytest_crashlab.records.trial import Phase, TrialRow
from pytest_crashlab.store.plan import Plan
from pytest_crashlab.store.runs import Store
from pytest_crashlab.store.schema import Manifest, utc_now

cases, k = int(sys.argv[1]), 10
store = Store.open(Path("store"), create=True)

def begin(shift):
    now = utc_now()
    manifest = Manifest(id=new_run_id(), created=now, updated=now, k=k, planned_cases=cases,
                        total_cases=cases, planned_trials=cases * k)
    writer = store.begin(manifest)
    ids = [f"tests/test_{c // 50:04}.py::test_{c}" for c in range(cases)]
    writer.write_plan(Plan(cases=[CasePlan(id=i, planned=k, content="c", pass_rule="p") for i in ids]))
    for t in range(1, k + 1):
        for c, case in enumerate(ids):
            passed = (c * 7 + t * 13 + shift) % 10 < 8
            writer.append(TrialRow(
                case=case, trial=t, outcome="passed" if passed else "failed",
                kind=Kind.PASS if passed else Kind.FAIL, phase=Phase.RUN, infra_healthy=True,
                target_completed=True, start=1.0 * t * cases + c, duration=0.5, run_duration=0.4,
                site=f"{case.partition('::')[0]}:{c % 50}"))
    return writer

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

first = begin(0)
first.seal(RunStatus.COMPLETED)
baseline = store.load(first.run_id)
writer = begin(1)
before, start = peak(), time.perf_counter()
writer.seal(RunStatus.COMPLETED)
brief = Brief(store=Path("store"), run_id=writer.run_id, status=RunStatus.COMPLETED, method="mid-p",
              margin=None, policy=Policy.REGRESSIONS, min_pass_rate=None, reason="named", reference="main",
              bootstrapping=False, becomes_baseline=False, reports=(), summary_page=None,
              annotate=False, store_option="", baseline_option="main", saving=False,
              display=Display(width=80, color=False, encoding="utf-8", quiet=False))
conclude(store, brief, baseline)
print(json.dumps({"s": time.perf_counter() - start, "mb": peak() - before}))
"""


def finish(rounds: int) -> None:
    """Seal, compare and draw a run, from its journal."""
    print("\n### The end of a session: seal, compare, summary\n")
    print("| trials | s | more MB at the peak |\n|---|---|---|")
    for cases in (1_000, 10_000):
        seen = []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(
                    [sys.executable, "-c", _FINISH, str(cases)],
                    cwd=folder,
                    stdout=subprocess.PIPE,
                    check=True,
                )
            seen.append(json.loads(done.stdout))
        seconds, more = min(s["s"] for s in seen), min(s["mb"] for s in seen)
        print(f"| {cases * 10:,} | {seconds:.2f} | {more:.0f} |")


def growth(rounds: int) -> None:
    """Whole sessions of more and more trials."""
    print("\n### Growth: whole recorded sessions\n")
    print("| trials | CPU s | CPU us a trial | peak MB |\n|---|---|---|---|")
    for tests in (100, 1_000, 10_000):
        with tempfile.TemporaryDirectory() as folder:
            write_suite(Path(folder), tests)
            cost = in_turn(
                Path(folder), 1 if tests > 1_000 else rounds, {"crashlab": (*CRASHLAB, "--trials=10")}
            )["crashlab"]
        print(f"| {tests * 10:,} | {cost.cpu:.1f} | {cost.cpu / tests * 1e5:.0f} | {cost.peak:.0f} |")


_OWN_PEAK = """
import resource
def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        with open("peak", "w") as file:
            file.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
"""


def workers(_rounds: int) -> None:
    """What the controller keeps of a trial under xdist."""
    print("\n### xdist's controller with two workers\n")
    peaks = {}
    for tests in (200, 2_000):
        with tempfile.TemporaryDirectory() as folder:
            write_suite(Path(folder), tests)
            (Path(folder) / "conftest.py").write_text(_OWN_PEAK)
            session(Path(folder), *XDIST, *CRASHLAB, "-n2", "--trials=10")
            peaks[tests * 10] = int((Path(folder) / "peak").read_text())
    (few, least), (many, most) = peaks.items()
    print("| trials | controller's peak MB |\n|---|---|")
    for count, peak in peaks.items():
        print(f"| {count:,} | {peak / 1024:.0f} |")
    print(f"\n{(most - least) / (many - few):.1f} KB a trial")


def unused(rounds: int) -> None:
    """A session of one test that makes no trials, beside one with a plugin that does nothing.

    To load any plugin by name, pytest looks through all installed packages; that is not this one's cost.
    """
    print("\n### A session of one test that does not use the plugin\n")
    with tempfile.TemporaryDirectory() as folder:
        write_suite(Path(folder), 1)
        (Path(folder) / "empty_plugin.py").touch()
        costs = in_turn(Path(folder), 5 * rounds, {"without": ("-p", "empty_plugin"), "with": CRASHLAB})
    more = (costs["with"].cpu - costs["without"].cpu) * 1000
    print(f"{more:.0f} ms more, of {costs['without'].cpu * 1000:.0f} ms")


def isolation(rounds: int) -> None:
    """Fresh worker processes for each round, beside workers that stay."""
    print("\n### 100 trivial tests x 5 trials with two workers: each round in fresh ones\n")
    with tempfile.TemporaryDirectory() as folder:
        write_suite(Path(folder), 100)
        common = (*XDIST, *CRASHLAB, "-n2", "--trials=5")
        costs = in_turn(
            Path(folder),
            rounds,
            {"workers that stay": common, "fresh ones": (*common, "--crashlab-isolation=round")},
        )
    table(costs, beside="workers that stay")
    more = costs["fresh ones"].cpu - costs["workers that stay"].cpu
    print(f"\n{more / 8:.2f} CPU s for each of 8 more workers, that import and collect the suite")


def transport(rounds: int) -> None:
    """Recording a model call; loaded here, as what this process holds would count as its sessions' memory."""
    from transport_cost import transport as measured

    measured(rounds)


def store(rounds: int) -> None:
    """What a store of many runs, and runs of many trials, cost who asks."""
    from store_size import store as measured

    measured(rounds)


PARTS = {
    f.__name__: f for f in (trials, collection, finish, growth, workers, unused, isolation, transport, store)
}


def main() -> None:
    """Measure what the command line names, or all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="part", help=", ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for name in options.parts or PARTS:
        PARTS[name](options.rounds)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
