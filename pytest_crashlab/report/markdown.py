"""Views as Markdown: a comment on a pull request, a summary page of a CI run.

What tests and models said is inert in it: no markup, no link, no mention of anybody.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_crashlab.compare.sentences import count
from pytest_crashlab.report.card import detectable, new_cases, rates_line
from pytest_crashlab.report.checks import mean_interval, measured_of
from pytest_crashlab.report.figures import (
    DASH,
    amount,
    change,
    change_interval,
    digits,
    percent,
    percent_interval,
    points_interval,
    signed_points,
    text,
)
from pytest_crashlab.report.judges import ASKED, flips_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_crashlab.report import views

# What finds the comment again, so that the next run writes over it instead of below it.
MARKER = "<!-- pytest-crashlab -->"
COMMENT_LIMIT = 60_000  # characters; GitHub takes 65,536
SUMMARY_LIMIT = 900 * 1024  # bytes; GitHub takes 1 MiB a step
MOST_CASES = 10
_MOST_NAMES = 20

_SIGNS = {"Regressed": "🔴", "Improved": "🟢", "No change": "⚪", "No verdict": "⚪"}
_CUT = "\n\n*The report is cut here; `crashlab view` shows all of it.*\n"
_ACTIVE = re.compile(r"[\\`*_\[\]<>#|~&@$]|(?<=:)/(?=/)|(?<=www)\.|^[-+=]|(?<=^\d)[.)]", re.IGNORECASE)


def session_markdown(view: views.SessionView, *, most_characters: int = COMMENT_LIMIT) -> str:
    """``view`` as GitHub-flavoured Markdown of at most ``most_characters``, whole lines."""
    return shorten("\n".join(_session(view)) + "\n", most_characters)


def shorten(document: str, most: int) -> str:
    """``document`` cut after its last line that fits into ``most`` characters with the word that it is cut.

    A code block or folded part that the cut would leave open is closed.
    """
    if len(document) <= most:
        return document
    reserve = len(_CUT) + len("\n```\n\n</details>\n")
    kept = document[: document.rfind("\n", 0, most - reserve)]
    if kept.count("\n```") % 2:
        kept += "\n```"
    if kept.count("<details>") > kept.count("</details>"):
        kept += "\n\n</details>"
    return kept + _CUT


def shorten_bytes(document: str, most: int) -> str:
    """The same for a limit in bytes of UTF-8."""
    size = len(document.encode())
    if size <= most:
        return document
    return shorten(document, int(len(document) * most / size * 0.95))


def inert(value: str | None) -> str:
    """Foreign text as plain words: what Markdown, HTML or a mention would act on is written as an entity."""
    return _ACTIVE.sub(lambda found: f"&#{ord(found.group())};", text(value))


def code(value: str | None) -> str:
    """Foreign text as code, whatever quotes it holds; for a cell of a table too."""
    if value is None:
        return DASH
    inside = text(value)
    if not inside.strip():
        return "` `"
    return f"<code>{inert(value)}</code>" if set(inside) & set("`|<>") else f"`{inside}`"


def _session(view: views.SessionView) -> Iterator[str]:
    yield MARKER
    yield f"### {_title(view)}"
    yield ""
    yield from _gate(view)
    if view.verdict is not None:
        yield from _verdict(view.verdict)
    yield from _numbers(view)
    yield from _outcomes(view.outcomes)
    if view.anomalies:
        yield "**Look at first**"
        yield ""
        yield from (f"- {inert(anomaly.text)}" for anomaly in view.anomalies)
        yield ""
    yield from _run(view)


def _title(view: views.SessionView) -> str:
    if view.verdict is not None:
        return f"{_SIGNS[view.verdict.word]} {inert(view.verdict.headline)}"
    if view.gate is not None:
        return {0: "The gate passes", 1: "The gate fails"}.get(view.gate.exit_code, "No verdict")
    return f"Pass rate {percent(view.pass_rate.value)}"


def _gate(view: views.SessionView) -> Iterator[str]:
    if view.gate is None:
        return
    yield f"**{inert(view.gate.means)}**"
    yield ""
    said = {view.verdict.sentence} if view.verdict is not None else set()
    said |= {reason.text for reason in view.verdict.reasons} if view.verdict is not None else set()
    because = [reason for reason in view.gate.because if reason not in said]
    yield from (f"- {inert(reason)}" for reason in because)
    if because:
        yield ""


def _verdict(card: views.VerdictView) -> Iterator[str]:
    if card.delta is not None:
        yield f"{inert(rates_line(card))} {inert(card.sentence)}"
    else:
        yield inert(card.sentence)
    yield ""
    reasons = [reason for reason in card.reasons if reason.text != card.sentence]
    if reasons:
        yield from (f"- Reason: {inert(reason.text)}" for reason in reasons)
        yield ""
    if card.baseline_id:
        left_out = sum(len(group.cases) for group in card.left_out)
        yield (
            f"{count(card.compared, 'case')} compared: {card.worse} lower, {card.better} higher, "
            f"{card.unchanged} equal. {left_out} left out."
        )
        yield ""
        yield from (
            f"- {len(group.cases)} {inert(group.words)}: {_names(group.cases)}" for group in card.left_out
        )
        if card.left_out:
            yield ""
    yield from _moved(card.moved)
    if card.notes:
        yield from (f"- Note: {inert(note.text)}" for note in card.notes)
        yield ""
    yield from _details(card)


def _names(cases: Sequence[str]) -> str:
    more = f" and {len(cases) - _MOST_NAMES} more" if len(cases) > _MOST_NAMES else ""
    return ", ".join(code(case) for case in cases[:_MOST_NAMES]) + more


def _moved(cases: Sequence[views.ComparedCaseView]) -> Iterator[str]:
    if not cases:
        return
    yield "| case | passed trials | points | |"
    yield "|---|---|---:|---|"
    words = {-1: "proven worse", 0: "not proven", 1: "proven better"}
    for case in cases[:MOST_CASES]:
        said = f"<br>{code(case.message)}" if case.message else ""
        yield (
            f"| {code(case.case)}{said} | {case.a_pass}/{case.a_n} → {case.b_pass}/{case.b_n} "
            f"| {signed_points(case.delta)} | {words[case.proven]} |"
        )
    yield ""
    if len(cases) > MOST_CASES:
        yield f"and {len(cases) - MOST_CASES} more that moved"
        yield ""


def _details(card: views.VerdictView) -> Iterator[str]:
    """How sure the verdict is, folded away."""
    if card.delta is None:
        return
    yield "<details><summary>How sure</summary>"
    yield ""
    if card.low is not None and card.high is not None and card.of == "these cases":
        yield f"- These cases: {points_interval(card.low, card.high)} (95 %)"
    yield f"- {inert(new_cases(card))}"
    yield f"- {inert(detectable(card))}"
    if card.margin is not None:
        yield f"- Margin: {card.margin * 100:.1f} points"
    yield f"- Interleaved: {'yes' if card.interleaved else 'no'}"
    yield (
        "- Noise between equal runs (A/A factor): "
        f"{'not calibrated' if card.aa_factor is None else f'{card.aa_factor:.2f}'}"
    )
    if card.claim_text is not None:
        yield f"- {inert(card.claim_text)}"
    if card.word != "No verdict":
        yield f"- {inert(card.honesty)}"
    yield ""
    deltas = [delta for delta in card.deltas if delta.a is not None or delta.b is not None]
    if deltas:
        yield "| | baseline | this run | change | 95 % |"
        yield "|---|---:|---:|---:|---|"
        for delta in deltas:
            name = " ".join(part for part in (delta.group, delta.name) if part != "measure")
            yield (
                f"| {inert(name)} | {amount(delta.a, delta.unit)} | {amount(delta.b, delta.unit)} "
                f"| {change(delta.delta, delta.unit)} "
                f"| {change_interval(delta.low, delta.high, delta.unit)} |"
            )
        yield ""
    yield "</details>"
    yield ""


def _numbers(view: views.SessionView) -> Iterator[str]:
    rate = view.pass_rate
    yield "| | value | 95 % | of |"
    yield "|---|---:|---|---|"
    yield (
        f"| Pass rate, these cases | {percent(rate.value)} "
        f"| {percent_interval(rate.these_low, rate.these_high)} "
        f"| {count(rate.cases, 'case')}, {count(rate.trials, 'decided trial')} |"
    )
    for line in view.rates:
        of = f"{line.numerator} of {line.denominator} {line.of}" if line.denominator else f"no {line.of}"
        yield (
            f"| {inert(line.name)} | {percent(line.value)} | {percent_interval(line.low, line.high)} "
            f"| {inert(of)} |"
        )
    for check in view.checks:
        if check.mean is not None:
            yield (
                f"| check {inert(check.name)}, mean | {digits(check.mean)} | {mean_interval(check)} "
                f"| {measured_of(check)} |"
            )
    for point in view.repeats.pass_hat[-1:]:
        yield (
            f"| pass^{point.j} | {percent(point.value)} | {percent_interval(point.low, point.high)} "
            f"| {count(point.cases, 'case')} with every trial decided |"
        )
    flips, of = view.repeats.flips, f"{count(view.repeats.flips_of, 'case')} with every trial decided"
    if flips is None:
        of = "use at least 3 trials to see flips"
    known = flips is not None and view.repeats.flips_of > 0
    yield f"| Flip cases | {flips if known else DASH} | | {of} |"
    yield f"| Undecided and missing | {view.undecided} and {view.missing} | | {view.scheduled} scheduled |"
    for used in view.usage:
        if used.value is None:
            continue
        bounds = DASH
        if used.low is not None and used.high is not None:
            low, high = amount(used.low, used.unit), amount(used.high, used.unit)
            bounds = low if low == high else f"{low} to {high}"
        of = used.basis or used.why or f"{used.trials} of {used.of} trials"
        yield f"| {inert(used.name)} | {amount(used.value, used.unit)} | {bounds} | {inert(of)} |"
    for why in dict.fromkeys(used.why for used in view.usage if used.value is None):
        unknown = ", ".join(used.name for used in view.usage if used.value is None and used.why == why)
        yield f"| {inert(unknown)} | {DASH} | {DASH} | {inert(why)} |"
    if view.judges is not None:
        yield from _judges(view.judges)
    yield ""


def _judges(judges: views.JudgesView) -> Iterator[str]:
    """What the judges took in all, since it is no number of the target."""
    yield f"| Judge | {', '.join(code(model) for model in judges.models) or DASH} | | |"
    for used in judges.usage:
        basis = f", {inert(used.basis)}" if used.basis else ""
        yield (
            f"| Judge in all, {inert(used.name)} | {amount(used.total, used.unit)} | "
            f"| {used.trials} of {used.of} {ASKED}{basis} |"
        )
    flips, of = judges.flips, flips_of(judges)
    if flips is None:
        of = "no judgement had two votes that could be read"
    yield f"| Judge flips | {DASH if flips is None else flips} | | {of} |"


def _outcomes(outcomes: Sequence[views.OutcomeView]) -> Iterator[str]:
    if not outcomes:
        return
    yield "| outcome | kind | trials | share |"
    yield "|---|---|---:|---:|"
    for line in outcomes:
        label = "(missing)" if line.label is None else code(line.label)
        yield f"| {label} | {inert(line.kind)} | {line.count} | {percent(line.share)} |"
    yield ""


def _run(view: views.SessionView) -> Iterator[str]:
    run = view.run
    labels = [f"run {code(run.id)} ({inert(run.status)})"]
    labels += [
        f"{name} {code(value)}"
        for name, value in (("release", run.release), ("prompt", run.prompt), ("dataset", run.dataset))
        if value is not None
    ]
    yield f"{', '.join(labels)}. {inert(view.baseline_line) if view.baseline_line else ''}".rstrip()
    yield from (f"- {inert(fact)}" for fact in (*run.facts, *run.amendments))
    yield from (f"- Warning: {inert(warning)}" for warning in run.warnings)
    if view.next_commands:
        yield ""
        yield "```sh"
        yield from (text(command) for command in view.next_commands)
        yield "```"
