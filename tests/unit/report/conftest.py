from __future__ import annotations

import pytest

from pytest_crashlab.compare import (
    CompareOptions,
    check_thresholds,
    compare_runs,
    decide,
    no_baseline,
    run_numbers,
)
from pytest_crashlab.records.comparison import Policy
from pytest_crashlab.report.build import session_summary
from pytest_crashlab.store import Store
from tests.stories import record


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / ".crashlab", create=True)


@pytest.fixture
def tell(store):
    """``tell(a, b)``: the view of a session that measured ``b`` beside ``a``; None: no baseline asked for."""
    return teller(store)


def teller(store):
    """What the fixture ``tell`` gives, for a store of one's own."""

    def session(
        a,
        b,
        *,
        policy=Policy.REGRESSIONS,
        options=None,
        min_pass_rate=None,
        missing=None,
        a_fields=None,
        **b_fields,
    ):
        candidate = record(store, b, run_id="20261130T063300Z-bbbbbb", **b_fields)
        options = options or CompareOptions()
        comparison = None
        if missing is not None:
            comparison = no_baseline(candidate, missing, options)
        elif a is not None:
            baseline = record(store, a, run_id="20261129T063300Z-aaaaaa", **(a_fields or {}))
            comparison = compare_runs(baseline, candidate, options)
        thresholds = check_thresholds(candidate, min_pass_rate=min_pass_rate)
        gated = comparison is not None or bool(thresholds)
        return session_summary(
            candidate,
            run_numbers(candidate),
            comparison,
            thresholds,
            decide(policy, comparison, thresholds) if gated else None,
            baseline_line="baseline 20261129-aaaaaa (main, 1f26568, your branch point)"
            if a is not None
            else None,
            next_commands=["crashlab diff 20261129T063300Z-aaaaaa 20261130T063300Z-bbbbbb"]
            if a is not None
            else [],
        )

    return session
