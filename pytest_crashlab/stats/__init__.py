"""The arithmetic: arrays in, frozen dataclasses out.

Every function says in its docstring which method it is, where it comes from, what it assumes and
where it ends. Names are imported when first asked for: importing this package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_crashlab.stats.balance import fisher_imbalance as fisher_imbalance
    from pytest_crashlab.stats.cases import CaseTests as CaseTests
    from pytest_crashlab.stats.cases import case_tests as case_tests
    from pytest_crashlab.stats.inputs import BadInput as BadInput
    from pytest_crashlab.stats.intervals import clopper_pearson as clopper_pearson
    from pytest_crashlab.stats.intervals import newcombe as newcombe
    from pytest_crashlab.stats.intervals import wilson as wilson
    from pytest_crashlab.stats.multiple import any_false_alarm as any_false_alarm
    from pytest_crashlab.stats.multiple import benjamini_hochberg as benjamini_hochberg
    from pytest_crashlab.stats.multiple import holm as holm
    from pytest_crashlab.stats.normal import NormalRule as NormalRule
    from pytest_crashlab.stats.normal import normal_rule as normal_rule
    from pytest_crashlab.stats.population import NewCases as NewCases
    from pytest_crashlab.stats.population import PairedT as PairedT
    from pytest_crashlab.stats.population import new_cases as new_cases
    from pytest_crashlab.stats.population import paired_t as paired_t
    from pytest_crashlab.stats.power import cases_needed as cases_needed
    from pytest_crashlab.stats.power import detectable_drop as detectable_drop
    from pytest_crashlab.stats.power import minimal_drop as minimal_drop
    from pytest_crashlab.stats.power import within_variance as within_variance
    from pytest_crashlab.stats.rates import Rate as Rate
    from pytest_crashlab.stats.rates import jeffreys_rate as jeffreys_rate
    from pytest_crashlab.stats.rates import normal_rate as normal_rate
    from pytest_crashlab.stats.rates import rate_new_cases as rate_new_cases
    from pytest_crashlab.stats.rates import rate_these_cases as rate_these_cases
    from pytest_crashlab.stats.repeats import Flips as Flips
    from pytest_crashlab.stats.repeats import PassHat as PassHat
    from pytest_crashlab.stats.repeats import disagreement as disagreement
    from pytest_crashlab.stats.repeats import flips as flips
    from pytest_crashlab.stats.repeats import pass_at as pass_at
    from pytest_crashlab.stats.repeats import pass_hat as pass_hat
    from pytest_crashlab.stats.verdict import PairedVerdict as PairedVerdict
    from pytest_crashlab.stats.verdict import is_significant as is_significant
    from pytest_crashlab.stats.verdict import paired_trials_verdict as paired_trials_verdict
    from pytest_crashlab.stats.verdict import paired_verdict as paired_verdict

_HOMES = {
    "BadInput": "inputs",
    "CaseTests": "cases",
    "Flips": "repeats",
    "NewCases": "population",
    "NormalRule": "normal",
    "PairedT": "population",
    "PairedVerdict": "verdict",
    "PassHat": "repeats",
    "Rate": "rates",
    "any_false_alarm": "multiple",
    "benjamini_hochberg": "multiple",
    "case_tests": "cases",
    "cases_needed": "power",
    "clopper_pearson": "intervals",
    "detectable_drop": "power",
    "disagreement": "repeats",
    "fisher_imbalance": "balance",
    "flips": "repeats",
    "holm": "multiple",
    "is_significant": "verdict",
    "jeffreys_rate": "rates",
    "minimal_drop": "power",
    "new_cases": "population",
    "newcombe": "intervals",
    "normal_rate": "rates",
    "normal_rule": "normal",
    "paired_t": "population",
    "paired_trials_verdict": "verdict",
    "paired_verdict": "verdict",
    "pass_at": "repeats",
    "pass_hat": "repeats",
    "rate_new_cases": "rates",
    "rate_these_cases": "rates",
    "wilson": "intervals",
    "within_variance": "power",
}

__all__ = [
    "BadInput",
    "CaseTests",
    "Flips",
    "NewCases",
    "NormalRule",
    "PairedT",
    "PairedVerdict",
    "PassHat",
    "Rate",
    "any_false_alarm",
    "benjamini_hochberg",
    "case_tests",
    "cases_needed",
    "clopper_pearson",
    "detectable_drop",
    "disagreement",
    "fisher_imbalance",
    "flips",
    "holm",
    "is_significant",
    "jeffreys_rate",
    "minimal_drop",
    "new_cases",
    "newcombe",
    "normal_rate",
    "normal_rule",
    "paired_t",
    "paired_trials_verdict",
    "paired_verdict",
    "pass_at",
    "pass_hat",
    "rate_new_cases",
    "rate_these_cases",
    "wilson",
    "within_variance",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
