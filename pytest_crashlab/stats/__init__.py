"""The arithmetic: arrays in, frozen dataclasses out.

Every function says in its docstring which method it is, where it comes from, what it assumes and
where it ends. Names are imported when first asked for: importing this package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_crashlab.errors import BadInput as BadInput
    from pytest_crashlab.stats.balance import fisher_imbalance as fisher_imbalance
    from pytest_crashlab.stats.cases import CaseTests as CaseTests
    from pytest_crashlab.stats.cases import case_tests as case_tests
    from pytest_crashlab.stats.clusters import FailureClusters as FailureClusters
    from pytest_crashlab.stats.clusters import failure_clusters as failure_clusters
    from pytest_crashlab.stats.drift import DriftGuard as DriftGuard
    from pytest_crashlab.stats.drift import drift_guard as drift_guard
    from pytest_crashlab.stats.drift import noise_factor as noise_factor
    from pytest_crashlab.stats.intervals import clopper_pearson as clopper_pearson
    from pytest_crashlab.stats.intervals import jeffreys as jeffreys
    from pytest_crashlab.stats.intervals import newcombe as newcombe
    from pytest_crashlab.stats.intervals import wilson as wilson
    from pytest_crashlab.stats.multiple import any_false_alarm as any_false_alarm
    from pytest_crashlab.stats.multiple import benjamini_hochberg as benjamini_hochberg
    from pytest_crashlab.stats.multiple import holm as holm
    from pytest_crashlab.stats.normal import NormalRule as NormalRule
    from pytest_crashlab.stats.normal import normal_rule as normal_rule
    from pytest_crashlab.stats.planner import more_rounds as more_rounds
    from pytest_crashlab.stats.planner import planned_drop as planned_drop
    from pytest_crashlab.stats.planner import planned_trials as planned_trials
    from pytest_crashlab.stats.planner import trials_to_show as trials_to_show
    from pytest_crashlab.stats.population import NewCases as NewCases
    from pytest_crashlab.stats.population import PairedT as PairedT
    from pytest_crashlab.stats.population import new_cases as new_cases
    from pytest_crashlab.stats.population import paired_t as paired_t
    from pytest_crashlab.stats.power import cases_needed as cases_needed
    from pytest_crashlab.stats.power import detectable_drop as detectable_drop
    from pytest_crashlab.stats.power import minimal_drop as minimal_drop
    from pytest_crashlab.stats.power import within_variance as within_variance
    from pytest_crashlab.stats.quantiles import Quantile as Quantile
    from pytest_crashlab.stats.quantiles import quantile as quantile
    from pytest_crashlab.stats.quantiles import quantile_change as quantile_change
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
    from pytest_crashlab.stats.resampling import case_weighted_p as case_weighted_p
    from pytest_crashlab.stats.resampling import sign_flip_p as sign_flip_p
    from pytest_crashlab.stats.sequential import obf_boundaries as obf_boundaries
    from pytest_crashlab.stats.sequential import obf_spending as obf_spending
    from pytest_crashlab.stats.sequential import win_loss_e_value as win_loss_e_value
    from pytest_crashlab.stats.verdict import PairedVerdict as PairedVerdict
    from pytest_crashlab.stats.verdict import is_significant as is_significant
    from pytest_crashlab.stats.verdict import paired_trials_verdict as paired_trials_verdict
    from pytest_crashlab.stats.verdict import paired_verdict as paired_verdict

_HOMES = {
    "BadInput": "inputs",
    "CaseTests": "cases",
    "DriftGuard": "drift",
    "FailureClusters": "clusters",
    "Flips": "repeats",
    "NewCases": "population",
    "NormalRule": "normal",
    "PairedT": "population",
    "PairedVerdict": "verdict",
    "PassHat": "repeats",
    "Quantile": "quantiles",
    "Rate": "rates",
    "any_false_alarm": "multiple",
    "benjamini_hochberg": "multiple",
    "case_tests": "cases",
    "case_weighted_p": "resampling",
    "cases_needed": "power",
    "clopper_pearson": "intervals",
    "detectable_drop": "power",
    "disagreement": "repeats",
    "drift_guard": "drift",
    "failure_clusters": "clusters",
    "fisher_imbalance": "balance",
    "flips": "repeats",
    "holm": "multiple",
    "is_significant": "verdict",
    "jeffreys": "intervals",
    "jeffreys_rate": "rates",
    "minimal_drop": "power",
    "more_rounds": "planner",
    "new_cases": "population",
    "newcombe": "intervals",
    "noise_factor": "drift",
    "normal_rate": "rates",
    "normal_rule": "normal",
    "obf_boundaries": "sequential",
    "obf_spending": "sequential",
    "paired_t": "population",
    "paired_trials_verdict": "verdict",
    "paired_verdict": "verdict",
    "pass_at": "repeats",
    "pass_hat": "repeats",
    "planned_drop": "planner",
    "planned_trials": "planner",
    "quantile": "quantiles",
    "quantile_change": "quantiles",
    "rate_new_cases": "rates",
    "rate_these_cases": "rates",
    "sign_flip_p": "resampling",
    "trials_to_show": "planner",
    "wilson": "intervals",
    "win_loss_e_value": "sequential",
    "within_variance": "power",
}

__all__ = [
    "BadInput",
    "CaseTests",
    "DriftGuard",
    "FailureClusters",
    "Flips",
    "NewCases",
    "NormalRule",
    "PairedT",
    "PairedVerdict",
    "PassHat",
    "Quantile",
    "Rate",
    "any_false_alarm",
    "benjamini_hochberg",
    "case_tests",
    "case_weighted_p",
    "cases_needed",
    "clopper_pearson",
    "detectable_drop",
    "disagreement",
    "drift_guard",
    "failure_clusters",
    "fisher_imbalance",
    "flips",
    "holm",
    "is_significant",
    "jeffreys",
    "jeffreys_rate",
    "minimal_drop",
    "more_rounds",
    "new_cases",
    "newcombe",
    "noise_factor",
    "normal_rate",
    "normal_rule",
    "obf_boundaries",
    "obf_spending",
    "paired_t",
    "paired_trials_verdict",
    "paired_verdict",
    "pass_at",
    "pass_hat",
    "planned_drop",
    "planned_trials",
    "quantile",
    "quantile_change",
    "rate_new_cases",
    "rate_these_cases",
    "sign_flip_p",
    "trials_to_show",
    "wilson",
    "win_loss_e_value",
    "within_variance",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
