"""Every cell of the exit-code table."""

from __future__ import annotations

import pytest

from pytest_crashlab.compare import decide
from pytest_crashlab.records.comparison import (
    CaseDelta,
    Comparison,
    Policy,
    Reason,
    ThresholdResult,
    Word,
)

STRICT, REGRESSIONS, REPORT = Policy.STRICT, Policy.REGRESSIONS, Policy.REPORT
DEAD = CaseDelta(case="dead", a_pass=5, a_n=5, b_pass=0, b_n=5, p=0.008, proven=-1)
WORSE = CaseDelta(case="worse", a_pass=5, a_n=5, b_pass=4, b_n=5, p=1.0)
BETTER = CaseDelta(case="better", a_pass=0, a_n=5, b_pass=5, b_n=5, p=0.008, proven=1)
MARGIN = Reason(code="not_inside_margin", text="Not proven inside the margin.", measurable=True)
UNMEASURED = (
    "no_baseline",
    "nothing_to_pair",
    "too_few_cases",
    "too_many_undecided_a",
    "too_many_undecided_b",
    "pass_rules",
    "t_unit",
    "not_finished_a",
    "not_finished_b",
    "replayed_a",
    "replayed_b",
    "cached_a",
    "cached_b",
    "cached_between",
    "unbalanced_instrument",
    "clustered_failures_b",
    "holdout_wanted",
    "broken_case",
    "contradictory",
)


def comparison(word, *cases, reasons=(), **fields):
    return Comparison(
        baseline_id="a",
        candidate_id="b",
        word=word,
        sentence="",
        method="mid-p",
        cases=cases,
        reasons=tuple(reasons),
        **fields,
    )


def threshold(met, case=None):
    return ThresholdResult(name="min_passes", case=case, met=met, text=f"threshold {met}")


def codes(made, thresholds=(), **kwargs):
    return [decide(p, made, thresholds, **kwargs).exit_code for p in (STRICT, REGRESSIONS, REPORT)]


def test_regressed():
    assert codes(comparison(Word.REGRESSED, DEAD, WORSE)) == [1, 1, 0]


@pytest.mark.parametrize("word", [Word.NO_CHANGE, Word.IMPROVED])
def test_a_case_proven_worse_is_not_outweighed(word):
    assert codes(comparison(word, DEAD, BETTER)) == [1, 1, 0]


@pytest.mark.parametrize("case", [None, "t"])
def test_a_missed_threshold(case):
    assert codes(None, [threshold(met=False, case=case)]) == [1, 1, 0]
    assert codes(comparison(Word.IMPROVED), [threshold(met=False, case=case)]) == [1, 1, 0]


@pytest.mark.parametrize("word", [Word.NO_CHANGE, Word.IMPROVED])
def test_improved_and_no_change(word):
    assert codes(comparison(word, WORSE, BETTER), [threshold(met=True)]) == [0, 0, 0]


def test_not_proven_inside_the_margin():
    assert codes(comparison(Word.NO_VERDICT, WORSE, reasons=[MARGIN])) == [10, 0, 0]


@pytest.mark.parametrize("code", UNMEASURED)
def test_not_measurable(code):
    assert codes(comparison(Word.NO_VERDICT, reasons=[Reason(code=code, text="because")])) == [10, 10, 0]


def test_not_measurable_beside_a_margin():
    reasons = [MARGIN, Reason(code="broken_case", text="because")]
    assert codes(comparison(Word.NO_VERDICT, reasons=reasons)) == [10, 10, 0]


def test_a_threshold_that_is_not_settled():
    assert codes(None, [threshold(met=None)]) == [10, 10, 0]
    assert codes(comparison(Word.NO_CHANGE), [threshold(met=None)]) == [10, 10, 0]


def test_a_proven_failure_comes_before_an_open_question():
    assert codes(comparison(Word.REGRESSED, WORSE), [threshold(met=None)]) == [1, 1, 0]
    made = comparison(Word.NO_VERDICT, reasons=[Reason(code="no_baseline", text="because")])
    assert codes(made, [threshold(met=False)]) == [1, 1, 0]


@pytest.mark.parametrize("code", ["broken_case", "contradictory", "not_inside_margin"])
def test_a_proven_case_counts_where_only_something_else_is_uncertain(code):
    reason = Reason(code=code, text="because", measurable=code == "not_inside_margin")
    assert codes(comparison(Word.NO_VERDICT, DEAD, reasons=[reason])) == [1, 1, 0]


@pytest.mark.parametrize("code", sorted(set(UNMEASURED) - {"broken_case", "contradictory"}))
def test_a_case_is_not_proven_by_trials_that_cannot_be_trusted(code):
    reasons = [Reason(code=code, text="because")]
    assert codes(comparison(Word.NO_VERDICT, DEAD, reasons=reasons)) == [10, 10, 0]


def test_a_new_case_that_never_passes_fails_under_strict():
    made = comparison(Word.NO_CHANGE, new_cases_never_passing=("new",))
    assert codes(made) == [1, 0, 0]
    assert decide(STRICT, made).failed_cases == ("new",)


def test_nothing_to_judge():
    assert codes(None) == [0, 0, 0]
    assert decide(REGRESSIONS, None).because == ()


def test_the_first_baseline_of_a_name_passes():
    reasons = [Reason(code="no_baseline", text="There is no baseline yet.")]
    made = comparison(Word.NO_VERDICT, reasons=reasons)
    assert codes(made, bootstrap=True) == [0, 0, 0]
    assert decide(STRICT, made, bootstrap=True).because == ("There is no baseline yet.",)
    assert codes(made, [threshold(met=None)], bootstrap=True) == [10, 10, 0]
    assert codes(made, [threshold(met=False)], bootstrap=True) == [1, 1, 0]


def test_the_gate_says_why_and_which_cases_it_failed():
    gate = decide(
        REGRESSIONS, comparison(Word.REGRESSED, DEAD, WORSE, BETTER), [threshold(met=False, case="t")]
    )
    assert gate.because == ("The pass rate regressed.", "1 case is proven worse: dead.", "threshold False")
    assert gate.failed_cases == ("dead", "worse", "t")
    assert gate.policy is REGRESSIONS


def test_a_case_that_only_moved_is_not_failed_by_a_gate_that_passes():
    assert decide(REGRESSIONS, comparison(Word.NO_CHANGE, WORSE)).failed_cases == ()


def test_report_says_that_it_never_fails_and_names_no_case():
    gate = decide(REPORT, comparison(Word.REGRESSED, DEAD))
    assert gate.because == ("The policy report never fails a session.",)
    assert gate.failed_cases == ()
    assert decide(REPORT, comparison(Word.NO_CHANGE)).because == ()


def test_a_pass_says_what_it_let_through():
    made = comparison(Word.NO_VERDICT, WORSE, reasons=[MARGIN])
    assert decide(REGRESSIONS, made).because == (
        "Not proven inside the margin.",
        "The policy regressions does not ask for proof inside the margin; strict does.",
    )
