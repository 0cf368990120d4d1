"""From a run, its numbers and its comparison to the view that renderers draw."""

from __future__ import annotations

from dataclasses import fields
from math import fsum
from typing import TYPE_CHECKING

from pytest_crashlab.compare.history import FALSE_ALARM
from pytest_crashlab.compare.policies import headline
from pytest_crashlab.report import views
from pytest_crashlab.report.checks import CheckLineView
from pytest_crashlab.report.facts import run_facts
from pytest_crashlab.report.messages import first_messages
from pytest_crashlab.store.amendments import amendment_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crashlab.compare.counts import CaseCount
    from pytest_crashlab.compare.rates import RunNumbers
    from pytest_crashlab.compare.usage import JudgeUse, Usage
    from pytest_crashlab.records.comparison import Comparison, Gate, ThresholdResult
    from pytest_crashlab.stats import PassHat
    from pytest_crashlab.store import Manifest, StoredRun

LEFT_OUT_WORDS = {
    "new_in_b": "new in this run",
    "gone_in_b": "no longer there",
    "unsampled": "not selected or never begun",
    "content_changed": "asking something else now",
    "pass_rule_changed": "judged by another rule now",
    "skipped_a": "skipped in the baseline",
    "skipped_b": "skipped in this run",
    "undecided_a": "undecided in the baseline",
    "undecided_b": "undecided in this run",
    "no_outcome_a": "without an outcome in the baseline",
    "no_outcome_b": "without an outcome in this run",
    "no_trial_pair": "without a trial that both runs decided",
}

MEANINGS = {
    0: "The gate passes",
    1: "The gate fails",
    10: "The gate gives no verdict",
}


def session_summary(
    run: StoredRun,
    numbers: RunNumbers,
    comparison: Comparison | None = None,
    thresholds: Sequence[ThresholdResult] = (),
    gate: Gate | None = None,
    *,
    baseline_line: str | None = None,
    next_commands: Sequence[str] = (),
) -> views.SessionView:
    """Everything there is to show of ``run`` after a session.

    ``comparison`` None: no baseline was asked for; ``gate`` None: nothing is gated;
    ``baseline_line`` which baseline was chosen and why; ``next_commands`` what to type next.
    """
    # Here, since a list of runs is drawn without numpy.
    from pytest_crashlab.compare.anomalies import anomalies
    from pytest_crashlab.compare.checks import check_summaries
    from pytest_crashlab.compare.shared import shared
    from pytest_crashlab.compare.usage import judge_use, run_usage
    from pytest_crashlab.compare.vocabulary import vocabulary_findings

    counts = numbers.counts
    scanned = comparison is not None and bool(comparison.baseline_id)
    gated = _gated(comparison, thresholds)
    return views.SessionView(
        run=run_view(run.manifest, facts=run_facts(run), shared=shared(run)),
        outcomes=tuple(
            views.OutcomeView(
                label=o.label,
                kind=None if o.kind is None else o.kind.value,
                count=o.count,
                share=o.share,
                sites=tuple(views.SiteView(site=s.site, count=s.count) for s in o.sites),
            )
            for o in numbers.outcomes
        ),
        pass_rate=_pass_rate(numbers),
        rates=tuple(
            views.RateView(
                name=r.name,
                of=r.of,
                numerator=r.numerator,
                denominator=r.denominator,
                cases=r.cases,
                value=r.value,
                low=r.low,
                high=r.high,
            )
            for r in numbers.ratios
        ),
        repeats=views.RepeatsView(
            pass_hat=_points(numbers.pass_hat),
            pass_at=_points(numbers.pass_at),
            flips=numbers.flips.flip,
            flips_of=numbers.flips.eligible,
            disagreement=numbers.disagreement,
        ),
        usage=_usage(run_usage(run)),
        judges=_judges(judge_use(run)),
        checks=tuple(
            CheckLineView(**{field.name: getattr(found, field.name) for field in fields(CheckLineView)})
            for found in check_summaries(run, counts)
        ),
        anomalies=tuple(views.ReasonView(code=a.code, text=a.text) for a in anomalies(run, scanned=scanned)),
        silenced=tuple(
            views.ReasonView(code=f.key, text=f"{f.text} Silenced: {f.allowed}")
            for f in vocabulary_findings(run)
            if f.allowed is not None
        ),
        scheduled=counts.scheduled,
        decided=counts.decided,
        undecided=counts.undecided,
        missing=counts.missing,
        excluded=counts.excluded,
        never=numbers.never,
        skipped=numbers.skipped,
        cases=tuple(_case(c, gated=gated is None or c.case in gated) for c in counts),
        thresholds=tuple(
            views.ThresholdView(name=t.name, case=t.case, met=t.met, text=t.text) for t in thresholds
        ),
        verdict=None if comparison is None else verdict_view(comparison, run),
        gate=None if gate is None else gate_view(gate),
        baseline_line=baseline_line,
        next_commands=tuple(next_commands),
    )


