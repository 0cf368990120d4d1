"""Every reason for no verdict, just inside and just outside of it."""

from __future__ import annotations

import pytest

from pytest_crashlab.compare import CompareOptions, compare_runs, decide, no_baseline
from pytest_crashlab.records.comparison import Policy, Word
from pytest_crashlab.records.run import RunStatus
from tests.stories import START, record, row


def cases(count, letters="PPPPP", first=0):
    return {f"t{i}": letters for i in range(first, first + count)}


def compare(store, a, b, options=None, *, a_fields=None, b_fields=None):
    baseline = record(store, a, run_id="a", **(a_fields or {}))
    candidate = record(store, b, run_id="b", **(b_fields or {}))
    return compare_runs(baseline, candidate, options)


def reasons(comparison):
    if comparison.reasons:
        assert comparison.word is Word.NO_VERDICT
    else:
        assert comparison.word is not Word.NO_VERDICT
    return {r.code: r.text for r in comparison.reasons}


def test_no_reason_at_all(store):
    assert reasons(compare(store, cases(10), cases(10))) == {}


def test_no_baseline_yet(store):
    candidate = record(store, cases(1))
    comparison = no_baseline(candidate, "No baseline main: never recorded.")
    assert reasons(comparison) == {"no_baseline": "No baseline main: never recorded."}
    assert comparison.sentence == "No baseline main: never recorded."
    assert (comparison.delta, comparison.p, comparison.these, comparison.mde) == (None, None, None, None)
    assert reasons(no_baseline(candidate)) == {"no_baseline": "There is no baseline yet."}


def test_nothing_to_pair(store):
    comparison = compare(store, {"old": "PP"}, {"new": "PP"})
    assert reasons(comparison) == {"nothing_to_pair": "No case can be compared between the two runs."}
    assert comparison.delta is None
    assert comparison.half_width is None


def test_two_empty_runs(store):
    assert set(reasons(compare(store, {}, {}))) == {"nothing_to_pair"}


@pytest.mark.parametrize(("lost", "blocked"), [(10, False), (11, True)])
@pytest.mark.parametrize("letter", ["E", ".", "N"])
def test_ten_percent_of_this_run_is_not_more_than_ten_percent(store, letter, lost, blocked):
    """inspect_ai#3707: with 10 of 100 a verdict is allowed, with 11 it is not."""
    same = {f"t{i}": letter if i < lost else "P" for i in range(100)}
    comparison = compare(store, same, cases(100, "P"))
    assert ("too_many_undecided_a" in reasons(comparison)) == blocked
    mirrored = compare_runs(*[store.load(i) for i in "ba"])
    assert ("too_many_undecided_b" in reasons(mirrored)) == blocked
    assert "too_many_undecided_a" not in reasons(mirrored)


def test_the_reason_counts_undecided_and_missing_apart(store):
    comparison = compare(store, cases(10), {**cases(8), "t8": "EEEE.", "t9": "PPPE."})
    assert reasons(comparison)["too_many_undecided_b"] == (
        "More than 10 % of the trials of this run gave no decision or never arrived: "
        "5 undecided and 2 missing of 50."
    )


def test_skipped_trials_are_outside_the_ten_percent(store):
    comparison = compare(store, cases(10), {**cases(9), "t9": "SSSSS"})
    assert reasons(comparison) == {}


def test_the_baseline_is_asked_about_the_selected_cases_only(store):
    a = {**cases(10), **cases(10, "EEEEE", first=10)}
    comparison = compare(store, a, cases(10), b_fields={"partial": True, "total_cases": 20})
    assert reasons(comparison) == {}
    assert len(comparison.cases) == 10


def test_a_judge_that_is_down_is_no_regression(store):
    """promptfoo#7077: 6 of 40 cases undecided."""
    comparison = compare(store, cases(40, "P"), {**cases(34, "P"), **cases(6, "V", first=34)})
    assert set(reasons(comparison)) == {"too_many_undecided_b", "unbalanced_instrument"}


def test_pass_rules_that_leave_nothing(store):
    plans = {f"t{i}": {"pass_rule": "other"} for i in range(3)}
    comparison = compare(store, cases(3), cases(3), b_fields={"plans": plans})
    assert reasons(comparison) == {
        "pass_rules": "The two runs use different pass rules, or one of them has none, for 3 cases, and no "
        "other case can be compared."
    }


def test_pass_rules_that_leave_something_are_a_note(store):
    plans = {"t0": {"pass_rule": "other"}}
    comparison = compare(store, cases(3), cases(3), b_fields={"plans": plans})
    assert reasons(comparison) == {}
    assert [n.text for n in comparison.notes] == ["1 case is left out because of a changed pass rule."]


