"""What ``crashlab plan`` promises, and what it refuses."""

from __future__ import annotations

import json

import pytest

from pytest_crashlab.cli import main
from pytest_crashlab.store import Store
from tests.stories import record, row


@pytest.fixture
def plan(tmp_path, monkeypatch, capsys):
    """``plan(*options)``: exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CRASHLAB_STORE", raising=False)

    def run(*options):
        code = main(["plan", *options])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def planned(plan):
    """The design as JSON."""

    def run(*options):
        code, out, err = plan(*options, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)

    return run


def test_twenty_cases_of_three_trials_find_fifteen_points(plan, planned):
    """The figure that simulations of such suites come to: 15 points in 4 of 5 tries."""
    design = planned("--cases=20", "--trials=3")
    assert 0.135 < design["detectable"] < 0.165
    assert (design["measured"], design["baseline"], design["needed"]) == (False, None, None)
    assert plan("--cases=20", "--trials=3")[1].splitlines() == design["sentences"]
    assert design["sentences"][0] == (
        "Assumed: 20 cases that pass 95.0 % of their trials, most of them nearly always."
    )
    assert design["sentences"][1].startswith("With 3 trials a case (60 trials a run) a drop of 1")


def test_as_many_trials_as_a_drop_needs_and_no_more(planned):
    needed = planned("--cases=40", "--drop=8")["needed"]
    assert needed > 1
    assert planned("--cases=40", f"--trials={needed}")["detectable"] <= 0.08
    assert planned("--cases=40", f"--trials={needed - 1}")["detectable"] > 0.08


def test_against_a_baseline_that_is_there(tmp_path, planned):
    store = Store.open(tmp_path / ".crashlab", create=True)
    record(store, {f"t{i}": "PPPPP" for i in range(18)} | {"t18": "PPPFF", "t19": "EEEEE"}, run_id="base")
    design = planned("--baseline=base", "--trials=5", "--drop=30")
    assert (design["cases"], design["baseline"], design["measured"]) == (19, "base", True)
    assert design["pass_rate"] == pytest.approx((18 + 0.6) / 19)
    assert design["baseline_trials"] == 5
    assert 0 < design["detectable"] < 0.3
    assert design["needed"] <= 5
    more = planned("--baseline=base", "--trials=5", "--cases=76")
    assert more["cases"] == 76
    assert more["pass_rate"] == pytest.approx(design["pass_rate"])
    assert more["detectable"] < design["detectable"]


def test_what_a_run_takes_and_costs_is_told_from_the_baseline(tmp_path, plan, planned):
    store = Store.open(tmp_path / ".crashlab", create=True)
    priced = [
        row(f"t{i}", trial, "P", cost_usd=0.02 if i < 2 else 0.04, cost_basis="billed")
        for i in range(4)
        for trial in (1, 2)
    ]
    record(store, {f"t{i}": ".." for i in range(4)}, rows=priced, run_id="priced")
    record(store, {"t0": "PP"}, run_id="free")
    _, out, _ = plan("--baseline=priced", "--trials=10")
    assert "A run of 40 trials takes about 20 s of trials one after the other.\n" in out
    assert "It costs about 1.2 USD (" in out
    assert "0.03 USD a trial, billed, known of 8 of 8 trials.\n" in out
    assert planned("--baseline=priced", "--trials=10")["cost"]["value"] == pytest.approx(0.03)
    _, out, _ = plan("--baseline=free", "--trials=2")
    assert "What it costs is not known: no trial of the baseline told a cost." in out
    assert "costs" not in plan("--cases=4", "--trials=2")[1]


def test_what_no_number_of_trials_finds(planned):
    design = planned("--cases=1", "--trials=1", "--drop=1")
    assert (design["detectable"], design["needed"]) == (None, None)
    assert design["sentences"][1:] == [
        "With 1 trial a case (1 trial a run) not even a drop to 0 would be found in 4 of 5 tries.",
        "To find a drop of 1.0 points in 4 of 5 tries, 100 trials a case are not enough: add cases.",
    ]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "nothing to plan"),
        (["--trials=3"], "Give --cases"),
        (["--cases=0", "--trials=3"], "--cases=0 is no whole number"),
        (["--cases=20", "--trials=2.5"], "--trials=2.5 is no whole number"),
        (["--cases=20", "--trials=nan"], "--trials=nan is no whole number"),
        (["--cases=20", "--drop=0"], "--drop=0 is out of range"),
        (["--cases=20", "--drop=nan"], "--drop=nan is out of range"),
        (["--cases=20", "--trials=3", "--pass-rate=1"], "--pass-rate=1 leaves nothing to find"),
        (["--cases=20", "--trials=3", "--pass-rate=110%"], "--pass-rate=110% is out of range"),
        (["--baseline=none", "--trials=3"], ".crashlab"),
        (["--baseline=none", "--trials=3", "--pass-rate=0.9"], "leave one of the two out"),
    ],
)
def test_what_cannot_be_planned(plan, options, says):
    code, out, err = plan(*options)
    assert (code, out) == (4, "")
    assert says in err
    assert err.startswith("crashlab: ")
    assert err.count("\n") == 1


def test_a_baseline_without_a_decided_trial(tmp_path, plan):
    record(Store.open(tmp_path / ".crashlab", create=True), {"t": "EE"}, run_id="base")
    code, _, err = plan("--baseline=base", "--trials=3")
    assert code == 4
    assert "no decided trial" in err
