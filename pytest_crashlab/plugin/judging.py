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
) -> tuple[str, str | None]:
    """The outcome label of a test that ``error`` ended in ``phase``, and why where the label needs it.

    Only the target's own phase can crash or fail it; what goes wrong around it is the instrument's,
    except that a failed assertion speaks of the target wherever the test verifies.
    """
    if isinstance(error, KeyboardInterrupt | pytest.exit.Exception):
        return "interrupted", None
    if isinstance(error, InstrumentFailure):
        known = error.label in vocabulary and vocabulary[error.label].kind is Kind.INSTRUMENT
        return error.label if known else MISDECLARED, None
    try:
        named = classifier.label(error, phase.value)
    except Exception as broken:  # noqa: BLE001  a project's own code
        return MISDECLARED, f"pytest_crashlab_classify_exception raised {type(broken).__name__}: {broken}"
    wrong = _is_no_end(named, vocabulary)
    if wrong is not None:
        return MISDECLARED, f"{wrong}, and {type(error).__name__} ended this trial"
    return _label_in(phase, named, error, trial, vocabulary), None


def _is_no_end(named: object, vocabulary: Vocabulary) -> str | None:
    """Why a classification cannot be that of an exception that ended a trial, or None."""
    if named is None or (isinstance(named, str) and named not in vocabulary):
        return None  # what is in no vocabulary is told with the label's own place
    if not isinstance(named, str):
        return f"pytest_crashlab_classify_exception named {named!r}, which is no label"
    if vocabulary[named].kind in (Kind.PASS, Kind.EXCLUDED):
        return f"{named!r} is the label of trials that passed or did not count"
    return None


def _label_in(
    phase: Phase, named: str | None, error: BaseException, trial: Trial | None, vocabulary: Vocabulary
) -> str:
    """The label that ``named``, or nothing, comes to in a phase."""
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
