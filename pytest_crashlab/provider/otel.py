"""Listens to the spans of agents that bring their own client (OpenTelemetry, the extra ``otel``).

A span is a trial's where it starts inside of a block of that trial. The block travels in OpenTelemetry's
own context: into tasks by itself, into threads wherever the context is handed on. What starts in a thread
that nobody handed it to is in no trial. OpenTelemetry is imported when a test asks for it.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
import threading
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_crashlab.provider.base import Misuse, Role
from pytest_crashlab.provider.genai import Told
from pytest_crashlab.provider.spans import Claim, Spans

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from pytest_crashlab.provider.base import Call
    from pytest_crashlab.provider.calls import Ledger
    from pytest_crashlab.provider.spans import SpanId

_KEY = "pytest_crashlab.trial"
_SAMPLER = re.compile(r"(?:ParentBased\{root:)?(\w+)(?:\{([\d.e-]+)\})?")


class Listener:
    """The spans of one trial, from all tracer providers that its tests name."""

    def __init__(self, ledger: Ledger) -> None:
        self._spans = Spans(ledger)
        self._heard: list[tuple[Any, Any]] = []  # tracer providers, and what listens to each
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def listen(self, tracer_provider: Any | None, role: Role, bound_to: str) -> Generator[None, None, None]:
        """A block whose spans are the trial's. Raises :class:`Misuse` where no span could be seen."""
        found = _ready(tracer_provider)
        with self._lock:
            if not any(known is found for known, _ in self._heard):
                processor = _processor_type()(self._spans)
                found.add_span_processor(processor)
                self._heard.append((found, processor))
        claim = self._spans.enter(role, bound_to)
        try:
            with _claimed(claim):
                yield
        finally:
            self._spans.leave(claim)

    def aside(self) -> contextlib.AbstractContextManager[None]:
        """A block whose spans are told of by other means, and are none of the trial's calls."""
        if not self._heard:
            return contextlib.nullcontext()
        return _claimed(Claim(spans=self._spans, role=Role.TARGET, bound_to="", over=True))

    def call_begins(self, number: int) -> None:
        """The ledger's call ``number`` begins, in the span that is the current one."""
        if not self._heard:
            return
        now = _module("opentelemetry.trace").get_current_span().get_span_context()
        self._spans.recorded(number, (now.trace_id, now.span_id), _where())

    def calls(self, recorded: Sequence[Call]) -> list[Call]:
        """The calls that only spans tell of."""
        return self._spans.calls(recorded)

    def open(self, role: Role) -> int:
        """How many calls may be missing."""
        return self._spans.open(role)

    def close(self) -> None:
        """Listen no more; warn of calls that are in no trial."""
        self._spans.close()
        with self._lock:
            heard, self._heard = self._heard, []
        for tracer_provider, processor in heard:
            _remove(tracer_provider, processor)
        strays = self._spans.stray_calls
        if heard and strays:
            warnings.warn(
                f"{strays} span{'s' * (strays != 1)} of model calls started in threads that carry no "
                "context, so nobody knows whose they are: they are not counted, and what this trial used is "
                "unknown. Start such threads with contextvars.copy_context().run, or use "
                "opentelemetry-instrumentation-threading.",
                stacklevel=2,
            )


@contextlib.contextmanager
def _claimed(claim: Claim) -> Generator[None, None, None]:
    context = _module("opentelemetry.context")
    token = context.attach(context.set_value(_KEY, claim))
    try:
        yield
    finally:
        context.detach(token)


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Misuse(
            "provider.otel() needs opentelemetry-sdk; install it: pip install 'pytest-crashlab[otel]'"
        ) from None


def _ready(given: Any | None) -> Any:
    """The tracer provider that is meant. Raises :class:`Misuse` for one whose spans cannot be seen."""
    _module("opentelemetry.sdk.trace")
    found = _module("opentelemetry.trace").get_tracer_provider() if given is None else given
    if not callable(getattr(found, "add_span_processor", None)):
        if given is None:
            raise Misuse(
                "provider.otel() finds no TracerProvider of the OpenTelemetry SDK; set one with "
                "opentelemetry.trace.set_tracer_provider(), or pass yours: provider.otel(tracer_provider)"
            )
        raise Misuse(
            f"provider.otel() was given {given!r}; give it a TracerProvider of the OpenTelemetry SDK"
        )
    sampler = getattr(found, "sampler", None)
    said = "" if sampler is None else str(sampler.get_description())
    if _drops(said):
        raise Misuse(
            f"provider.otel() would miss calls: the TracerProvider's sampler is {said}, which drops spans; "
            "keep all of them (ALWAYS_ON) in tests"
        )
    return found


def _drops(sampler: str) -> bool:
    """Whether a sampler of the SDK leaves spans out; what others do is not known."""
    found = _SAMPLER.match(sampler)
    if found is None:
        return False
    return found[1] == "AlwaysOffSampler" or (
        found[1] == "TraceIdRatioBased" and found[2] is not None and float(found[2]) < 1
    )


class _Processor:
    """Tells the spans of one tracer provider to a trial, in the thread that starts and ends them."""

    def __init__(self, spans: Spans) -> None:
        self._spans = spans

    def on_start(self, span: Any, parent_context: Any | None = None) -> None:
        contexts = (parent_context, _module("opentelemetry.context").get_current())
        claims = (context.get(_KEY) for context in contexts if context is not None)
        self._spans.begin(
            _id(span.get_span_context()),
            parent=None if span.parent is None else _id(span.parent),
            claim=next((claim for claim in claims if isinstance(claim, Claim)), None),
            attributes=span.attributes or {},
            where=_where(),
        )

    def on_end(self, span: Any) -> None:
        raised = [event.attributes or {} for event in span.events if event.name == "exception"]
        self._spans.end(
            _id(span.get_span_context()),
            Told(
                attributes=span.attributes or {},
                start=span.start_time,
                end=span.end_time,
                failed=span.status.status_code.name == "ERROR",
                description=span.status.description,
                exceptions=[
                    (str(said.get("exception.type", "")), str(said.get("exception.message", "")))
                    for said in raised
                ],
            ),
        )


@cache
def _processor_type() -> Any:
    return type("TrialSpanProcessor", (_Processor, _module("opentelemetry.sdk.trace").SpanProcessor), {})


def _remove(tracer_provider: Any, processor: Any) -> None:
    """Take a processor out again, for which the SDK has no public way; one that stays does nothing."""
    held = getattr(tracer_provider, "_active_span_processor", None)
    lock, processors = getattr(held, "_lock", None), getattr(held, "_span_processors", None)
    if held is None or lock is None or not isinstance(processors, tuple):
        return
    with lock:
        held._span_processors = tuple(p for p in held._span_processors if p is not processor)  # noqa: SLF001


def _id(context: Any) -> SpanId:
    return context.trace_id, context.span_id


def _where() -> tuple[int, object]:
    """The thread, and the asyncio task if one runs."""
    asyncio = sys.modules.get("asyncio")
    task = None
    if asyncio is not None:
        try:
            task = asyncio.current_task()
        except RuntimeError:  # no loop runs here
            task = None
    return threading.get_ident(), task
