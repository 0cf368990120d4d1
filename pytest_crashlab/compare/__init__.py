"""The judgement: rates, pairing, no-verdict reasons, comparison, thresholds, policies."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_crashlab.compare.compare import CompareOptions as CompareOptions
    from pytest_crashlab.compare.compare import compare_runs as compare_runs
    from pytest_crashlab.compare.compare import no_baseline as no_baseline
    from pytest_crashlab.compare.judgement import judge as judge
    from pytest_crashlab.compare.judgement import recorded_thresholds as recorded_thresholds
    from pytest_crashlab.compare.policies import decide as decide
    from pytest_crashlab.compare.policies import headline as headline
    from pytest_crashlab.compare.rates import RunNumbers as RunNumbers
    from pytest_crashlab.compare.rates import run_numbers as run_numbers
    from pytest_crashlab.compare.rates import summary_fields as summary_fields
    from pytest_crashlab.compare.thresholds import check_thresholds as check_thresholds

# Imported when first asked for: policies and options need no numpy.
_HOMES = {
    "CompareOptions": "compare",
    "RunNumbers": "rates",
    "check_thresholds": "thresholds",
    "compare_runs": "compare",
    "decide": "policies",
    "headline": "policies",
    "judge": "judgement",
    "recorded_thresholds": "judgement",
    "no_baseline": "compare",
    "run_numbers": "rates",
    "summary_fields": "rates",
}

__all__ = [
    "CompareOptions",
    "RunNumbers",
    "check_thresholds",
    "compare_runs",
    "decide",
    "headline",
    "judge",
    "no_baseline",
    "recorded_thresholds",
    "run_numbers",
    "summary_fields",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