def test_units_that_differ(store):
    fields = {"t_unit": "steps"}, {"t_unit": "tokens"}
    comparison = compare(store, cases(5), cases(5), a_fields=fields[0], b_fields=fields[1])
    assert reasons(comparison) == {
        "t_unit": "The two runs measure how far the target got in different units: steps in the baseline "
        "and tokens in this run (t0)."
    }


def test_a_unit_in_one_run_only_is_no_difference(store):
    assert reasons(compare(store, cases(5), cases(5), b_fields={"t_unit": "steps"})) == {}


@pytest.mark.parametrize("status", [RunStatus.RUNNING, RunStatus.CANCELLED, RunStatus.FAILED])
def test_a_run_that_is_not_finished(store, status):
    comparison = compare(store, cases(5), cases(5), b_fields={"status": status})
    assert reasons(comparison) == {"not_finished_b": f"This run is not finished ({status})."}
    mirrored = compare_runs(store.load("b"), store.load("a"))
    assert reasons(mirrored) == {"not_finished_a": f"The baseline is not finished ({status})."}


def test_a_run_stopped_by_its_budget_is_not_a_regression(store):
    """review-code#127."""
    stopped = {**cases(4, "FFFFF"), **cases(6, ".....", first=4)}
    comparison = compare(store, cases(10), stopped, b_fields={"status": RunStatus.CANCELLED})
    assert {"not_finished_b", "too_many_undecided_b"} <= set(reasons(comparison))


NORMAL = CompareOptions(method="normal")


def noted(comparison):
    assert not comparison.reasons
    return {n.code for n in comparison.notes}


def test_the_simple_rule_notes_a_case_that_is_lost(store):
    """What the rule does not know of is said and leaves the word and the gate alone."""
    runs = record(store, cases(21), run_id="a"), record(store, {**cases(20), "t20": "EEEEE"}, run_id="b")
    comparison = compare_runs(*runs, NORMAL)
    assert comparison.word is Word.NO_CHANGE
    assert noted(comparison) == {"case_lost"}
    assert decide(Policy.STRICT, comparison).exit_code == 0
    assert set(reasons(compare_runs(*runs))) == {"case_lost"}


def test_the_simple_rule_notes_what_else_it_does_not_know(store):
    a = record(store, cases(50), run_id="a", t_unit="steps")
    hit = {f"t{i}": ("E" if i < 6 else "P") + "PPPP" for i in range(50)}
    b = record(store, hit, run_id="b", t_unit="tokens")
    assert set(reasons(compare_runs(a, b))) == {"unbalanced_instrument", "t_unit"}
    comparison = compare_runs(a, b, NORMAL)
    assert comparison.word is Word.NO_CHANGE
    assert noted(comparison) == {"unbalanced_instrument", "t_unit", "sensitivity"}
    clustered = compare_runs(
        record(store, cases(20), run_id="c"), outage(store, "d", order="rounds", failed_from=45), NORMAL
    )
    assert (clustered.word, noted(clustered)) == (Word.REGRESSED, {"clustered_failures_b"})


def test_no_single_case_is_judged_by_trials_that_the_simple_rule_only_doubts(store):
    a = record(store, cases(50), run_id="a")
    hit = {f"t{i}": ("E" if i < 6 else "P") + "PPPP" for i in range(49)}
    comparison = compare_runs(a, record(store, {**hit, "t49": "FFFFF"}, run_id="b"), NORMAL)
    assert [c.case for c in comparison.proven_worse] == ["t49"]
    assert decide(Policy.REGRESSIONS, comparison).exit_code == 0
    sound = compare_runs(a, record(store, {**cases(49), "t49": "FFFFF"}, run_id="c"), NORMAL)
    assert decide(Policy.REGRESSIONS, sound).exit_code == 1


@pytest.mark.parametrize(
    ("a_fields", "b_fields", "code"),
    [
        ({}, {"replayed": True}, "replayed_b"),
        (
            {"imported": {"kinds": {"late": "fail"}}},
            {"imported": {"kinds": {"late": "pass"}}},
            "kinds_differ",
        ),
        ({"imported": {"pass_at": 0.5}}, {"imported": {"pass_at": 0.8}}, "pass_marks_differ"),
    ],
)
def test_what_is_no_measurement_is_none_under_any_method(store, a_fields, b_fields, code):
    a, b = record(store, cases(20), run_id="a", **a_fields), record(store, cases(20), run_id="b", **b_fields)
    for method in ("mid-p", "exact", "normal"):
        assert set(reasons(compare_runs(a, b, CompareOptions(method=method)))) == {code}


