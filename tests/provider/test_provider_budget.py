"""A session's budget: what is left out is missing, never a fail, and a resumed run goes on with it."""

from __future__ import annotations

import pytest

from pytest_crashlab.errors import UsageError
from pytest_crashlab.plugin.budget import Budget
from pytest_crashlab.store import Store

SUITE = """
import pytest, time

@pytest.mark.crashlab(provider="inhouse:m1")
@pytest.mark.parametrize("n", range(4))
def test_asks(provider, n):
    with provider.call() as call:
        call.tokens(input=90, output=10)
        call.cost_usd = 0.25
"""


@pytest.fixture
def run(pytester, monkeypatch):
    for name in ("PYTEST_ADDOPTS", "CI", "GITHUB_ACTIONS", "CRASHLAB_STORE", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_it=SUITE)

    def session(*arguments):
        load = ("-p", "pytest_crashlab.plugin", "-p", "xdist.plugin")
        result = pytester.runpytest_inprocess(*load, *arguments)
        found = Store.open(pytester.path / ".crashlab").manifests()
        return result, " ".join(result.stdout.str().split()), found[0] if found else None

    return session


@pytest.mark.parametrize(
    ("budget", "trials", "used"),
    [
        ("1.1usd", 4, "1 USD of 1.1 USD are used, and a trial took up to 0.25 USD"),
        ("0.5usd", 2, "0.5 USD of 0.5 USD are used"),
        ("99usd, 300tokens", 3, "300 tokens of 300 tokens are used, and a trial took up to 100 tokens"),
    ],
)
def test_no_trial_is_started_that_would_not_fit(run, budget, trials, used):
    result, said, manifest = run("--trials=3", f"--crashlab-budget={budget}", "--min-pass-rate=50%")
    assert result.ret == 10
    assert (manifest.status, manifest.counts["passed"], manifest.counts["missing"]) == (
        "cancelled",
        trials,
        12 - trials,
    )
    sentence = f"The budget is reached: after {trials} trials {used}"
    assert said.count(f"crashlab: {sentence}") == 1
    assert said.index(sentence) < said.index("Outcomes")
    (warning,) = manifest.warnings
    assert warning.startswith(sentence)
    assert f"pytest --crashlab-resume={manifest.id} runs the rest" in warning


def test_workers_stop_too_and_the_run_goes_on(run):
    result, _, manifest = run("--trials=3", "--crashlab-budget=1usd", "-n2")
    assert result.ret == 10
    # each of the two workers may have been in a trial when the word came, and have had one more in hand
    assert 4 <= manifest.counts["passed"] <= 8
    result, said, manifest = run("--crashlab-resume=latest", "-n1")
    assert (result.ret, manifest.counts["passed"], manifest.warnings) == (0, 12, [])
    assert "The budget" not in said


def test_time_is_what_passed(run, pytester):
    pytester.makepyfile(test_it="import time\ndef test_it(): time.sleep(0.05)")
    _, said, manifest = run("--trials=40", "--crashlab-budget=0.5s")
    assert 3 <= manifest.counts["passed"] <= 9
    assert "s of 0.5 s are used, and a trial took up to" in said


def test_a_trial_of_unknown_cost_is_told(run, pytester):
    pytester.makepyfile(test_it=SUITE.replace("call.cost_usd = 0.25", "call.cost_usd = 0.25 if n else None"))
    _, said, manifest = run("--trials=3", "--trial-order=cases", "--crashlab-budget=0.6usd")
    assert manifest.counts["passed"] == 5
    assert "(3 trials of unknown cost not counted)" in said


def test_a_budget_that_is_large_enough_says_nothing(run):
    result, said, manifest = run("--trials=1", "--crashlab-budget=1usd,1h")
    assert (result.ret, manifest.status, manifest.warnings) == (0, "completed", [])
    assert "The budget" not in said


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("5usd", Budget(usd=5)),
        (" .5 USD , 2h", Budget(usd=0.5, s=7200)),
        ("1000tokens,90s", Budget(tokens=1000, s=90)),
        ("1.5m", Budget(s=90)),
    ],
)
def test_budgets_are_read(text, read):
    assert Budget.read(text, "--crashlab-budget") == read


@pytest.mark.parametrize("text", ["5", "usd", "5eur", "0usd", "-1usd", "5usd,,", "5s,1m", "nan usd", ""])
def test_what_is_no_budget_is_refused(text):
    with pytest.raises(UsageError, match="is no budget: write amounts above 0 in usd, tokens, s, m or h"):
        Budget.read(text, "--crashlab-budget")