def run_view(
    manifest: Manifest, *, facts: tuple[str, ...] = (), shared: tuple[str, ...] = ()
) -> views.RunView:
    """The head of a run's report."""
    return views.RunView(
        id=manifest.id,
        status=manifest.status.value,
        name=manifest.name,
        release=manifest.release,
        prompt=manifest.prompt,
        external_id=manifest.external_id,
        dataset=manifest.dataset,
        dataset_version=manifest.dataset_version,
        split=manifest.split,
        started=manifest.created,
        finished=manifest.finished,
        cases=manifest.planned_cases,
        total_cases=manifest.total_cases,
        k=manifest.k,
        trials=manifest.planned_trials,
        partial=manifest.partial,
        replayed=manifest.replayed,
        cached=manifest.cached,
        judged=_judged(manifest),
        because=tuple(str(text) for text in (manifest.gate or {}).get("because") or ()),
        warnings=tuple(manifest.warnings),
        amendments=amendment_lines(manifest),
        facts=facts,
        shared=shared,
    )


def _judged(manifest: Manifest) -> str | None:
    if manifest.gate is None:
        return None
    word, code = manifest.gate.get("word"), manifest.gate.get("exit_code")
    against = (manifest.baseline or {}).get("id")
    said = f"{word or 'by thresholds'} (exit code {code})"
    return f"{said} against {against}" if against else said


def verdict_view(comparison: Comparison, candidate: StoredRun | None = None) -> views.VerdictView:
    """The verdict card of a comparison; with ``candidate`` what the cases that got worse said."""
    got_worse = [c.case for c in comparison.cases if c.delta < 0]
    said = {} if candidate is None or not got_worse else first_messages(candidate, got_worse)
    these, new = comparison.these, comparison.new
    deltas = [c.delta for c in comparison.cases]
    worse, better = sum(d < 0 for d in deltas), sum(d > 0 for d in deltas)
    reasons = dict.fromkeys(c.reason for c in comparison.left_out)
    return views.VerdictView(
        baseline_id=comparison.baseline_id,
        word=comparison.word.value,
        headline=headline(comparison),
        sentence=comparison.sentence,
        method=comparison.method,
        margin=comparison.margin,
        delta=comparison.delta,
        a_rate=_mean([c.a_pass / c.a_n for c in comparison.cases]),
        b_rate=_mean([c.b_pass / c.b_n for c in comparison.cases]),
        p=comparison.p,
        low=None if these is None else these.low,
        high=None if these is None else these.high,
        of=None if these is None else these.of,
        these_method=None if these is None else these.method,
        new_low=None if new is None else new.low,
        new_high=None if new is None else new.high,
        new_shown=comparison.new_shown,
        new_method=None if new is None else new.method,
        half_width=comparison.half_width,
        possible_drop=comparison.possible_drop,
        mde=comparison.mde,
        compared=len(deltas),
        worse=worse,
        better=better,
        unchanged=len(deltas) - worse - better,
        cases=tuple(
            views.ComparedCaseView(
                case=c.case,
                a_pass=c.a_pass,
                a_n=c.a_n,
                b_pass=c.b_pass,
                b_n=c.b_n,
                delta=c.delta,
                p=c.p,
                proven=c.proven,
                message=said.get(c.case),
            )
            for c in comparison.cases
        ),
        left_out=tuple(
            views.LeftOutView(
                reason=reason,
                words=LEFT_OUT_WORDS[reason],
                cases=tuple(c.case for c in comparison.left_out if c.reason == reason),
            )
            for reason in reasons
        ),
        reasons=tuple(views.ReasonView(code=r.code, text=r.text) for r in comparison.reasons),
        notes=tuple(views.ReasonView(code=n.code, text=n.text) for n in comparison.notes),
        honesty=comparison.honesty,
        interleaved=comparison.interleaved,
        aa_factor=comparison.aa_factor,
        comparisons=(known := comparison.comparisons),
        expected_false_alarms=None if known is None else FALSE_ALARM * known,
        claim=None if comparison.claim is None else comparison.claim.kind.value,
        claim_text=None if comparison.claim is None else comparison.claim.text,
        trial_pairs=comparison.trial_pairs,
        deltas=tuple(
            views.DeltaView(**{field.name: getattr(delta, field.name) for field in fields(views.DeltaView)})
            for delta in comparison.deltas
        ),
        new_cases_never_passing=comparison.new_cases_never_passing,
    )


