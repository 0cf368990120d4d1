"""The word of a comparison and the sentence under it."""

from __future__ import annotations

import statistics

import pytest
from scipy import stats as oracle

from pytest_crashlab.compare import CompareOptions, compare_runs
from pytest_crashlab.compare.sentences import p_words
from pytest_crashlab.errors import UsageError
from pytest_crashlab.records.comparison import Word
from tests.stories import record


def letters(passes, trials):
    return "P" * passes + "F" * (trials - passes)


def compare(store, a, b, options=None, **b_fields):
    """Cases given as [(passes, trials) ...] or as letters."""

    def named(arm):
        return {f"t{i}": c if isinstance(c, str) else letters(*c) for i, c in enumerate(arm)}

    baseline = record(store, named(a), run_id="a")
    candidate = record(store, named(b), run_id="b", **b_fields)
    return compare_runs(baseline, candidate, options)


NORMAL = CompareOptions(method="normal")
# Sum of losses 25 of 125 trials, sum of their squares 77: mean -0.2, standard error 0.058878.
LOSSES = [5, 4, 3, 3, 2, 2, 2, 2, 1, 1] + [0] * 15


def test_regressed_reads_like_this(store):
    comparison = compare(store, [(5, 5)] * 25, [(5 - loss, 5) for loss in LOSSES], NORMAL)
    assert comparison.word is Word.REGRESSED
    assert comparison.sentence == (
        "Pass rate 20.0 points lower than the baseline. Outside the noise (± 11.5 points, p = 0.0007)."
    )
    assert comparison.honesty == (
        "The interval is a normal approximation over cases. Two equal runs show a false regression, or a "
        "false improvement, about 1 time in 40, so a team that makes many comparisons will see some."
    )
    standard_error = statistics.stdev(loss / 5 for loss in LOSSES) / 5
    assert comparison.half_width == pytest.approx(1.96 * standard_error, rel=1e-12)
    assert comparison.p == pytest.approx(2 * oracle.norm.sf(0.2 / standard_error), rel=1e-9)


def test_improved_reads_like_this(store):
    comparison = compare(store, [(5 - loss, 5) for loss in LOSSES], [(5, 5)] * 25, NORMAL)
    assert comparison.word is Word.IMPROVED
    assert comparison.sentence == (
        "Pass rate 20.0 points higher than the baseline. Outside the noise (± 11.5 points, p = 0.0007)."
    )


def test_no_change_of_the_simple_rule(store):
    comparison = compare(store, [(4, 5)] * 25, [(3, 5), (5, 5)] + [(4, 5)] * 23, NORMAL)
    assert comparison.word is Word.NO_CHANGE
    half_width = 1.96 * statistics.stdev([-0.2, 0.2] + [0] * 23) / 5
    assert comparison.sentence == (
        f"Inside the noise: ± {half_width * 100:.1f} points. The change is not proven."
    )


def test_the_simple_rule_asks_for_20_cases(store):
    comparison = compare(store, [(5, 5)] * 19, [(0, 5)] * 19, NORMAL)
    assert comparison.word is Word.NO_VERDICT
    assert [r.text for r in comparison.reasons] == [
        "Fewer than 20 cases can be compared between the two runs (19)."
    ]
    assert comparison.sentence == "Pass rate 100.0 points lower than the baseline. This is not a verdict."
    assert compare_runs(store.load("a"), store.load("b")).word is Word.REGRESSED, "the exact test does not"


def test_the_simple_rule_of_one_case_has_no_interval(store):
    comparison = compare(store, [(5, 5)], [(0, 5)], NORMAL)
    assert (comparison.p, comparison.half_width, comparison.possible_drop) == (None, None, None)
    assert comparison.these is None


def test_the_simple_rule_has_a_verdict_at_20_cases(store):
    assert compare(store, [(5, 5)] * 20, [(0, 5)] * 20, NORMAL).word is Word.REGRESSED


def test_the_simple_rule_keeps_its_word_and_still_says_what_it_does_not_see(store):
    comparison = compare(store, [(3, 3)] * 20, [(0, 3)] + [(3, 3)] * 19, NORMAL)
    assert comparison.word is Word.NO_CHANGE
    assert [n.code for n in comparison.notes] == ["broken_case"]


def test_one_dead_case_of_ten_is_proven(store):
    """Ten cases 5/5, one 0/5 now: mid-p 1/252, exact 1/126, by the hypergeometric distribution."""
    a, b = [(5, 5)] * 10, [(0, 5)] + [(5, 5)] * 9
    comparison = compare(store, a, b)
    assert comparison.word is Word.REGRESSED
    assert comparison.p == pytest.approx(1 / 252, rel=1e-9)
    assert comparison.delta == pytest.approx(-0.1)
    assert comparison.sentence == (
        "Pass rate 10.0 points lower than the baseline. Outside the noise "
        f"(± {comparison.half_width * 100:.1f} points, p = 0.0040)."
    )
    exact = compare_runs(store.load("a"), store.load("b"), CompareOptions(method="exact"))
    assert exact.p == pytest.approx(1 / 126, rel=1e-9)
    assert "p = 0.0079" in exact.sentence


