"""The words of a verdict: one place that turns numbers into sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SIGNIFICANT = 0.05
AA_NOISE = (
    "The trials alone would prove a change, but runs of equal sources have differed as much (A/A factor), so "
    "it is not proven."
)

NORMAL_HONESTY = (
    "The interval is a normal approximation over cases. Two equal runs show a false regression, or a false "
    "improvement, about 1 time in 40, so a team that makes many comparisons will see some."
)
TRIALS_HONESTY = (
    "It says whether these cases moved, not why. Two equal runs read Regressed at most about 1 time in 40, "
    "and Improved as often."
)


def points(share: float) -> str:
    """A share of 1 as percentage points with one decimal, without a sign: ``0.2`` is "20.0"."""
    return f"{hundredfold(abs(share)):.1f}"


def percent(share: float) -> str:
    """A share as percent with one decimal: "85.0 %". Not quite all and not quite nothing say so."""
    text = f"{hundredfold(share):.1f}"
    if text == "100.0" and share < 1:
        return "> 99.9 %"
    if text == "0.0" and share > 0:
        return "< 0.1 %"
    return f"{text} %"


def hundredfold(share: float) -> float:
    """100 times ``share``, so that means that differ by their order of summing round alike."""
    return round(share * 100, 9)


def p_words(p: float) -> str:
    """A p-value with four decimals, or that it is smaller: "p = 0.0007", "p < 0.0001".

    Where rounding would put it on the other side of the 5 % line, it gets the digits that keep it on
    its own.
    """
    if p < 0.0001:
        return "p < 0.0001"
    for digits in range(4, 9):
        text = f"{p:.{digits}f}"
        if (float(text) < SIGNIFICANT) == (p < SIGNIFICANT):
            return f"p = {text}"
    return f"p = {p:.4f}"


def change(delta: float) -> str:
    """How the candidate's pass rate lies beside the baseline's."""
    if delta == 0:
        return "Pass rate the same as the baseline."
    size = "less than 0.1" if points(delta) == "0.0" else points(delta)
    return f"Pass rate {size} points {'lower' if delta < 0 else 'higher'} than the baseline."


def outside(delta: float, half_width: float, p: float) -> str:
    """The line under Regressed and Improved."""
    return (
        f"{change(delta)} Outside the noise ({_band(half_width) or 'all cases changed alike'}, {p_words(p)})."
    )


def inside(half_width: float, possible_drop: float) -> str:
    """The line under No change, without a margin."""
    return f"{inside_normal(half_width)[:-1]}; {_possible(possible_drop)}."


def inside_normal(half_width: float) -> str:
    """The line under No change of the simple rule."""
    band = _band(half_width) or "no case changed, so the simple rule has no width for it"
    return f"Inside the noise: {band}. The change is not proven."


def inside_margin(half_width: float, possible_drop: float, margin: float) -> str:
    """The line under No change that is proven inside a margin."""
    band = _band(half_width) or "no case changed"
    return (
        f"Inside the noise: {band}, and proven inside the margin of {points(margin)} "
        f"points; {_possible(possible_drop)}."
    )


def _band(half_width: float) -> str | None:
    """The noise in words, never ± 0: None where a rule measures no spread at all."""
    if half_width == 0:
        return None
    return "± less than 0.1 points" if points(half_width) == "0.0" else f"± {points(half_width)} points"


def not_inside_margin(
    possible_drop: float,
    possible_gain: float,
    margin: float,
    *,
    rounds: tuple[int | None, int | None],
) -> str:
    """Why a margin leaves a comparison without a verdict.

    ``rounds`` how many more trials of every case would settle it, in this run alone and in both runs;
    None where no reasonable number would.
    """
    what = _possible(possible_drop) if possible_drop > margin else _possible(possible_gain, "rise")
    said = f"Not proven inside the margin of {points(margin)} points: {what}."
    for more, where in zip(rounds, ("this run", "both runs"), strict=True):
        if more:
            return f"{said} About {count(more, 'more trial')} of every case in {where} would settle it."
    return f"{said} More trials of these cases would hardly settle it."


def no_verdict(delta: float | None) -> str:
    """The line under No verdict."""
    if delta is None:
        return "There is no number to compare. This is not a verdict."
    return f"{change(delta)} This is not a verdict."


def _possible(size: float, what: str = "drop") -> str:
    if size <= 0:
        return f"a {what} is not to be expected"
    if points(size) == "0.0":
        return f"a {what} of less than 0.1 points is possible"
    return f"a {what} of up to {points(size)} points is possible"


def several(names: Sequence[str], *, most: int = 3) -> str:
    """Up to ``most`` names, and how many more there are: "a, b, c and 4 more"."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def count(number: int, noun: str) -> str:
    """A number with its noun in the right form: "1 case", "12 cases"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