def test_imports_that_read_labels_and_scores_differently_say_how(store):
    imported = [
        {"kinds": {"late": "fail", "ok": "pass", "odd": "pass"}, "pass_at": 0.5},
        {"kinds": {"late": "instrument", "ok": "pass", "odd": "fail"}, "pass_at": 0.75},
    ]
    a, b = (record(store, cases(5), run_id=n, imported=i) for n, i in zip("ab", imported, strict=True))
    assert reasons(compare_runs(a, b)) == {
        "kinds_differ": "The two runs were imported with labels read differently: late, odd "
        "(late as fail in the baseline, as instrument in this run). Import both with the same options.",
        "pass_marks_differ": "The two runs were imported with different pass marks: 0.5 in the baseline, "
        "0.75 in this run (--pass-at). Import both with the same.",
    }
    assert reasons(compare_runs(a, record(store, cases(5), run_id="c"))) == {}


def test_a_label_that_counts_as_something_else_now(store):
    """Only within one case: another case may have another vocabulary."""
    late = [row("t0", 1, "T", outcome="late"), row("t1", 1, "P")]
    a = record(store, {**cases(20), "t0": ".PPPP", "t1": ".PPPP"}, run_id="a", rows=late)
    now = [row("t0", 1, "E", outcome="late"), row("t1", 1, "P")]
    b = record(store, {**cases(20), "t0": ".PPPP", "t1": ".PPPP"}, run_id="b", rows=now)
    text = (
        "Labels count as something else in each run: late (late as fail in the baseline, as instrument in "
        "this run, in t0). Compare runs of one vocabulary."
    )
    assert reasons(compare_runs(a, b)) == {"kinds_differ": text}
    elsewhere = [row("t0", 1, "P"), row("t1", 1, "E", outcome="late")]
    c = record(store, {**cases(20), "t0": ".PPPP", "t1": ".PPPP"}, run_id="c", rows=elsewhere)
    assert reasons(compare_runs(a, c)) == {}


@pytest.mark.parametrize("arm", ["a", "b"])
def test_replayed_trials(store, arm):
    comparison = compare(store, cases(5), cases(5), **{f"{arm}_fields": {"replayed": True}})
    assert set(reasons(comparison)) == {f"replayed_{arm}"}


def answered(store, run_id, answers):
    rows = [row("t0", trial, "P", answers=a, cached=False) for trial, a in enumerate(answers, 1)]
    return record(store, {**cases(5), "t0": "....."}, run_id=run_id, rows=rows)


@pytest.mark.parametrize("method", ["mid-p", "normal"])
def test_trials_that_a_cache_answered(store, method):
    options = CompareOptions(method=method)
    a, b, c, d = (
        answered(store, name, answers)
        for name, answers in (("a", "vwxyz"), ("b", "ABCDE"), ("c", "FGFHG"), ("d", "IJKxy"))
    )
    few = {"too_few_cases"} if method == "normal" else set()
    assert set(reasons(compare_runs(a, b, options))) == few
    assert set(reasons(compare_runs(a, c, options))) == few | {"cached_b"}
    assert set(reasons(compare_runs(c, b, options))) == few | {"cached_a"}
    assert set(reasons(compare_runs(a, d, options))) == few | {"cached_between"}
    advice = "Turn off the cache between test and provider (a gateway, a proxy or an HTTP client)"
    assert reasons(compare_runs(c, b))["cached_a"] == (
        "2 trials of the baseline had answers of the provider out of a cache, so they are no samples of "
        f"their own. {advice} and run it again."
    )
    assert reasons(compare_runs(a, d))["cached_between"] == (
        "2 trials of this run had the very answers that the baseline had, with the provider's own ids or "
        f"times, so the runs are not independent. {advice}, empty it, and run again."
    )


def test_holdout_wanted_and_dev_measured(store):
    options = CompareOptions(split="holdout")
    comparison = compare(store, cases(5), cases(5), options, b_fields={"split": "dev"})
    assert reasons(comparison) == {
        "holdout_wanted": "The gate asks for a holdout run, and this run measured dev cases."
    }
    holdout = record(store, cases(5), run_id="c", split="holdout")
    assert reasons(compare_runs(store.load("a"), holdout, options)) == {}


@pytest.mark.parametrize(("bad", "blocked"), [(5, False), (6, True)])
def test_unbalanced_instrument_failures(store, bad, blocked):
    """Fisher's exact test of 250 trials each: 5 against 0 is p = 0.0613, 6 against 0 is p = 0.0303."""
    hit = {f"t{i}": ("E" if i < bad else "P") + "PPPP" for i in range(50)}
    comparison = compare(store, cases(50), hit)
    assert ("unbalanced_instrument" in reasons(comparison)) == blocked
    if blocked:
        assert reasons(comparison)["unbalanced_instrument"] == (
            "Instrument failures are not balanced: 6 of 250 trials in this run, 0 of 250 in the baseline "
            "(p = 0.0303)."
        )


