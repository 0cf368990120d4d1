"""What an answer says of itself: model, tokens, why it stopped, whether it is whole.

Read by shape, so that whoever speaks the same format is understood: OpenAI's chat completions, responses
and embeddings, Anthropic's messages, Gemini's generateContent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_crashlab.provider.base import NO_TOKENS, Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

_NO_TIME = 1e12  # seconds since the epoch


@dataclass(slots=True, kw_only=True)
class Reading:
    """What was read; None where the answer does not say.

    ``understood`` it has a known shape; ``ended`` it says that it is whole; ``empty`` it says nothing and
    nothing was worked for; ``billed`` US dollars, as the answer names them; ``fault`` the error in it.
    ``id`` the provider's own and ``created`` when it was made, as the provider has it; ``computed`` it is no
    model's text, and the same each time.
    """

    understood: bool = False
    ended: bool = False
    empty: bool = False
    model: str | None = None
    finish: str | None = None
    tokens: Tokens = NO_TOKENS
    billed: float | None = None
    fault: Mapping[str, Any] | None = None
    id: str | None = None
    created: float | str | None = None
    computed: bool = False


def read_answer(body: object) -> Reading:
    """Read a whole answer that is decoded JSON."""
    if not isinstance(body, Mapping):
        return Reading()
    if isinstance(body.get("error"), Mapping):
        return Reading(understood=True, ended=True, fault=body["error"])
    reading = Reading(understood=True, ended=True, model=_text(body.get("model")), billed=_billed(body))
    _read_own(reading, body)
    if body.get("object") == "response":
        _read_response(reading, body)
    elif body.get("type") == "message":
        _read_message(reading, body)
    elif "usageMetadata" in body or "candidates" in body:
        _read_gemini(reading, body)
    elif isinstance(body.get("choices"), list):
        _read_chat(reading, body)
        reading.empty = not body["choices"]
    elif isinstance(body.get("data"), list) and isinstance(body.get("usage"), Mapping):
        reading.tokens = Tokens(input=_count(body["usage"].get("prompt_tokens")), output=0)
        reading.computed = True
    else:
        return Reading()
    return reading


def read_stream(text: str) -> Reading:
    """Read a stream of server-sent events, as far as it came."""
    reading = Reading()
    for data in _events(text):
        if data.startswith("[DONE]"):
            reading.ended = True
            continue
        try:
            event = json.loads(data)
        except ValueError:
            return Reading(understood=True)
        if isinstance(event, Mapping):
            _read_event(reading, event)
    return reading


def _events(text: str) -> Iterator[str]:
    """The data of each event; the last one counts only when it is closed by an empty line."""
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]:
        if line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))
        elif not line and lines:
            yield "\n".join(lines)
            lines = []


def _read_event(reading: Reading, event: Mapping[str, Any]) -> None:
    kind = event.get("type")
    if isinstance(event.get("error"), Mapping):
        reading.understood, reading.fault = True, event["error"]
    elif kind in {"response.completed", "response.incomplete", "response.failed"}:
        reading.understood = reading.ended = True
        answer = event.get("response") or {}
        reading.model = _text(answer.get("model"))
        _read_own(reading, answer)
        _read_response(reading, answer)
    elif kind == "message_start":
        reading.understood = True
        reading.model = _text((event.get("message") or {}).get("model"))
        _read_own(reading, event.get("message") or {})
        _read_message(reading, event.get("message") or {})
        reading.empty = False
    elif kind == "message_delta":
        _read_delta(reading, event)
    elif kind == "message_stop":
        reading.ended = True
    elif isinstance(event.get("choices"), list):
        reading.understood = True
        reading.model = reading.model or _text(event.get("model"))
        _read_own(reading, event)
        reading.billed = _billed(event) if reading.billed is None else reading.billed
        _read_chat(reading, event)
        reading.ended = reading.ended or reading.finish is not None
    elif isinstance(kind, str) and kind.startswith("response."):
        reading.understood = True


def _read_own(reading: Reading, body: Mapping[str, Any]) -> None:
    reading.id = _text(body.get("id")) or _text(body.get("responseId")) or reading.id
    for name in ("created", "created_at", "createTime"):
        made = body.get(name)
        is_time = isinstance(made, int | float) and not isinstance(made, bool) and 0 <= made < _NO_TIME
        if is_time or isinstance(made, str):
            reading.created = made
            return


def _read_chat(reading: Reading, body: Mapping[str, Any]) -> None:
    for choice in body["choices"]:
        if isinstance(choice, Mapping):
            reading.finish = _text(choice.get("finish_reason")) or reading.finish
    usage = body.get("usage")
    if not isinstance(usage, Mapping):
        return
    read, written = _part(usage, "prompt_tokens_details"), _part(usage, "completion_tokens_details")
    reading.tokens = Tokens(
        input=_count(usage.get("prompt_tokens")),
        output=_count(usage.get("completion_tokens")),
        cache_read=_count(read.get("cached_tokens")),
        cache_write=_count(read.get("cache_write_tokens")),
        reasoning=_count(written.get("reasoning_tokens")),
    )


def _read_response(reading: Reading, body: Mapping[str, Any]) -> None:
    reason = _part(body, "incomplete_details").get("reason")
    reading.finish = _text(reason) or _text(body.get("status"))
    if isinstance(body.get("error"), Mapping):
        reading.fault = body["error"]
    reading.empty = body.get("status") == "completed" and not body.get("output")
    usage = body.get("usage")
    if not isinstance(usage, Mapping):
        return
    read, written = _part(usage, "input_tokens_details"), _part(usage, "output_tokens_details")
    reading.tokens = Tokens(
        input=_count(usage.get("input_tokens")),
        output=_count(usage.get("output_tokens")),
        cache_read=_count(read.get("cached_tokens")),
        cache_write=_count(read.get("cache_write_tokens")),
        reasoning=_count(written.get("reasoning_tokens")),
    )


def _read_message(reading: Reading, body: Mapping[str, Any]) -> None:
    reading.finish = _text(body.get("stop_reason"))
    usage = body.get("usage")
    written = None
    if isinstance(usage, Mapping):
        reading.tokens = _message_tokens(usage)
        written = reading.tokens.output
    reading.empty = not body.get("content") and not written


def _message_tokens(usage: Mapping[str, Any]) -> Tokens:
    """Anthropic's input tokens leave out what came from the cache and what went into it."""
    fresh = _count(usage.get("input_tokens"))
    read = _count(usage.get("cache_read_input_tokens"))
    write = _count(usage.get("cache_creation_input_tokens"))
    return Tokens(
        input=None if fresh is None else fresh + (read or 0) + (write or 0),
        output=_count(usage.get("output_tokens")),
        cache_read=read,
        cache_write=write,
        reasoning=_count(_part(usage, "output_tokens_details").get("thinking_tokens")),
    )


