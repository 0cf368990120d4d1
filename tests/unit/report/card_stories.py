"""Two runs for every sentence that a verdict card can say; the name of a story is what it is about.

A story for a reason of No verdict has the code of that reason in its name: ``t_unit``, or
``not_inside_margin__both_runs`` where one code has several sentences.
"""

from __future__ import annotations

from pytest_crashlab.compare import CompareOptions
from pytest_crashlab.compare.history import History
from pytest_crashlab.records.check import CheckRow
from pytest_crashlab.records.comparison import Policy
from pytest_crashlab.records.run import RunStatus
from tests.stories import START, row

FILE = "tests/test_agent.py::test_refund"
NORMAL = CompareOptions(method="normal")
STORIES = {}


def story(tell):
    """Register a story under its name."""
    STORIES[tell.__name__] = tell
    return tell


def cases(count, letters="PPPPP", first=0):
    return {f"{FILE}[case-{i}]": letters for i in range(first, first + count)}


def shares(passed):
    """Cases of ``(passes, trials)``."""
    return {f"{FILE}[case-{i}]": "P" * n + "F" * (of - n) for i, (n, of) in enumerate(passed)}


def _outage():
    """20 cases x 5 trials, one second each; in the third round ten trials in a row fail."""
    rows = []
    for second in range(100):
        trial, case = divmod(second, 20)
        letter = "F" if 45 <= second < 55 else "P"
        rows.append(row(f"{FILE}[case-{case}]", trial + 1, letter, start=START + second, duration=1.0))
    return {"rows": rows, "trial_order": "rounds"}


def _answered(name):
    """5 cases x 5 trials that pass; ``name`` gives what the answer of a case's trial is known by."""
    pairs = [(case, trial) for trial in range(1, 6) for case in cases(5)]
    return {"rows": [row(c, t, "P", answers=name(c, t), cached=False) for c, t in pairs]}


def _anew(of):
    return lambda case, trial: f"{of}.{trial}.{case}"


LOSSES = [5, 4, 3, 3, 2, 2, 2, 2, 1, 1] + [0] * 15


# Regressed


@story
def regressed(tell):
    b = {**cases(10), **cases(1, "FFFFF", 10), **cases(1, "PFPPP", 11), **cases(1, "PPPPE", 12)}
    return tell(cases(13), b, a_fields={"target_digest": "1"}, target_digest="2")


@story
def regressed__by_the_simple_rule(tell):
    b = shares([(5 - loss, 5) for loss in LOSSES])
    return tell(cases(25), b, options=CompareOptions(method="normal", aa_factor=1.4))


@story
def regressed__all_cases_alike(tell):
    return tell(cases(20), cases(20, "PPPPF"), options=NORMAL)


@story
def regressed__exact_and_only_reported(tell):
    b = {**cases(9), **cases(1, "FFFFF", 9)}
    return tell(cases(10), b, options=CompareOptions(method="exact"), policy=Policy.REPORT)


@story
def regressed__pairs_of_trials(tell):
    return tell(cases(10), cases(10, "FFPPP"), a_fields={"seed": 7}, seed=7, seed_source="baseline")


@story
def regressed__many_cases(tell):
    return tell(cases(40), {**cases(18), **cases(22, "PPPFF", 18)}, policy=Policy.STRICT)


def _checked(amount_holds, tone_holds):
    """10 cases x 5 trials that pass, with two soft checks."""
    checks = []
    for case in cases(10):
        for trial in range(1, 6):
            held = {"amount": amount_holds(trial), "tone": tone_holds(trial)}
            soft = [CheckRow(name=name, required=False, ok=ok) for name, ok in held.items()]
            checks.append((row(case, trial, "P"), soft))
    return {"checks": checks}


@story
def no_change__beside_checks_that_changed(tell):
    a = _checked(lambda trial: True, lambda trial: trial > 3)
    b = _checked(lambda trial: trial > 2, lambda trial: True)
    options = CompareOptions(outcomes=("failed",))
    return tell(cases(10, "....."), cases(10, "....."), a_fields=a, options=options, **b)


# Improved


@story
def improved(tell):
    return tell(
        {**cases(9), **cases(1, "FFFFF", 9)}, cases(10), interleaved="x", a_fields={"interleaved": "x"}
    )


@story
def improved__but_one_case_is_worse(tell):
    a = {**cases(1), **cases(6, "FFFFF", 1), **cases(3, "PPPPP", 7)}
    return tell(a, {**cases(1, "FFFFF"), **cases(9, "PPPPP", 1)})


@story
def improved__on_a_doubtful_baseline_by_the_simple_rule(tell):
    return tell(cases(20, "....."), cases(20), a_fields=_outage(), options=NORMAL)


# No change


@story
def no_change(tell):
    return tell({**cases(9), **cases(1, "PPFPP", 9)}, {**cases(9), **cases(1, "PPPFF", 9)})


@story
def no_change__of_the_mean(tell):
    a = {**cases(1, "P" * 10), **cases(10, "PPPPPPPPPF", 1)}
    return tell(a, {**cases(1, "F" * 10), **cases(10, "P" * 10, 1)})