def test_the_band_is_smaller_than_a_proven_change_and_larger_than_an_unproven_one(store):
    proven = compare(store, [(5, 5)] * 10, [(0, 5)] + [(5, 5)] * 9)
    assert proven.half_width < abs(proven.delta)
    assert proven.these.low < proven.delta < proven.these.high < 0
    other = record(store, {f"t{i}": letters(4 if i < 4 else 5, 5) for i in range(10)}, run_id="c")
    unproven = compare_runs(store.load("a"), other)
    assert unproven.word is Word.NO_CHANGE
    assert unproven.half_width >= abs(unproven.delta)


def test_a_tie_with_five_percent_is_not_regressed(store):
    """Ten cases 3/3, one 0/3 now: p is exactly 0.05, and three trials prove nothing."""
    comparison = compare(store, [(3, 3)] * 10, [(0, 3)] + [(3, 3)] * 9)
    assert comparison.p == pytest.approx(0.05, abs=1e-12)
    assert comparison.word is Word.NO_VERDICT
    assert [r.code for r in comparison.reasons] == ["broken_case"]
    assert comparison.sentence == "Pass rate 10.0 points lower than the baseline. This is not a verdict."


def test_no_change_says_how_far_down_it_could_still_be(store):
    comparison = compare(store, [(3, 3)] * 20, [(3, 3)] * 20)
    assert comparison.word is Word.NO_CHANGE
    assert comparison.p == 1
    assert comparison.half_width == pytest.approx(0.06017, abs=1e-4)  # published with the method
    assert comparison.sentence == (
        "Inside the noise: ± 6.0 points. The change is not proven; a drop of up to 6.0 points is possible."
    )
    assert comparison.mde is not None
    assert comparison.margin is None


def test_no_change_is_proven_inside_a_margin_that_holds_the_interval(store):
    comparison = compare(store, [(3, 3)] * 20, [(3, 3)] * 20, CompareOptions(margin=0.07))
    assert comparison.word is Word.NO_CHANGE
    assert comparison.sentence == (
        "Inside the noise: ± 6.0 points, and proven inside the margin of 7.0 points; "
        "a drop of up to 6.0 points is possible."
    )


def test_a_margin_that_the_interval_leaves_gives_no_verdict_that_trials_would_settle(store):
    comparison = compare(store, [(3, 3)] * 20, [(3, 3)] * 20, CompareOptions(margin=0.06))
    assert comparison.word is Word.NO_VERDICT
    (reason,) = comparison.reasons
    assert (reason.code, reason.measurable) == ("not_inside_margin", True)
    assert reason.text == (
        "Not proven inside the margin of 6.0 points: a drop of up to 6.0 points is possible. "
        "About 1 more trial of every case in both runs would settle it."
    )
    assert comparison.sentence == "Pass rate the same as the baseline. This is not a verdict."


def test_a_margin_does_not_excuse_a_regression(store):
    comparison = compare(store, [(5, 5)] * 10, [(0, 5)] + [(5, 5)] * 9, CompareOptions(margin=0.5))
    assert comparison.word is Word.REGRESSED


def test_unequal_trials_whose_mean_and_test_disagree_give_no_verdict(store):
    """One case rises in 2 trials, three fall in 40: the mean says +6.3 points, the test weighs -14 passes."""
    a, b = [(0, 2)] + [(40, 40)] * 3, [(2, 2)] + [(30, 40)] * 3
    comparison = compare(store, a, b)
    assert comparison.delta == pytest.approx((1 - 3 * 0.25) / 4)
    assert comparison.p < 1e-6
    assert comparison.word is Word.NO_VERDICT
    assert [r.code for r in comparison.reasons] == ["contradictory"]


def test_new_cases_are_a_second_answer(store):
    comparison = compare(store, [(5, 5)] * 10, [(0, 5)] + [(5, 5)] * 9)
    assert comparison.word is Word.REGRESSED
    assert comparison.new_shown is False
    assert comparison.new.low < 0 < comparison.new.high
    assert (comparison.these.of, comparison.new.of) == ("these cases", "new cases")


def test_undecided_trials_that_would_change_the_word_are_noted(store):
    a = [(5, 5)] * 20
    b = ["EEEEP", "EEPPP"] + [(5, 5)] * 18
    store_run = compare(store, a, b)
    assert store_run.word is Word.NO_VERDICT  # 6 of 100 against none: p = 0.03
    a = ["PPPPE"] * 2 + [(5, 5)] * 18
    baseline = record(
        store, {f"t{i}": c if isinstance(c, str) else letters(*c) for i, c in enumerate(a)}, run_id="c"
    )
    comparison = compare_runs(baseline, store.load("b"))
    assert comparison.word is Word.NO_CHANGE
    (note,) = comparison.notes
    assert note.text == (
        "With the 6 undecided trials of this run counted as failed the verdict would be Regressed "
        "(6.0 points lower)."
    )


