"""What the end of a session needs to know, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_crashlab.records.comparison import Gate, Policy, Word
    from pytest_crashlab.records.run import RunStatus


# The exit code of a session whose gate can give no verdict.
NO_VERDICT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """How the report is drawn: columns, colours, encoding; ``quiet`` in three lines at most."""

    width: int
    color: bool
    encoding: str
    quiet: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """A run to conclude, and how.

    ``status`` what it is sealed as. ``reason`` why the baseline is the one it is, None where none
    was asked for; ``reference`` the name it was asked by; ``bootstrapping`` whether that name has no
    run yet; ``becomes_baseline`` whether this run is to be the first. ``reports`` files to write,
    each with its format; ``summary_page`` what a CI service shows of a step, to be added to;
    ``annotate`` whether to mark the cases that got worse. ``store_option`` and ``baseline_option`` as
    the next command has to repeat them; ``saving`` whether the session promotes the run itself.
    """

    store: Path
    run_id: str
    status: RunStatus
    method: str
    margin: float | None
    policy: Policy
    min_pass_rate: float | None
    reason: str | None
    reference: str | None
    bootstrapping: bool
    becomes_baseline: bool
    reports: tuple[tuple[Path, str], ...]
    summary_page: Path | None
    annotate: bool
    store_option: str
    baseline_option: str | None
    saving: bool
    display: Display


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What a session came to.

    ``gate`` is None where neither a baseline nor a threshold was asked for; ``word`` and
    ``reasons`` (codes) are the comparison's, None and empty without one; ``unfinished`` why a run
    that did not complete is no pass; ``text`` the report; ``annotations`` lines for the CI service that
    reads the output; ``problems`` what could not be written.
    """

    gate: Gate | None
    word: Word | None
    reasons: tuple[str, ...]
    unfinished: str | None
    text: str
    annotations: tuple[str, ...]
    problems: tuple[str, ...]
