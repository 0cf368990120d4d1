"""What a finished span says of a call to a model, in the words of OpenTelemetry's GenAI conventions.

Newer and older names of the attributes are read. What a span does not say stays unknown.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_crashlab.provider import errors, repeats
from pytest_crashlab.provider.base import Call, Role, Status, Tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CALLS = frozenset({"chat", "text_completion", "generate_content"})
_OLDER_CALLS = frozenset({"chat", "completion"})
_UNKNOWN = "unknown"
_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
_CACHE_READ = ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens")
_CACHE_WRITE = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.cache_write_input_tokens",
)
_REASONING = ("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens")
_SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "max_tokens": "max_tokens",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
    "stop_sequences": "stop",
    "choice.count": "n",
}
_LONGEST_DETAIL = 300
# How the SDKs begin their messages, with the name of the class or without.
_ERROR_CODE = re.compile(r"(?:[\w.]+(?:: |\([\"']))?Error code: (\d{3})(?:$| - (\{.*\})?)", re.DOTALL)
_ROOTS = frozenset({"", "openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2"})
# Each of these classes of the SDKs stands for one status; BadRequestError is left out, since a 400 may be
# the system's own doing.
_STATUS_OF_CLASS = {
    "AuthenticationError": 401,
    "PermissionDeniedError": 403,
    "RateLimitError": 429,
    "InternalServerError": 500,
    "OverloadedError": 529,
}
_LABEL_OF_CLASS = {
    "timeout": errors.TIMEOUT,
    "APITimeoutError": errors.TIMEOUT,
    "ConnectTimeout": errors.TIMEOUT,
    "ReadTimeout": errors.TIMEOUT,
    "WriteTimeout": errors.TIMEOUT,
    "PoolTimeout": errors.TIMEOUT,
    "APIConnectionError": errors.NETWORK,
    "ConnectError": errors.NETWORK,
    "ReadError": errors.NETWORK,
    "WriteError": errors.NETWORK,
    "RemoteProtocolError": errors.NETWORK,
}
_LEFT = frozenset({"CancelledError", "GeneratorExit", "KeyboardInterrupt"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A finished span: ``start`` and ``end`` nanoseconds since the epoch, ``failed`` by its status.

    ``description`` what the status says; ``exceptions`` type and message of each that the span records.
    """

    attributes: Mapping[str, Any]
    start: int | None
    end: int | None
    failed: bool = False
    description: str | None = None
    exceptions: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    status: Status = Status.OK
    error: str | None = None
    detail: str | None = None
    http_status: int | None = None
    charged: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """An error's parts: the class or word for it, its text, the HTTP status, and what the body says."""

    kind: str
    text: str
    http_status: int | None
    fault: Mapping[str, Any] = field(default_factory=dict)


def is_call(attributes: Mapping[str, Any]) -> bool:
    """Whether a span with these attributes is one call to a model, and no agent's, tool's or embedding's."""
    operation = attributes.get("gen_ai.operation.name")
    if operation is None:  # before the convention had a name for it
        return attributes.get("llm.request.type") in _OLDER_CALLS
    return operation in _CALLS


def response_id(attributes: Mapping[str, Any]) -> str | None:
    """The provider's name for the answer."""
    return _text(attributes, "gen_ai.response.id")


