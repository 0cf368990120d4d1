"""Views as text for a terminal. Colour marks Regressed and Improved and carries nothing by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from pytest_crashlab.compare.sentences import count
from pytest_crashlab.report import card, checks, judges, short, usage
from pytest_crashlab.report.figures import percent, percent_interval, text
from pytest_crashlab.report.layout import columns, draw, indented, listed, unbroken

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from pytest_crashlab.report import views

MOST_SITES = 3


def render_text(
    view: views.SessionView,
    *,
    width: int,
    color: bool,
    encoding: str = "utf-8",
    quiet: bool = False,
    full: bool = False,
) -> str:
    """``view`` as lines of at most ``width`` columns, ended by a newline.

    Names that people copy (case ids, commands) are never broken, so only their lines may be longer.
    ``color`` allows terminal colours; an ``encoding`` other than UTF-8 gives ASCII; ``quiet`` at most
    three lines, as long as they need to be; ``full`` all rates and every case.
    """
    if quiet:
        return draw(
            [Text(line, no_wrap=True) for line in _quiet(view)], 10_000, color=color, encoding=encoding
        )
    return draw(_session(view, full=full), width, color=color, encoding=encoding)


def _session(view: views.SessionView, *, full: bool) -> Iterator[RenderableType]:
    yield from _head(view, full=full)
    yield ""
    yield from _outcomes(view)
    yield ""
    yield from _pass_rate(view)
    if full:
        yield ""
        yield from _rates(view)
        if view.checks:
            yield ""
            yield from checks.table(view.checks)
        yield ""
        yield from _repeats(view)
        yield ""
        yield from usage.table(view.usage)
        if view.judges is not None:
            yield ""
            yield from judges.table(view.judges)
        yield ""
        yield from _cases(view)
    else:
        yield ""
        yield from short.lines(view, _of_the_run(view))
        if view.judges is not None:
            yield ""
            yield from judges.short(view.judges)
    yield from _anomalies(view, full=full)
    if view.thresholds:
        yield ""
        yield from _thresholds(view.thresholds)
    if view.verdict is not None:
        yield ""
        yield from card.verdict(view.verdict)
    elif not view.run.judged:
        yield ""
        yield "Name a baseline to see whether this run is better or worse."
    if view.gate is not None:
        yield ""
        said = () if view.verdict is None else tuple(reason.text for reason in view.verdict.reasons)
        yield from card.gate(view.gate, said=said)
    if view.next_commands:
        yield ""
        yield "Next"
        for command in view.next_commands:
            yield unbroken(f"  {text(command)}")


def _head(view: views.SessionView, *, full: bool) -> Iterator[RenderableType]:
    run = view.run
    yield unbroken(f"crashlab run {text(run.id)} ({text(run.status)})")
    labels = [
        f"{name} {text(value)}"
        for name, value in (
            ("name", run.name),
            ("release", run.release),
            ("prompt", run.prompt),
            ("dataset", " ".join(filter(None, (run.dataset, run.dataset_version))) or None),
            ("split", run.split),
            ("external id", run.external_id),
        )
        if value is not None
    ]
    if labels:
        yield indented(", ".join(labels))
    cases = count(run.cases, "case")
    if run.cases != run.total_cases:
        cases = f"{run.cases} of {count(run.total_cases, 'case')} selected"
    yield indented(f"{cases}, {count(run.trials, 'planned trial')} (k = {run.k})")
    if view.baseline_line and not (view.verdict and view.verdict.sentence == view.baseline_line):
        yield indented(text(view.baseline_line))
    if run.judged and view.gate is None:
        yield indented(f"judged {text(run.judged)}")
        for because in run.because:
            yield indented(f"  {text(because)}")
    for fact in (*run.facts, *run.amendments):
        yield indented(text(fact))
    for said in run.shared if full else ():
        yield indented(text(said))
    for warning in run.warnings:
        yield indented(f"Warning: {text(warning)}")


def _outcomes(view: views.SessionView) -> Iterator[RenderableType]:
    yield "Outcomes"
    if not view.outcomes:
        yield indented("No trial was planned.")
        return
    rows = [("label", "kind", "trials", "share", "assigned at")]
    for line in view.outcomes:
        label = "(missing)" if line.label is None else text(line.label)
        rows.append((label, text(line.kind), str(line.count), percent(line.share), _sites(line.sites)))
    yield columns(rows, right=(2, 3), wrap=4)
    for silenced in view.silenced:
        yield indented(text(silenced.text))


def _sites(sites: Sequence[views.SiteView]) -> str:
    known = [s for s in sites if s.site is not None]
    if not known:
        return "-"
    if len(sites) == 1:
        return text(known[0].site)
    shown = [f"{text(s.site)} ({s.count})" for s in known[:MOST_SITES]]
    more = len(sites) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _pass_rate(view: views.SessionView) -> Iterator[RenderableType]:
    rate = view.pass_rate
    yield f"Pass rate {percent(rate.value)}"
    if rate.value is None:
        yield indented("No trial was decided, so there is no rate.")
    else:
        yield indented(
            f"these cases {percent_interval(rate.these_low, rate.these_high)}, "
            + (
                f"new cases {percent_interval(rate.new_low, rate.new_high)} (95 %)"
                if rate.cases > 1
                else "new cases - (95 %; one case says nothing about others)"
            )
        )
        yield indented(f"mean over {count(rate.cases, 'case')} of {count(rate.trials, 'decided trial')}")
    if view.verdict is not None and view.verdict.method == "normal":
        yield indented(f"simple rule {percent_interval(rate.normal_low, rate.normal_high)}")
    scheduled = count(view.scheduled, "scheduled trial")
    yield indented(
        f"{view.undecided} undecided and {view.missing} missing of {scheduled}"
        + "".join(f", {o.count} {text(o.label)}" for o in view.outcomes if o.kind == "excluded")
    )
    if view.never:
        yield _named(view.never, "without a single pass")
    if view.skipped:
        yield _named(view.skipped, "skipped")


def _named(cases: Sequence[str], words: str) -> RenderableType:
    """How many cases there are of a kind, and the first few."""
    return listed(f"{count(len(cases), 'case')} {words}:", [text(case) for case in cases], indent=2)


def _rates(view: views.SessionView) -> Iterator[RenderableType]:
    yield "Rates"
    yield columns(
        [("rate", "value", "95 %, new cases", "of"), *(_rate(rate) for rate in _of_the_run(view))],
        right=(1,),
        wrap=3,
    )


def _of_the_run(view: views.SessionView) -> list[views.RateView]:
    """Rates of the run; those of its checks have a table of their own."""
    of_checks = {f"check {check.name}" for check in view.checks}
    return [rate for rate in view.rates if rate.name not in of_checks]


def _rate(rate: views.RateView) -> tuple[str, str, str, str]:
    of = f"no {rate.of}"
    if rate.denominator:
        of = f"{rate.numerator} of {rate.denominator} {rate.of}, {count(rate.cases, 'case')}"
    return (text(rate.name), percent(rate.value), percent_interval(rate.low, rate.high), of)


def _repeats(view: views.SessionView) -> Iterator[RenderableType]:
    repeats = view.repeats
    yield "Repeats (cases with every trial decided)"
    at = {point.j: point for point in repeats.pass_at}
    rows = [("j", "pass^j", "95 %, new cases", "pass@j", "95 %, new cases", "cases")]
    rows += [
        (
            str(p.j),
            percent(p.value),
            percent_interval(p.low, p.high) if p.cases > 1 else "-",
            percent(at[p.j].value) if p.j in at else "-",
            percent_interval(at[p.j].low, at[p.j].high) if p.j in at and p.cases > 1 else "-",
            str(p.cases),
        )
        for p in repeats.pass_hat
    ]
    yield columns(rows, right=(0, 1, 3, 5))
    if repeats.flips is None:
        yield indented("Flip cases -: use at least 3 trials to see flips.")
    elif not repeats.flips_of:
        yield indented("Flip cases -: no case has all of its planned trials decided.")
    else:
        yield indented(f"Flip cases {repeats.flips} of {repeats.flips_of}")
    yield indented(f"Disagreement of two trials of a case {percent(repeats.disagreement)}")


def _anomalies(view: views.SessionView, *, full: bool) -> Iterator[RenderableType]:
    """What the verdict's reasons do not say already; that something cannot be told is for the whole view."""
    reasons = () if view.verdict is None else (*view.verdict.reasons, *view.verdict.notes)
    said = {reason.code.removesuffix("_b") for reason in reasons}
    if not full:
        said.add("clusters_untestable")
    news = [anomaly for anomaly in view.anomalies if anomaly.code not in said]
    if news:
        yield ""
        yield "Look at first"
    for anomaly in news:
        yield indented(text(anomaly.text))


