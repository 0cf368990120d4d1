"""A provider that is down is not paid for: how often it is asked, what trials are, what the session says."""

from __future__ import annotations

import importlib.util
import json

import pytest
from wire import Server

from pytest_crashlab import load_run
from pytest_crashlab.plugin.breaker import Breaker
from pytest_crashlab.store import Store

pytestmark = pytest.mark.skipif(
    not any(importlib.util.find_spec(name) for name in ("httpx", "httpx2")), reason="httpx is not installed"
)
SUITE = """
import os, pytest

FAULT = os.environ["FAULT"]
URL = os.environ["URL"] + ("/ok/v1" if FAULT == "none" else "/" + FAULT + "/v1")

@pytest.mark.crashlab(provider="openai:model-x", base_url=URL)
@pytest.mark.parametrize("n", range(4))
def test_asks(provider, n):
    assert "Paris" in provider.ask("The capital of France?").text

def test_asks_nobody(): pass
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run the suite against a server of its own: (exit code, what was said, newest run, requests)."""
    for name in ("PYTEST_ADDOPTS", "CI", "GITHUB_ACTIONS", "CRASHLAB_STORE", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback")
    pytester.makepyfile(test_it=SUITE)

    def session(fault, *arguments):
        with Server() as server:
            monkeypatch.setenv("URL", server.url("")[:-1])
            monkeypatch.setenv("FAULT", fault)
            load = ("-p", "pytest_crashlab.plugin", "-p", "xdist.plugin", "--crashlab-retries=0")
            result = pytester.runpytest_inprocess(*load, *arguments)
            asked = sum(server.seen.values())
        store = Store.open(pytester.path / ".crashlab")
        manifest = store.manifests()[0]
        return result, " ".join(result.stdout.str().split()), store.load(manifest.id), asked

    return session


def test_an_empty_balance_is_asked_once(run, pytester):
    result, said, stored, asked = run("quota", "--trials=3", "--min-pass-rate=90%")
    assert asked == 1
    assert stored.manifest.outcomes == {"provider_quota": 12, "passed": 3}
    assert result.ret == 10
    sentence = "openai is not asked any more: 1 trial in a row ended in provider_quota"
    assert said.count(f"crashlab: {sentence}") == 1
    assert said.index(f"crashlab: {sentence}") < said.index("Outcomes")
    (warning,) = stored.manifest.warnings
    assert sentence in warning
    assert f"pytest --crashlab-resume={stored.manifest.id} runs them" in warning
    assert (
        not stored.trials.filter(stored.trials["outcome"] == "provider_quota")["tokens_in"].drop_nulls().len()
    )
    assert not list(pytester.path.glob(".crashlab/runs/*/control.json"))


def test_workers_tell_each_other(run):
    _, said, stored, asked = run("quota", "--trials=3", "-n2")
    assert asked <= 2
    assert stored.manifest.outcomes == {"provider_quota": 12, "passed": 3}
    assert said.count("crashlab: openai is not asked any more") == 1


@pytest.mark.parametrize(("fault", "asked_for"), [("broken", 5), ("unauthorised", 3), ("rate_limit", 10)])
def test_an_outage_takes_some_trials_to_be_told_from_bad_luck(run, fault, asked_for):
    _, said, stored, asked = run(fault, "--trials=3")
    assert asked == asked_for
    assert f"openai is not asked any more: {asked_for} trials in a row ended in provider_" in said
    assert stored.manifest.counts["undecided"] == 12


def test_what_the_system_did_wrong_stops_nothing(run):
    _, said, stored, asked = run("too_long", "--trials=3")
    assert asked == 12
    assert "not asked any more" not in said
    assert stored.manifest.counts["undecided"] == 0


def test_a_run_goes_on_when_the_provider_is_back(run, pytester):
    run("quota", "--trials=3")
    result, said, stored, asked = run("none", "--crashlab-resume=latest")
    assert result.ret == 0
    assert asked == 12
    assert "not asked any more" not in said
    assert stored.manifest.warnings == []
    assert stored.manifest.counts["passed"] == 15
    assert len(load_run(stored.manifest.id, store=pytester.path / ".crashlab").manifest.case_ids) == 5


def test_an_answer_in_between_closes_it(tmp_path):
    from pytest_crashlab.provider.base import Call, Status

    def call(error):
        status = Status.OK if error is None else Status.ERROR
        return Call(number=1, request=1, provider="p", model="m", start=0.0, status=status, error=error)

    breaker = Breaker(tmp_path, "main")
    for error in ("provider_error", "network_error", "provider_timeout", "provider_error", None) * 2:
        breaker.heard([call(error)])
        breaker.refuse("p")
    breaker.heard([])
    assert not list(tmp_path.iterdir())
    for _ in range(5):
        breaker.heard([call("provider_error"), call("network_error")])
    stopped = json.loads((tmp_path / "control.json").read_text())["stopped"]["p"]
    assert (stopped["label"], stopped["by"]) == ("network_error", "main")
    with pytest.raises(Exception, match=r"p was not asked.*5 trials in a row ended in network_error"):
        Breaker(tmp_path, "gw1").refuse("p")
    Breaker(tmp_path, "gw1").refuse("other")
