"""Thresholds that need no baseline."""

from __future__ import annotations

import pytest

from pytest_crashlab.compare import check_thresholds
from pytest_crashlab.errors import UsageError
from tests.stories import record


def of_case(store, letters, least):
    run = record(store, {"t": letters, "other": "FF"}, plans={"t": {"min_passes": least}})
    return check_thresholds(run)


@pytest.mark.parametrize(
    ("letters", "least", "met"),
    [
        ("PPPFF", 3, True),
        ("PPFFF", 3, False),
        ("PPEFF", 3, None),
        ("PPP.F", 3, True),
        ("PP.FF", 3, None),
        ("PEFFF", 3, False),  # even a pass of the open trial would miss it
        ("EEEEE", 3, None),
        (".....", 5, None),
        ("PPSSF", 3, None),  # skipped trials could not show what they would have been
        ("FFFFF", 0, True),
    ],
)
def test_min_passes(store, letters, least, met):
    (result,) = of_case(store, letters, least)
    assert (result.name, result.case, result.met) == ("min_passes", "t", met)


def test_a_case_that_is_skipped_has_no_threshold(store):
    assert of_case(store, "SSSSS", 3) == ()


def test_min_passes_in_words(store):
    assert of_case(store, "PPFFF", 3)[0].text == "t passed 2 of 5 decided trials; it has to pass at least 3."
    run = record(store, {"t": "PPEFF"}, run_id="b", plans={"t": {"min_passes": 3}})
    assert check_thresholds(run)[0].text == (
        "t passed 2 of 4 decided trials and 1 trial gave no decision, "
        "so it cannot be said whether it passes 3."
    )


@pytest.mark.parametrize(
    ("cases", "least", "met"),
    [
        (["PP", "PF"], 0.75, True),
        (["PP", "PF"], 0.76, False),
        (["PP", "FF", "PP", "PP", "PP"], 0.8, True),  # exactly there
        (["PPPPPPPPPP"] * 9 + ["FFFFFFFFFE"], 0.95, False),  # 0.91 at best
        (["PPPPPPPPPP"] * 9 + ["FFFFFFFFFE"], 0.905, None),  # 0.91 at best, 0.9 as decided
        (["PPPPPPPPPP"] * 9 + ["PPPPPPPPPE"], 0.995, True),  # as decided, one open trial of a hundred
        (["P"] + ["E"] * 99, 0.9, None),  # one lucky trial before an outage is no pass
        (["P"] * 95 + ["E"] * 20, 0.8, True),  # even if all of the open ones failed
        (["EE"], 0.5, None),
        (["EE"], 0.0, None),
        (["SS"], 0.5, None),
        ([], 0.5, None),
        (["SS", "PP"], 1.0, True),
        (["FF"], 0.0, True),
        (["P" * 3] * 10, 1.0, True),
    ],
)
def test_min_pass_rate(store, cases, least, met):
    run = record(store, {f"t{i}": letters for i, letters in enumerate(cases)})
    (result,) = check_thresholds(run, min_pass_rate=least)
    assert (result.name, result.case, result.met) == ("min_pass_rate", None, met)


@pytest.mark.parametrize(
    ("cases", "least", "text"),
    [
        (["PP", "PF"], 0.75, "The pass rate is 75.0 %; at least 75.0 % was asked for."),
        (["PP", "PF"], 0.8, "The pass rate is 75.0 %; at least 80.0 % is asked for."),
        (["EE"], 0.8, "No trial was decided, so the pass rate cannot be held against 80.0 %."),
        (
            ["PP", "PE"],
            0.9,
            (
                "The pass rate is 100.0 % and 1 trial gave no decision, "
                "so it cannot be said whether it reaches 90.0 %."
            ),
        ),
    ],
)
def test_min_pass_rate_in_words(store, cases, least, text):
    run = record(store, {f"t{i}": letters for i, letters in enumerate(cases)})
    assert check_thresholds(run, min_pass_rate=least)[0].text == text


@pytest.mark.parametrize("rate", [-0.1, 1.1, 90, float("nan")])
def test_a_rate_that_cannot_be(store, rate):
    run = record(store, {"t": "P"})
    with pytest.raises(UsageError, match="share from 0 to 1"):
        check_thresholds(run, min_pass_rate=rate)
