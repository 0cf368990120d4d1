"""How well does the courier's round planner do? One case a round, each with its known shortest tour."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from solver import SCHEDULES, Round, Schedule, anneal, late_pickups, length

from pytest_crashlab import Check, Outcome, Vocabulary

MAX_STEPS = 4500
NEAR = 0.05
ROUNDS = json.loads(Path(__file__).with_name("rounds.json").read_text("utf-8"))

TOURS = Vocabulary(
    Outcome.passed("optimal", "The tour is as short as the shortest one."),
    Outcome.passed("near_optimal", "The tour is at most 5 % longer than the shortest one."),
    Outcome.failed("suboptimal", "The tour is more than 5 % longer than the shortest one."),
    Outcome.failed("infeasible", "The tour delivers a parcel before it is picked up."),
    Outcome.failed("horizon_exhausted", "The search used up its steps unsettled.", completed=False),
)


@pytest.fixture
def schedule() -> Schedule:
    """The cooling schedule under test: ``COOLING=fast pytest ...`` tries the hasty one."""
    return SCHEDULES[os.environ.get("COOLING", "slow")]


@pytest.mark.outcomes(TOURS)
@pytest.mark.checks(
    Check("settled", must="the search comes to rest within its steps"),
    Check("order", must="every parcel is picked up before it is delivered"),
    Check("short", must="the tour is at most 5 % longer than the shortest one"),
)
@pytest.mark.parametrize(
    ("stops", "shortest"), [pytest.param(row["stops"], row["optimum"], id=row["name"]) for row in ROUNDS]
)
def test_round(stops, shortest, schedule, trial):
    task = Round(stops=tuple((x, y) for x, y in stops))
    with trial.run(horizon=MAX_STEPS, unit="steps") as target:
        answer = anneal(task, schedule, seed=trial.seed, max_steps=MAX_STEPS)
        target.t, target.output = answer.steps, list(answer.tour)

    late = late_pickups(answer.tour)
    longer = length(task, answer.tour) / shortest - 1
    trial.check("settled", answer.settled, expected=True, observed=answer.settled)
    trial.check("order", late == 0, expected=0, observed=late, why=f"{late} delivered before pickup")
    trial.check(
        "short", longer <= NEAR, expected=NEAR, observed=longer, why=f"{longer:.1%} above the shortest"
    )
    if not answer.settled:
        trial.outcome("horizon_exhausted")
    elif late:
        trial.outcome("infeasible")
    elif longer > NEAR:
        trial.outcome("suboptimal")
    else:
        trial.outcome("optimal" if longer < 1e-9 else "near_optimal")