ASKS = """
import pytest

@pytest.mark.crashlab(provider="inhouse:m1", MARK)
@pytest.mark.parametrize("n", range(2))
def test_asks(provider, n):
    for _ in range(3):
        with provider.call() as call:
            call.tokens(input=90, output=10)
            call.cost_usd = 0.25 if n else 0.1
"""


def rows(pytester):
    store = Store.open(pytester.path / ".crashlab")
    trials = store.load(store.manifests()[0].id).trials
    return {
        (case[-2], trial): rest
        for case, trial, *rest in trials.select("case", "trial", "outcome", "cost_usd", "message").iter_rows()
    }


def test_a_trial_at_its_budget_makes_no_further_call_and_gives_no_decision(run, pytester):
    pytester.makepyfile(test_it=ASKS.replace("MARK", "budget_usd=0.5"))
    result, _, manifest = run("--trials=2")
    assert result.ret == 1  # an error of these tests, as nothing gates them
    found = rows(pytester)
    assert found["0", 1][:2] == ["passed", pytest.approx(0.3)]
    for trial in (1, 2):
        outcome, cost, message = found["1", trial]
        assert (outcome, cost) == ("budget_spent", 0.5)
        assert message.endswith(
            "the trial's budget is used up: 0.5 USD of 0.5 USD; a call to the model was not sent"
        )
    assert (manifest.status, manifest.counts["missing"]) == ("completed", 0)


@pytest.mark.parametrize("ending", ["pass", "raise ValueError", "assert 0"])
def test_a_test_that_catches_the_refusal_has_no_decision_either(run, pytester, ending):
    caught = """
import pytest

@pytest.mark.crashlab(provider="inhouse:m1", budget_tokens=100)
def test_asks(provider):
    try:
        for _ in range(3):
            with provider.call() as call:
                call.tokens(input=90, output=10)
    except Exception:
        ENDING
"""
    pytester.makepyfile(test_it=caught.replace("ENDING", ending))
    run("--trials=1")
    store = Store.open(pytester.path / ".crashlab")
    run_ = store.load(store.manifests()[0].id)
    assert run_.trials["outcome"].to_list() == ["budget_spent"]
    assert run_.trials["tokens_in"].to_list() == [90]


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_case_at_its_budget_starts_no_further_trial(run, pytester, workers):
    pytester.makepyfile(test_it=ASKS.replace("MARK", "case_budget_usd=2"))
    result, said, manifest = run("--trials=5", workers, "--min-pass-rate=10%")
    assert result.ret == 10
    found = rows(pytester)
    assert sum(case == "0" for case, _ in found) == 5
    started = sum(case == "1" for case, _ in found)
    assert started == 2 if workers == "-n0" else 2 <= started <= 4  # two may have been in hand
    assert {row[0] for row in found.values()} == {"passed"}
    assert (manifest.status, manifest.counts["missing"]) == ("cancelled", 5 - started)
    sentence = "The budget is reached: for test_it.py::test_asks[1], after"
    assert said.count(f"crashlab: {sentence}") == 1
    assert [warning.startswith(sentence) for warning in manifest.warnings] == [True]
    assert not list(pytester.path.glob(".crashlab/runs/*/budget.jsonl"))


def test_a_case_that_fits_its_budget_says_nothing(run, pytester):
    pytester.makepyfile(test_it=ASKS.replace("MARK", "case_budget_usd=2, case_budget_seconds=600"))
    result, said, manifest = run("--trials=2")
    assert (result.ret, manifest.status, manifest.warnings) == (0, "completed", [])
    assert "The budget" not in said


def test_an_outer_budget_is_lifted_with_none(run, pytester):
    lifted = ASKS.replace("MARK", "budget_usd=None").replace("def test", "def test")
    pytester.makepyfile(
        test_it="import pytest\npytestmark = pytest.mark.crashlab(budget_usd=0.01)\n" + lifted
    )
    result, _, manifest = run("--trials=1")
    assert (result.ret, manifest.counts["passed"]) == (0, 2)


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        (
            "budget_eur=1",
            "has budget_eur=, which is no budget; write budget_usd, budget_tokens or budget_seconds",
        ),
        ("budget_usd=0", "has budget_usd=0; give it a number above 0"),
        ("case_budget_seconds='5s'", "has case_budget_seconds='5s'; give it a number above 0"),
        ("budget_tokens=float('nan')", "has budget_tokens=nan; give it a number above 0"),
        ("budget_usd=True", "has budget_usd=True; give it a number above 0"),
    ],
)
def test_a_marker_without_a_budget_is_refused(run, pytester, mark, why):
    pytester.makepyfile(test_it=ASKS.replace("MARK", mark))
    result, said, _ = run("--trials=1")
    assert result.ret == 4
    assert why in said + " ".join(result.stderr.str().split())
