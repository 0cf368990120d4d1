"""Real trials with published figures, imported and compared: every figure to every digit given.

The rows belong to others and are no part of this project. ``CRASHLAB_TEST_DATA`` names their folder;
without it, ``shared/data`` beside the project; where neither is, these tests are skipped.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

from pytest_crashlab.compare import CompareOptions, compare_runs, run_numbers
from pytest_crashlab.records.comparison import Word
from pytest_crashlab.stats import flips
from tests.acceptance.importing_builders import bring_in, json_lines

DATA = Path(os.environ.get("CRASHLAB_TEST_DATA") or Path(__file__).parents[3] / "shared" / "data")
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the published trials are not here")
SIMPLE = CompareOptions(method="normal")
INSTRUMENT = "unknown_agent_error,agent_installation_failed,parse_error,test_timeout"
M1 = ("--instrument", INSTRUMENT, "--not-completed", "agent_timeout")
M0 = ("--failed", "unknown_agent_error,parse_error,test_timeout")
ARMS = {
    "droid_claude-4-1-opus",
    "droid_gpt-5",
    "chaterm_claude-4-sonnet",
    "openhands_claude-4-sonnet",
    "droid_claude-4-sonnet",
}


def rows(name):
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def tau(tmp_path_factory):
    path = DATA / "tau_bench_gpt4o_airline.jsonl.gz"
    (run,) = bring_in(
        tmp_path_factory.mktemp("tau"), path, "--map", "case=case_id", "--map", "t=steps"
    ).values()
    return run


@pytest.fixture(scope="module")
def terminal(tmp_path_factory):
    """Both readings: ``terminal["M0"][arm]``."""
    folder = tmp_path_factory.mktemp("terminal")
    wanted = [row for row in rows("terminal_bench_core_011.jsonl.gz") if row["arm"] in ARMS]
    path = json_lines(folder / "t.jsonl", wanted)
    return {
        reading: bring_in(folder / reading, path, "--map", "case=case_id", *options)
        for reading, options in (("M0", M0), ("M1", M1))
    }


def each(folder, chosen):
    """A run of each of the trials in ``chosen`` rows, by trial."""
    moved = [{**row, "arm": row["trial"], "trial": 1} for row in chosen]
    path = json_lines(folder / "each.jsonl", moved)
    return bring_in(folder, path, "--map", "case=case_id", *M0)


def rate(run):
    normal = run_numbers(run).pass_rate_normal
    return f"{100 * normal.value:.4f} ± {100 * (normal.high - normal.value):.4f}"


def paired(a, b):
    found = compare_runs(a, b, SIMPLE)
    return found.word, f"{100 * found.delta:.4f} ± {100 * found.half_width:.4f}", found.p


def test_tau_bench_repeats(tau):
    numbers = run_numbers(tau)
    assert [f"{p.value:.6f}" for p in numbers.pass_hat] == ["0.420000", "0.273333", "0.220000", "0.200000"]
    assert [f"{p.value:.6f}" for p in numbers.pass_at] == ["0.420000", "0.566667", "0.660000", "0.720000"]
    found = numbers.flips
    assert (found.flip, found.eligible, found.all_pass, found.never) == (26, 50, 10, 14)
    assert rate(tau).startswith("42.0000 ± 10.23")
    assert tau.trials["cost_usd"].null_count() == tau.trials.height


def test_tau_bench_first_trial_against_the_second(tmp_path):
    runs = each(tmp_path, rows("tau_bench_gpt4o_airline.jsonl.gz"))
    word, figure, p = paired(runs["0"], runs["1"])
    assert (word, figure, f"{p:.6f}") == (Word.NO_CHANGE, "2.0000 ± 17.2513", "0.820245")


@pytest.mark.parametrize(
    ("arm", "m0", "hat", "flip", "undecided", "m1", "cases"),
    [
        (
            "droid_claude-4-1-opus",
            "58.7500 ± 9.7214",
            "0.5875 0.5275 0.4900 0.4625 0.4375",
            20,
            9,
            "60.5063 ± 9.8105",
            79,
        ),
        (
            "droid_gpt-5",
            "52.5000 ± 9.4944",
            "0.5250 0.4450 0.3937 0.3550 0.3250",
            27,
            16,
            "55.1282 ± 9.6818",
            78,
        ),
        (
            "chaterm_claude-4-sonnet",
            "49.2500 ± 9.6863",
            "0.4925 0.4213 0.3837 0.3575 0.3375",
            24,
            45,
            "54.6104 ± 9.9329",
            77,
        ),
    ],
)
def test_terminal_bench_table(  # noqa: PLR0917 - a row of the published table
    terminal, arm, m0, hat, flip, undecided, m1, cases
):
    plain, honest = terminal["M0"][arm], terminal["M1"][arm]
    assert rate(plain) == m0
    numbers = run_numbers(plain)
    for found, published in zip(numbers.pass_hat, hat.split(), strict=True):
        assert found.value == pytest.approx(float(published), abs=0.5001e-4)
    assert (numbers.flips.flip, numbers.flips.eligible) == (flip, 80)
    assert honest.manifest.counts["undecided"] == undecided
    assert honest.manifest.counts["planned"] == 400
    assert rate(honest) == m1
    assert run_numbers(honest).pass_rate_normal.cases == cases


@pytest.mark.parametrize(
    ("arm", "mean", "error", "passed"),
    [
        ("droid_claude-4-1-opus", 58.8, 0.9, 235),
        ("droid_gpt-5", 52.5, 2.1, 210),
        ("droid_claude-4-sonnet", 50.5, 1.4, 202),
    ],
)
def test_terminal_bench_leaderboard(terminal, arm, mean, error, passed):
    """Its ± is the standard error of five run means, which no report here prints; 1.346 became 1.4."""
    trials = terminal["M0"][arm].trials
    means = [100 * (of["decision"] == "pass").mean() for _, of in trials.group_by("trial")]
    assert np.mean(means) == pytest.approx(mean, abs=0.0501)
    assert np.std(means, ddof=1) / 5**0.5 == pytest.approx(error, abs=0.055)
    assert terminal["M0"][arm].manifest.counts["passed"] == passed


@pytest.mark.parametrize(
    ("arm", "figures"),
    [
        ("droid_claude-4-1-opus", [(235, 400), (198, 299), (391, 400), (299, 400), (235, 391)]),
        ("chaterm_claude-4-sonnet", [(197, 400), (162, 246), (355, 400), (246, 400), (197, 355)]),
    ],
)
def test_terminal_bench_denominators(terminal, arm, figures):
    numbers = run_numbers(terminal["M1"][arm])
    found = [(r.numerator, r.denominator) for r in numbers.ratios]
    assert [*found, (numbers.counts.passes, numbers.counts.decided)] == figures


def test_separating_instrument_failures_changes_the_verdict(terminal):
    opus, gpt = "droid_claude-4-1-opus", "droid_gpt-5"
    word, figure, p = paired(terminal["M0"][opus], terminal["M0"][gpt])
    assert (word, figure, f"{p:.6f}") == (Word.REGRESSED, "-6.2500 ± 5.9414", "0.039228")
    found = compare_runs(terminal["M1"][opus], terminal["M1"][gpt], SIMPLE)
    _, figure, p = paired(terminal["M1"][opus], terminal["M1"][gpt])
    assert (figure, f"{p:.7f}") == ("-5.1282 ± 5.7865", "0.0823835")
    # The rule alone says No change; that one case gave no decision in five trials may withhold the word.
    withheld = {"case_lost"} & {reason.code for reason in found.reasons}
    assert found.word is (Word.NO_VERDICT if withheld else Word.NO_CHANGE)
    assert {reason.code for reason in found.reasons} <= {"case_lost"}


def test_too_many_undecided_trials_of_the_baseline_give_no_verdict(terminal):
    chaterm, openhands = "chaterm_claude-4-sonnet", "openhands_claude-4-sonnet"
    word, figure, _ = paired(terminal["M0"][chaterm], terminal["M0"][openhands])
    assert (word, figure) == (Word.REGRESSED, "-8.0000 ± 7.2335")
    found = compare_runs(terminal["M1"][chaterm], terminal["M1"][openhands], SIMPLE)
    assert found.word is Word.NO_VERDICT
    (reason,) = [r for r in found.reasons if r.code == "too_many_undecided_a"]
    assert "45 undecided and 0 missing of 400" in reason.text


def test_a_dead_run_read_as_fails_regresses(tmp_path):
    arm = "swe-agent-mini_claude-4-sonnet"
    chosen = [row for row in rows("terminal_bench_core_011.jsonl.gz") if row["arm"] == arm]
    dead = [r for r in chosen if r["trial"] == 4 and str(r["harness_error"]).startswith("docker_")]
    assert len(dead) == 59
    runs = each(tmp_path, chosen)
    assert [paired(runs[trial], runs["4"])[0] for trial in ("2", "3")] == [Word.REGRESSED] * 2


def test_zero_tokens_are_not_measured_in_seven_arms(tmp_path):
    runs = bring_in(tmp_path, DATA / "terminal_bench_core_011.jsonl.gz", "--map", "case=case_id", *M1)
    assert len(runs) == 11
    assert sum(bool(run.manifest.warnings) for run in runs.values()) == 7
    assert not any((run.trials["tokens_in"] == 0).any() for run in runs.values())


def test_flakeflagger_counts():
    found = rows("flakeflagger_10000reruns.jsonl.gz")
    n = np.asarray([row["n"] for row in found])
    counted = flips(np.asarray([row["c"] for row in found]), n, n)
    assert len(found) == 22_245
    assert counted.flip == 811 == sum(row["is_flaky"] == "1" for row in found)


def test_inspect_sample(tmp_path):
    path = DATA / "inspect_popularity_2epochs.jsonl.gz"
    (run,) = bring_in(tmp_path, path, "--map", "case=case_id").values()
    assert (run.manifest.planned_cases, run.manifest.k, run.manifest.counts["passed"]) == (2, 2, 3)
    assert run.trials["tokens_in"].sum() == 252
