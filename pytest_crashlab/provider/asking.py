"""A plain question to a model over HTTP, for judges and for tests that need no SDK."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import CrashlabError, InstrumentFailure
from pytest_crashlab.provider import errors, formats
from pytest_crashlab.provider.base import Misuse

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from pytest_crashlab.provider.base import Binding

_MAX_TOKENS = 1024  # Anthropic wants a limit in every request
_ANTHROPIC_VERSION = "2023-06-01"


class Refused(CrashlabError):
    """The model was reached and cannot be asked this: too long, or against its provider's policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model said: ``text``, and the whole answer as decoded JSON."""

    text: str
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request, ready to be posted."""

    url: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


def question(
    binding: Binding,
    prompt: str | Sequence[Mapping[str, Any]],
    *,
    system: str | None,
    settings: Mapping[str, Any],
    is_sent: bool = True,
) -> Question:
    """A question in the format of the binding's provider.

    ``prompt`` a text, or messages with role and content; ``is_sent`` False: it goes nowhere and needs no
    key. Raises :class:`Misuse` for a provider whose
    format is not known.
    """
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else [dict(m) for m in prompt]
    said = {**binding.settings, **settings}
    if binding.provider == "anthropic":
        body = {"model": binding.model, "max_tokens": _MAX_TOKENS, **said, "messages": messages}
        if system is not None:
            body["system"] = system
        base = binding.base_url or os.environ.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com"
        key = {
            "x-api-key": _key("ANTHROPIC_API_KEY", binding, is_sent=is_sent),
            "anthropic-version": _ANTHROPIC_VERSION,
        }
        return Question(url=f"{base.rstrip('/')}/v1/messages", headers=key, body=body)
    if binding.provider not in {"openai", "openai-compatible", "scripted"}:
        raise Misuse(
            f"{binding.spec}: provider.ask() speaks to openai, openai-compatible, anthropic and scripted"
        )
    if system is not None:
        messages = [{"role": "system", "content": system}, *messages]
    body = {"model": binding.model, **said, "messages": messages}
    if binding.provider == "scripted":
        return Question(url="https://scripted.invalid/v1/chat/completions", headers={}, body=body)
    base = binding.base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
    key = {"authorization": f"Bearer {_key('OPENAI_API_KEY', binding, is_sent=is_sent)}"}
    return Question(url=f"{base.rstrip('/')}/chat/completions", headers=key, body=body)


def _key(variable: str, binding: Binding, *, is_sent: bool) -> str:
    if not is_sent:
        return "none"
    key = os.environ.get(variable)
    if key:
        return key
    if binding.base_url is not None:
        return "none"  # a server of one's own
    raise InstrumentFailure(errors.AUTH, f"{binding.spec} needs a key; set {variable}")


def understand(response: Any) -> Answer:
    """The answer in an HTTP response that was read.

    Raises :class:`InstrumentFailure` with its label for one that is none, :class:`Refused` where that is
    the question's doing.
    """
    try:
        body = response.json()
    except ValueError:
        body = None
    if response.status_code >= 400:
        fault = errors.fault_of(body)
        label = errors.label_of_status(response.status_code, fault)
        said = " ".join(
            str(part) for part in (response.status_code, fault.get("message")) if part is not None
        )
        if label is None:
            raise Refused(f"the model cannot be asked this: {said}")
        raise InstrumentFailure(label, f"the provider answered {said}")
    if not isinstance(body, dict):
        raise InstrumentFailure(errors.BAD_RESPONSE, "the provider's answer is no JSON object")
    try:
        return Answer(text=formats.said_in(body), raw=body)
    except (AttributeError, IndexError, KeyError, TypeError):
        shown = json.dumps(body)[:200]
        raise InstrumentFailure(
            errors.BAD_RESPONSE, f"the provider's answer has no message: {shown}"
        ) from None


@contextlib.contextmanager
def failures_told() -> Generator[None, None, None]:
    """Raise :class:`InstrumentFailure` in place of what a client raises for a broken connection."""
    try:
        yield
    except InstrumentFailure:
        raise
    except Exception as error:
        label = errors.label_of_exception(error)
        if label is None:
            raise
        raise InstrumentFailure(label, f"{type(error).__name__}: {error}".rstrip(": ")) from error
