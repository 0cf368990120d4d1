"""Failures that cluster in time, over cases that have nothing to do with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_crashlab.errors import BadInput
from pytest_crashlab.stats.inputs import Bools, Counts, Floats, Ints, counts, same_length

LEVEL = 0.005
"""Of each of the two tests, so that a clean run raises a false alarm in 1 of 100."""

_SHUFFLES = 999
_SETTLED = 5
_WINDOWS = (0.02, 0.05, 0.1)
_SEED = 20240601
_BATCH_CELLS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureClusters:
    """What the order of a run's failures says.

    ``found`` whether they cluster; ``first, last`` indices of the first and last failure of the
    strongest cluster in the order given, ``failures`` in it of ``last - first + 1`` trials, ``cases``
    how many cases failed there; ``p_scan``, ``p_run`` of the two tests.
    """

    found: bool
    first: int
    last: int
    failures: int
    cases: int
    p_scan: float
    p_run: float


def failure_clusters(case: Counts, failed: npt.NDArray[Any] | list[bool]) -> FailureClusters | None:
    """Two permutation tests on the failures of one run, its trials in order of time.

    ``case`` the number of each trial's case (any whole numbers), ``failed`` whether it failed, by any
    label. *Scan*: the largest surplus of failures over what each trial's own case fails, in windows
    of 2, 5 and 10 % of the run (Naus 1965). *Longest run* of failures. The null is that a case's
    outcomes may change places among its own trials, which holds for every mix of pass rates but needs
    an order that is random over cases: trials of a case in a row cannot be told from a broken case.

    999 shuffles with a fixed seed, stopped when neither test can reach its level any more (the
    decision is that of all of them). Cases that only pass or only fail cannot move. None when no case
    can: nothing to test. Raises BadInput.
    """
    codes = counts("case", case)
    flags = np.asarray(failed)
    if (
        flags.ndim != 1
        or (flags.size and flags.dtype.kind not in "biu")
        or ((flags != 0) & (flags != 1)).any()
    ):
        raise BadInput("failed must be one flat list of true and false.")
    same_length("case", codes, "failed", flags)
    if not codes.size:
        return None
    fails = flags.astype(np.bool_)
    _, number = np.unique(codes, return_inverse=True)
    trials = np.bincount(number)
    expected = (np.bincount(number, fails) / trials)[number]
    mixed = (expected > 0) & (expected < 1)
    if not mixed.any():
        return None

    widths = sorted({max(2, round(share * fails.size)) for share in _WINDOWS})
    scan, run = _scans(fails[None] - expected, widths)[0], _runs(fails[None])[0]
    p_scan, p_run = _p_values(fails, number, expected, widths, (float(scan), int(run)))
    first, last = _run_at(fails) if p_run < p_scan else _window_at(fails, expected, widths)
    inside = np.flatnonzero(fails[first : last + 1]) + first
    cases = np.unique(number[inside]).size
    return FailureClusters(
        found=min(p_scan, p_run) <= LEVEL and cases > 1,
        first=first,
        last=last,
        failures=inside.size,
        cases=cases,
        p_scan=p_scan,
        p_run=p_run,
    )


def _p_values(
    fails: Bools, number: Ints, expected: Floats, widths: list[int], seen: tuple[float, int]
) -> tuple[float, float]:
    rng = np.random.default_rng(_SEED)
    (slots,) = np.nonzero((expected > 0) & (expected < 1))
    slots = slots[np.argsort(number[slots], kind="stable")]
    group, values = number[slots].astype(np.float64), fails[slots]
    batch = int(max(1, min(25, _BATCH_CELLS // fails.size)))
    done = scan_hits = run_hits = 0
    while done < _SHUFFLES and min(scan_hits, run_hits) < _SETTLED:
        size = min(batch, _SHUFFLES - done)
        shuffled = np.repeat(fails[None], size, axis=0)
        # Sorting case number + luck keeps the cases in place and shuffles within each. Each number's last bit
        # is the failure it stands for: numbers are sorted faster than the order of numbers is found.
        drawn = (group + rng.random((size, slots.size))).view(np.int64) & -2 | values
        drawn.sort(axis=1)
        shuffled[:, slots] = drawn & 1
        scan_hits += int((_scans(shuffled - expected, widths) >= seen[0] - 1e-9).sum())
        run_hits += int((_runs(shuffled) >= seen[1]).sum())
        done += size
    return (scan_hits + 1) / (done + 1), (run_hits + 1) / (done + 1)


def _totals(residual: Floats) -> Floats:
    """Running sums of each row, from 0 on."""
    total = np.zeros((residual.shape[0], residual.shape[1] + 1))
    np.cumsum(residual, axis=1, out=total[:, 1:])
    return total


def _surplus(total: Floats, width: int) -> Floats:
    width = min(width, total.shape[1] - 1)
    result: Floats = (total[:, width:] - total[:, :-width]) / np.sqrt(width)
    return result


def _scans(residual: Floats, widths: list[int]) -> Floats:
    """The largest surplus in any window, one a row."""
    total = _totals(residual)
    result: Floats = np.max([_surplus(total, width).max(axis=1) for width in widths], axis=0)
    return result


def _run_lengths(fails: Bools) -> Ints:
    """At each trial, how many failures in a row end there."""
    place = np.arange(fails.shape[1])
    last_pass = np.maximum.accumulate(np.where(fails, -1, place), axis=1)
    result: Ints = place - last_pass
    return result


def _runs(fails: Bools) -> Ints:
    """The longest run of failures, one a row."""
    result: Ints = _run_lengths(fails).max(axis=1)
    return result


def _run_at(fails: Bools) -> tuple[int, int]:
    lengths = _run_lengths(fails[None])[0]
    last = int(lengths.argmax())
    return last - int(lengths[last]) + 1, last


def _window_at(fails: Bools, expected: Floats, widths: list[int]) -> tuple[int, int]:
    """The window with the largest surplus, from its first to its last failure."""
    total = _totals(fails[None] - expected)
    surplus = [_surplus(total, width)[0] for width in widths]
    best = int(np.argmax([s.max() for s in surplus]))
    start = int(surplus[best].argmax())
    (inside,) = np.nonzero(fails[start : start + widths[best]])
    return start + int(inside[0]), start + int(inside[-1])
