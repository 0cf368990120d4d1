"""What goes in: counts are checked once, at the door, with a sentence that names argument and index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from pytest_crashlab.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Numbers: TypeAlias = Ints | Floats
Bools: TypeAlias = npt.NDArray[np.bool_]
Counts: TypeAlias = "npt.NDArray[Any] | Sequence[int]"
Reals: TypeAlias = "npt.NDArray[Any] | Sequence[float]"
Variant: TypeAlias = Literal["mid-p", "exact"]


MOST = 100_000
"""Trials of one case: beyond this the exact methods take more memory than a test session has."""


def counts(name: str, values: Counts) -> Ints:
    """``values`` as a 1-D array of whole numbers, 0 to MOST.

    Whole floats (``3.0``) and booleans are taken as the counts they are. Raises BadInput.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise BadInput(f"{name} must be one flat list of counts, got rows of different length.") from error
    if array.ndim != 1:
        raise BadInput(f"{name} must have one dimension (one entry a case), got {array.ndim} dimensions.")
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "biuf":
        raise BadInput(f"{name} must hold whole numbers, got values of type {array.dtype}.")
    if array.dtype.kind == "f":
        _refuse(name, array, ~np.isfinite(array), "is not a finite number")
        _refuse(name, array, array != np.floor(array), "is not a whole number")
    _refuse(name, array, array < 0, "is negative")
    _refuse(name, array, array > MOST, f"is more than the {MOST} that one case may have")
    return array.astype(np.int64)


def arm(pass_name: str, passes: Counts, n_name: str, n: Counts) -> tuple[Ints, Ints]:
    """Passes and trials of one arm: same length, passes <= trials. Raises BadInput."""
    x, m = counts(pass_name, passes), counts(n_name, n)
    same_length(pass_name, x, n_name, m)
    wrong = np.flatnonzero(x > m)
    if wrong.size:
        i = int(wrong[0])
        raise BadInput(f"{pass_name}[{i}] = {x[i]} is more than {n_name}[{i}] = {m[i]}.")
    return x, m


def arms(a_pass: Counts, a_n: Counts, b_pass: Counts, b_n: Counts) -> tuple[Ints, Ints, Ints, Ints]:
    """Both arms of a paired comparison, one entry a case. Raises BadInput."""
    x, m = arm("a_pass", a_pass, "a_n", a_n)
    y, l_ = arm("b_pass", b_pass, "b_n", b_n)
    same_length("a_pass", x, "b_pass", y)
    return x, m, y, l_


def paired_arms(a_pass: Counts, a_n: Counts, b_pass: Counts, b_n: Counts) -> tuple[Ints, Ints, Ints, Ints]:
    """Both arms without the cases that one of them has no decided trial for. Raises BadInput."""
    x, m, y, l_ = arms(a_pass, a_n, b_pass, b_n)
    keep = (m > 0) & (l_ > 0)
    return x[keep], m[keep], y[keep], l_[keep]


def same_length(first_name: str, first: npt.NDArray[Any], name: str, values: npt.NDArray[Any]) -> None:
    """Raises BadInput unless both have one entry a case."""
    if first.size != values.size:
        raise BadInput(
            f"{name} has {values.size} entries and {first_name} has {first.size}: both need one entry a case."
        )


def probabilities(name: str, values: Reals) -> Floats:
    """``values`` as a 1-D array of numbers in 0..1. Raises BadInput."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise BadInput(f"{name} must have one dimension, got {array.ndim} dimensions.")
    _refuse(name, array, ~((array >= 0) & (array <= 1)), "is not between 0 and 1")
    return array


def share(name: str, value: float, *, low: float = 0.0, high: float = 1.0) -> float:
    """``value`` strictly between ``low`` and ``high``. Raises BadInput."""
    if not low < value < high:
        raise BadInput(f"{name} = {value} is not between {low:g} and {high:g}.")
    return float(value)


def whole(name: str, value: int, *, least: int = 0) -> int:
    """``value`` as a whole number of at least ``least``. Raises BadInput."""
    if value != value // 1:
        raise BadInput(f"{name} = {value} is not a whole number.")
    if value < least:
        raise BadInput(f"{name} = {value} is less than {least}.")
    return int(value)


def variant_weight(variant: str) -> float:
    """How much of the probability of the observed table counts: 1/2 for mid-p, 1 for exact."""
    if variant == "mid-p":
        return 0.5
    if variant == "exact":
        return 1.0
    raise BadInput(f"variant = {variant!r} is neither 'mid-p' nor 'exact'.")


def _refuse(name: str, array: npt.NDArray[Any], bad: Bools, what: str) -> None:
    wrong = np.flatnonzero(bad)
    if wrong.size:
        i = int(wrong[0])
        raise BadInput(f"{name}[{i}] = {array[i]} {what}.")
