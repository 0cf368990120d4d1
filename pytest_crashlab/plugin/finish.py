"""The end of a session: what its run is sealed as, who concludes it, and whether it is promoted."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_crashlab.conclude import apart
from pytest_crashlab.conclude.brief import Brief, Display
from pytest_crashlab.errors import CrashlabError, StoreError
from pytest_crashlab.plugin.stopped import BUDGET, NOT_ASKED
from pytest_crashlab.records.comparison import Policy, Word
from pytest_crashlab.records.run import RunStatus

if TYPE_CHECKING:
    from pytest_crashlab.conclude.brief import Conclusion
    from pytest_crashlab.plugin.session import RunSession

_PLAIN_ENDS = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


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
    budget = session.budget
    spent = budget is not None and (budget.reason is not None or budget.cases)
    stopped = pytest_session.shouldstop or pytest_session.shouldfail or spent
    return RunStatus.CANCELLED if stopped or exit_status not in _PLAIN_ENDS else RunStatus.FAILED


def conclude(session: RunSession, status: RunStatus) -> Conclusion:
    """Seal and judge the run of a session. Raises ``StoreError`` where the store cannot be used."""
    store, writer = session.store, session.writer
    if store is None or writer is None:
        raise StoreError("nothing was planned, so there is no run to judge")
    if session.settings.watch_state:
        writer.update(module_state=session.module_state.to_mapping())
    if session.stopped or session.remaining is not None:
        before = store.manifest(session.run_id).warnings
        kept = [w for w in before if NOT_ASKED not in w and not w.startswith(BUDGET)]
        writer.update(warnings=[*kept, *session.stopped.values()])
    brief = _brief(session, status)
    conclusion = None
    if session.baseline is None and apart.is_lighter():
        with writer.handed_over() as lock:
            conclusion = apart.conclude_apart(brief, lock)
    if conclusion is None:
        from pytest_crashlab.conclude.conclude import conclude as conclude_here

        writer.seal(status)
        conclusion = conclude_here(store, brief, session.baseline)
    hook = session.config.hook
    hook.pytest_crashlab_run_finished(run_id=session.run_id, status=status.value)
    if conclusion.gate is not None:
        hook.pytest_crashlab_gate_decided(
            run_id=session.run_id,
            exit_code=conclusion.gate.exit_code,
            word=None if conclusion.word is None else conclusion.word.value,
        )
    return conclusion


def _brief(session: RunSession, status: RunStatus) -> Brief:
    settings, config = session.settings, session.config
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    writer = None if terminal is None else config.get_terminal_writer()
    in_place = settings.store == config.rootpath / ".crashlab"
    return Brief(
        store=settings.store,
        run_id=session.run_id,
        status=status,
        method=settings.method,
        margin=settings.margin,
        policy=Policy(settings.policy),
        min_pass_rate=settings.min_pass_rate,
        reason=None if session.resolution is None else session.resolution.reason,
        reference=session.reference,
        bootstrapping=session.bootstrapping,
        becomes_baseline=session.bootstrapping and settings.save_baseline == settings.baseline,
        reports=settings.reports,
        summary_page=_summary_page(),
        annotate=os.environ.get("GITHUB_ACTIONS") == "true",
        store_option="" if in_place else f" --store {shlex.quote(str(settings.store))}",
        baseline_option=settings.baseline,
        saving=settings.save_baseline is not None,
        display=Display(
            width=80 if writer is None else writer.fullwidth,
            color=writer is not None and writer.hasmarkup,
            encoding=getattr(sys.stdout, "encoding", None) or "utf-8",
            quiet=terminal is not None and config.option.verbose < 0,
        ),
    )


def _summary_page() -> Path | None:
    """The page that GitHub shows of a step, where it runs this session."""
    page = os.environ.get("GITHUB_STEP_SUMMARY")
    return Path(page) if page and os.environ.get("GITHUB_ACTIONS") == "true" else None


def why(session: RunSession, error: Exception) -> str:
    """Why the store cannot be used, in a sentence."""
    if session.store is not None and session.writer is not None and not session.writer.path.exists():
        return f"{session.writer.path} was removed while the run was written; its trials are lost."
    if isinstance(error, OSError):
        where = "" if error.filename is None else f" at {error.filename}"
        return f"the run could not be sealed or judged ({error.strerror or error}{where})."
    return str(error)


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
    word = conclusion.word
    first = all(code == "no_baseline" for code in conclusion.reasons)
    if exit_status != 0:
        said = f"Not saved as baseline {name}: the session ends with exit code {exit_status}"
        if exit_status == 1 and conclusion.gate is None:
            said += f"; 'crashlab baseline promote {name} {session.run_id}' saves it all the same"
        return f"{said}.", False
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