def test_instrument_failures_of_cases_that_only_one_run_has_are_no_imbalance(store):
    comparison = compare(store, cases(50), {**cases(50), "new": "E" * 20})
    assert reasons(comparison) == {}


def outage(store, run_id, *, order, failed_from):
    """20 cases x 5 trials, one second each; in the third round ten trials in a row fail."""
    rows = []
    for second in range(100):
        trial, case = divmod(second, 20)
        letter = "F" if failed_from <= second < failed_from + 10 else "P"
        rows.append(row(f"t{case}", trial + 1, letter, start=START + second, duration=1.0))
    return record(store, cases(20, "....."), run_id=run_id, rows=rows, trial_order=order)


def test_failures_that_come_together_in_time(store):
    baseline = record(store, cases(20), run_id="a")
    comparison = compare_runs(baseline, outage(store, "b", order="rounds", failed_from=45))
    assert reasons(comparison) == {
        "clustered_failures_b": "Failures of this run cluster in time: from 06:33:45 to 06:33:55 UTC, 10 of "
        "10 trials failed, over 10 cases. Something other than the cases may have failed; run them again."
    }
    mirrored = compare_runs(store.load("b"), baseline)
    assert set(reasons(mirrored)) == {"clustered_failures_a"}


def test_an_order_by_case_cannot_tell_an_outage_from_broken_cases(store):
    baseline = record(store, cases(20), run_id="a")
    comparison = compare_runs(baseline, outage(store, "b", order="cases", failed_from=45))
    assert comparison.word is Word.REGRESSED


def test_failures_spread_over_a_run_are_no_cluster(store):
    spread = [
        row(f"t{case}", trial, "F" if (case + 7 * trial) % 9 == 0 else "P", start=START + 20 * trial + case)
        for trial in range(1, 6)
        for case in range(20)
    ]
    run = record(store, cases(20, "....."), run_id="b", rows=spread, trial_order="rounds")
    assert reasons(compare_runs(record(store, cases(20), run_id="a"), run)) == {}


@pytest.mark.parametrize(
    ("before", "now", "blocked"),
    [
        ("PPP", "FFF", True),
        ("PPP", "FFP", False),
        ("PPF", "FFF", False),
        ("PP", "FF", False),
    ],
)
def test_three_of_three_to_none_of_three_asks_for_more_trials(store, before, now, blocked):
    comparison = compare(store, {**cases(30, "PPP"), "x": before}, {**cases(30, "PPP"), "x": now})
    assert ("broken_case" in reasons(comparison)) == blocked
    if (before, now) == ("PPP", "FFF"):
        assert reasons(comparison)["broken_case"] == (
            "1 case passed every baseline trial and no trial now, which so few trials cannot prove: "
            "x (3/3 -> 0/3). Run them with 5 or more trials."
        )


def test_more_trials_that_cannot_prove_it_beside_many_noisy_cases_ask_too(store):
    noise = cases(40, "PPFF")
    comparison = compare(store, {**noise, "x": "PPPP"}, {**noise, "x": "FFFE"})
    assert set(reasons(comparison)) == {"broken_case"}


def test_four_of_four_to_none_is_proven_and_needs_no_question(store):
    comparison = compare(store, {**cases(30, "PPPP"), "x": "PPPP"}, {**cases(30, "PPPP"), "x": "FFFF"})
    assert reasons(comparison) == {}
    assert [c.case for c in comparison.proven_worse] == ["x"]


def test_a_regression_is_not_hidden_behind_a_broken_case(store):
    a, b = cases(10, "PPP"), {**cases(5, "PPP"), **cases(5, "FFF", first=5)}
    comparison = compare(store, a, b)
    assert comparison.word is Word.REGRESSED
    assert comparison.reasons == ()


def test_several_reasons_are_all_given(store):
    fields = {"status": RunStatus.CANCELLED, "replayed": True, "t_unit": "tokens"}
    b = {**cases(8), **cases(12, "EEEEE", first=8)}
    comparison = compare(store, cases(20), b, a_fields={"t_unit": "steps"}, b_fields=fields)
    assert list(reasons(comparison)) == [
        "not_finished_b",
        "replayed_b",
        "too_many_undecided_b",
        "case_lost",
        "t_unit",
        "unbalanced_instrument",
    ]


def test_a_poisoned_evidence_file_changes_nothing(store):
    baseline = record(store, cases(10), run_id="a")
    record(store, {**cases(9), "t9": "FFFFF"}, run_id="b")
    before = compare_runs(baseline, store.load("b"))
    for run_id in "ab":
        (store.root / "runs" / run_id / "evidence.db").write_bytes(b"\x00 no database at all")
    assert compare_runs(store.load("a"), store.load("b")) == before
    assert before.word is Word.REGRESSED
