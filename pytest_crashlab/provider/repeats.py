"""By what an answer is known again that a cache, and not the provider, gave.

Equal texts say nothing: a model may well repeat itself. But a provider gives its own id to one answer only,
so an answer that comes with its id again was not made again. Answers without such an id are known by the
second in which they were made, which counts only where it comes again later (see
:mod:`pytest_crashlab.store.repeats`). Some caches say themselves, in a header, that they answered.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from datetime import UTC
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from pytest_crashlab.records.trial import STAMPED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_crashlab.provider.answers import Reading
    from pytest_crashlab.provider.base import Call

MOST_KEPT = 50  # of a trial's answers, in each role: a cache shows itself in the first ones
_TOLD = "="  # begins what is known by the id alone, as no answer was seen
_LEAST_OF_AN_ID = 12
_LEAST_OF_CHARACTERS = 5
_ONE_DAY = 86_400
_FINE_STAMP = re.compile(r"\d\d:\d\d\.\d{3,}")
# Other caches than those that keep answers: what a model has worked out of a prompt.
_OF_PROMPTS = ("prompt", "prefix", "kv", "token", "control")
_FROM_CACHE = ("from-cache", "cached", "cache-hit")
_WHOLE = frozenset({"stale", "updating", "revalidated", "refreshhit", "hitstale"})


def says_hit(headers: Mapping[str, str]) -> bool:
    """Whether a header of an answer says that a cache gave it."""
    return any(_is_hit(name.lower(), value.strip().lower()) for name, value in headers.items())


def _is_hit(name: str, value: str) -> bool:
    if name == "age":
        return _number(value) > 0
    if "cache" not in name or any(word in name for word in _OF_PROMPTS):
        return False
    if name == "x-litellm-cache-key":
        return bool(value)  # sent with hits only
    if name.endswith("cache-hits"):
        return any(_number(part) > 0 for part in value.split(","))
    if name.endswith(_FROM_CACHE) and value in {"1", "true", "yes"}:
        return True
    words = set(re.findall("[a-z]+", value))
    return value in _WHOLE or ("hit" in words and not words & {"no", "not", "non"} and "hit=?0" not in value)


def _number(value: str) -> int:
    return int(value) if value.strip().isdecimal() else 0


def key_of_answer(
    reading: Reading,
    headers: Mapping[str, str],
    *,
    header_id: str | None,
    asked: Sequence[bytes],
    received: bytes,
    start: float,
) -> str | None:
    """What an answer is known by when it comes again; None where nothing of it is the provider's own.

    ``asked`` the parts of the request, of which none may hold the id; ``start`` when it was sent.
    """
    made = reading.created
    for own in (reading.id, header_id):
        if own is None or not is_own(own):
            continue
        name, time = _bytes(own), _bytes("" if made is None else str(made))
        if not any(name in part for part in asked):
            return _digest(b"id", name, received.replace(time, b"") if time else received)
    if isinstance(made, str):
        return _digest(b"made", received) if _FINE_STAMP.search(made) else None
    stamp = b""
    if made is None:
        stamp = headers.get("date", "").encode()
        made = _moment(headers.get("date"))
    if made is None or abs(made - start) > _ONE_DAY:  # a constant of a stub, or no time at all
        return None
    return STAMPED + _digest(b"stamp", stamp, *asked, received)


def key_of_id(own: str | None) -> str | None:
    """The same where only the provider's id is known."""
    return None if own is None or not is_own(str(own)) else _TOLD + _digest(b"told", _bytes(str(own)))


def is_own(name: str) -> bool:
    """Whether an id is long enough to be given once only, as "chatcmpl-417" is not."""
    kind, _, rest = name.replace("_", "-").partition("-")
    own = rest or kind
    return len(own) >= _LEAST_OF_AN_ID and len(set(own)) >= _LEAST_OF_CHARACTERS


def kept(calls: Iterable[Call]) -> list[str]:
    """What the answers of a trial are known by, each once."""
    room: Counter[str] = Counter()
    found = {}
    for call in calls:
        if call.answer is not None and room[call.role] < MOST_KEPT:
            room[call.role] += 1
            found[call.answer] = True
    return list(found)


def cached_within(calls: Sequence[Call]) -> bool:
    """Whether the calls of one trial alone show a cache: one says so, or an answer came twice."""
    seen = Counter(c.answer for c in calls if c.answer is not None and c.answer[0] not in (STAMPED, _TOLD))
    return any(call.cached for call in calls) or any(times > 1 for times in seen.values())


def _moment(date: str | None) -> float | None:
    try:
        return None if date is None else parsedate_to_datetime(date).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # JSON may hold half a character


def _digest(*parts: bytes) -> str:
    made = sha256()
    for part in parts:
        made.update(len(part).to_bytes(8, "big"))
        made.update(part)
    return base64.urlsafe_b64encode(made.digest()[:9]).decode()
