"""One case in two runs as text for a terminal: colours never say anything that marks do not say."""

from __future__ import annotations

import re
import shlex
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pytest_crashlab.report.evidence_text import MOST_LINES, value_lines
from pytest_crashlab.report.figures import DASH, text
from pytest_crashlab.report.layout import columns, draw, indented, unbroken
from pytest_crashlab.report.words import ADDED, LEFT_OUT, REMOVED, SAME, Words, are_alike

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from pytest_crashlab.report.case_diff import CaseDiffView, PairView, SideView

_MARKS = {REMOVED: ("[-", "-]", "red"), ADDED: ("{+", "+}", "green")}
_PROVEN = {-1: "proven worse", 1: "proven better", 0: "not proven"}
_PADDED = re.compile(r"(\s*)(.*?)(\s*)", re.DOTALL)


def render_case_diff(
    view: CaseDiffView,
    candidate: str,
    *,
    words: bool = True,
    width: int,
    color: bool,
    encoding: str = "utf-8",
) -> str:
    """``view`` as lines; without ``words`` both texts stand whole, one below the other.

    ``candidate`` what a command calls this run.
    """
    return draw(_lines(view, text(candidate), words=words), width, color=color, encoding=encoding)


def _lines(view: CaseDiffView, candidate: str, *, words: bool) -> Iterator[RenderableType]:
    yield unbroken(text(view.case))
    change = f"{_of(view.a_pass, view.a_n)} -> {_of(view.b_pass, view.b_n)}{_proof(view)}"
    place = "" if view.position is None else f", case {view.position} of {view.of} of '--show {view.shown}'"
    yield indented(f"{change}{place}")
    if view.not_compared is not None:
        yield indented(f"Not part of the comparison: {text(view.not_compared)}.")
    yield indented(f"baseline {text(view.baseline)}, this run {text(view.candidate)}")
    for title, value in (("Input", view.input), ("Expected", view.expected)):
        if value is not None:
            yield ""
            yield title
            yield from _cut(unbroken(f"  {line}") for line in value_lines(value))
    yield ""
    yield columns([("trial", "baseline", "this run"), *(_row(pair) for pair in view.pairs)], wrap=(1, 2))
    yield from _all_pairs(view.pairs, words=words)
    yield ""
    yield from _next(view, candidate)


def _proof(view: CaseDiffView) -> str:
    if view.proven is None or view.a_pass * view.b_n == view.b_pass * view.a_n:
        return ""
    return f", {_PROVEN[view.proven]} (p = {view.p:.2g})"


def _of(passes: int, decided: int) -> str:
    return f"{passes}/{decided}" if decided else DASH


def _row(pair: PairView) -> tuple[str, str, str]:
    return (_number(pair), _outcome(pair.a), _outcome(pair.b))


def _number(pair: PairView) -> str:
    if pair.a_trial == pair.b_trial:
        return f"{pair.b_trial}"
    return f"{pair.b_trial} (beside {pair.a_trial})"


def _outcome(side: SideView | None) -> str:
    if side is None:
        return f"{DASH} (no report)"
    label = text(side.outcome or "no_outcome")
    return f"{label} at {text(side.site)}" if side.site and side.kind != "pass" else label


def _all_pairs(pairs: Sequence[PairView], *, words: bool) -> Iterator[RenderableType]:
    """What the trials put out and said; trials in a row that say the same are said once."""
    for _, alike in groupby(((pair, _parts(pair, words=words)) for pair in pairs), key=lambda pair: pair[1]):
        same = list(alike)
        first, last = _number(same[0][0]), _number(same[-1][0])
        numbers = f"Trials {first} {'and' if len(same) == 2 else 'to'} {last}"
        if len(same) == 1:
            numbers = f"Trial {first}"
        for title, lines in same[0][1]:
            yield ""
            yield unbroken(f"{numbers}{title}")
            yield from _cut(lines)


def _parts(pair: PairView, *, words: bool) -> list[tuple[str, list[Text]]]:
    """The parts of a pair of trials: what follows their number in the title, and the lines."""
    sides = (("baseline", pair.a), ("this run", pair.b))
    found = []
    for name, side in sides:
        if side is not None and side.problem:
            found.append(
                (f" of the {name}".replace("the this", "this"), [unbroken(f"  {text(side.problem)}")])
            )
    for title, part, marked in (("output", "output", pair.output), ("why", "said", pair.said)):
        there = [(name, value) for name, side in sides if side and (value := getattr(side, part))]
        if len(there) == 2 and are_alike(marked):
            found.append((f", {title}: the same words", list(_plain(there[1][1]))))
        elif len(there) == 2 and words:
            found.append((f", {title}: [-baseline-] {{+this run+}}", list(marked_lines(marked))))
        else:
            found += [
                (f", {title} of the {name}".replace("the this", "this"), list(_plain(value)))
                for name, value in there
            ]
    return found


def _plain(value: str) -> Iterator[Text]:
    return (unbroken(f"  {line}") for line in value_lines(value))


def _cut(lines: Iterable[Text]) -> Iterator[Text]:
    """The first lines, and how many more there are."""
    whole = list(lines)
    yield from whole[:MOST_LINES]
    if len(whole) > MOST_LINES:
        yield unbroken(f"  ... {len(whole) - MOST_LINES:,} more lines ('crashlab view' with --raw shows all)")


def marked_lines(words: Sequence[Words]) -> Iterator[Text]:
    """The texts as lines, with removed and added stretches marked and coloured."""
    line = unbroken("  ")
    for part in words:
        if part.mark == LEFT_OUT:
            line.append(f" [... {part.text} ...]", style="dim")
            continue
        first, *rest = part.text.split("\n")
        _append(line, part.mark, first)
        for more in rest:
            yield line
            line = unbroken("  ")
            _append(line, part.mark, more)
    yield line


def _append(line: Text, mark: str, said: str) -> None:
    """Add ``said``, its blanks outside the marks; foreign text is made safe."""
    if mark == SAME or not said.strip():
        line.append(text(said.expandtabs(4)))
        return
    before, inner, after = _PADDED.fullmatch(said.expandtabs(4)).groups()  # type: ignore[union-attr]  # fits all
    opened, closed, style = _MARKS[mark]
    line.append(text(before))
    line.append(f"{opened}{text(inner)}{closed}", style=style)
    line.append(text(after))


def _next(view: CaseDiffView, candidate: str) -> Iterator[Text]:
    command = f"crashlab diff {view.named} {candidate} --show {view.shown} --case"
    if view.after is not None:
        yield unbroken(f"next      {command} {_quoted(view.after)}")
    if view.before is not None:
        yield unbroken(f"previous  {command} {_quoted(view.before)}")
    trial = next((pair.b.trial for pair in view.pairs if pair.b is not None), None)
    if trial is not None:
        yield unbroken(f"all kept  crashlab view {candidate} --case {_quoted(view.case)} --trial {trial}")


def _quoted(case: Any) -> str:
    return text(shlex.quote(str(case)))