@story
def no_change__inside_the_margin(tell):
    return tell(cases(20), cases(20), options=CompareOptions(margin=0.05))


@story
def no_change__of_one_case(tell):
    return tell(cases(1, "P"), cases(1, "F"))


@story
def no_change__nothing_ever_passed(tell):
    return tell(cases(2, "FFF"), cases(2, "FFF"))


@story
def no_change__of_a_very_large_run(tell):
    return tell(cases(50, "P" * 160), cases(50, "P" * 160), options=CompareOptions(margin=0.01))


@story
def no_change__and_no_drop_to_expect(tell):
    a, b = {**cases(9, "PPP"), **cases(1, "FFF", 9)}, cases(10, "PPP")
    return tell(a, b)


@story
def no_change__beside_a_broken_case_by_the_simple_rule(tell):
    return tell(cases(20, "PPP"), {**cases(19, "PPP"), **cases(1, "FFF", 19)}, options=NORMAL)


@story
def no_change__by_the_simple_rule(tell):
    """What that rule does not see is noted: a case without a decision, another unit, an unbalanced outage."""
    hit = {f"{FILE}[case-{i}]": ("E" if i < 6 else "P") + "PPPP" for i in range(49)}
    b = {**hit, **cases(1, "EEEEE", 49)}
    return tell(cases(50), b, options=NORMAL, a_fields={"t_unit": "steps"}, t_unit="tokens")


@story
def no_change__no_case_changed(tell):
    return tell(cases(20), cases(20), options=NORMAL)


@story
def no_change__less_than_equal_runs_differ(tell):
    b = {**cases(17), **cases(3, "PPFFF", 17)}
    return tell(cases(20), b, options=CompareOptions(aa_factor=9.0))


@story
def no_change__if_undecided_trials_had_not_failed(tell):
    a = {**cases(2, "PPPPE"), **cases(18, "PPPPP", 2)}
    b = {**cases(1, "EEEEP"), **cases(1, "EEPPP", 1), **cases(18, "PPPPP", 2)}
    return tell(a, b, options=CompareOptions(history=History(comparisons=12, repeats=3)))


@story
def no_change__with_everything_to_note(tell):
    a = {
        **cases(8, "PPPP"),
        f"{FILE}[skipped]": "PPPP",
        f"{FILE}[ruled]": "PPPP",
        f"{FILE}[unsampled]": "PPPP",
    }
    b = {
        **cases(7),
        **cases(1, "PPPP", 7),
        f"{FILE}[skipped]": "SSSSS",
        f"{FILE}[ruled]": "PPPPP",
        f"{FILE}[new]": "FFFFF",
    }
    passed = row(f"{FILE}[case-0]", 6, "P")
    tone = [CheckRow(name="tone", required=False, ok=True, judge="judge-1")]
    no_judge = [CheckRow(name="tone", required=False, ok=True)]
    asked, now = (row(f"{FILE}[case-1]", 6, "P", models=model) for model in ("small-1", "small-2"))
    before = {
        "rows": [asked],
        "prompt": "support@3",
        "model": "small-1",
        "dataset_version": "7",
        "evaluation_digest": "1",
        "run_config": {"temperature": "0"},
        "config_digest": "1",
        "environment": {"python": "3.11", "platform": "linux"},
        "gate": {"word": "Regressed", "exit_code": 1, "because": ["1 case is proven worse: t."]},
        "amendments": [
            {"at": "2026-11-29T08:00:00Z", "exclude": {"late": 2}, "reason": "the clock was wrong"}
        ],
        "plans": {f"{FILE}[case-0]": {"pass_rule": None}},
        "checks": [(passed, tone)],
    }
    return tell(
        a,
        b,
        partial=True,
        total_cases=20,
        prompt="support@4",
        model="small-2",
        rows=[now],
        dataset_version="8",
        evaluation_digest="2",
        run_config={"temperature": "1"},
        config_digest="2",
        environment={"python": "3.12", "platform": "linux"},
        plans={
            f"{FILE}[case-0]": {"pass_rule": None},
            f"{FILE}[new]": {"uses_trial": True},
            f"{FILE}[ruled]": {"pass_rule": "another"},
        },
        checks=[(passed, no_judge)],
        a_fields=before,
        policy=Policy.STRICT,
    )


@story
def no_change__of_the_same_source(tell):
    return tell(cases(10), cases(10), a_fields={"target_digest": "1"}, target_digest="1")


# No verdict: one story or more for each reason


@story
def no_baseline(tell):
    return tell(None, cases(3), missing="No baseline main yet; '--save-baseline=main' records it.")


@story
def no_baseline__and_no_word_why(tell):
    return tell(None, cases(3), missing="")


@story
def nothing_to_pair(tell):
    return tell({f"{FILE}[old]": "PP"}, {f"{FILE}[new]": "PP"})


@story
def pass_rules(tell):
    plans = {case: {"pass_rule": "another"} for case in cases(3)}
    return tell(cases(3), cases(3), plans=plans)


@story
def not_finished_a(tell):
    return tell(cases(5), cases(5), a_fields={"status": RunStatus.FAILED})