def _cases(view: views.SessionView) -> Iterator[RenderableType]:
    yield "Cases (passed of decided trials)"
    widest = max((len(c.outcome) for c in view.cases), default=0)
    for case in view.cases:
        open_ = [
            f"{trials} {word}"
            for trials, word in (
                (case.undecided, "undecided"),
                (case.missing, "missing"),
                (case.excluded, "excluded"),
            )
            if trials
        ]
        beside = f" ({', '.join(open_)})" if open_ else ""
        yield unbroken(f"  {case.outcome:<{widest}}  {case.passes}/{case.decided}  {text(case.case)}{beside}")


def _thresholds(thresholds: Sequence[views.ThresholdView]) -> Iterator[RenderableType]:
    yield "Thresholds"
    met = [t for t in thresholds if t.met]
    for threshold in thresholds:
        if threshold.met is not True or threshold.case is None:
            word = {True: "met", False: "missed", None: "not settled"}[threshold.met]
            yield indented(f"{word}: {text(threshold.text)}")
    if of_cases := sum(t.case is not None for t in met):
        yield indented(f"{count(of_cases, 'threshold')} of single cases met")


def _quiet(view: views.SessionView) -> Iterator[str]:
    rate = view.pass_rate
    line = (
        f"crashlab: run {text(view.run.id)}: pass rate {percent(rate.value)} "
        f"(these cases {percent_interval(rate.these_low, rate.these_high)}), "
        f"{view.decided} of {view.scheduled} trials decided, "
        f"{view.undecided} undecided, {view.missing} missing"
    )
    yield line
    if view.verdict is not None:
        card_ = view.verdict
        rates = f" ({card.rates_line(card_).removesuffix('.')})" if card_.delta is not None else ""
        yield f"{card_.headline}{rates}: {text(card_.sentence)}"
    if view.gate is not None:
        said = () if view.verdict is None else (view.verdict.sentence,)
        because = next((text(b) for b in view.gate.because if b not in said), "")
        yield f"{view.gate.means} {because}".rstrip()
