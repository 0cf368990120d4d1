"""The verdict card and the gate, as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from pytest_crashlab.compare.sentences import count, points
from pytest_crashlab.report.figures import (
    DASH,
    amount,
    change,
    change_interval,
    percent,
    points_interval,
    signed_points,
    text,
)
from pytest_crashlab.report.layout import Hanging, indented, listed, unbroken, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from pytest_crashlab.report import views

_STYLES = {"Regressed": "bold red", "Improved": "bold green"}
_PROVEN_WORDS = {-1: "proven lower", 0: "not proven", 1: "proven higher"}
_PROVEN = {-1: "proven worse", 0: "moved, not proven", 1: "proven better"}
MOST_MOVED = 10
_CASES_FOR_NEW = 10
_ONE_DIGIT = 0.1


def verdict(card: views.VerdictView, *, most_moved: int = MOST_MOVED) -> Iterator[RenderableType]:
    """The verdict card: the word, what it rests on, what moved, what to keep in mind."""
    style = _STYLES.get(card.word, "")
    yield Text(text(card.headline), style=style if card.headline == card.word else _STYLES["Regressed"])
    if card.delta is not None:
        yield indented(rates_line(card))
    yield indented(text(card.sentence))
    for reason in card.reasons:
        if reason.text == card.sentence:
            continue
        yield indented(f"Reason: {text(reason.text)}")
    if card.word == "No verdict" and card.delta is not None:
        yield indented("The numbers below are not a verdict.")
    if card.delta is not None:
        yield from _paired(card)
        yield from _intervals(card)
    yield from _compared(card)
    yield from _moved(card, most_moved)
    for note in card.notes:
        yield indented(f"Note: {text(note.text)}")
    yield from _deltas(card.deltas, full=most_moved == 0)
    if card.claim_text is not None:
        yield indented(text(card.claim_text))
    if card.delta is None:
        return
    in_turn = "yes" if card.interleaved else "no"
    yield indented(f"Interleaved: {in_turn}. Noise between equal runs (A/A factor): {_noise(card)}.")
    if card.word != "No verdict":
        yield indented(text(card.honesty))
    if card.comparisons is not None and card.expected_false_alarms is not None:
        alarms = f"{card.expected_false_alarms:.{1 if card.expected_false_alarms >= _ONE_DIGIT else 2}f}"
        yield indented(
            f"Comparisons in this store so far: {card.comparisons:,}; expected false alarms: {alarms}."
        )


def _noise(card: views.VerdictView) -> str:
    if card.aa_factor is None:
        return "not calibrated"
    return f"{card.aa_factor:.2f}" + (", not used by this method" if card.method == "normal" else "")


def _deltas(deltas: Sequence[views.DeltaView], *, full: bool) -> Iterator[RenderableType]:
    """What else differs: all of it, or what was asked for and what is proven."""
    shown = [d for d in deltas if full or d.group == "outcome" or d.proven]
    if not shown:
        return
    yield indented("Beside the verdict (each case once; 95 %, these cases; time, tokens, cost: new cases)")
    unknown: dict[str, list[str]] = {}
    for delta in shown:
        if delta.a is None and delta.b is None and delta.why is not None:
            unknown.setdefault(delta.why, []).append(_name(delta))
        else:
            yield Hanging(tuple(_delta(delta).split(" ")), indent=4, below=2)
    for why, names_ in unknown.items():
        yield Hanging(tuple(f"{', '.join(names_)}: {DASH} ({text(why)})".split(" ")), indent=4, below=2)


def _name(delta: views.DeltaView) -> str:
    return {"check": "check ", "outcome": "outcome "}.get(delta.group, "") + text(delta.name)


def _delta(delta: views.DeltaView) -> str:
    """One number: "check tone: 100.0 % -> 96.0 % (-4.0 points, -8.1 to 0.0), not proven; 50 and 50 ..."."""
    said = f"{_name(delta)}: {amount(delta.a, delta.unit)} -> {amount(delta.b, delta.unit)}"
    if delta.delta is not None:
        interval = change_interval(delta.low, delta.high, delta.unit)
        said += f" ({change(delta.delta, delta.unit)}, {interval})"
    tested = delta.p is not None and delta.group != "measure"
    words = [
        _PROVEN_WORDS[delta.proven] if tested else None,
        "exploratory" if delta.exploratory else None,
        delta.basis,
    ]
    said = ", ".join([said, *(word for word in words if word)])
    why = "" if delta.why is None else f" ({text(delta.why)})"
    return f"{said}; {delta.a_n} and {delta.b_n} {text(delta.of)}{why}"


def rates_line(card: views.VerdictView) -> str:
    """Both pass rates over the compared cases: "Pass rate 86.7 % -> 88.3 % (+1.6 points)"."""
    return f"Pass rate {percent(card.a_rate)} -> {percent(card.b_rate)} ({signed_points(card.delta)} points)."


def _intervals(card: views.VerdictView) -> Iterator[RenderableType]:
    if card.low is not None and card.high is not None and card.low < card.high:
        of = "These cases" if card.of == "these cases" else "By the simple rule"
        interval = points_interval(card.low, card.high)
        yield indented(f"{of}: {interval} (95 %; {text(card.these_method)}).")
    yield indented(new_cases(card))
    yield indented(detectable(card))
    if card.margin is not None:
        yield indented(f"Margin: {points(card.margin)} points.")


def new_cases(card: views.VerdictView) -> str:
    """What the comparison says of cases that it did not have, or why it says nothing."""
    if card.new_low is None or card.compared < 2:
        return "New cases of this kind: a change is not shown; one case says nothing about others."
    shown = "shown" if card.new_shown else "not shown"
    if card.compared < _CASES_FOR_NEW:
        shown += f", it takes {_CASES_FOR_NEW} cases"
    interval = points_interval(card.new_low, card.new_high)
    return f"New cases of this kind: {interval} (95 %; {text(card.new_method)}); a change is {shown}."


def detectable(card: views.VerdictView) -> str:
    """Which drop this many trials would find, or that they find none."""
    test = "the exact test" if card.method == "normal" else ""
    if card.mde is not None:
        by = f" by {test}" if test else ""
        return (
            f"With this many trials a drop of {points(card.mde)} points would be found in 4 of 5 tries{by}."
        )
    if not card.a_rate:
        return "Nothing passed in the baseline, so there is no drop to find."
    return "With this many trials not even a drop to 0 would be found in 4 of 5 tries."


def _paired(card: views.VerdictView) -> Iterator[RenderableType]:
    if card.trial_pairs is not None:
        yield indented(
            f"Both runs share their seeds: {count(card.trial_pairs, 'pair')} of trials compared, one by one."
        )


def _compared(card: views.VerdictView) -> Iterator[RenderableType]:
    left_out = sum(len(group.cases) for group in card.left_out)
    if not card.baseline_id:
        return
    proven = sum(case.proven != 0 for case in card.cases)
    yield indented(
        f"{count(card.compared, 'case')} compared ({card.worse} lower, {card.better} higher, "
        f"{card.unchanged} equal; {proven} proven), {left_out} left out"
    )
    for group in card.left_out:
        before = f"{len(group.cases)} {group.words} ({group.reason}):"
        yield listed(before, [text(case) for case in group.cases], indent=4)


def _moved(card: views.VerdictView, most: int) -> Iterator[RenderableType]:
    cases = card.moved
    if not cases or not most:
        return
    yield indented("Cases that moved")
    for case in cases[:most]:
        yield from moved_lines(case, indent=4, alarm=alarms(card))
    if len(cases) > most:
        yield unbroken(f"    and {len(cases) - most} more")


def alarms(card: views.VerdictView) -> bool:
    """Whether a case that is proven worse has a colour: not where the trials themselves are in doubt."""
    return card.headline != "No verdict"


def moved_lines(case: views.ComparedCaseView, *, indent: int, alarm: bool) -> Iterator[RenderableType]:
    """One compared case, and under it what its first failed trial said."""
    yield moved_line(case, indent=indent, alarm=alarm)
    if case.message:
        yield Hanging(words(case.message), indent=indent + 2, below=2)


def moved_line(case: views.ComparedCaseView, *, indent: int, alarm: bool) -> Text:
    """One compared case: "3/4 -> 0/4  -75.0  moved, not proven  test_x.py::test_y"; red for an ``alarm``."""
    change = f"{case.a_pass}/{case.a_n} -> {case.b_pass}/{case.b_n}"
    word = _PROVEN[case.proven] if case.delta else "no change"
    line = unbroken(
        f"{'':{indent}}{change:<14}  {signed_points(case.delta):>6}  {word:<17}  {text(case.case)}"
    )
    if alarm and case.proven < 0:
        line.stylize("red")
    return line


def gate(view: views.GateView, *, said: Sequence[str] = ()) -> Iterator[RenderableType]:
    """What the exit code is, and why; sentences that were ``said`` above are not said again."""
    yield Text(view.means, style=_STYLES["Regressed"] if view.exit_code == 1 else "")
    news = [because for because in view.because if because not in said]
    if view.because and not news:
        yield indented(f"For the {'reason' if len(view.because) == 1 else 'reasons'} above.")
    for because in news:
        yield indented(text(because))
