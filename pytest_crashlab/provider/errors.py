"""What an error of a model call means: the instrument's, with its label, or the system's own doing.

Decided by status, code and type. Leaf classes move between versions of the SDKs, and one class stands
for different things (a rate limit and an empty balance are both 429).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import InstrumentFailure

if TYPE_CHECKING:
    from types import TracebackType

# Set on requests that went through a recording transport: only of these is it known that a model was asked.
MARK = "pytest_crashlab"

RATE_LIMIT = "provider_rate_limit"
QUOTA = "provider_quota"
AUTH = "provider_auth"
ERROR = "provider_error"
TIMEOUT = "provider_timeout"
BAD_RESPONSE = "bad_response"
NETWORK = "network_error"

# The request was understood and cannot be answered as it is: another candidate might have asked better.
_OF_THE_SYSTEM = frozenset(
    {
        "context_length_exceeded",
        "string_above_max_length",
        "content_filter",
        "content_policy_violation",
        "invalid_prompt",
        "moderation_blocked",
        "image_content_policy_violation",
    }
)
_OF_THE_SYSTEM_TEXTS = ("prompt is too long", "maximum context length", "context window")
_QUOTA_WORDS = frozenset(
    {"insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active"}
)
_QUOTA_TEXTS = (
    "credit balance",
    "insufficient credits",
    "insufficient balance",
    "exceeded your current quota",
)
_BY_WORD = {
    "rate_limit_exceeded": RATE_LIMIT,
    "rate_limit_error": RATE_LIMIT,
    "authentication_error": AUTH,
    "invalid_api_key": AUTH,
    "permission_error": AUTH,
    "overloaded_error": ERROR,
    "timeout_error": TIMEOUT,
}
_BY_STATUS = {400: ERROR, 401: AUTH, 402: QUOTA, 403: AUTH, 408: TIMEOUT, 413: None, 429: RATE_LIMIT}
_SDKS = frozenset({"openai", "anthropic"})
_CLIENTS = frozenset({"httpx", "httpx2"})
_DEEPEST = 8


def label_of_status(status: int | None, fault: Mapping[str, Any]) -> str | None:
    """The label of an answer that is an error; None where it is the system's doing.

    ``status`` the HTTP status, None or 2xx for an error inside a stream; ``fault`` code, type and message
    as far as they are known.
    """
    words = {str(fault[key]) for key in ("code", "type") if fault.get(key) is not None}
    message = str(fault.get("message") or "").lower()
    if words & _OF_THE_SYSTEM:
        return None
    if words & _QUOTA_WORDS or any(text in message for text in _QUOTA_TEXTS):
        return QUOTA
    if status is None or status < 400:
        return next((_BY_WORD[word] for word in sorted(words) if word in _BY_WORD), ERROR)
    if status == 400:
        if any(text in message for text in _OF_THE_SYSTEM_TEXTS):
            return None
        return AUTH if "invalid_api_key" in words else ERROR
    return _BY_STATUS.get(status, ERROR)


def label_of_words(fault: Mapping[str, Any]) -> str | None:
    """The label by code and type alone, where one of them is known; else None."""
    words = {str(fault[key]) for key in ("code", "type") if fault.get(key) is not None}
    if words & (_OF_THE_SYSTEM | _QUOTA_WORDS | _BY_WORD.keys()):
        return label_of_status(None, {key: fault[key] for key in ("code", "type") if key in fault})
    return None


def fault_of(body: object) -> dict[str, Any]:
    """Code, type and message of an error's body, whatever it is wrapped in."""
    found: dict[str, Any] = {}
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(inner, Mapping):
        found = {key: inner[key] for key in ("code", "type", "message") if inner.get(key) is not None}
    elif isinstance(inner, str):
        found = {"message": inner}
    return found


def label_of_exception(exception: BaseException) -> str | None:
    """The instrument's label for what a model call raised, or None: not such an error, or the system's.

    Looks through what exceptions were raised ``from``, as frameworks wrap those of their SDK.
    """
    seen: BaseException | None = exception
    for _ in range(_DEEPEST):
        if seen is None or isinstance(seen, AssertionError):
            return None
        if isinstance(seen, InstrumentFailure):
            return seen.label
        decided, label = _decide(seen)
        if decided:
            return label
        seen = seen.__cause__
    return None


def _decide(exception: BaseException) -> tuple[bool, str | None]:
    """Whether the exception is one of a model call, and its label."""
    names = {cls.__name__: cls.__module__.partition(".")[0] for cls in reversed(type(exception).__mro__)}
    roots = set(names.values())
    if roots & _SDKS:
        return _decide_sdk(exception, set(names))
    if roots & _CLIENTS:
        return _decide_client(exception, set(names))
    if isinstance(exception, ValueError) and "JSONDecodeError" in names:
        return (True, BAD_RESPONSE) if _is_of_an_answer(exception.__traceback__) else (False, None)
    return False, None


def _decide_sdk(exception: BaseException, names: set[str]) -> tuple[bool, str | None]:
    if "APITimeoutError" in names:
        return True, TIMEOUT
    if "APIConnectionError" in names:
        cause = exception.__cause__
        return True, cause.label if isinstance(cause, InstrumentFailure) else NETWORK
    if "APIResponseValidationError" in names:
        return True, BAD_RESPONSE
    if names & {"OAuthError", "WorkloadIdentityError"}:
        return True, AUTH
    if "APIError" in names:
        status = getattr(exception, "status_code", None)
        fault = fault_of(getattr(exception, "body", None))
        for key in ("code", "type", "message"):
            own = getattr(exception, key, None)
            if own is not None:
                fault.setdefault(key, own)
        return True, label_of_status(status if isinstance(status, int) else None, fault)
    if "api_key" in str(exception) and names & {"OpenAIError", "AnthropicError"}:
        return True, AUTH
    return False, None


def _decide_client(exception: BaseException, names: set[str]) -> tuple[bool, str | None]:
    try:
        request: Any = exception.request  # type: ignore[attr-defined]
    except (AttributeError, RuntimeError):  # it belongs to no request
        return False, None
    if MARK not in getattr(request, "extensions", {}):
        return False, None
    if "HTTPStatusError" in names:
        response: Any = exception.response  # type: ignore[attr-defined]
        return True, label_of_status(response.status_code, fault_of(_json_of(response)))
    if "TimeoutException" in names:
        return True, TIMEOUT
    if "DecodingError" in names:
        return True, BAD_RESPONSE
    return ("TransportError" in names), NETWORK


def _json_of(response: Any) -> object:
    try:
        return response.json()
    except Exception:  # noqa: BLE001  an unread or broken body says nothing more than its status
        return None


def _is_of_an_answer(traceback: TracebackType | None) -> bool:
    """Whether JSON was read from a model's HTTP answer, and not from what the model wrote."""
    caller = reader = None
    while traceback is not None:
        frame = traceback.tb_frame
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] != "json":
            caller, reader = reader, frame
        traceback = traceback.tb_next
    if reader is None:
        return False
    module = str(reader.f_globals.get("__name__", ""))
    root = module.partition(".")[0]
    if root in _SDKS:
        return module.endswith("_streaming")
    if root not in _CLIENTS:
        return False
    above = "" if caller is None else str(caller.f_globals.get("__name__", "")).partition(".")[0]
    request = getattr(reader.f_locals.get("self"), "_request", None)
    return above in _SDKS or MARK in getattr(request, "extensions", {})
