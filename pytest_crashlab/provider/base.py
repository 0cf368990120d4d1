"""A model that a trial is bound to, and the record of one call to a model."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import InstrumentFailure, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

_PROVIDER = re.compile(r"[a-z][a-z0-9_.-]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
DEFAULT_NAME = "default"


class Misuse(UsageError, InstrumentFailure):
    """A test asks for what cannot be had: it is the test that is wrong, and not the model (misdeclared)."""

    def __init__(self, message: str) -> None:
        InstrumentFailure.__init__(self, "misdeclared", message)


class Role(StrEnum):
    """Whose call it was: the system under test's, or that of a model that judges it."""

    TARGET = "target"
    JUDGE = "judge"


class Status(StrEnum):
    """How a call ended: answered, refused or broken, or left before its end by the caller."""

    OK = "ok"
    ERROR = "error"
    ABANDONED = "abandoned"


class Basis(StrEnum):
    """How a cost is known."""

    BILLED = "billed"
    ESTIMATED = "estimated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens of one call, each None where the provider did not tell.

    ``input`` everything that was read, with what came from or went into a cache; ``output`` everything
    that was written, with the reasoning. ``cache_read`` and ``cache_write`` are parts of ``input``,
    ``reasoning`` is a part of ``output``.
    """

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None

    @property
    def known(self) -> bool:
        """Whether both totals are known."""
        return self.input is not None and self.output is not None


NO_TOKENS = Tokens()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """US dollars and how they are known; ``source`` the price list with version and digest, or the field."""

    usd: float
    basis: Basis
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One attempt of one request to a model.

    ``number`` 1.. in the order in which a trial's calls began; ``request`` 1.., the same for all attempts
    at one request; ``attempt`` 1..; ``model`` as asked for and ``answered_by`` as the answer names it;
    ``settings`` what the request said beside model and content; ``start`` seconds since the epoch;
    ``latency`` seconds from sending to the end of the answer, and ``first`` to its first bytes, neither
    with a wait between attempts, which is ``waited`` before this one; ``http_status`` None where
    nothing was answered; ``finish`` the provider's word for why the model stopped; ``error`` the outcome
    label where the instrument failed; ``detail`` one line on an error; ``charged`` False where no
    provider charges for it (nothing was sent, or the answer is an error status); ``request_id`` the
    provider's own; ``replayed`` whether the answer came from a recording: its latency is not known;
    ``cached`` True where a header says that a cache gave the answer; ``answer`` what it is known by when it
    comes again, None where nothing of it is the provider's own.
    """

    number: int
    request: int
    attempt: int = 1
    role: Role = Role.TARGET
    provider: str
    model: str | None
    answered_by: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    start: float
    latency: float | None = None
    first: float | None = None
    waited: float = 0.0
    status: Status
    http_status: int | None = None
    finish: str | None = None
    error: str | None = None
    detail: str | None = None
    tokens: Tokens = NO_TOKENS
    cost: Cost | None = None
    charged: bool = True
    request_id: str | None = None
    streamed: bool = False
    replayed: bool = False
    cached: bool | None = None
    answer: str | None = None

    def to_mapping(self) -> dict[str, Any]:
        """What is known of the call as JSON values; what is not is left out."""
        found: dict[str, Any] = {}
        for name in _PLAIN:
            value = getattr(self, name)
            if value is not None:
                found[name] = str(value) if isinstance(value, StrEnum) else value
        found["settings"] = dict(self.settings)
        tokens = {n: v for n in Tokens.__slots__ if (v := getattr(self.tokens, n)) is not None}
        if tokens:
            found["tokens"] = tokens
        if self.cost is not None:
            found["cost"] = {"usd": self.cost.usd, "basis": str(self.cost.basis), "source": self.cost.source}
        return found


_PLAIN = tuple(name for name in Call.__slots__ if name not in {"settings", "tokens", "cost", "answer"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A model by provider and name, with what requests to it are to say.

    ``name`` what a test asks for it by; ``settings`` such as temperature, for the test to pass on;
    ``base_url`` where it is served, None for the provider's own address; ``retries`` how often a request
    that the instrument failed is made again (None: not said); ``timeout`` seconds, None for the client's own.
    """

    provider: str
    model: str
    name: str = DEFAULT_NAME
    settings: Mapping[str, Any] = field(default_factory=dict)
    base_url: str | None = None
    retries: int | None = None
    timeout: float | None = None

    @property
    def spec(self) -> str:
        """``provider:model``, as it is written."""
        return f"{self.provider}:{self.model}"

    def with_settings(self, given: Mapping[str, Any], where: str) -> Binding:
        """The same model with other settings; ``base_url``, ``retries`` and ``timeout`` are its own fields.

        Raises :class:`UsageError` naming ``where`` for a value that these cannot have.
        """
        rest = dict(given)
        own: dict[str, Any] = {}
        if "base_url" in rest:
            own["base_url"] = _url(rest.pop("base_url"), where)
        if "retries" in rest:
            own["retries"] = _count(rest.pop("retries"), where)
        if "timeout" in rest:
            own["timeout"] = _seconds(rest.pop("timeout"), where)
        return replace(self, settings={**self.settings, **rest}, **own)


def is_spec(text: str) -> bool:
    """Whether ``text`` reads as ``provider:model``."""
    provider, colon, model = text.partition(":")
    return bool(colon and model.strip() and _PROVIDER.fullmatch(provider.strip()))


def parse_binding(text: str, *, where: str) -> Binding:
    """Read ``[NAME = ]PROVIDER:MODEL [SETTING=VALUE ...]``, for example ``openai:gpt-x temperature=0``.

    A value that is JSON is read as such. Raises :class:`UsageError` naming ``where``.
    """
    words = text.split()
    name = DEFAULT_NAME
    if len(words) > 2 and words[1] == "=":
        name, words = words[0], words[2:]
    if not words or not is_spec(words[0]):
        raise UsageError(
            f"{where} has {text!r}, which names no model; write it as openai:gpt-x or name = openai:gpt-x"
        )
    if not _NAME.fullmatch(name):
        raise UsageError(f"{where} names a model {name!r}; use letters, digits, _ and -")
    provider, _, model = words[0].partition(":")
    settings: dict[str, Any] = {}
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if not (equals and key and value):
            raise UsageError(f"{where} has {word!r} behind {words[0]}; write settings as temperature=0")
        settings[key] = _value(value)
    bound = Binding(provider=provider, model=model, name=name)
    return bound.with_settings(settings, where)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _url(value: object, where: str) -> str:
    if isinstance(value, str) and value.startswith(("http://", "https://")):
        return value
    raise UsageError(f"{where} has base_url={value!r}; give it an address such as http://127.0.0.1:8080/v1")


def _count(value: object, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 20:
        return value
    raise UsageError(f"{where} has retries={value!r}; give it a whole number from 0 to 20")


def _seconds(value: object, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value)
    raise UsageError(f"{where} has timeout={value!r}; give it a number of seconds above 0")
