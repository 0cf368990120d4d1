"""What a vocabulary, and the way it was used, say about whether its labels mean one thing each.

Nothing here knows what a label means. It looks at what a label that means two things gives away: its
definition, the places that assign it, and what the trials that carry it have in common.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_crashlab.records.outcome import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_crashlab.records.outcome import Vocabulary

MANY = 30
"""Trials without a label that say it is not used: 0 of 30 leaves at most 10 % at 95 % confidence."""

_OR = re.compile(r"\bor\b", re.IGNORECASE)
_LIMIT = re.compile(r"time[ds]?[ _-]?out|timeout|deadline|wall_clock|horizon|exhausted", re.IGNORECASE)
_MOST_SITES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A vocabulary as a run keeps it: where it was found, its outcomes, what its author answered."""

    key: str
    where: str
    outcomes: tuple[tuple[str, str, str], ...]
    silence: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, vocabulary: Vocabulary, *, key: str, where: str) -> Declared:
        """``key`` tells it from the session's others, ``where`` names the first test that has it."""
        return cls(
            key=key,
            where=where,
            outcomes=tuple((o.label, o.kind.value, o.definition) for o in vocabulary.declared),
            silence=tuple(vocabulary.silence.items()),
        )

    @classmethod
    def from_mapping(cls, data: dict[str, Any]) -> Declared:
        """What ``to_mapping`` made, as it comes back from JSON."""
        return cls(
            key=str(data["key"]),
            where=str(data["where"]),
            outcomes=tuple(
                (str(o["label"]), str(o["kind"]), str(o.get("definition") or "")) for o in data["outcomes"]
            ),
            silence=tuple(dict(data.get("silence") or {}).items()),
        )

    def to_mapping(self) -> dict[str, Any]:
        """Plain values for a manifest."""
        return {
            "key": self.key,
            "where": self.where,
            "outcomes": [
                {"label": label, "kind": kind, "definition": definition}
                for label, kind, definition in self.outcomes
            ],
            "silence": dict(self.silence),
        }

    @property
    def kinds(self) -> dict[str, str]:
        """Label -> kind."""
        return {label: kind for label, kind, _ in self.outcomes}


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """How often one place assigned one label under one vocabulary, in one test function.

    ``vocabulary`` its key; ``at_limit`` how many of the ``count`` trials had used
    up their declared horizon, ``below`` how many had one and had not.
    """

    vocabulary: str
    test: str
    label: str
    kind: str
    phase: str | None
    site: str | None
    count: int
    at_limit: int = 0
    below: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something to look at: its code, the label it is about ("" for the whole), and a sentence.

    ``allowed`` the author's reason why it is no mistake; None while nobody answered it.
    """

    code: str
    label: str
    text: str
    allowed: str | None = None

    @property
    def key(self) -> str:
        """What ``Vocabulary(silence=...)`` names it by."""
        return f"{self.code}:{self.label}" if self.label else self.code


def lint_declared(vocabularies: Sequence[Declared]) -> tuple[Finding, ...]:
    """What can be known before a trial runs: definitions, duplicates, no pass label, kinds that differ."""
    found: list[Finding] = []
    for declared in vocabularies:
        found += _answered(_definitions(declared), declared.silence)
    found += _answered(_kinds(vocabularies), [pair for d in vocabularies for pair in d.silence])
    return tuple(dict.fromkeys(found))


def lint_used(vocabularies: Sequence[Declared], uses: Sequence[Use]) -> tuple[Finding, ...]:
    """What only a run can tell: labels never assigned, in several phases, from places that mix causes."""
    found: list[Finding] = []
    for declared in vocabularies:
        mine = [use for use in uses if use.vocabulary == declared.key]
        found += _answered(
            [*_never(declared, mine), *_phases(declared, mine), *_mixed(mine)], declared.silence
        )
    return tuple(dict.fromkeys(found))


def _answered(findings: Iterable[Finding], silence: Iterable[tuple[str, str]]) -> list[Finding]:
    reasons = dict(silence)
    return [Finding(code=f.code, label=f.label, text=f.text, allowed=reasons.get(f.key)) for f in findings]


def _definitions(declared: Declared) -> Iterator[Finding]:
    where = f"The vocabulary of {declared.where}"
    seen: set[str] = set()
    for label, _, definition in declared.outcomes:
        if label in seen:
            text = f"{where} declares {label} twice; only the last one counts."
            yield Finding(code="duplicate_label", label=label, text=text)
        seen.add(label)
        if not definition.strip():
            text = f"{where} has no definition of {label}: write down in one line what happened then."
            yield Finding(code="no_definition", label=label, text=text)
        elif _OR.search(definition):
            text = f'{where} defines {label} with "or" ("{definition.strip()}"): make two labels of it.'
            yield Finding(code="or_in_definition", label=label, text=text)
    if declared.outcomes and Kind.PASS.value not in declared.kinds.values():
        text = f"{where} has no label of the kind pass, so a trial that fails nothing is called passed."
        yield Finding(code="no_pass_label", label="", text=text)


def _kinds(vocabularies: Sequence[Declared]) -> Iterator[Finding]:
    places: dict[str, dict[str, str]] = {}
    for declared in vocabularies:
        for label, kind in declared.kinds.items():
            places.setdefault(label, {}).setdefault(kind, declared.where)
    for label, kinds in places.items():
        if len(kinds) > 1:
            said = " and ".join(f"{kind} in {where}" for kind, where in kinds.items())
            text = f"The label {label} is of different kinds: {said}. Give one of them another label."
            yield Finding(code="kinds_differ", label=label, text=text)


def _never(declared: Declared, uses: Sequence[Use]) -> Iterator[Finding]:
    """Labels of the system that none of many trials came to which could have.

    A pass could have been another pass, and what did not pass another failure; that an instrument
    label never occurs is as it should be.
    """
    assigned = {use.label for use in uses}
    passes = sum(u.count for u in uses if u.kind == Kind.PASS.value)
    failures = sum(u.count for u in uses if u.kind in (Kind.FAIL.value, Kind.CRASH.value))
    for label, kind in declared.kinds.items():
        of, what = (passes, "passed") if kind == Kind.PASS.value else (failures, "failed")
        if kind in (Kind.INSTRUMENT.value, Kind.EXCLUDED.value) or label in assigned or of < MANY:
            continue
        text = f"{label} was never assigned in {of} trials of its tests that {what}: see which line should."
        yield Finding(code="never_assigned", label=label, text=text)


def _phases(declared: Declared, uses: Sequence[Use]) -> Iterator[Finding]:
    for label, kind in declared.kinds.items():
        phases: dict[str, str] = {}
        for use in uses:
            if use.label == label and use.phase is not None and use.site is not None:
                phases.setdefault(use.phase, use.site)
        if len(phases) > 1 and kind != Kind.INSTRUMENT.value:
            said = " and ".join(f"in {phase} ({site})" for phase, site in sorted(phases.items()))
            text = f"{label} is assigned in different phases of a trial, {said}: do both name one cause?"
            yield Finding(code="several_phases", label=label, text=text)


def _mixed(uses: Sequence[Use]) -> Iterator[Finding]:
    """Crashes, time-outs and passes that several places assign: the labels that tend to mix causes."""
    for label in dict.fromkeys(use.label for use in uses):
        mine = [use for use in uses if use.label == label]
        limit = bool(_LIMIT.search(label))
        if mine[0].kind == Kind.INSTRUMENT.value or mine[0].kind == Kind.EXCLUDED.value:
            continue
        at_limit, below = (sum(getattr(u, name) for u in mine) for name in ("at_limit", "below"))
        if limit and at_limit and below:
            text = (
                f"{label} names {_trials(at_limit)} that used up the declared horizon and {below} that had "
                "not: a limit of the machine may share the label of one of the target."
            )
            yield Finding(code="mixed_causes", label=label, text=text)
        elif limit or mine[0].kind in (Kind.CRASH.value, Kind.PASS.value):
            yield from _many_places(label, mine)


def _many_places(label: str, uses: Sequence[Use]) -> Iterator[Finding]:
    by_test: dict[str, dict[str, int]] = {}
    for use in uses:
        if use.site is not None:
            counts = by_test.setdefault(use.test, {})
            counts[use.site] = counts.get(use.site, 0) + use.count
    most = max(by_test, key=lambda test: len(by_test[test]), default=None)
    if most is None or len(by_test[most]) < 2:
        return
    sites = sorted(by_test[most].items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{site} ({count})" for site, count in sites[:_MOST_SITES])
    more = f" and {len(sites) - _MOST_SITES} more" if len(sites) > _MOST_SITES else ""
    text = (
        f"{label} is assigned at {len(sites)} places in {most}: {shown}{more}. Would each have been as "
        "likely with another candidate? What would is the instrument's and needs a label of its own."
    )
    yield Finding(code="mixed_causes", label=label, text=text)


def _trials(number: int) -> str:
    return f"{number} trial{'s' * (number != 1)}"
