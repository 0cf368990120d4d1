"""The same numbers, worked out another way: fractions, enumeration, brute force."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction
from math import comb

import numpy as np
from hypothesis import strategies as st
from scipy import optimize


def sum_pmf(a_pass, a_n, b_pass, b_n):
    """Exact null pmf of the sum of candidate passes, as fractions (convolved as whole numbers)."""
    ways, all_ways = [1], 1
    for x, m, y, k in zip(a_pass, a_n, b_pass, b_n, strict=True):
        t = x + y
        step = [comb(k, j) * comb(m, t - j) if t >= j else 0 for j in range(k + 1)]
        grown = [0] * (len(ways) + k)
        for s, w in enumerate(ways):
            for j, v in enumerate(step):
                grown[s + j] += w * v
        ways, all_ways = grown, all_ways * comb(m + k, t)
    return {s: Fraction(w, all_ways) for s, w in enumerate(ways) if w}


def weighted_pmf(a_pass, a_n, b_pass, b_n, worth):
    """The same with each candidate pass of case i worth ``worth[i]``."""
    pmf = {Fraction(0): Fraction(1)}
    for x, m, y, k, unit in zip(a_pass, a_n, b_pass, b_n, worth, strict=True):
        t = x + y
        grown = defaultdict(Fraction)
        for (s, p), j in itertools.product(pmf.items(), range(max(0, t - m), min(k, t) + 1)):
            grown[s + j * unit] += p * Fraction(comb(k, j) * comb(m, t - j), comb(m + k, t))
        pmf = grown
    return pmf


def two_sided(pmf, seen, weight):
    low = sum((p for s, p in pmf.items() if s < seen), Fraction(0)) + weight * pmf[seen]
    high = sum((p for s, p in pmf.items() if s > seen), Fraction(0)) + weight * pmf[seen]
    return min(Fraction(1), 2 * min(low, high))


def stratified_p(a_pass, a_n, b_pass, b_n, weight):
    return two_sided(sum_pmf(a_pass, a_n, b_pass, b_n), sum(b_pass), weight)


def case_weighted_p(a_pass, a_n, b_pass, b_n, weight):
    worth = [Fraction(1, m) + Fraction(1, k) for m, k in zip(a_n, b_n, strict=True)]
    seen = sum((w * y for w, y in zip(worth, b_pass, strict=True)), Fraction(0))
    return two_sided(weighted_pmf(a_pass, a_n, b_pass, b_n, worth), seen, weight)


def sign_flip_p(a_pass, a_n, b_pass, b_n, weight):
    d = [
        Fraction(y, k) - Fraction(x, m)
        for x, m, y, k in zip(a_pass, a_n, b_pass, b_n, strict=True)
        if x * k != y * m
    ]
    pmf = defaultdict(Fraction)
    for signs in itertools.product((1, -1), repeat=len(d)):
        pmf[sum((s * abs(v) for s, v in zip(signs, d, strict=True)), Fraction(0))] += Fraction(1, 2 ** len(d))
    return two_sided(pmf, sum(d, Fraction(0)), weight)


def inverted_bound(a_pass, a_n, b_pass, b_n, *, side, weight, alpha=0.025):
    """Bound of the mean difference by inverting the test, each law written out at each odds ratio."""
    rows = [(x + y, m, k) for x, m, y, k in zip(a_pass, a_n, b_pass, b_n, strict=True)]
    seen = sum(b_pass)

    def laws(log_psi):
        for t, m, k in rows:
            ways = np.array([comb(k, j) * comb(m, t - j) if t >= j else 0 for j in range(k + 1)], dtype=float)
            law = ways * np.exp(log_psi * np.arange(k + 1))
            yield law / law.sum(), t, m, k

    def tail(log_psi):
        pmf = np.ones(1)
        for law, *_ in laws(log_psi):
            pmf = np.convolve(pmf, law)
        beyond = pmf[seen + 1 :].sum() if side < 0 else pmf[:seen].sum()
        return beyond + weight * pmf[seen] - alpha

    log_psi = optimize.brentq(tail, -25, 25, xtol=1e-12)
    changes = []
    for law, t, m, k in laws(log_psi):
        mean = law @ np.arange(k + 1)
        changes.append(mean / k - (t - mean) / m)
    return float(np.mean(changes))


@st.composite
def paired_counts(draw, most_cases=7, most_trials=5, equal=False):
    """Four lists of counts, one entry a case, at least one trial in each arm."""
    n = draw(st.integers(1, most_cases))
    k = draw(st.integers(1, most_trials))
    trials = st.just(k) if equal else st.integers(1, most_trials)
    a_n = draw(st.lists(trials, min_size=n, max_size=n))
    b_n = draw(st.lists(trials, min_size=n, max_size=n))
    a_pass = [draw(st.integers(0, m)) for m in a_n]
    b_pass = [draw(st.integers(0, m)) for m in b_n]
    return a_pass, a_n, b_pass, b_n
