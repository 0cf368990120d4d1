"""The exact test beside the simple normal rule: ``python benchmarks/verdict_methods.py``.

Simulated pairs of runs over several kinds of suite. Where nothing changed: how often each method reads
Regressed or Improved, which is always false. Where the mean pass rate fell by 10 points, a tenth of the suite
broken altogether or every case a little worse: how often each method reads Regressed. The simple rule gives
no word below 20 cases. Three tables in Markdown; ``--runs N`` pairs a line. A few minutes.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special
from simulated_runs import SUITES, draw

from pytest_crashlab.stats import is_significant, normal_rule, paired_verdict
from pytest_crashlab.stats.roots import crossing

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED = 20261201
DROP = 0.10
MINIMUM = 20
LOUD = 0.05


class Cell(NamedTuple):
    """One line: what kind of suite, how many cases, trials in A and B, what happened, trials lost."""

    suite: str
    cases: int
    trials: tuple[int, int]
    effect: str = "none"
    lost: float = 0.0


class Found(NamedTuple):
    """Shares of pairs: of each method false or true Regressed, and Improved; NaN without a word."""

    exact_worse: float
    exact_better: float
    normal_worse: float
    normal_better: float


EQUAL = [
    Cell(s, n, (k, k)) for s in SUITES for n, k in ((10, 5), (20, 1), (20, 3), (20, 10), (50, 3), (200, 5))
]
UNEQUAL = [
    Cell("95 % on average", 20, (3, 10)),
    Cell("95 % on average", 20, (10, 1)),
    Cell("95 % on average", 20, (5, 5), lost=0.1),
    Cell("all at 99 %", 50, (3, 10)),
    Cell("all at 99 %", 50, (10, 1)),
    Cell("good or bad", 30, (10, 3)),
    Cell("good or bad", 50, (5, 5), lost=0.1),
]
DROPS = [
    *(
        Cell("95 % on average", n, (k, k), "broken")
        for n, k in ((10, 5), (20, 3), (20, 5), (20, 10), (50, 5))
    ),
    *(Cell("4 of 5 sure", n, (k, k), "broken") for n, k in ((10, 10), (50, 5))),
    *(Cell("good or bad", n, (k, k), "broken") for n, k in ((20, 5), (50, 5))),
    *(Cell("95 % on average", n, (k, k), "a little worse") for n, k in ((10, 10), (20, 5), (50, 3))),
    *(Cell("good or bad", n, (k, k), "a little worse") for n, k in ((20, 10), (50, 5))),
    *(Cell("all at 50 %", n, (k, k), "a little worse") for n, k in ((20, 10), (50, 5))),
]


def change(cell: Cell) -> float:
    """What makes run B 10 points lower: the share of cases that break, or a step on the logit scale."""
    if cell.effect == "none":
        return 0.0
    typical = draw(np.random.default_rng(7), cell.suite, 50_000)
    if cell.effect == "broken":
        return float(DROP / typical.mean())
    logits, target = _logit(typical), typical.mean() - DROP
    return crossing(lambda step: float(special.expit(logits + step).mean() - target), 0.0, 1.0, 1e-6)


def candidate(
    rng: np.random.Generator, effect: str, size: float, p: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The pass probabilities of run B; ``size`` as `change` gives it."""
    if effect == "broken":
        return np.where(rng.random(p.size) < size, 0.0, p)
    return p if effect == "none" else np.asarray(special.expit(_logit(p) + size))


def _logit(p: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(special.logit(np.clip(p, 1e-6, 1 - 1e-6)))


def measure(cell: Cell, seed: list[int], pairs: int) -> Found:
    """Both methods on the same ``pairs`` of runs."""
    rng = np.random.default_rng(seed)
    words, size = np.zeros(4), change(cell)
    for _ in range(pairs):
        p = draw(rng, cell.suite, cell.cases)
        a_n, b_n = (np.full(cell.cases, k) for k in cell.trials)
        if cell.lost:
            a_n, b_n = (np.maximum(1, rng.binomial(n, 1 - cell.lost)) for n in (a_n, b_n))
        arms = rng.binomial(a_n, p), a_n, rng.binomial(b_n, candidate(rng, cell.effect, size, p)), b_n
        exact, normal = paired_verdict(*arms), normal_rule(*arms)
        for place, result in ((0, exact), (2, normal)):
            if is_significant(result.p_value):
                words[place + (result.delta > 0)] += 1
    words[2:] = words[2:] if cell.cases >= MINIMUM else math.nan
    return Found(*(words / pairs))


def main() -> int:
    """Prints the tables; 1 when the exact test raises more false alarms than it may."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000, help="pairs of runs a line")
    runs = parser.parse_args().runs
    limit = LOUD + 3 * math.sqrt(LOUD * (1 - LOUD) / runs)
    loud: list[Cell] = []
    for number, (title, cells) in enumerate(
        (
            ("Nothing changed, as many trials in both runs", EQUAL),
            ("Nothing changed, trials in unequal number", UNEQUAL),
            ("10 points lower", DROPS),
        )
    ):
        found = [measure(cell, [SEED, number, i], runs) for i, cell in enumerate(cells)]
        print(f"\n{title}\n")
        _table(cells, found, drops=cells is DROPS)
        if cells is not DROPS:
            loud += [c for c, f in zip(cells, found, strict=True) if f.exact_worse + f.exact_better > limit]
    print(f"\n{runs} pairs of runs a line; beyond {100 * limit:.1f} % of false words: {loud or 'none'}")
    return 1 if loud else 0


def _table(cells: list[Cell], found: list[Found], *, drops: bool) -> None:
    happened = "what happened | " if drops else ""
    what = "Regressed %" if drops else "false words % (Regressed + Improved)"
    print(f"| suite | {happened}cases | trials A, B | exact: {what} | normal: {what} |")
    print("|---|---|---|---|---|" + ("---|" if drops else ""))
    for cell, f in zip(cells, found, strict=True):
        a, b = cell.trials
        trials = f"{a}" if a == b else f"{a}, {b}"
        lost = f", {100 * cell.lost:g} % lost" if cell.lost else ""
        name = f"{cell.suite} | {cell.effect}" if drops else cell.suite
        said = " | ".join(_say(*pair, drops=drops) for pair in (f[:2], f[2:]))
        print(f"| {name} | {cell.cases} | {trials}{lost} | {said} |")
    for place, method in ((0, "exact"), (2, "normal")):
        shares = [100 * (f[place] + (0 if drops else f[place + 1])) for f in found]
        known = [share for share in shares if not math.isnan(share)]
        print(f"\n{method}: mean {np.mean(known):.1f} % over the {len(known)} lines with a word", end="")
        print(f" ({np.nansum(shares) / len(shares):.1f} % over all), most {max(known):.1f} %")


def _say(worse: float, better: float, *, drops: bool) -> str:
    if math.isnan(worse):
        return "no word"
    both = f"{100 * (worse + better):.1f} ({100 * worse:.1f} + {100 * better:.1f})"
    return f"{100 * worse:.1f}" if drops else both


if __name__ == "__main__":
    sys.exit(main())
