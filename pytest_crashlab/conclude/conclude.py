"""From a sealed run to its conclusion: kept in the store, and drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_crashlab.compare.calibration import aa_factor
from pytest_crashlab.compare.compare import CompareOptions, compare_runs, no_baseline
from pytest_crashlab.compare.history import history
from pytest_crashlab.compare.independence import with_warning
from pytest_crashlab.compare.policies import decide
from pytest_crashlab.compare.rates import run_numbers, summary_fields
from pytest_crashlab.compare.thresholds import check_thresholds
from pytest_crashlab.compare.vocabulary import with_vocabulary_warnings
from pytest_crashlab.conclude.brief import NO_VERDICT, Conclusion
from pytest_crashlab.records.comparison import Policy, Word
from pytest_crashlab.records.outcome import Kind
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.report.build import session_summary
from pytest_crashlab.report.commands import after_comparison
from pytest_crashlab.report.terminal import render_text
from pytest_crashlab.store.runs import fields_of

if TYPE_CHECKING:
    from pytest_crashlab.conclude.brief import Brief
    from pytest_crashlab.records.comparison import Comparison, Gate, ThresholdResult
    from pytest_crashlab.report.views import SessionView
    from pytest_crashlab.store.runs import Store, StoredRun


def conclude(store: Store, brief: Brief, baseline: StoredRun | None) -> Conclusion:
    """Judge the sealed run of ``brief`` beside ``baseline``, keep what came of it, and draw it.

    Raises :class:`CrashlabError` where the store cannot be used.
    """
    run = store.load(brief.run_id)
    numbers = run_numbers(run)
    manifest = store.set_fields(
        brief.run_id,
        summary=summary_fields(numbers),
        warnings=with_vocabulary_warnings(with_warning(run.manifest.warnings, run), run),
    )
    run = replace(run, manifest=manifest)
    thresholds = check_thresholds(run, min_pass_rate=brief.min_pass_rate)
    comparison = _compare(store, brief, run, baseline)
    gate = _gate(brief, run, comparison, thresholds)
    if gate is not None:
        _keep(store, brief, comparison, gate, compared=baseline is not None)
    view = session_summary(
        run,
        numbers,
        comparison,
        thresholds,
        gate,
        baseline_line=brief.reason,
        next_commands=_next_commands(brief, run, comparison),
    )
    return Conclusion(
        gate=gate,
        word=None if comparison is None else comparison.word,
        reasons=() if comparison is None else tuple(reason.code for reason in comparison.reasons),
        unfinished=_unfinished(run),
        text=render_text(
            view,
            width=brief.display.width,
            color=brief.display.color,
            encoding=brief.display.encoding,
            quiet=brief.display.quiet,
        ),
        annotations=_annotations(brief, run, view),
        problems=_write(brief, run, view),
    )


def _compare(store: Store, brief: Brief, run: StoredRun, baseline: StoredRun | None) -> Comparison | None:
    if brief.reason is None:
        return None
    options = CompareOptions(
        method=brief.method,
        margin=brief.margin,
        aa_factor=None if baseline is None else aa_factor(store, run.manifest),
        history=None if baseline is None else history(store, run.manifest, baseline.manifest.id),
    )
    if baseline is None:
        return no_baseline(run, brief.reason, options) if brief.bootstrapping else None
    return compare_runs(baseline, run, options)


def _gate(
    brief: Brief, run: StoredRun, comparison: Comparison | None, thresholds: tuple[ThresholdResult, ...]
) -> Gate | None:
    if comparison is None and not thresholds:
        return None
    gate = decide(brief.policy, comparison, thresholds, bootstrap=brief.becomes_baseline)
    unfinished = _unfinished(run)
    if gate.exit_code == 0 and gate.policy is not Policy.REPORT and unfinished is not None:
        return replace(gate, exit_code=NO_VERDICT, because=(unfinished,))
    return gate


def _unfinished(run: StoredRun) -> str | None:
    """Why a run that did not complete is no pass, whatever its trials say; None for one that did."""
    manifest = run.manifest
    if manifest.status is RunStatus.COMPLETED:
        return None
    counts = manifest.counts or {}
    missing, planned = counts.get("missing", 0), counts.get("planned", 0)
    return f"The run is {manifest.status.value}: {missing} of {planned} planned trials never reported."


def _keep(store: Store, brief: Brief, comparison: Comparison | None, gate: Gate, *, compared: bool) -> None:
    kept = {
        "word": None if comparison is None else comparison.word.value,
        "exit_code": gate.exit_code,
        "policy": gate.policy.value,
        "because": list(gate.because),
    }
    store.set_fields(brief.run_id, gate=kept)
    if comparison is not None and compared:
        store.save_comparison(brief.run_id, comparison.baseline_id, fields_of(comparison))


def _next_commands(brief: Brief, run: StoredRun, comparison: Comparison | None) -> list[str]:
    """What to type next, most useful first: how an interrupted run goes on, why the instrument failed."""
    commands = after_comparison(comparison, brief.reference, store=brief.store_option)
    if commands and comparison is not None and comparison.word is Word.NO_VERDICT:
        trials = run.trials
        labels = trials.filter(trials["kind"] == Kind.INSTRUMENT.value)["outcome"].unique().sort().to_list()
        if labels:
            chosen = ",".join(labels)
            commands.insert(0, f"crashlab{brief.store_option} inspect {brief.run_id} --outcome {chosen}")
    if run.manifest.status is RunStatus.CANCELLED and "--crashlab-resume" not in str(run.manifest.warnings):
        store = brief.store_option.replace("--store", "--crashlab-store", 1)
        commands.insert(0, f"pytest{store} --crashlab-resume={brief.run_id}")
    if commands:
        return commands
    if brief.bootstrapping and not brief.saving:
        return [f"crashlab{brief.store_option} baseline promote {brief.baseline_option} {brief.run_id}"]
    return [f"crashlab{brief.store_option} view {brief.run_id}"]


def _write(brief: Brief, run: StoredRun, view: SessionView) -> tuple[str, ...]:
    """Write the reports that were asked for; return what could not be written, in sentences."""
    if not brief.reports and brief.summary_page is None:
        return ()
    from pytest_crashlab.report.written import append_summary, write_reports

    problems = write_reports(brief.reports, run, view)
    problem = None if brief.summary_page is None else append_summary(brief.summary_page, view)
    return (*problems, *([problem] if problem else ()))


def _annotations(brief: Brief, run: StoredRun, view: SessionView) -> tuple[str, ...]:
    if not brief.annotate:
        return ()
    from pytest_crashlab.report.annotations import annotations_of, github_lines
    from pytest_crashlab.report.written import places

    return github_lines(annotations_of(view, places(run)))
