"""A row as text and back."""

from __future__ import annotations

import json

import pytest

from pytest_crashlab.records.outcome import Kind
from pytest_crashlab.records.trial import Phase, TrialRow


def row(**given):
    return TrialRow(
        **{"case": "t.py::test_a", "trial": 1, "outcome": None, "kind": None, "start": 1.5} | given
    )


@pytest.mark.parametrize(
    "given",
    [
        {"duration": 0.0},
        {"duration": 1e-300, "start": 1.7976931348623157e308, "t": 3, "horizon": 20},
        {"duration": 2, "outcome": "passed", "kind": Kind.PASS, "phase": Phase.RUN, "infra_healthy": True},
        {"duration": 1.0, "target_completed": False, "message": 'a "quoted"\\ \n\t\x00 line'},
        {"duration": 1.0, "message": "naïve 🦆 \u2028 \ud800", "worker": "gw0"},
        {"duration": 1.0, "t": float("nan"), "horizon": float("inf")},
        {"duration": 1.0, "t": float("-inf"), "trial": 2**70},
    ],
)
def test_a_row_is_the_json_that_the_standard_library_writes(given):
    made = row(**given)
    known = {name: v for name, v in made._asdict().items() if v is not None}
    assert made.to_json() == json.dumps(known, separators=(",", ":"))
    assert made.to_json().isascii()


def test_a_row_comes_back_as_it_was():
    made = row(duration=0.1, outcome="late", kind=Kind.INSTRUMENT, phase=Phase.VERIFY, message="ü", attempt=3)
    assert TrialRow.from_mapping(json.loads(made.to_json())) == made


def test_what_is_no_json_is_refused():
    with pytest.raises(TypeError):
        row(duration=0.1, t=object()).to_json()
