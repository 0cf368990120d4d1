"""What judges used and how often they disagreed with themselves, from the trial to the report."""

from __future__ import annotations

import importlib.util
import json

import pytest

from pytest_crashlab.store import Store

pytestmark = pytest.mark.skipif(
    not any(importlib.util.find_spec(name) for name in ("httpx", "httpx2")), reason="httpx is not installed"
)
SUITE = """
import json, pathlib, pytest
from pytest_crashlab.provider.scripted import Reply, Scripted

RULE = json.loads(pathlib.Path("rule.json").read_text())

def say(ok):
    return Reply(text='{"reason": "so", "pass": %s}' % ok, tokens_in=500, tokens_out=70)

YES, NO, LOST = say("true"), say("false"), Reply(fault="rate_limit")

@pytest.mark.crashlab(
    provider=Scripted(Reply(text="Paris", tokens_in=12, tokens_out=3)),
    judge=Scripted(*REPLIES, model="MODEL"),
)
@pytest.mark.parametrize("n", range(2))
def test_judged(trial, provider, judge, n):
    with trial.run() as target:
        target.output = provider.ask("France?").text
    verdict = judge(RULE["rubric"], answer=target.output, votes=RULE["votes"])
    trial.check("city", verdict, why=verdict.why, judge=verdict.judge)
"""


@pytest.fixture
def run(pytester, monkeypatch):
    for name in ("PYTEST_ADDOPTS", "CI", "GITHUB_ACTIONS", "CRASHLAB_STORE", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def session(*arguments, replies="YES, NO, YES", model="strict", rubric="Is it a city?", votes=3):
        # the rule is no part of the test's own text: a test that reads otherwise has another pass rule
        pytester.makefile(".json", rule=json.dumps({"rubric": rubric, "votes": votes}))
        pytester.makepyfile(test_it=SUITE.replace("*REPLIES", replies).replace("MODEL", model))
        load = ("-p", "pytest_crashlab.plugin", "-p", "xdist.plugin", "--crashlab-retries=0")
        result = pytester.runpytest_inprocess(*load, "--trials=2", *arguments)
        store = Store.open(pytester.path / ".crashlab")
        return result, store.load(store.manifests()[0].id)

    return session


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_judges_use_reaches_the_row_and_the_summary(run, workers):
    result, stored = run(workers)
    names = [name for name in stored.trials.columns if name.startswith("judge_") and name != "judge_s"]
    assert {tuple(row[name] for name in names) for row in stored.trials.iter_rows(named=True)} == {
        (3, 1500, 210, None, None, "scripted:strict", 1, 1)
    }
    assert stored.trials["judge_s"].min() > 0
    assert stored.trials["tokens_in"].to_list() == [12] * 4
    said = result.stdout.str()
    assert "Judge scripted:strict (no part of the target's numbers)\n  12 calls, time " in said
    assert "tokens in 6,000, tokens out 840, cost -" in " ".join(said.split())
    assert "Judge flips 4 of 4 judgements of two votes or more" in said


@pytest.mark.parametrize(
    ("replies", "votes", "outcome", "counted"),
    [
        ("YES", 1, "passed", (0, 0)),
        ("YES, YES, NO", 3, "passed", (1, 1)),
        ("YES, LOST, YES", 3, "passed", (1, 0)),
        ("YES, LOST, LOST", 3, "judge_error", (0, 0)),
        ("YES, LOST, NO", 3, "judge_error", (1, 1)),
    ],
)
def test_a_judgement_counts_where_two_votes_can_be_read(run, replies, votes, outcome, counted):
    _, stored = run(replies=replies, votes=votes)
    found = stored.trials.select("outcome", "judge_voted", "judge_split").unique().rows()
    assert found == [(outcome, *counted)]


@pytest.mark.parametrize("other", [{"model": "mild"}, {"rubric": "Is it a capital?"}, {"votes": 1}])
def test_another_judge_rubric_or_rule_gives_no_verdict(run, other, pytester):
    run("--save-baseline=main", replies="YES")
    result, _ = run("--baseline=main", "--crashlab-report=said.json", replies="YES", **other)
    assert result.ret == 10
    assert "No verdict" in result.stdout.str()
    verdict = json.loads((pytester.path / "said.json").read_text())["verdict"]
    assert [reason["code"] for reason in verdict["reasons"]] == ["judged_differently"]


def test_the_same_judge_gives_a_verdict(run):
    run("--save-baseline=main", replies="YES")
    result, _ = run("--baseline=main", replies="YES")
    assert "judged by a different judge" not in result.stdout.str()
    assert "No verdict: not measurable" not in result.stdout.str()
