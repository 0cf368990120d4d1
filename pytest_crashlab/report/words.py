"""What changed between two texts, word by word."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SAME, REMOVED, ADDED, LEFT_OUT = "same", "removed", "added", "left_out"
MOST_CHARACTERS = 20_000
MOST_WORDS = 1_000  # of what is between the common beginning and the common end
_MOST_PAIRS = 200_000  # equal words that a comparison may have to look at
_NEAR = 12  # words that are alike and stay beside a change
_WORD = re.compile(r"\s*(?:\d+(?:[.,]\d+)+(?!\w)|\w+|[^\w\s]|\s+$)")


@dataclass(frozen=True, slots=True)
class Words:
    """A stretch of text: ``mark`` same, removed, added, or left_out where ``text`` says what is not shown."""

    mark: str
    text: str


def changed_words(before: str, after: str) -> tuple[Words, ...]:
    """``before`` and ``after`` as stretches; the ones that are not removed make ``after``, word for word.

    Blanks before a word are no change; long stretches that are alike are shortened. The work is bounded: of a
    long text the beginning is compared, and what is too much alike to be told apart is marked as a whole.
    """
    a, b = (_WORD.findall(side[:MOST_CHARACTERS]) for side in (before, after))
    cut = max(len(before), len(after)) - MOST_CHARACTERS
    x, y = ([word.strip() for word in side] for side in (a, b))
    head = _alike(x, y)
    tail = _alike(x[head:][::-1], y[head:][::-1]) if cut <= 0 else 0
    mid_a, mid_b = a[head : len(a) - tail], b[head : len(b) - tail]
    found = [Words(SAME, "".join(b[:head]))]
    found += _between(mid_a[:MOST_WORDS], mid_b[:MOST_WORDS])
    more = max(len(mid_a), len(mid_b)) - MOST_WORDS
    if more > 0:
        found.append(Words(LEFT_OUT, f"up to {more:,} more words are not compared"))
    elif cut > 0:
        found.append(Words(LEFT_OUT, f"up to {cut:,} more characters are not compared"))
    if more <= 0:
        found.append(Words(SAME, "".join(b[len(b) - tail :])))
    return tuple(part for whole in found if whole.text for part in _shortened(whole))


def are_alike(words: Sequence[Words]) -> bool:
    """Whether no word was removed or added."""
    return all(part.mark in {SAME, LEFT_OUT} for part in words)


def _alike(a: list[str], b: list[str]) -> int:
    """How many words the beginnings share."""
    for place, (one, other) in enumerate(zip(a, b, strict=False)):
        if one != other:
            return place
    return min(len(a), len(b))


def _between(a: list[str], b: list[str]) -> list[Words]:
    x, y = ([word.strip() for word in side] for side in (a, b))
    counts = Counter(x)
    if sum(counts[word] for word in y) > _MOST_PAIRS:
        return [Words(REMOVED, "".join(a)), Words(ADDED, "".join(b))]
    found = []
    for what, i, j, k, m in SequenceMatcher(None, x, y, autojunk=False).get_opcodes():
        if what == "equal":
            found.append(Words(SAME, "".join(b[k:m])))
            continue
        found += [Words(REMOVED, "".join(a[i:j])), Words(ADDED, "".join(b[k:m]))]
    return found


def _shortened(part: Words) -> list[Words]:
    words = _WORD.findall(part.text)
    between = len(words) - 2 * _NEAR
    if part.mark != SAME or between <= _NEAR:
        return [part]
    return [
        Words(SAME, "".join(words[:_NEAR])),
        Words(LEFT_OUT, f"{between:,} words are the same"),
        Words(SAME, "".join(words[-_NEAR:])),
    ]
