"""One attempt at a request, told as it happens: sent, answered, read, over. Does no I/O of its own."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from time import perf_counter  # bound now: a test may put another clock in its place
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import InstrumentFailure
from pytest_crashlab.provider import errors, repeats
from pytest_crashlab.provider.answers import Reading, read_answer, read_stream
from pytest_crashlab.provider.base import NO_TOKENS, Basis, Binding, Call, Cost, Role, Status, Tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_crashlab.provider.calls import Ledger

# What a request says at length: everything else that it says is a setting.
_CONTENT = frozenset(
    {
        "model",
        "messages",
        "input",
        "prompt",
        "system",
        "instructions",
        "contents",
        "tools",
        "functions",
        "stream",
    }
)
_LONGEST_SETTING = 200
_LONGEST_DETAIL = 300
_REQUEST_IDS = ("x-request-id", "request-id")
# No worker on the other side has seen the request.
_UNSENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol", "ProxyError"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """On whose behalf requests are made, and where their calls are kept.

    ``replayed``: answers come from a recording, so how long they took says nothing. ``scripted``: they were
    written beforehand, and may well repeat each other.
    """

    binding: Binding
    ledger: Ledger
    role: Role = Role.TARGET
    replayed: bool = False
    scripted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request to a model: its number and what its body says; ``told`` its address, and ids that it gave."""

    number: int
    model: str | None
    settings: Mapping[str, Any]
    body: bytes
    told: bytes = b""

    @classmethod
    def read(cls, number: int, body: bytes, told: bytes = b"") -> Asked:
        """Read the body of a request."""
        said = _decoded(body)
        said = said if isinstance(said, dict) else {}
        model = said.get("model")
        return cls(
            number=number,
            model=model if isinstance(model, str) else None,
            settings={k: v for k, v in said.items() if k not in _CONTENT and _is_short(v)}
            | _stored_prompt(said.get("prompt")),
            body=body,
            told=told,
        )


