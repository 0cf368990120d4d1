"""What listing and sealing may cost, in bounds that a slow shared machine keeps too."""

from __future__ import annotations

import subprocess
import sys
import time

from store_builders import record, trial_row

from pytest_crashlab.records.case import CasePlan
from pytest_crashlab.records.check import CheckRow
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store.plan import Plan
from pytest_crashlab.store.schema import Manifest

_LIST = """
import sys
from pytest_crashlab.store.runs import Store
from pytest_crashlab.store.baseline_refs import resolve_baseline
from pytest_crashlab.store.promotion import promote
store = Store.open(sys.argv[1])
run = store.manifests()[0]
assert run.outcomes == {"passed": 1}
assert resolve_baseline(store, run.id, cwd=sys.argv[1]).run == run
writer = store.begin(run.model_copy(update={"id": "another"}))
writer.close()
heavy = {"polars", "numpy", "scipy", "rich", "pytest"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else 0)
"""


def test_listing_resolving_and_beginning_need_no_tables(store):
    record(store, {"a": ["passed"]})
    done = subprocess.run(
        [sys.executable, "-c", _LIST, str(store.root)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_two_thousand_runs_are_listed_at_once(store):
    run = record(store, {f"tests/test_refunds.py::test_refund[{n}]": ["passed"] for n in range(50)})
    for number in range(2_000):
        folder = store.paths.runs / f"20261129T{number:06d}Z-aaaaaa"
        folder.mkdir()
        manifest = run.model_copy(update={"id": folder.name, "created": f"2026-11-29T00:00:00.{number:04d}Z"})
        (folder / "manifest.json").write_bytes(manifest.to_bytes())
    began = time.process_time()
    found = store.manifests()
    assert time.process_time() - began < 2
    assert len(found) == 2_001
    assert store.problems == []


def test_a_large_run_is_sealed_and_opened_again(store):
    cases = [f"tests/test_refunds.py::test_refund[order-{n}]" for n in range(2_000)]
    checks = [
        CheckRow(name="amount", required=True, ok=True),
        CheckRow(name="style", required=False, ok=None),
    ]
    writer = store.begin(Manifest(id="20261130T063300Z-k3v9q2"))
    writer.write_plan(Plan(cases=[CasePlan(id=case, planned=5) for case in cases]))
    for case in cases:
        for trial in range(1, 6):
            writer.append(trial_row(case, trial), checks)
    began = time.process_time()
    manifest = writer.seal(RunStatus.COMPLETED)
    assert time.process_time() - began < 4
    assert manifest.counts["passed"] == 10_000
    before = store.load(manifest.id)
    began = time.process_time()
    writer = store.reopen(manifest.id)
    assert time.process_time() - began < 4
    assert writer.append(trial_row(cases[-1], 5)) is False
    writer.seal(RunStatus.COMPLETED)
    after = store.load(manifest.id)
    assert after.trials.equals(before.trials)
    assert after.checks.equals(before.checks)