def contents(attributes: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """What was sent and received, where the instrumentation was told to keep it."""
    sent, received = (_text(attributes, f"gen_ai.{side}.messages") or "" for side in ("input", "output"))
    return sent.encode(), received.encode()


def read_call(told: Told, *, number: int, request: int, role: Role, bound_to: str) -> Call:
    """The call that a span tells of; ``bound_to`` the provider that the test says it calls."""
    said = told.attributes
    failure = _failure(told)
    first = said.get("gen_ai.response.time_to_first_chunk")
    known = isinstance(first, int | float) and not isinstance(first, bool) and first >= 0
    tokens = _tokens(said)
    return Call(
        number=number,
        request=request,
        role=role,
        provider=_provider(said, bound_to),
        model=_text(said, "gen_ai.request.model"),
        answered_by=_text(said, "gen_ai.response.model"),
        settings=_settings(said),
        start=(told.start or 0) / 1e9,
        latency=_seconds(told),
        first=float(first) if known and first is not None else None,
        status=failure.status,
        http_status=failure.http_status,
        finish=_finish(said),
        error=failure.error,
        detail=failure.detail,
        tokens=tokens,
        charged=failure.charged or bool(tokens.input or tokens.output),
        streamed=said.get("gen_ai.request.stream") is True,
        answer=repeats.key_of_id(response_id(said)) if failure.status is Status.OK else None,
    )


def _text(said: Mapping[str, Any], *names: str) -> str | None:
    found = (said.get(name) for name in names)
    return next((value for value in found if isinstance(value, str) and value.strip()), None)


def _provider(said: Mapping[str, Any], bound_to: str) -> str:
    name = (_text(said, "gen_ai.provider.name", "gen_ai.system") or _UNKNOWN).strip().lower()
    if name == "openai" and bound_to == "openai-compatible":
        return bound_to  # an instrumentation names the SDK that was used, and not who answered it
    return _UNKNOWN if name == "_other" else name


def _settings(said: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, setting in _SETTINGS.items():
        value = said.get(f"gen_ai.request.{name}")
        if value is not None:
            found[setting] = list(value) if isinstance(value, tuple | list) else value
    return found


def _finish(said: Mapping[str, Any]) -> str | None:
    reasons = said.get("gen_ai.response.finish_reasons")
    if isinstance(reasons, str):
        reasons = (reasons,)
    if not isinstance(reasons, tuple | list):
        return None
    return ", ".join(dict.fromkeys(r for r in reasons if isinstance(r, str) and r)) or None


def _seconds(told: Told) -> float | None:
    if told.start is None or told.end is None or told.end < told.start:
        return None
    return (told.end - told.start) / 1e9


def _tokens(said: Mapping[str, Any]) -> Tokens:
    """The tokens, where ``input`` has the cached ones and ``output`` the reasoning, as the convention has it.

    Nothing is answered without reading, so an input of 0 is one that was not counted. A part that is larger
    than its whole shows that the whole leaves it out: then the whole is not known.
    """
    read, write = _count(said, _CACHE_READ), _count(said, _CACHE_WRITE)
    reasoning = _count(said, _REASONING)
    whole, written = _count(said, _INPUT) or None, _count(said, _OUTPUT)
    if whole is None and not written:
        written = None
    if whole is not None and whole < (read or 0) + (write or 0):
        whole = None
    if written is not None and written < (reasoning or 0):
        written = None
    return Tokens(input=whole, output=written, cache_read=read, cache_write=write, reasoning=reasoning)


def _count(said: Mapping[str, Any], names: Sequence[str]) -> int | None:
    for name in names:
        value = said.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None


def _failure(told: Told) -> _Failure:
    """How the call ended; a label only where the span leaves no doubt about it."""
    if not told.failed and _kind(told) is None:
        return _Failure()
    said = _said(told)
    name = said.kind.rpartition(".")[2]
    detail = ": ".join(part for part in (said.kind, said.text) if part)[:_LONGEST_DETAIL] or None
    if name in _LEFT:
        return _Failure(status=Status.ABANDONED, detail=detail)
    return _Failure(
        status=Status.ERROR,
        error=_label(said, name),
        detail=detail,
        http_status=said.http_status,
        charged=_status(said, name) is None,
    )


def _label(said: _Said, name: str) -> str | None:
    status = _status(said, name)
    if status is not None:
        unexplained = status == 400 and not said.fault.keys() & {"code", "message"}
        return None if unexplained else errors.label_of_status(status, said.fault)
    if _is_of_a_client(said.kind) and name in _LABEL_OF_CLASS:
        return _LABEL_OF_CLASS[name]
    return errors.label_of_words(said.fault)


def _status(said: _Said, name: str) -> int | None:
    """The status of an answer that is an error; None where nothing says that one was answered."""
    if said.http_status is not None:
        return said.http_status
    return _STATUS_OF_CLASS.get(name) if _is_of_a_client(said.kind) else None


def _is_of_a_client(kind: str) -> bool:
    """Whether a class is one of the SDKs or HTTP clients; a bare name is, a project's own is not."""
    root, dot, _ = kind.partition(".")
    return (root if dot else "") in _ROOTS


def _kind(told: Told) -> str | None:
    return _text(told.attributes, "error.type")


def _said(told: Told) -> _Said:
    kind = _kind(told) or ""
    last = told.exceptions[-1] if told.exceptions else ("", "")
    if not kind or last[0].endswith(f".{kind}"):
        kind = last[0]  # the same class, with its module
    text = told.description or last[1]
    code = _ERROR_CODE.match(text)
    status = told.attributes.get("http.response.status_code")
    if kind.isdecimal() and len(kind) == 3:
        status = int(kind)
    elif code is not None:
        status = int(code[1])
    is_error = isinstance(status, int) and 400 <= status <= 599
    fault = errors.fault_of(_body(None if code is None else code[2]))
    if text:
        fault.setdefault("message", text)
    if kind and not kind.isdecimal():
        fault.setdefault("type", kind)
    return _Said(kind=kind, text=text, http_status=status if is_error else None, fault=fault)


def _body(written: str | None) -> object:
    """The body of an answer as the SDKs write it into their messages."""
    try:
        return None if written is None else ast.literal_eval(written)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