class Attempt:
    """One attempt from its sending on; ends once, whichever way comes first."""

    def __init__(self, sender: Sender, asked: Asked, attempt: int, waited: float) -> None:
        self._sender = sender
        self._asked = asked
        self._attempt = attempt
        self._waited = waited
        self._number = sender.ledger.begin_call(sender.role)
        self._start = time.time()
        self._clock = perf_counter()
        self._first: float | None = None
        self._status: int | None = None
        self._headers: Mapping[str, str] = {}
        self._latency: float | None = None
        self._chunks: list[bytes] = []
        self._unpack: Callable[[bytes], bytes] | None = None
        self._over = False

    def answered(
        self,
        status: int,
        headers: Mapping[str, str],
        unpack: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """The head of the answer is there; ``unpack`` what decompresses its body."""
        self._status = status
        self._headers = headers
        self._unpack = unpack

    def chunk(self, content: bytes) -> None:
        """A part of the answer's body, as it came."""
        if self._first is None:
            self._first = perf_counter() - self._clock
        self._chunks.append(content)

    def whole(self) -> None:
        """The body has ended in order. Raises :class:`InstrumentFailure` for an answer that is none."""
        if self._is_over():
            return
        reading, streamed = self._read()
        if self._status is not None and self._status >= 400:
            self._refused(streamed=streamed)
            return
        label, why = self._judged(reading, streamed=streamed)
        if label is not None and why is not None:
            raise InstrumentFailure(label, why)

    def _judged(self, reading: Reading, *, streamed: bool) -> tuple[str | None, str | None]:
        """End the call as what its answer says it is; the label and the reason where that is no answer."""
        label, why = _what_is_wrong(reading, streamed=streamed)
        status = Status.OK if label is None and reading.fault is None else Status.ERROR
        told = reading if reading.ended else replace(reading, tokens=NO_TOKENS)
        self._end(status, told, streamed=streamed, error=label, detail=why)
        return label, why

    def left(self) -> None:
        """The caller reads no further: the answer was whole for it, or it was given up."""
        if self._is_over():
            return
        reading, streamed = self._read()
        if streamed and (reading.ended or reading.fault is not None):
            self._judged(reading, streamed=True)
        else:
            self._end(Status.ABANDONED, Reading(), streamed=streamed)

    def broke(self, error: BaseException) -> None:
        """The connection, or the wait for it, ended by ``error``."""
        if self._is_over():
            return
        names = {cls.__name__ for cls in type(error).__mro__}
        label = errors.TIMEOUT if "TimeoutException" in names else errors.NETWORK
        if isinstance(error, InstrumentFailure):
            label = error.label
        detail = f"{type(error).__name__}: {error}".rstrip(": ")
        if not isinstance(error, Exception):
            self._end(Status.ABANDONED, Reading(), streamed=False, detail=detail)
            return
        _, streamed = self._read()
        self._end(
            Status.ERROR,
            Reading(),
            streamed=streamed,
            error=label,
            detail=detail,
            charged=not names & _UNSENT and not isinstance(error, InstrumentFailure),
        )

    def told_by_hand(
        self,
        *,
        model: str | None,
        finish: str | None,
        request_id: str | None,
        tokens: Tokens,
        cost: Cost | None,
    ) -> None:
        """The call went by outside of any transport, and this is what its caller knows of it."""
        self._is_over()
        if request_id is not None:
            self._headers = {_REQUEST_IDS[0]: request_id}
        reading = Reading(understood=True, ended=True, model=model, finish=finish, tokens=tokens)
        self._end(Status.OK, reading, streamed=False, cost=cost, answer=repeats.key_of_id(request_id))

    def failed_by_hand(self, error: BaseException) -> None:
        """The call went by outside of any transport and ended by ``error``."""
        self._is_over()
        label = errors.label_of_exception(error)
        failed = isinstance(error, Exception)
        self._end(
            Status.ERROR if failed else Status.ABANDONED,
            Reading(),
            streamed=False,
            error=label,
            detail=f"{type(error).__name__}: {error}".rstrip(": "),
        )

    def _is_over(self) -> bool:
        """Whether the attempt has ended before; stops its clock if not."""
        if not self._over and self._latency is None:
            self._latency = perf_counter() - self._clock
        return self._over

    def _content(self) -> bytes:
        content = b"".join(self._chunks)
        return content if self._unpack is None else self._unpack(content)

    @property
    def refusal(self) -> str | None:
        """The label of an answer that is an error status, whose body has been read."""
        if self._status is None or self._status < 400:
            return None
        return errors.label_of_status(self._status, self._fault())

    def _fault(self) -> dict[str, Any]:
        return errors.fault_of(_decoded(self._content()))

    def _refused(self, *, streamed: bool) -> None:
        fault = self._fault()
        words = [str(self._status), *(str(fault[key]) for key in ("code", "type", "message") if key in fault)]
        self._end(
            Status.ERROR,
            Reading(),
            streamed=streamed,
            error=errors.label_of_status(self._status, fault),
            detail=" ".join(words),
            charged=False,
        )

    def _read(self) -> tuple[Reading, bool]:
        content = self._content()
        if self._headers.get("content-type", "").startswith("text/event-stream"):
            return read_stream(content.decode("utf-8", "replace")), True
        return read_answer(_decoded(content)), False

    def _end(
        self,
        status: Status,
        reading: Reading,
        *,
        streamed: bool,
        error: str | None = None,
        detail: str | None = None,
        charged: bool = True,
        cost: Cost | None = None,
        answer: str | None = None,
    ) -> None:
        self._over = True
        binding, asked, replayed = self._sender.binding, self._asked, self._sender.replayed
        request_id = next((self._headers[n] for n in _REQUEST_IDS if n in self._headers), None)
        received = self._content()
        is_drawn = status is Status.OK and not (replayed or self._sender.scripted or reading.computed)
        if is_drawn and self._status is not None:
            answer = repeats.key_of_answer(
                reading,
                self._headers,
                header_id=request_id,
                asked=(asked.told, asked.body),
                received=received,
                start=self._start,
            )
        call = Call(
            number=self._number,
            request=asked.number,
            attempt=self._attempt,
            role=self._sender.role,
            provider=binding.provider,
            model=asked.model or binding.model,
            answered_by=reading.model,
            settings=asked.settings,
            start=self._start,
            latency=None if replayed else self._latency,
            first=None if replayed else self._first,
            waited=self._waited,
            status=status,
            http_status=self._status,
            finish=reading.finish,
            error=error,
            detail=None if detail is None else detail[:_LONGEST_DETAIL],
            tokens=reading.tokens,
            cost=cost or billed(reading.billed, reading),
            charged=charged,
            request_id=request_id,
            streamed=streamed,
            replayed=replayed,
            cached=True if is_drawn and repeats.says_hit(self._headers) else None,
            answer=answer,
        )
        self._sender.ledger.end_call(call, sent=asked.body, received=received)


def billed(usd: float | None, reading: Reading) -> Cost | None:
    """A cost that the answer names; a 0 beside tokens that were used is none."""
    used = (reading.tokens.input or 0) + (reading.tokens.output or 0)
    if usd is None or (usd == 0 and used):
        return None
    return Cost(usd=usd, basis=Basis.BILLED, source="usage.cost")


def _what_is_wrong(reading: Reading, *, streamed: bool) -> tuple[str | None, str | None]:
    """The label and the reason why an answer of status 200 is none; (None, None) where it is one."""
    if reading.fault is not None:
        words = [str(reading.fault[key]) for key in ("code", "type", "message") if reading.fault.get(key)]
        said = f"the provider answered with an error: {' '.join(words)}"
        return errors.label_of_status(None, errors.fault_of(reading.fault)), said
    if reading.empty:
        return errors.BAD_RESPONSE, "the provider's answer is empty: it has no content and used no tokens"
    if streamed and reading.understood and not reading.ended:
        return errors.BAD_RESPONSE, "the provider's answer stopped before its end"
    if not reading.understood:
        return errors.BAD_RESPONSE if not streamed else None, None
    return None, None


def _decoded(content: bytes) -> object:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _stored_prompt(prompt: object) -> dict[str, str]:
    """A prompt that the provider keeps, named by a request as ``{"id": ..., "version": ...}``."""
    if not isinstance(prompt, dict) or not isinstance(prompt.get("id"), str):
        return {}
    name, version = prompt["id"], prompt.get("version")
    shown = name if version is None else f"{name}@{version}"
    if not name.strip() or "," in shown or not shown.isprintable() or len(shown) > _LONGEST_SETTING:
        return {}
    return {"prompt": shown}


def _is_short(value: object) -> bool:
    if value is None or isinstance(value, bool | int | float):
        return True
    return len(json.dumps(value)) <= _LONGEST_SETTING
