"""The bundled agent that gives refunds: its suite tells what happened, the same again with the same seed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_crashlab.store.evidence import read_evidence

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

HERE = Path(__file__).parents[2] / "examples" / "refund_agent"
SESSION = ("--trials=2", "--crashlab-dataset-sample=8", "--crashlab-seed=3", "--crashlab-prompt=refund@8")


@pytest.fixture
def refunds(single: Suite) -> Suite:
    for path in HERE.iterdir():
        if path.is_file():
            shutil.copy(path, single.root)
    return single


def test_every_end_is_named_and_kept(refunds: Suite) -> None:
    refunds.run(*SESSION, "--crashlab-config=prompt=8", "-c", "pytest.ini")
    run = refunds.last()
    rows = {row["case"].partition("[")[2][:-1]: row for row in run.trials.iter_rows(named=True)}
    requests = [json.loads(line) for line in (HERE / "requests.jsonl").read_text("utf-8").splitlines()]
    assert set(rows) < {request["id"] for request in requests}
    assert {row["prompt"] for row in rows.values()} == {"refund@8"}
    labels = set(run.trials["outcome"])
    assert {"refunded", "overpaid"} <= labels
    failed = run.trials.filter(run.trials["outcome"] == "overpaid")
    assert set(failed["failure_class"]) == {"believed the customer"}
    kinds = dict(run.checks.select("name", "kind").iter_rows())
    assert kinds == {"amount": "code", "other_orders": "code", "turns": "metric", "letter": "code"}
    manifest = run.manifest
    assert (manifest.dataset, manifest.split, manifest.run_config) == ("requests", "dev", {"prompt": "8"})
    trial = failed.row(0, named=True)
    kept = read_evidence(refunds.store.paths.run(run.manifest.id), trial["case"], trial["trial"], 1)
    assert [attachment["name"] for attachment in kept["attachments"]] == ["transcript"]


def test_an_empty_account_is_no_crash_of_the_agent(refunds: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BALANCE", "0")
    refunds.run(*SESSION, "-c", "pytest.ini")
    decisions = dict(refunds.last().trials.select("outcome", "decision").iter_rows())
    assert decisions == {"provider_quota": "inconclusive"}
