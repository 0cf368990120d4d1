"""What an exception that ended a test says: about the target, or about the instrument."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_crashlab.errors import InstrumentFailure
from pytest_crashlab.records.outcome import CRASHED, FAILED, Kind, Vocabulary
from pytest_crashlab.records.trial import Phase

if TYPE_CHECKING:
    from pytest_crashlab.plugin.author import Trial
    from pytest_crashlab.plugin.classify import Classifier

MISDECLARED = "misdeclared"


def phase_of(trial: Trial | None, error: BaseException, item: pytest.Item) -> Phase:
    """The phase in which the body of ``item`` raised ``error``.

    A plain test's body is run and verification in one and counts as run.
    """
    if trial is None:
        return Phase.RUN
    if trial.run_error is error:
        return Phase.RUN
    if trial.target is not None or trial.has_judged:
        return Phase.VERIFY
    return Phase.PREPARE if _will_call_run(item) else Phase.RUN


def label_of(
    error: BaseException, phase: Phase, trial: Trial | None, vocabulary: Vocabulary, classifier: Classifier
) -> str:
    """The outcome label of a test that ``error`` ended in ``phase``.

    Only the target's own phase can crash or fail it; what goes wrong around it is the instrument's,
    except that a failed assertion speaks of the target wherever the test verifies.
    """
    if isinstance(error, KeyboardInterrupt | pytest.exit.Exception):
        return "interrupted"
    if isinstance(error, InstrumentFailure):
        known = error.label in vocabulary and vocabulary[error.label].kind is Kind.INSTRUMENT
        return error.label if known else MISDECLARED
    named = classifier.label(error, phase.value)
    instrument = named is not None and named in vocabulary and vocabulary[named].kind is Kind.INSTRUMENT
    asserted = isinstance(error, AssertionError | pytest.fail.Exception)
    if named == "wall_clock":  # pytest-timeout reports through pytest.fail
        return named
    if phase is Phase.PREPARE:
        return named if named is not None and instrument else "setup_error"
    if phase is Phase.VERIFY:
        if asserted:
            return FAILED.label
        return named if named is not None and instrument else "verifier_error"
    in_target = trial is not None and trial.target is not None
    if asserted and not in_target:
        return FAILED.label
    return named or CRASHED.label


def _will_call_run(item: pytest.Item) -> bool:
    """Whether the body names ``.run``: then what precedes it prepares, and is not the target."""
    code = getattr(getattr(item, "function", None), "__code__", None)
    return code is not None and "run" in code.co_names
