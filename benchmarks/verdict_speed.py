"""How long a verdict takes: ``python benchmarks/verdict_speed.py``.

Prints one line a suite: cases x trials, the median and the slowest of several runs in milliseconds.
The largest one, 2000 cases of 20 trials in each arm, has to stay within 200 ms.
"""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np

from pytest_crashlab.stats import paired_verdict

LIMIT_MS = 200.0
REPEATS = 9
SUITES = (
    # cases, fewest trials, most trials
    (20, 3, 3),
    (200, 5, 5),
    (2000, 5, 5),
    (2000, 18, 20),
    (2000, 20, 20),
)


def measure(cases: int, fewest: int, most: int) -> list[float]:
    """Milliseconds of each repeat, the first one (which imports) left out."""
    rng = np.random.default_rng(cases)
    p = rng.beta(2, 0.5, cases)
    took = []
    for _ in range(REPEATS + 1):
        a_n, b_n = rng.integers(fewest, most + 1, cases), rng.integers(fewest, most + 1, cases)
        a_pass, b_pass = rng.binomial(a_n, p), rng.binomial(b_n, p * 0.97)
        start = time.perf_counter()
        paired_verdict(a_pass, a_n, b_pass, b_n)
        took.append((time.perf_counter() - start) * 1e3)
    return took[1:]


def main() -> int:
    """Prints the table; 1 when the largest suite takes too long."""
    median = 0.0
    for cases, fewest, most in SUITES:
        took = measure(cases, fewest, most)
        median = statistics.median(took)
        trials = str(most) if fewest == most else f"{fewest}-{most}"
        print(f"{cases:5d} cases x {trials:>5} trials  median {median:7.2f} ms  slowest {max(took):7.2f} ms")
    print(f"2000 x 20: {median:.1f} ms, limit {LIMIT_MS:g} ms: {'ok' if median <= LIMIT_MS else 'too slow'}")
    return 0 if median <= LIMIT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