def _mean(shares: Sequence[float]) -> float | None:
    return fsum(shares) / len(shares) if shares else None


def gate_view(gate: Gate) -> views.GateView:
    """What an exit code means, and why it is that one."""
    return views.GateView(
        exit_code=gate.exit_code,
        policy=gate.policy.value,
        means=f"{MEANINGS[gate.exit_code]} (exit code {gate.exit_code}, policy {gate.policy.value}).",
        because=gate.because,
        failed_cases=gate.failed_cases,
    )


def _usage(usage: Sequence[Usage]) -> tuple[views.UsageView, ...]:
    return tuple(
        views.UsageView(**{field.name: getattr(used, field.name) for field in fields(views.UsageView)})
        for used in usage
    )


def _judges(use: JudgeUse | None) -> views.JudgesView | None:
    if use is None:
        return None
    return views.JudgesView(models=use.models, usage=_usage(use.usage), flips=use.split, flips_of=use.voted)


def _pass_rate(numbers: RunNumbers) -> views.PassRateView:
    these, new = numbers.pass_rate_these, numbers.pass_rate_new
    return views.PassRateView(
        value=these.value,
        these_low=these.low,
        these_high=these.high,
        new_low=new.low,
        new_high=new.high,
        normal_low=numbers.pass_rate_normal.low,
        normal_high=numbers.pass_rate_normal.high,
        cases=these.cases,
        trials=these.trials,
    )


def _points(curve: Sequence[PassHat]) -> tuple[views.PointView, ...]:
    return tuple(views.PointView(j=p.j, value=p.value, low=p.low, high=p.high, cases=p.cases) for p in curve)


def _gated(comparison: Comparison | None, thresholds: Sequence[ThresholdResult]) -> set[str] | None:
    """Cases that the gate judges; None for all of them."""
    reasons = () if comparison is None else comparison.reasons
    if any(t.case is None for t in thresholds) or any(r.code == "no_baseline" for r in reasons):
        return None
    gated = {t.case for t in thresholds if t.case is not None}
    if comparison is not None:
        gated |= {c.case for c in comparison.cases}
        gated |= {c.case for c in comparison.left_out if c.reason in _HAS_A_PAIR}
    return gated


# Left out because the candidate gave no decision: the baseline has what it would be compared with.
_HAS_A_PAIR = frozenset({"undecided_b", "no_outcome_b", "skipped_b", "unsampled"})


def _case(case: CaseCount, *, gated: bool) -> views.CaseView:
    if case.scheduled == 0:
        outcome = "Skipped"
    elif case.open:
        outcome = "Incomplete"
    elif case.passes == case.decided:
        outcome = "All pass"
    else:
        outcome = "Flip" if case.passes else "Never"
    return views.CaseView(
        case=case.case,
        outcome=outcome,
        gated=gated,
        passes=case.passes,
        decided=case.decided,
        undecided=case.undecided,
        missing=case.missing,
        excluded=case.excluded,
        planned=case.planned,
    )
