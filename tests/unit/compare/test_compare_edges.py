"""Runs at the edge of what can be counted: each has a defined answer in numbers, text and JSON."""

from __future__ import annotations

import json
import math
import re

import pytest

from pytest_crashlab.compare import CompareOptions, check_thresholds, compare_runs, decide, run_numbers
from pytest_crashlab.errors import UsageError
from pytest_crashlab.records.comparison import Policy, Word
from pytest_crashlab.report.build import session_summary
from pytest_crashlab.report.json import dumps, session_json
from pytest_crashlab.report.terminal import render_text
from tests.stories import record, row

METHODS = ("mid-p", "exact", "normal")
CASES = {
    "nothing": ({}, {}),
    "one_trial": ({"t": "P"}, {"t": "P"}),
    "one_trial_lost": ({"t": "P"}, {"t": "F"}),
    "one_case": ({"t": "PPPPP"}, {"t": "PPPPP"}),
    "all_pass": ({f"t{i}": "PPP" for i in range(20)}, {f"t{i}": "PPP" for i in range(20)}),
    "all_fail": ({f"t{i}": "FFF" for i in range(20)}, {f"t{i}": "FFF" for i in range(20)}),
    "all_undecided": ({f"t{i}": "EEE" for i in range(20)}, {f"t{i}": "EEE" for i in range(20)}),
    "all_missing": ({f"t{i}": "PPP" for i in range(20)}, {f"t{i}": "..." for i in range(20)}),
    "all_skipped": ({f"t{i}": "PPP" for i in range(20)}, {f"t{i}": "SSS" for i in range(20)}),
    "all_lost": ({f"t{i}": "PPP" for i in range(20)}, {f"t{i}": "FFF" for i in range(20)}),
}
# What the exact methods say; the simple rule has its minimum of 20 cases beside it.
WORDS = {
    "nothing": (Word.NO_VERDICT, {"nothing_to_pair"}),
    "one_trial": (Word.NO_CHANGE, set()),
    "one_trial_lost": (Word.NO_CHANGE, set()),
    "one_case": (Word.NO_CHANGE, set()),
    "all_pass": (Word.NO_CHANGE, set()),
    "all_fail": (Word.NO_CHANGE, set()),
    "all_undecided": (Word.NO_VERDICT, {"nothing_to_pair", "too_many_undecided_a", "too_many_undecided_b"}),
    "all_missing": (Word.NO_VERDICT, {"nothing_to_pair", "too_many_undecided_b", "case_lost"}),
    "all_skipped": (Word.NO_VERDICT, {"nothing_to_pair"}),
    "all_lost": (Word.REGRESSED, set()),
}


def compared(store, name, method):
    a, b = CASES[name]
    baseline, candidate = record(store, a, run_id="a"), record(store, b, run_id="b")
    return candidate, compare_runs(baseline, candidate, CompareOptions(method=method))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", CASES)
def test_every_edge_has_a_word_and_its_reasons(store, name, method):
    _, comparison = compared(store, name, method)
    word, reasons = WORDS[name]
    if method == "normal":
        reasons = reasons - {"case_lost"}
    if method == "normal" and comparison.cases and len(comparison.cases) < 20:
        word, reasons = Word.NO_VERDICT, reasons | {"too_few_cases"}
    assert (comparison.word, {r.code for r in comparison.reasons}) == (word, reasons)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", CASES)
def test_every_edge_can_be_shown_without_a_false_certainty(store, name, method):
    """No NaN in JSON, no interval of zero width, no number without a trial behind it."""
    candidate, comparison = compared(store, name, method)
    gate = decide(Policy.REGRESSIONS, comparison)
    view = session_summary(candidate, run_numbers(candidate), comparison, (), gate)
    data = json.loads(dumps(session_json(view)))
    text = render_text(view, width=140, color=False, full=True)
    assert "nan" not in text.lower().replace("unanswered", "")
    assert not re.search(r"± 0\.0 points", text)
    rate = data["pass_rate"]
    if rate["trials"] == 0:
        assert (rate["value"], rate["these_low"], rate["new_low"]) == (None, None, None)
    else:
        assert rate["these_low"] < rate["these_high"]
        assert rate["new_low"] < rate["new_high"]
    for ratio in data["rates"]:
        assert (ratio["value"] is None) == (ratio["denominator"] == 0)
        assert ratio["low"] is None or ratio["low"] < ratio["high"]


@pytest.mark.parametrize("name", ["one_trial", "one_case", "all_pass", "all_fail"])
@pytest.mark.parametrize("method", ["mid-p", "exact"])
def test_equal_runs_are_never_certain(store, name, method):
    _, comparison = compared(store, name, method)
    assert (comparison.delta, comparison.p) == (0, 1)
    assert comparison.half_width > 0
    assert comparison.these.low < 0 < comparison.these.high
    assert comparison.possible_drop > 0


@pytest.mark.parametrize("letters", ["", "S", "E", ".", "N"])
def test_a_threshold_without_a_decided_trial_is_not_met(store, letters):
    """An empty or undecided run does not pass a least pass rate by having nothing that failed."""
    run = record(store, {"t": letters * 3} if letters else {})
    (result,) = check_thresholds(run, min_pass_rate=0.5)
    assert result.met is not True


def test_two_units_in_both_runs_are_no_agreement(store):
    rows = [row("t", 1, "P", t_unit="steps"), row("t", 2, "P", t_unit="tokens")]
    a, b = (record(store, {"t": ".."}, rows=rows, run_id=i) for i in "ab")
    assert [r.code for r in compare_runs(a, b).reasons] == ["t_unit"]


@pytest.mark.parametrize("margin", [0.0, 1.0, -0.1, math.nan, math.inf])
def test_margins_that_cannot_be(margin):
    with pytest.raises(UsageError, match="margin"):
        CompareOptions(margin=margin)
