"""Sessions whose trials are made by the collect side alone, without options, store or gate."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONFTEST = """
import json
import os
from pathlib import Path

import pytest

from pytest_crashlab.plugin import cache, compat, marker_names, markers
from pytest_crashlab.plugin.collect import CollectHooks, expand

CASES = pytest.StashKey[list]()


def pytest_addoption(parser):
    parser.addoption("--k", type=int, default=None)
    parser.addoption("--order", default="rounds")
    parser.addoption("--seed", type=int, default=1)
    parser.addoption("--unsupported", default="error")
    parser.addoption("--out", default="reports.jsonl")


def pytest_configure(config):
    marker_names.register_markers(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    config = session.config
    if config.pluginmanager.has_plugin("dsession") or config.option.k == 0:
        return
    config.pluginmanager.register(CollectHooks(make_trials), "make-trials")


def make_trials(session, config, items):
    reader = markers.Markers(config)
    expansion = expand(
        items,
        spec_for=lambda item: markers.resolve_trials(item, reader, option=config.option.k),
        order=config.option.order,
        seed=config.option.seed,
        unsupported=config.option.unsupported,
    )
    items[:] = expansion.items
    plan = {
        "cases": [[case.id, case.planned, case.content, case.pass_rule, case.file, case.line, case.min_passes]
                  for case in expansion.cases],
        "unsupported": expansion.unsupported,
        "order": expansion.order,
        "items": [item.nodeid for item in items],
    }
    name = "plan-" + getattr(config, "workerinput", {}).get("workerid", "main") + ".json"
    (config.rootpath / name).write_text(json.dumps(plan), encoding="utf-8")


class Reports:
    def __init__(self, config):
        self.config = config
        self.path = config.rootpath / config.option.out
        self.path.unlink(missing_ok=True)
        self.failed, self.ran = {}, {}

    def pytest_runtest_logreport(self, report):
        case, trial = report.nodeid, None
        if self.config.option.k != 0:
            case, trial = compat.case_id_of(report.nodeid, grouped=compat.is_grouped(self.config))
        self.ran[case] = None
        if report.failed:
            self.failed[case] = None
        kind = report.outcome
        if hasattr(report, "wasxfail"):
            kind = "xfailed" if report.skipped else "xpassed"
        row = [case, trial, report.when, kind, hasattr(report, "context")]
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\\n")

    def pytest_sessionfinish(self):
        if self.config.option.k == 0:
            return
        cache.rewrite(self.config, failed=list(self.failed), ran=set(self.ran))


def pytest_sessionstart(session):
    if not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(Reports(session.config), "trial-reports")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a session came to: pytest's result, the rows of its reports and the plan."""

    result: pytest.RunResult
    rows: list[tuple[str, int | None, str, str, bool]]
    plan: dict

    @property
    def trials(self) -> Counter[tuple[str, str]]:
        """How often each case ended in which way; set-up and tear-down count only when not passed."""
        return Counter(
            (case, f"{when} {kind}{' subtest' if sub else ''}")
            for case, _, when, kind, sub in self.rows
            if when == "call" or kind != "passed"
        )

    @property
    def numbers(self) -> dict[str, list[int | None]]:
        """The trials of each case in the order they were torn down."""
        numbers: dict[str, list[int | None]] = {}
        for case, trial, when, _, _ in self.rows:
            if when == "teardown":
                numbers.setdefault(case, []).append(trial)
        return numbers

    @property
    def order(self) -> list[tuple[str, int | None]]:
        """Case name and trial in the order they ran."""
        return [
            (case.rpartition("::")[2], trial) for case, trial, when, _, _ in self.rows if when == "teardown"
        ]


@pytest.fixture
def session(pytester: pytest.Pytester) -> Callable[..., Ran]:
    """Run pytest in the test's directory with k trials of each case; k=0 is plain pytest."""
    pytester.makeconftest(CONFTEST)

    def run(
        *args: str,
        k: int | None = 3,
        workers: int = 0,
        subprocess: bool = False,
        plugins: tuple[str, ...] = (),
    ) -> Ran:
        root: Path = pytester.path
        for old in [*root.glob("plan-*.json"), root / "reports.jsonl"]:
            old.unlink(missing_ok=True)
        load = [arg for name in (*(["xdist.plugin"] if workers else []), *plugins) for arg in ("-p", name)]
        options = [*load, *([] if k is None else [f"--k={k}"]), *args]
        if workers:
            options.append(f"-n{workers}")
        result = (
            pytester.runpytest_subprocess(*options)
            if workers or subprocess
            else pytester.runpytest_inprocess(*options)
        )
        reports = root / "reports.jsonl"
        text = reports.read_text(encoding="utf-8") if reports.exists() else ""
        plans = sorted(root.glob("plan-*.json"))
        return Ran(
            result=result,
            rows=[tuple(json.loads(line)) for line in text.splitlines()],
            plan=json.loads(plans[0].read_text(encoding="utf-8")) if plans else {},
        )

    return run