def _read_delta(reading: Reading, event: Mapping[str, Any]) -> None:
    reading.understood = True
    reading.finish = _text(_part(event, "delta").get("stop_reason")) or reading.finish
    usage = event.get("usage")
    if not isinstance(usage, Mapping):
        return
    late, before = _message_tokens(usage), reading.tokens
    reading.tokens = Tokens(
        input=before.input if late.input is None else late.input,
        output=before.output if late.output is None else late.output,
        cache_read=before.cache_read if late.input is None else late.cache_read,
        cache_write=before.cache_write if late.input is None else late.cache_write,
        reasoning=late.reasoning,
    )


def _read_gemini(reading: Reading, body: Mapping[str, Any]) -> None:
    reading.model = _text(body.get("modelVersion"))
    for candidate in body.get("candidates") or []:
        if isinstance(candidate, Mapping):
            reading.finish = _text(candidate.get("finishReason")) or reading.finish
    usage = _part(body, "usageMetadata")
    visible, thoughts = _count(usage.get("candidatesTokenCount")), _count(usage.get("thoughtsTokenCount"))
    reading.tokens = Tokens(
        input=_count(usage.get("promptTokenCount")),
        output=None if visible is None else visible + (thoughts or 0),
        cache_read=_count(usage.get("cachedContentTokenCount")),
        reasoning=thoughts,
    )


def _billed(body: Mapping[str, Any]) -> float | None:
    """What gateways put beside the tokens, in US dollars."""
    cost = _part(body, "usage").get("cost")
    if isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0:
        return float(cost)
    return None


def _part(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = body.get(name)
    return part if isinstance(part, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
