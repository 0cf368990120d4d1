"""What the labels of a source mean: given, built in, or asked for. Never guessed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_crashlab.errors import UsageError
from pytest_crashlab.importing.source import refuse
from pytest_crashlab.records.outcome import BUILTIN_OUTCOMES, FAILED, PASSED, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_crashlab.importing.rows import SourceRow

_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """``kinds`` label -> kind; ``not_completed`` labels whose target did not get to its end.

    ``pass_at`` the score from which a trial passes, None where scores are not to be judged.
    """

    kinds: Mapping[str, Kind]
    not_completed: frozenset[str] = frozenset()
    pass_at: float | None = None

    def kind_of(self, label: str | None) -> Kind | None:
        """The kind of a label; None for one that nobody declared."""
        if label is None:
            return None
        known = BUILTIN_OUTCOMES.get(label)
        return self.kinds.get(label) or (None if known is None else known.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a row came to; both None where it reported nothing."""

    outcome: str | None
    kind: Kind | None
    failure_class: str | None
    completed: bool | None


def meanings(rows: Sequence[SourceRow], labels: Labels, path: str) -> list[Meaning]:
    """What each row came to.

    A label that stands for the instrument or for an excluded trial decides by itself, whatever score
    the row carries; between pass and fail the row's own ``passed`` decides, then its score, then its
    label. Raises `UsageError` for labels that nobody declared, for scores without a threshold and for
    rows that contradict themselves.
    """
    unknown: Counter[str] = Counter()
    problems: list[tuple[str, str]] = []
    scores = 0
    found: list[Meaning] = []
    for row in rows:
        passed = row.passed
        if passed is None and row.score is not None:
            if labels.pass_at is not None:
                passed = row.score >= labels.pass_at
            elif row.score in (0, 1):
                passed = bool(row.score)
        kind = labels.kind_of(row.outcome)
        if kind in (Kind.INSTRUMENT, Kind.EXCLUDED) or (kind is not None and passed is None):
            found.append(_meaning(row, labels, row.outcome, kind))
        elif passed is None:
            if row.outcome is not None:
                unknown[row.outcome] += 1
            elif row.score is not None:
                scores += 1
            found.append(Meaning(outcome=None, kind=None, failure_class=None, completed=None))
        elif kind is not None and passed is not (kind is Kind.PASS):
            says = "passed" if passed else "did not pass"
            problems.append((row.where, f"it {says} and {row.outcome!r} is of the kind {kind.value}"))
        else:
            found.append(_decided(row, labels, kind, passed=passed))
    if unknown:
        raise UsageError(_question(unknown, path))
    refuse(path, problems)
    if scores:
        raise UsageError(
            f"{path} has {scores} scores other than 0 and 1; say from which one a trial passes, for example "
            "--pass-at 0.5."
        )
    return found


def _decided(row: SourceRow, labels: Labels, kind: Kind | None, *, passed: bool) -> Meaning:
    if kind is not None:
        return _meaning(row, labels, row.outcome, kind)
    default = PASSED if passed else FAILED
    meaning = _meaning(row, labels, default.label, default.kind)
    if passed or row.failure_class is not None:
        return meaning
    return Meaning(
        outcome=meaning.outcome, kind=meaning.kind, failure_class=row.outcome, completed=meaning.completed
    )


def _meaning(row: SourceRow, labels: Labels, outcome: str | None, kind: Kind | None) -> Meaning:
    completed = row.completed
    if completed is None and kind is not Kind.EXCLUDED:
        stopped = kind in (Kind.CRASH, Kind.INSTRUMENT) or row.outcome in labels.not_completed
        completed = not stopped
    return Meaning(outcome=outcome, kind=kind, failure_class=row.failure_class, completed=completed)


def _question(unknown: Counter[str], path: str) -> str:
    listed = ", ".join(f"{label} ({count})" for label, count in unknown.most_common(_SHOWN))
    more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
    first = unknown.most_common(1)[0][0]
    return (
        f"{path} has labels whose kind nobody said: {listed}{more}; name each with --passed, --failed, "
        f"--crashed, --instrument or --excluded, for example --instrument {first}."
    )


def parse_labels(
    given: Mapping[Kind, Sequence[str]], not_completed: Sequence[str], pass_at: float | None
) -> Labels:
    """The labels as options give them, comma-separated; `UsageError` for one of two kinds."""
    kinds: dict[str, Kind] = {}
    for kind, texts in given.items():
        for label in _split(texts):
            if kinds.setdefault(label, kind) is not kind:
                raise UsageError(f"The label {label!r} is given as {kinds[label].value} and as {kind.value}.")
    return Labels(kinds=kinds, not_completed=frozenset(_split(not_completed)), pass_at=pass_at)


def _split(texts: Sequence[str]) -> list[str]:
    return [label for text in texts for label in (part.strip() for part in text.split(",")) if label]