@story
def not_finished_b(tell):
    return tell(cases(5), cases(5), status=RunStatus.CANCELLED)


@story
def replayed_a(tell):
    return tell(cases(5), cases(5), a_fields={"replayed": True})


@story
def replayed_b(tell):
    return tell(cases(5), {**cases(3), **cases(2, "PFFFF", 3)}, replayed=True)


@story
def cached_a(tell):
    a = _answered(lambda case, trial: case)
    return tell(cases(5, "....."), cases(5, "....."), a_fields=a, **_answered(_anew("b")))


@story
def cached_b(tell):
    b = _answered(lambda case, trial: f"{case}.{trial // 2}")
    return tell(cases(5, "....."), cases(5, "....."), a_fields=_answered(_anew("a")), **b)


@story
def cached_between(tell):
    a = _answered(_anew("a"))
    b = _answered(lambda case, trial: _anew("a" if trial == 1 else "b")(case, trial))
    return tell(cases(5, "....."), cases(5, "....."), a_fields=a, **b)


@story
def holdout_wanted(tell):
    return tell(cases(5), cases(5), options=CompareOptions(split="holdout"), split="dev")


@story
def holdout_wanted__and_no_split_measured(tell):
    return tell(cases(5), cases(5), options=CompareOptions(split="holdout"))


@story
def too_many_undecided_a(tell):
    return tell({**cases(8), **cases(2, "PPN..", 8)}, cases(10))


@story
def too_many_undecided_b(tell):
    return tell(cases(10), {**cases(7), **cases(3, "PPP..", 7)})


@story
def case_lost(tell):
    return tell(cases(21), {**cases(20), **cases(1, "EEEEE", 20)})


@story
def too_few_cases(tell):
    return tell(cases(19), cases(19, "PPPPF"), options=NORMAL)


@story
def t_unit(tell):
    return tell(cases(5), cases(5), a_fields={"t_unit": "steps"}, t_unit="tokens")


@story
def unbalanced_instrument(tell):
    hit = {f"{FILE}[case-{i}]": ("E" if i < 6 else "P") + "PPPP" for i in range(50)}
    return tell(cases(50), hit)


@story
def clustered_failures_a(tell):
    return tell(cases(20, "....."), cases(20), a_fields=_outage())


@story
def clustered_failures_b(tell):
    return tell(cases(20), cases(20, "....."), **_outage())


@story
def clustered_failures_b__by_the_simple_rule(tell):
    return tell(cases(20), cases(20, "....."), options=NORMAL, **_outage())


@story
def broken_case(tell):
    return tell(cases(30, "PPP"), {**cases(29, "PPP"), **cases(1, "FFF", 29)})


@story
def contradictory(tell):
    return tell(shares([(0, 2)] + [(40, 40)] * 3), shares([(2, 2)] + [(30, 40)] * 3))


@story
def kinds_differ(tell):
    late = [row(f"{FILE}[case-0]", 1, "T", outcome="late")]
    now = [row(f"{FILE}[case-0]", 1, "E", outcome="late")]
    both = {**cases(20), **cases(1, ".PPPP")}
    return tell(both, both, rows=now, a_fields={"rows": late})


@story
def kinds_differ__of_imports(tell):
    a = {"kinds": {"late": "fail", "ok": "pass", "odd": "pass"}}
    b = {"kinds": {"late": "instrument", "ok": "pass", "odd": "fail"}}
    return tell(cases(5), cases(5), imported=b, a_fields={"imported": a})


@story
def pass_marks_differ(tell):
    return tell(cases(5), cases(5), imported={"pass_at": 0.75}, a_fields={"imported": {"pass_at": 0.5}})


def _judged_by(judge):
    rows = [row(case, trial, "P") for case in cases(10) for trial in range(1, 6)]
    return {"checks": [(r, [CheckRow(name="tone", required=True, ok=True, judge=judge)]) for r in rows]}


@story
def judged_differently(tell):
    a, b = _judged_by("judge-1"), _judged_by("judge-2")
    return tell(cases(10, "....."), cases(10, "....."), a_fields=a, **b)


@story
def not_inside_margin__more_trials_of_this_run(tell):
    return tell(cases(20, "P" * 20), cases(20, "PPP"), options=CompareOptions(margin=0.05))


@story
def not_inside_margin__more_trials_of_both_runs(tell):
    return tell(cases(20, "PPP"), cases(20, "PPP"), options=CompareOptions(margin=0.05), policy=Policy.STRICT)


@story
def not_inside_margin__hardly(tell):
    a, b = cases(10, "PPFFPP"), {**cases(9, "PPFFPP"), **cases(1, "FPFFPP", 9)}
    return tell(a, b, options=CompareOptions(margin=0.005))


@story
def not_inside_margin__a_rise(tell):
    a, b = {**cases(9), **cases(1, "PPFFF", 9)}, cases(10)
    return tell(a, b, options=CompareOptions(margin=0.06))


@story
def no_verdict__for_many_reasons(tell):
    b = {**cases(7), **cases(2, "EE...", 7), **cases(1, "PPPPF", 9)}
    return tell(cases(10), b, status=RunStatus.CANCELLED, replayed=True)
