"""The end of a session: seal the run, compare it, judge it, and keep or promote what came of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import pytest

from pytest_crashlab.errors import CrashlabError, StoreError
from pytest_crashlab.records.comparison import Policy, Word
from pytest_crashlab.records.run import RunStatus

if TYPE_CHECKING:
    from pytest_crashlab.compare.rates import RunNumbers
    from pytest_crashlab.plugin.session import RunSession
    from pytest_crashlab.records.comparison import Comparison, Gate, ThresholdResult
    from pytest_crashlab.store.runs import Store, StoredRun

# The exit code of a session whose gate can give no verdict.
NO_VERDICT = 10

_PLAIN_ENDS = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What a session came to.

    ``gate`` is None where neither a baseline nor a threshold was asked for; ``promotion`` says in one
    sentence what became of ``--save-baseline``.
    """

    run: StoredRun
    numbers: RunNumbers
    comparison: Comparison | None
    thresholds: tuple[ThresholdResult, ...]
    gate: Gate | None
    promotion: str | None = None


def run_status(session: RunSession, pytest_session: pytest.Session, exit_status: int) -> RunStatus:
    """Completed only if every planned trial reported."""
    if session.store_error is not None or exit_status == pytest.ExitCode.INTERNAL_ERROR:
        return RunStatus.FAILED
    recorder, selection = session.recorder, session.selection
    if recorder is not None and recorder.labels["interrupted"]:
        return RunStatus.CANCELLED  # reported, and stopped all the same
    planned = {} if selection is None else {case.id: case.planned for case in selection.cases}
    if recorder is not None and recorder.missing(planned) == 0:
        return RunStatus.COMPLETED
    stopped = pytest_session.shouldstop or pytest_session.shouldfail
    return RunStatus.CANCELLED if stopped or exit_status not in _PLAIN_ENDS else RunStatus.FAILED


def conclude(session: RunSession, status: RunStatus) -> Conclusion:
    """Seal and judge the run of a session. Raises ``StoreError`` where the store cannot be used."""
    from pytest_crashlab.compare.independence import with_warning
    from pytest_crashlab.compare.rates import run_numbers, summary_fields
    from pytest_crashlab.compare.thresholds import check_thresholds

    store, writer = session.store, session.writer
    if store is None or writer is None:
        raise StoreError("nothing was planned, so there is no run to judge")
    writer.seal(status)
    session.config.hook.pytest_crashlab_run_finished(run_id=session.run_id, status=status.value)
    run = store.load(session.run_id)
    numbers = run_numbers(run)
    manifest = store.set_fields(
        session.run_id,
        summary=summary_fields(numbers),
        warnings=with_warning(run.manifest.warnings, run),
    )
    run = replace(run, manifest=manifest)
    thresholds = check_thresholds(run, min_pass_rate=session.settings.min_pass_rate)
    comparison = _compare(session, run)
    gate = _gate(session, comparison, thresholds)
    if gate is not None and gate.exit_code == 0 and gate.policy is not Policy.REPORT:
        unfinished = unfinished_sentence(run)
        if unfinished is not None:
            gate = replace(gate, exit_code=NO_VERDICT, because=(unfinished,))
    if gate is not None:
        word = None if comparison is None else comparison.word.value
        _keep(session, store, comparison, gate)
        session.config.hook.pytest_crashlab_gate_decided(
            run_id=session.run_id, exit_code=gate.exit_code, word=word
        )
    return Conclusion(run=run, numbers=numbers, comparison=comparison, thresholds=thresholds, gate=gate)


def why(session: RunSession, error: Exception) -> str:
    """Why the store cannot be used, in a sentence."""
    if session.store is not None and session.writer is not None and not session.writer.path.exists():
        return f"{session.writer.path} was removed while the run was written; its trials are lost."
    if isinstance(error, OSError):
        where = "" if error.filename is None else f" at {error.filename}"
        return f"the run could not be sealed or judged ({error.strerror or error}{where})."
    return str(error)


def unfinished_sentence(run: StoredRun) -> str | None:
    """Why a run that did not complete is no pass, whatever its trials say; None for one that did."""
    manifest = run.manifest
    if manifest.status is RunStatus.COMPLETED:
        return None
    counts = manifest.counts or {}
    missing, planned = counts.get("missing", 0), counts.get("planned", 0)
    return f"The run is {manifest.status.value}: {missing} of {planned} planned trials never reported."


def _compare(session: RunSession, run: StoredRun) -> Comparison | None:
    from pytest_crashlab.compare.compare import CompareOptions, compare_runs, no_baseline

    if session.resolution is None:
        return None
    options = CompareOptions(method=session.settings.method, margin=session.settings.margin)
    if session.baseline is None:
        return no_baseline(run, session.resolution.reason, options) if session.bootstrapping else None
    return compare_runs(session.baseline, run, options)


def _gate(
    session: RunSession, comparison: Comparison | None, thresholds: tuple[ThresholdResult, ...]
) -> Gate | None:
    from pytest_crashlab.compare.policies import decide

    if comparison is None and not thresholds:
        return None
    return decide(Policy(session.settings.policy), comparison, thresholds, bootstrap=is_bootstrap(session))


def is_bootstrap(session: RunSession) -> bool:
    """Whether this run is to become the very baseline that is not there yet."""
    settings = session.settings
    return session.bootstrapping and settings.save_baseline == settings.baseline


def _keep(session: RunSession, store: Store, comparison: Comparison | None, gate: Gate) -> None:
    kept = {
        "word": None if comparison is None else comparison.word.value,
        "exit_code": gate.exit_code,
        "policy": gate.policy.value,
        "because": list(gate.because),
    }
    store.set_fields(session.run_id, gate=kept)
    if comparison is not None and session.baseline is not None:
        store.save_comparison(session.run_id, comparison.baseline_id, asdict(comparison))


def promote_if_asked(
    session: RunSession, conclusion: Conclusion, exit_status: int
) -> tuple[str | None, bool]:
    """``(sentence, refused)`` about ``--save-baseline``; ``(None, False)`` when it was not given.

    Only a session that ends in 0 promotes, and never a Regressed one, nor one without a verdict
    unless that is because there was no baseline yet: that is what was asked for, and no error.
    ``refused`` says that a run which could have been promoted was not.
    """
    name = session.settings.save_baseline
    if name is None or session.store is None:
        return None, False
    comparison = conclusion.comparison
    word = None if comparison is None else comparison.word
    first = comparison is not None and all(r.code == "no_baseline" for r in comparison.reasons)
    if exit_status != 0:
        return f"Not saved as baseline {name}: the session ends with exit code {exit_status}.", False
    if word is Word.REGRESSED or (word is Word.NO_VERDICT and not first):
        return f"Not saved as baseline {name}: the verdict is {word.value}.", False
    from pytest_crashlab.store.promotion import promote

    try:
        promote(
            session.store,
            name,
            session.run_id,
            cwd=session.config.rootpath,
            expected=session.replaces,
            from_branch=session.settings.from_branch,
        )
    except CrashlabError as error:
        return str(error), True
    return f"Saved as baseline {name}.", False
