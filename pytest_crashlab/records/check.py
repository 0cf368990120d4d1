"""Checks: declared criteria and what came of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from pytest_crashlab.records.line import LONGEST_LINE, is_line

CheckKind = Literal["code", "judge", "metric"]
KINDS: tuple[str, ...] = get_args(CheckKind)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Check:
    """A declared criterion: ``must`` says in words what has to be true.

    ``required``: a trial in which it does not hold fails, one in which it was not evaluated gives no
    decision; others are soft. ``kind`` who evaluates it: "code" the test, "judge" a model or a person,
    "metric" a number that is measured; None: as it is evaluated. ``at_least`` and ``at_most`` are the
    bounds, included, of the number that ``trial.check`` is given.
    """

    name: str
    must: str
    required: bool
    kind: CheckKind | None
    at_least: float | None
    at_most: float | None

    def __init__(
        self,
        name: str,
        *,
        must: str,
        required: bool = True,
        kind: CheckKind | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> None:
        if not is_line(name):
            raise ValueError(f"Check({name!r}) needs a name: one line of at most {LONGEST_LINE} characters")
        said: object = must  # authors write anything
        if not isinstance(said, str) or not said.strip():
            raise ValueError(f"Check({name!r}) needs must=: what has to be true, in words")
        if kind is not None and kind not in KINDS:
            raise ValueError(f"Check({name!r}, kind={kind!r}): the kind is one of {', '.join(KINDS)}")
        refuse_bounds(f"Check({name!r})", at_least, at_most)
        for field, value in (
            ("name", name),
            ("must", must),
            ("required", required),
            ("kind", kind),
            ("at_least", at_least),
            ("at_most", at_most),
        ):
            object.__setattr__(self, field, value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def refuse_bounds(what: str, at_least: float | None, at_most: float | None) -> None:
    """Raise ``ValueError`` for bounds that no number can keep."""
    for name, bound in (("at_least", at_least), ("at_most", at_most)):
        if bound is not None and not _is_number(bound):
            raise ValueError(f"{what}: {name}={bound!r} is no number")
    if at_least is not None and at_most is not None and at_least > at_most:
        raise ValueError(f"{what}: no number is at least {at_least:g} and at most {at_most:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """What one check came to in one attempt of a trial; ``ok`` None: it could not be evaluated.

    ``judge`` who judged it, where that is not the test's own code: a model and version, a rubric;
    ``value`` the number that was measured, with its bounds ``at_least`` and ``at_most``; ``kind`` code,
    judge or metric; ``failure_class`` what kind of failure it is where it does not hold; ``must`` what
    has to be true, in words, where the check was declared.
    """

    name: str
    required: bool
    ok: bool | None
    why: str | None = None
    site: str | None = None
    judge: str | None = None
    value: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    kind: str | None = None
    failure_class: str | None = None
    must: str | None = None
