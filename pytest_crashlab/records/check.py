"""Checks: declared criteria and what came of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Check:
    """A declared criterion: ``must`` says in words what has to be true."""

    name: str
    must: str
    required: bool

    def __init__(self, name: str, *, must: str, required: bool = True) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "must", must)
        object.__setattr__(self, "required", required)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """What one check came to in one attempt of a trial; ``ok`` None: it could not be evaluated.

    ``judge`` who judged it, where that is not the test's own code: a model and version, a rubric.
    """

    name: str
    required: bool
    ok: bool | None
    why: str | None = None
    site: str | None = None
    judge: str | None = None
