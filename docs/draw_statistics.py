"""Draw the pictures of statistics.md: ``python docs/draw_statistics.py``.

Every number in them is computed by ``pytest_crashlab.stats``; nothing is drawn by hand. A test draws them
again and compares, so that a picture never shows what the package no longer says.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

import numpy as np

from pytest_crashlab.stats import paired_verdict, planned_drop, wilson
from pytest_crashlab.stats.stratified import log_hypergeometric

IMAGES = Path(__file__).resolve().parent / "images"
INK, QUIET, GRID, PAPER = "#1f2933", "#52606d", "#d9e2ec", "#ffffff"
TEAL, RED, AMBER = "#0f766e", "#b42318", "#b45309"
WIDTH = 720


class Sheet:
    """Shapes of one picture, in pixels from the upper left corner."""

    def __init__(self, height: int, title: str) -> None:
        self._height = height
        self._title = title
        self._parts: list[str] = []

    def line(
        self, x1: float, y1: float, x2: float, y2: float, *, color: str = INK, width: float = 1.5
    ) -> None:
        """A straight line."""
        self._parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" '
            f'stroke-width="{width}" stroke-linecap="round"/>'
        )

    def bar(self, x: float, y: float, width: float, height: float, color: str) -> None:
        """A filled rectangle."""
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}"/>'
        )

    def dot(self, x: float, y: float, color: str) -> None:
        """A point that was measured."""
        self._parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{color}"/>')

    def path(self, points: list[tuple[float, float]], color: str) -> None:
        """A line through points."""
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f'<polyline points="{joined}" fill="none" stroke="{color}" stroke-width="2.5"/>')

    def text(
        self, x: float, y: float, said: str, *, color: str = INK, anchor: str = "start", bold: bool = False
    ) -> None:
        """Words; ``anchor`` start, middle or end of them at ``x``."""
        weight = ' font-weight="600"' if bold else ""
        place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
        self._parts.append(f'<text {place} fill="{color}"{weight}>{escape(said)}</text>')

    def save(self, name: str) -> str:
        """Write the picture; its text."""
        space = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self._height}"'
        drawn = "\n".join(
            [
                f'<svg {space} role="img" font-family="system-ui, sans-serif" font-size="14">',
                f"<title>{escape(self._title)}</title>",
                f'<rect width="{WIDTH}" height="{self._height}" rx="6" fill="{PAPER}"/>',
                *self._parts,
                "</svg>\n",
            ]
        )
        (IMAGES / name).write_text(drawn, "utf-8", newline="\n")
        return drawn


def all_passed() -> str:
    """What n of n passes say about the pass rate."""
    counts = (1, 3, 5, 10, 20, 50, 100)
    sheet = Sheet(60 + 34 * len(counts), "What n passes of n trials say about the pass rate")
    left, right = 120, WIDTH - 90

    def at(share: float) -> float:
        return left + share * (right - left)

    bottom = 30 + 34 * len(counts)
    for tick in range(0, 101, 20):
        sheet.line(at(tick / 100), 20, at(tick / 100), bottom, color=GRID, width=1)
        sheet.text(at(tick / 100), bottom + 20, f"{tick} %", color=QUIET, anchor="middle")
    for row, n in enumerate(counts):
        y = 38 + 34 * row
        low, high = wilson(1.0, n)
        sheet.text(left - 14, y + 5, f"{n} of {n}", anchor="end")
        sheet.line(at(low), y, at(high), y, color=TEAL, width=7)
        sheet.dot(at(1.0), y, TEAL)
        sheet.text(right + 14, y + 5, f"{100 * low:.0f} to 100", color=QUIET)
    return sheet.save("all-passed.svg")


# Six cases of five trials: passes before and after a change.
BEFORE = np.array([5, 5, 4, 5, 3, 4])
AFTER = np.array([4, 4, 3, 5, 2, 2])
TRIALS = np.full(6, 5)


def chance() -> str:
    """How often chance alone gives so few passes, where nothing changed."""
    low, rows = log_hypergeometric(TRIALS, TRIALS, BEFORE + AFTER)
    pmf = np.ones(1)
    for row in np.exp(rows):
        pmf = np.convolve(pmf, row)
    sums = int(low.sum()) + np.arange(pmf.size)
    kept = pmf > 5e-4
    sums, pmf = sums[kept], pmf[kept]
    seen = int(AFTER.sum())
    verdict = paired_verdict(BEFORE, TRIALS, AFTER, TRIALS)
    sheet = Sheet(330, "How many passes chance alone deals to the candidate")
    left, step, base = 60, (WIDTH - 100) / pmf.size, 260
    for s, share in zip(sums, pmf, strict=True):
        x, height = left + (s - sums[0]) * step, 210 * share / pmf.max()
        sheet.bar(x + 3, base - height, step - 6, height, RED if s <= seen else "#9fb3c8")
        sheet.text(x + step / 2, base + 20, str(s), color=QUIET, anchor="middle")
    sheet.line(left, base, left + step * pmf.size, base, color=QUIET)
    sheet.text(left, base + 48, "passes of the candidate if the change did nothing", color=QUIET)
    x = left + (seen - sums[0] + 0.5) * step
    tall = 210 * float(pmf[sums == seen][0]) / pmf.max()
    sheet.line(x, base - tall - 8, x, 62, color=RED, width=1)
    sheet.text(
        x, 36, f"seen: {seen} of 30, after {int(BEFORE.sum())} of 30", color=RED, anchor="middle", bold=True
    )
    sheet.text(x, 54, f"p = {verdict.p_value:.3f}: within the noise", color=RED, anchor="middle")
    return sheet.save("chance.svg")


class Story(NamedTuple):
    """A comparison of equal cases: passes a case before and after, of how many trials."""

    said: str
    before: list[int]
    after: list[int]
    trials: int


STORIES = (
    Story("20 cases x 3", [3] * 12 + [2] * 8, [3] * 10 + [2] * 7 + [1] * 3, 3),
    Story("20 cases x 5", [5] * 12 + [3] * 8, [5] * 6 + [3] * 8 + [1] * 6, 5),
    Story("20 cases x 5", [5] * 6 + [3] * 8 + [1] * 6, [5] * 12 + [3] * 8, 5),
    Story("100 cases x 20", [20] * 60 + [16] * 40, [20] * 58 + [16] * 42, 20),
)
MARGIN = 0.05


def words() -> str:
    """Four comparisons: change, interval, word."""
    sheet = Sheet(90 + 58 * len(STORIES), "Four comparisons and their words")
    left, right = 180, WIDTH - 190

    def at(share: float) -> float:
        return left + (share + 0.4) / 0.8 * (right - left)

    bottom = 30 + 58 * len(STORIES)
    sheet.bar(at(-MARGIN), 20, at(MARGIN) - at(-MARGIN), bottom - 20, "#e6f4f1")
    for tick in range(-40, 41, 20):
        sheet.line(at(tick / 100), 20, at(tick / 100), bottom, color=INK if not tick else GRID, width=1)
        sheet.text(at(tick / 100), bottom + 20, f"{tick:+d}" if tick else "0", color=QUIET, anchor="middle")
    sheet.text(
        (left + right) / 2,
        bottom + 44,
        "change of the pass rate, percentage points",
        color=QUIET,
        anchor="middle",
    )
    for row, story in enumerate(STORIES):
        y = 55 + 58 * row
        n = np.full(len(story.before), story.trials)
        v = paired_verdict(np.array(story.before), n, np.array(story.after), n)
        word, color = "No change", QUIET
        if v.significant:
            word, color = ("Improved", TEAL) if v.delta > 0 else ("Regressed", RED)
        sheet.text(left - 16, y + 5, story.said, anchor="end")
        sheet.line(at(v.low), y, at(v.high), y, color=color, width=5)
        sheet.dot(at(v.delta), y, color)
        inside = v.low > -MARGIN and v.high < MARGIN
        sheet.text(right + 16, y, word, color=color, bold=True)
        said = "proven within 5" if inside else f"{100 * v.low:+.0f} to {100 * v.high:+.0f}"
        sheet.text(right + 16, y + 18, said, color=QUIET)
    return sheet.save("words.svg")


def trials_needed() -> str:
    """Which drop a design finds in four of five tries."""
    sheet = Sheet(360, "The drop that is found in four of five tries")
    left, right, top, base = 70, WIDTH - 130, 20, 290
    ks = [1, 2, 3, 5, 7, 10, 15, 20, 30]

    def x_at(k: float) -> float:
        return left + np.log(k) / np.log(ks[-1]) * (right - left)

    def y_at(drop: float) -> float:
        return base - drop / 0.4 * (base - top)

    for tick in (0, 10, 20, 30, 40):
        sheet.line(left, y_at(tick / 100), right, y_at(tick / 100), color=GRID, width=1)
        sheet.text(left - 10, y_at(tick / 100) + 5, f"{tick}", color=QUIET, anchor="end")
    for k in ks:
        sheet.text(x_at(k), base + 22, str(k), color=QUIET, anchor="middle")
    sheet.text(
        (left + right) / 2, base + 50, "trials of each case, in both runs", color=QUIET, anchor="middle"
    )
    sheet.text(left + 8, top + 16, "drop of the pass rate, percentage points", color=QUIET)
    below = 0.0
    for cases, color in ((10, RED), (30, AMBER), (100, TEAL)):
        found = [(k, planned_drop(cases, k)) for k in ks]
        points = [(x_at(k), y_at(drop)) for k, drop in found if drop is not None and drop <= 0.4]
        sheet.path(points, color)
        x, y = points[-1]
        below = max(y + 5, below + 18)
        sheet.text(x + 10, below, f"{cases} cases", color=color, bold=True)
    return sheet.save("trials-needed.svg")


PICTURES = {
    "all-passed.svg": all_passed,
    "chance.svg": chance,
    "words.svg": words,
    "trials-needed.svg": trials_needed,
}

if __name__ == "__main__":
    for draw in PICTURES.values():
        draw()
