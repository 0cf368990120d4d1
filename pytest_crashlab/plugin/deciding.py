"""What a trial came to when nothing ended its test: its checks, the label that was named, its limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_crashlab.plugin.measured import progress
from pytest_crashlab.records.outcome import BUILTIN_OUTCOMES, FAILED, Kind, Outcome
from pytest_crashlab.records.trial import Phase

if TYPE_CHECKING:
    from pytest_crashlab.plugin.author import Named, Trial
    from pytest_crashlab.plugin.running import Target
    from pytest_crashlab.records.check import CheckRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """An outcome with the place that assigned it (``file:line``)."""

    outcome: Outcome
    site: str | None
    phase: Phase
    message: str | None = None
    failure_class: str | None = None


def assigned(trial: Trial) -> Assigned:
    """What ``trial`` came to when no exception ended it."""
    failed = _failed(trial)
    wrong = None if trial.target is None else _wrong_progress(trial.target)
    if wrong is not None:
        return misdeclared(trial, None, wrong)
    if trial.named is not None:
        return _named(trial, trial.named, failed)
    if trial.target is not None and trial.target.timed_out:
        late = replace(trial.vocabulary[FAILED.label], completed=False)
        return _as(trial, late, None, _out_of_time(trial.target))
    if failed:
        outcome = trial.vocabulary[FAILED.label]
        return _as(trial, outcome, failed[0].site, failed_checks(trial), failure_class=_class_of(failed))
    return _not_verified(trial, None) or _as(trial, trial.vocabulary.default_pass, None)


def _named(trial: Trial, named: Named, failed: list[CheckRow]) -> Assigned:
    if named.label not in trial.vocabulary:
        return misdeclared(trial, named.site, f"outcome {named.label!r} is not in the test's vocabulary")
    outcome = trial.vocabulary[named.label]
    if outcome.kind is Kind.EXCLUDED:
        return misdeclared(
            trial, named.site, f"outcome {outcome.label!r} is pytest's to give: call pytest.skip() or xfail()"
        )
    if outcome.kind is Kind.PASS:
        against = _against_a_pass(trial, failed)
        if against is not None:
            return misdeclared(trial, named.site, f"outcome {outcome.label!r} {against}")
        unverified = _not_verified(trial, named.site)
        if unverified is not None:
            return unverified
    failure_class = named.failure_class
    if failure_class is None and outcome.kind is Kind.FAIL:
        failure_class = _class_of(failed)
    phase = Phase.RUN if named.phase is Phase.RUN else None
    return _as(trial, outcome, named.site, failed_checks(trial), failure_class=failure_class, phase=phase)


def misdeclared(trial: Trial, site: str | None, message: str) -> Assigned:
    """The outcome of a test that contradicts itself."""
    return _as(trial, BUILTIN_OUTCOMES["misdeclared"], site, message)


def before_an_assertion(trial: Trial, message: str) -> Assigned | None:
    """What an author named before an assertion failed: a pass contradicts it, another label stands."""
    named = trial.named
    if named is None:
        return None
    if named.label in trial.vocabulary and trial.vocabulary[named.label].kind is Kind.PASS:
        return misdeclared(trial, named.site, "a pass label beside a failed assertion")
    return replace(assigned(trial), message=message)


def failed_checks(trial: Trial) -> str | None:
    """Every required check that does not hold, with why; None where there is none."""
    return "; ".join(f"check {c.name!r}: {c.why or 'does not hold'}" for c in _failed(trial)) or None


def _failed(trial: Trial) -> list[CheckRow]:
    return [c for c in trial.results.values() if c.required and c.ok is False]


def _class_of(failed: list[CheckRow]) -> str | None:
    return next((c.failure_class for c in failed if c.failure_class is not None), None)


def _against_a_pass(trial: Trial, failed: list[CheckRow]) -> str | None:
    """What contradicts a pass label, as the end of a sentence."""
    if trial.target is not None and trial.target.timed_out:
        return f"although {_out_of_time(trial.target)}"
    if failed:
        return f"beside the failed check {', '.join(repr(c.name) for c in failed)}"
    return None


def _not_verified(trial: Trial, site: str | None) -> Assigned | None:
    """The outcome of a trial in which a required check told nothing; None where all did."""
    declared = [
        name
        for name, check in trial.declared.items()
        if check.required and (name not in trial.results or trial.results[name].ok is None)
    ]
    others = [
        c.name for c in trial.results.values() if c.required and c.ok is None and c.name not in trial.declared
    ]
    if not declared and not others:
        return None
    names = ", ".join(repr(name) for name in (*declared, *others))
    return _as(trial, BUILTIN_OUTCOMES["not_verified"], site, f"required and not evaluated: {names}")


def _as(
    trial: Trial,
    outcome: Outcome,
    site: str | None,
    message: str | None = None,
    *,
    failure_class: str | None = None,
    phase: Phase | None = None,
) -> Assigned:
    if phase is None:
        phase = Phase.VERIFY if trial.phase is Phase.PREPARE else trial.phase
    return Assigned(outcome=outcome, site=site, phase=phase, message=message, failure_class=failure_class)


def _out_of_time(target: Target) -> str:
    return f"the target used up its {target.timeout or 0:g} s"


def _wrong_progress(target: Target) -> str | None:
    """Why ``target.t`` cannot be what it says, or None."""
    if target.t is None:
        return None
    t = progress(target.t)  # authors set anything
    if t is None:
        return f"target.t is {target.t!r}; set it to a number of {target.unit or 'steps'} from 0 on"
    if target.horizon is not None and t > target.horizon:
        return f"target.t is {t:g}, beyond the declared horizon of {target.horizon:g} {target.unit}"
    return None