def test_undecided_trials_of_a_case_without_any_decision_count_in_the_note_too(store):
    baseline = record(
        store, {f"t{i}": "PPPPPPPPPP" for i in range(20)} | dict.fromkeys("xyz", "PE"), run_id="a"
    )
    candidate = record(
        store, {f"t{i}": "PPPPPPPPPP" for i in range(20)} | dict.fromkeys("xyz", "EE"), run_id="b"
    )
    comparison = compare_runs(baseline, candidate)
    assert comparison.word is Word.NO_CHANGE
    assert [n.code for n in comparison.notes] == ["sensitivity"]


def test_what_differs_between_the_runs_is_noted_and_blocks_nothing(store):
    baseline = record(
        store,
        {"t": "PPPP", "skip": "PP"},
        run_id="a",
        prompt="support@3",
        dataset_version="1",
        environment={"python": "3.11", "platform": "linux"},
        target_digest="d",
    )
    candidate = record(
        store,
        {"t": "PPPPP", "skip": "SS", "fresh": "FFF"},
        run_id="b",
        prompt="support@4",
        dataset_version="2",
        environment={"python": "3.12", "platform": "linux"},
        target_digest="d",
        plans={"fresh": {"uses_trial": True}},
    )
    comparison = compare_runs(baseline, candidate)
    assert comparison.word is Word.NO_CHANGE
    assert {n.code: n.text for n in comparison.notes} == {
        "skipped_now": "1 case gave a decision in the baseline and is skipped now: skip.",
        "new_never_passing": "1 new case without a single pass: fresh.",
        "trial_counts": "The two runs have different numbers of trials a case: 4 in the baseline, "
        "5 in this run.",
        "prompt": "The two runs declare different prompts: support@3 in the baseline, support@4 in this run.",
        "dataset_version": "The two runs use different versions of the dataset: 1 and 2.",
        "environment": "The two runs ran in different environments (python).",
    }
    assert comparison.new_cases_never_passing == ("fresh",)


def test_the_same_target_is_a_control(store):
    baseline = record(store, {"t": "PPPP"}, run_id="a", target_digest="d")
    same = compare_runs(baseline, record(store, {"t": "PPPP"}, run_id="b", target_digest="d"))
    changed = compare_runs(baseline, record(store, {"t": "PPPP"}, run_id="c", target_digest="e"))
    assert (same.notes, same.claim.kind) == ((), "same-source control")
    assert changed.notes == ()


def test_only_eval_cases_that_were_decided_are_new_and_never_passing(store):
    plans = {name: {"uses_trial": True} for name in ("dead", "alive", "undecided")}
    baseline = record(store, {"t": "PP"}, run_id="a")
    cases = {"t": "PP", "dead": "FF", "alive": "FP", "undecided": "E" * 1, "plain": "FF"}
    candidate = record(store, cases, run_id="b", plans=plans)
    comparison = compare_runs(baseline, candidate, CompareOptions())
    assert comparison.new_cases_never_passing == ("dead",)


def test_a_selection_is_a_note(store):
    baseline = record(store, {"t": "PPPP", "u": "PPPP"}, run_id="a")
    candidate = record(store, {"t": "PPPP"}, run_id="b", partial=True, total_cases=2)
    comparison = compare_runs(baseline, candidate)
    assert comparison.word is Word.NO_CHANGE
    assert [n.text for n in comparison.notes] == [
        "1 case of the baseline is not in this run's selection; a selection cannot be promoted."
    ]


@pytest.mark.parametrize("margin", [0, 1, -0.1, 5, float("nan")])
def test_a_margin_that_cannot_be(margin):
    with pytest.raises(UsageError, match="share between 0 and 1"):
        CompareOptions(margin=margin)


def test_a_method_that_does_not_exist():
    with pytest.raises(UsageError, match=r"no method 'bayes': use one of mid-p, exact, normal"):
        CompareOptions(method="bayes")


@pytest.mark.parametrize(
    ("p", "words"),
    [
        (1.0, "p = 1.0000"),
        (0.0007, "p = 0.0007"),
        (0.0001, "p = 0.0001"),
        (0.00009999, "p < 0.0001"),
        (0.0, "p < 0.0001"),
        (0.049999, "p = 0.049999"),
        (0.05, "p = 0.0500"),
        (0.050004, "p = 0.0500"),
    ],
)
def test_p_values_in_words(p, words):
    assert p_words(p) == words
