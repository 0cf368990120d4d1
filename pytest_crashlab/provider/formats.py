"""The wire formats of OpenAI and Anthropic, as far as a scripted model and a plain question need them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_crashlab.provider.base import Misuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_crashlab.provider.scripted import Reply

_FINISH_OF_MESSAGES = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
NOTHING: dict[str, dict[str, Any]] = {
    "chat": {"choices": []},
    "responses": {"output": []},
    "messages": {"content": [], "usage": {"input_tokens": 1, "output_tokens": 0}},
}
_PATHS = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages"}


def api_of(path: str) -> str:
    """Which of the formats a request to ``path`` speaks. Raises :class:`Misuse` for any other."""
    for ending, api in _PATHS.items():
        if path.endswith(ending):
            return api
    raise Misuse(f"a scripted model answers {', '.join(_PATHS)}, not {path}")


def prompt_of(request: Mapping[str, Any]) -> str:
    """The text of the last message of a request."""
    said = request.get("messages", request.get("input"))
    if isinstance(said, list) and said:
        last = said[-1]
        said = last.get("content") if isinstance(last, Mapping) else last
    return text_of(said)


def text_of(content: object) -> str:
    """The text in a message's content, which is a text or a list of blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return ""


def said_in(answer: Mapping[str, Any]) -> str:
    """The text that the model wrote, in any of the formats."""
    if isinstance(answer.get("choices"), list):
        message = answer["choices"][0].get("message") or {}
        return text_of(message.get("content"))
    if isinstance(answer.get("output"), list):
        blocks = [part for part in answer["output"] if part.get("type") == "message"]
        return "".join(text_of(part.get("content")) for part in blocks)
    return text_of(answer.get("content"))


def answer(api: str, model: str, reply: Reply) -> dict[str, Any]:
    """A whole answer."""
    if api == "messages":
        return {
            "id": "msg_scripted",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [{"type": "text", "text": reply.text}] if reply.text else [],
            "stop_reason": _FINISH_OF_MESSAGES.get(reply.finish, reply.finish),
            "stop_sequence": None,
            "usage": {"input_tokens": reply.tokens_in, "output_tokens": reply.tokens_out},
        }
    usage = {"total_tokens": (reply.tokens_in or 0) + (reply.tokens_out or 0)}
    if api == "responses":
        return _response(model, reply) | {
            "usage": {
                **usage,
                "input_tokens": reply.tokens_in,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": reply.tokens_out,
                "output_tokens_details": {"reasoning_tokens": 0},
            }
        }
    message = {"role": "assistant", "content": reply.text}
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
        "usage": {**usage, "prompt_tokens": reply.tokens_in, "completion_tokens": reply.tokens_out},
    }


def _response(model: str, reply: Reply) -> dict[str, Any]:
    cut = reply.finish != "stop"
    reason = "max_output_tokens" if reply.finish == "length" else reply.finish
    return {
        "id": "resp_scripted",
        "object": "response",
        "created_at": 0,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": reason} if cut else None,
        "model": model,
        "output": [
            {
                "type": "message",
                "id": "msg_scripted",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "text": reply.text, "annotations": []}],
            }
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def events(api: str, whole: Mapping[str, Any], text: str) -> bytes:
    """The same answer as a stream of server-sent events."""
    made = {"chat": _chat, "responses": _responses, "messages": _messages}[api](whole, text)
    parts = []
    for event in made:
        kind = event.get("type")
        parts.append((f"event: {kind}\n" if kind else "") + f"data: {json.dumps(event)}\n\n")
    if api == "chat":
        parts.append("data: [DONE]\n\n")
    return "".join(parts).encode()


def _pieces(text: str) -> list[str]:
    return (
        text.splitlines(keepends=True)
        if "\n" in text
        else [text[i : i + 20] for i in range(0, len(text), 20)]
    )


def _chat(whole: Mapping[str, Any], text: str) -> Iterator[dict[str, Any]]:
    base = {**whole, "object": "chat.completion.chunk", "usage": None}
    for piece in _pieces(text):
        yield {**base, "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
    for choice in whole["choices"]:
        end = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
        yield {**base, "choices": [end]}
    yield {**base, "choices": [], "usage": whole.get("usage")}


def _responses(whole: Mapping[str, Any], text: str) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "sequence_number": 0, "response": {**whole, "status": "in_progress"}}
    pieces = _pieces(text)
    for number, piece in enumerate(pieces, start=1):
        yield {
            "type": "response.output_text.delta",
            "sequence_number": number,
            "item_id": "msg_scripted",
            "output_index": 0,
            "content_index": 0,
            "delta": piece,
            "logprobs": [],
        }
    kind = "response.completed" if whole["status"] == "completed" else "response.incomplete"
    yield {"type": kind, "sequence_number": len(pieces) + 1, "response": whole}


def _messages(whole: Mapping[str, Any], text: str) -> Iterator[dict[str, Any]]:
    usage = dict(whole.get("usage") or {})
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None, "usage": usage}}
    if whole["content"]:
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        for piece in _pieces(text):
            yield {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": piece},
            }
        yield {"type": "content_block_stop", "index": 0}
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": usage.get("output_tokens")}}
    yield {"type": "message_stop"}
