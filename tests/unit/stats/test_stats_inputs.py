"""What cannot be counted with is refused with a sentence that names argument and index."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_crashlab import stats

PAIRED = (
    stats.paired_verdict,
    stats.normal_rule,
    stats.new_cases,
    stats.case_tests,
    stats.sign_flip_p,
    stats.case_weighted_p,
)
SINGLE = (
    stats.rate_these_cases,
    stats.rate_new_cases,
    stats.jeffreys_rate,
    stats.normal_rate,
    stats.disagreement,
)


@pytest.mark.parametrize("function", PAIRED, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        (([1, -2], [3, 3], [1, 1], [3, 3]), r"a_pass\[1\] = -2 is negative\."),
        (([1, 1], [3, 3], [1, 4], [3, 3]), r"b_pass\[1\] = 4 is more than b_n\[1\] = 3\."),
        (([1, 1], [3, 0.5], [1, 1], [3, 3]), r"a_n\[1\] = 0\.5 is not a whole number\."),
        (([1, 1], [3, 3], [float("nan"), 1], [3, 3]), r"b_pass\[0\] = nan is not a finite number\."),
        (([1, 1], [3, 3], [1, 1], [3, float("inf")]), r"b_n\[1\] = inf is not a finite number\."),
        (([1, 1], [3], [1, 1], [3, 3]), r"a_n has 1 entries and a_pass has 2: both need one entry a case\."),
        (([1, 1], [3, 3], [1], [3]), r"b_pass has 1 entries and a_pass has 2: both need one entry a case\."),
        (([[1]], [[3]], [[1]], [[3]]), r"a_pass must have one dimension .* got 2 dimensions\."),
        (
            ([[1], [1, 2]], [3], [1], [3]),
            r"a_pass must be one flat list of counts, got rows of different length\.",
        ),
        ((["a"], [3], [1], [3]), r"a_pass must hold whole numbers, got values of type <U1\."),
        (([None], [3], [1], [3]), r"a_pass must hold whole numbers, got values of type object\."),
        (
            ([1], [2**40], [1], [3]),
            r"a_n\[0\] = 1099511627776 is more than the 100000 that one case may have\.",
        ),
    ],
)
def test_paired_counts(function, counts, sentence):
    with pytest.raises(stats.BadInput, match=f"^{sentence}$"):
        function(*counts)
    with pytest.raises(ValueError, match=r"\.$"):
        function(*counts)


@pytest.mark.parametrize("function", SINGLE, ids=lambda f: f.__name__)
def test_counts_of_one_run(function):
    with pytest.raises(stats.BadInput, match=r"^passes\[0\] = 4 is more than n\[0\] = 3\.$"):
        function([4], [3])
    with pytest.raises(stats.BadInput, match=r"^passes\[2\] = -1 is negative\.$"):
        function([0, 0, -1], [3, 3, 3])


@pytest.mark.parametrize("function", [stats.pass_hat, stats.pass_at, stats.flips], ids=lambda f: f.__name__)
def test_plans(function):
    with pytest.raises(stats.BadInput, match=r"^n\[1\] = 3 is more than planned\[1\] = 2\.$"):
        function([1, 1], [3, 3], [3, 2])
    with pytest.raises(stats.BadInput, match=r"^planned has 1 entries and passes has 2"):
        function([1, 1], [3, 3], [3])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: stats.paired_verdict([1], [1], [1], [1], variant="fisher"), "variant = 'fisher' is neither"),
        (lambda: stats.fisher_imbalance(3, 2, 0, 2), "a_bad = 3 is more than a_total = 2"),
        (lambda: stats.fisher_imbalance(0, 2, -1, 2), "b_bad = -1 is less than 0"),
        (lambda: stats.fisher_imbalance(0, 2.5, 1, 2), "a_total = 2.5 is not a whole number"),
        (lambda: stats.fisher_imbalance(0, float("nan"), 1, 2), "a_total = nan is not a whole number"),
        (lambda: stats.holm([0.1, 1.2]), r"p\[1\] = 1.2 is not between 0 and 1"),
        (lambda: stats.holm([float("nan")]), r"p\[0\] = nan is not between 0 and 1"),
        (lambda: stats.holm([[0.1]]), "p must have one dimension"),
        (lambda: stats.benjamini_hochberg([0.1], q=0), "q = 0 is not between 0 and 1"),
        (lambda: stats.case_tests([1], [1], [1], [1], q=1), "q = 1 is not between 0 and 1"),
        (lambda: stats.wilson(1.5, 3), "rate = 1.5 is not between 0 and 1"),
        (lambda: stats.wilson(0.5, -3), "n = -3 is negative"),
        (lambda: stats.wilson(0.5, float("nan")), "n = nan is negative or not a number"),
        (lambda: stats.clopper_pearson(4, 3), "passes = 4 is not between 0 and n = 3"),
        (lambda: stats.jeffreys(-1, 3), "passes = -1 is not between 0 and n = 3"),
        (lambda: stats.newcombe(1, 0, 1, 1), "a_pass needs at least one trial"),
        (lambda: stats.newcombe(1, 1, 3, 2), "b_pass = 3 is not between 0 and n = 2"),
        (lambda: stats.minimal_drop(0, 3, 3, 0.1), "a design needs cases and trials, got 0 cases"),
        (
            lambda: stats.cases_needed(0, within_a=1, within_b=1, between=0, trials_a=1, trials_b=1),
            "drop = 0 is",
        ),
        (lambda: stats.planned_drop(0, 3), "cases = 0 is less than 1"),
        (lambda: stats.planned_trials(10, 1.5), "drop = 1.5 is not between 0 and 1"),
        (lambda: stats.trials_to_show([1], [1], 0), "drop = 0 is not between 0 and 1"),
        (lambda: stats.more_rounds([1], [1], [1], [1], margin=0), "margin = 0 is not between 0 and 1"),
        (lambda: stats.detectable_drop([1], [1], [1, 1]), "b_n has 2 entries and a_pass has 1"),
        (lambda: stats.obf_spending(0), "fraction = 0 is not above 0 and at most 1"),
        (lambda: stats.obf_boundaries([0.5, 0.4]), "fractions must be one flat list of rising numbers"),
        (lambda: stats.win_loss_e_value(-1, 0), "losses = -1 is less than 0"),
        (lambda: stats.drift_guard([1], [1], [1], [1], factor=0.5), "factor = 0.5 is less than 1"),
        (lambda: stats.failure_clusters([1, 2], [True]), "failed has 1 entries and case has 2"),
        (lambda: stats.failure_clusters([1, 2], [0, 2]), "failed must be one flat list of true and false"),
        (lambda: stats.paired_t([1.0, float("inf")]), r"differences\[1\] = inf is not a finite number"),
        (lambda: stats.paired_t([[1.0]]), "differences must have one dimension"),
    ],
)
def test_other_arguments(call, sentence):
    with pytest.raises(stats.BadInput, match=f"^{sentence}"):
        call()


def test_counts_may_come_as_they_are_stored():
    expected = stats.paired_verdict([4, 4], [4, 4], [0, 4], [4, 4])
    for kind in (np.uint8, np.int64, np.float64):
        arrays = (np.array(c, dtype=kind) for c in ([4, 4], [4, 4], [0, 4], [4, 4]))
        assert stats.paired_verdict(*arrays) == expected
    flags = np.array([True, False]), [1, 1], np.array([False, False]), [1, 1]
    assert stats.paired_verdict(*flags).delta == -0.5
