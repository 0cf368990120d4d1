"""A model that says what it is told to: deterministic, seeded, with faults at will. Needs no network."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import UsageError
from pytest_crashlab.provider import formats
from pytest_crashlab.provider.base import Binding

if TYPE_CHECKING:
    from collections.abc import Sequence

# fault -> status and the (type, code, message) of its body; None: the connection breaks instead
FAULTS: dict[str, tuple[int, str, str | None, str] | None] = {
    "rate_limit": (429, "rate_limit_error", "rate_limit_exceeded", "scripted rate limit"),
    "quota": (429, "insufficient_quota", "insufficient_quota", "scripted empty balance"),
    "auth": (401, "authentication_error", "invalid_api_key", "scripted refusal"),
    "error": (500, "server_error", None, "scripted server error"),
    "overloaded": (529, "overloaded_error", None, "scripted overload"),
    "too_long": (400, "invalid_request_error", "context_length_exceeded", "prompt is too long"),
    "timeout": None,
    "refused": None,
    "reset": None,
    "truncated": None,
    "bad_json": None,
    "empty": None,
    "no_usage": None,
}
WORDS_A_TOKEN = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer: ``text``, or a ``fault`` in its place (see :data:`FAULTS`).

    ``tokens_in`` and ``tokens_out`` None: counted by words; ``finish`` the reason for stopping, as OpenAI
    names it ("stop", "length", "content_filter").
    """

    text: str = ""
    fault: str | None = None
    finish: str = "stop"
    tokens_in: int | None = None
    tokens_out: int | None = None

    def __post_init__(self) -> None:
        if self.fault is not None and self.fault not in FAULTS:
            raise UsageError(
                f"a scripted reply has no fault {self.fault!r}; choose one of {', '.join(FAULTS)}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What comes back over the wire: a status with a body, or a break of the connection by name."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    breaks: str | None = None


Script = Callable[[str, random.Random], "str | Reply"]


class Scripted:
    """``Scripted("yes", "no")`` answers a trial's first request with yes and all others with no.

    ``replies`` texts and :class:`Reply` objects in order, the last one again and again, or one function
    of the prompt (the last message's text) and a random generator that is seeded by the trial and the
    number of the request. ``faults`` name -> share of the requests that end so, drawn with the same seed.
    """

    def __init__(
        self,
        *replies: str | Reply | Script,
        faults: Mapping[str, float] | None = None,
        model: str = "scripted",
    ) -> None:
        self.replies = replies or ("",)
        self.faults = dict(faults or {})
        self.model = model
        if any(callable(reply) for reply in self.replies) and len(self.replies) > 1:
            raise UsageError("Scripted takes texts and replies, or one function; not both")
        unknown = [name for name in self.faults if name not in FAULTS]
        if unknown:
            raise UsageError(f"Scripted has no fault {unknown[0]!r}; choose one of {', '.join(FAULTS)}")
        if any(not 0 <= share <= 1 for share in self.faults.values()) or sum(self.faults.values()) > 1:
            raise UsageError(
                f"Scripted got faults={self.faults}; give shares from 0 to 1 that add up to at most 1"
            )

    @property
    def binding(self) -> Binding:
        """The provider and model that its calls are recorded under."""
        return Binding(provider="scripted", model=self.model)

    def play(self, seed: int) -> Playing:
        """Start from the first reply, for one trial."""
        return Playing(self, seed)


class Playing:
    """A script in one trial: knows how many requests there were."""

    def __init__(self, scripted: Scripted, seed: int) -> None:
        self._scripted = scripted
        self._seed = seed
        self._lock = threading.Lock()
        self._count = 0

    def step(self, api: str, request: Mapping[str, Any]) -> Step:
        """What comes back for a request to ``api`` ("chat", "responses" or "messages")."""
        with self._lock:
            number, self._count = self._count, self._count + 1
        reply = self._reply(formats.prompt_of(request), number)
        return _step(api, request, reply)

    def _reply(self, prompt: str, number: int) -> Reply:
        generator = random.Random(f"{self._seed}/{number}")
        drawn = generator.random()
        for fault, share in self._scripted.faults.items():
            if drawn < share:
                return Reply(fault=fault)
            drawn -= share
        replies: Sequence[str | Reply | Script] = self._scripted.replies
        said = replies[min(number, len(replies) - 1)]
        if callable(said):
            said = said(prompt, generator)
        return said if isinstance(said, Reply) else Reply(text=str(said))


def _step(api: str, request: Mapping[str, Any], reply: Reply) -> Step:
    fault = reply.fault
    refusal = None if fault is None else FAULTS[fault]
    if refusal is not None:
        status, kind, code, message = refusal
        error = {"type": kind, "code": code, "message": message}
        return Step(status=status, body=json.dumps({"type": "error", "error": error}).encode())
    if fault in {"timeout", "refused", "reset"}:
        return Step(breaks=fault)
    prompt = formats.prompt_of(request)
    reply = replace(
        reply,
        tokens_in=_tokens(prompt) if reply.tokens_in is None else reply.tokens_in,
        tokens_out=_tokens(reply.text) if reply.tokens_out is None else reply.tokens_out,
    )
    answer = formats.answer(api, str(request.get("model")), reply)
    if fault == "no_usage":
        answer.pop("usage")
    if fault == "empty":
        answer.update(formats.NOTHING[api])
    if request.get("stream"):
        events = formats.events(api, answer, reply.text)
        content = events[: len(events) // 2] if fault in {"truncated", "bad_json"} else events
        return Step(body=content, content_type="text/event-stream", breaks=_cut(fault))
    content = json.dumps(answer).encode()
    if fault in {"truncated", "bad_json"}:
        content = content[: len(content) // 2]
    return Step(body=content, breaks=_cut(fault))


def _cut(fault: str | None) -> str | None:
    return "truncated" if fault == "truncated" else None


def _tokens(text: str) -> int:
    return max(1, round(len(text.split()) / WORDS_A_TOKEN))
