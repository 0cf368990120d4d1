"""Spans of agents that bring their own client, made by the real SDK: whose they are, what counts once."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import importlib.util
import subprocess
import sys
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from textwrap import dedent

import pytest

from pytest_crashlab.errors import InstrumentFailure
from pytest_crashlab.provider import pricing
from pytest_crashlab.provider.base import Misuse, Role, parse_binding
from pytest_crashlab.provider.bound import Bound
from pytest_crashlab.provider.calls import Ledger
from pytest_crashlab.store import Store

trace = pytest.importorskip("opentelemetry.trace", reason="opentelemetry-sdk is not installed (extra otel)")
sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed (extra otel)")

from opentelemetry import context as otel_context  # noqa: E402
from opentelemetry.sdk.trace import sampling  # noqa: E402


class Agent:
    """Traces as an agent with an instrumented client does; ``tracing`` is its tracer provider."""

    def __init__(self):
        self.tracing = sdk.TracerProvider(shutdown_on_exit=False)
        self.tracer = self.tracing.get_tracer("agent")

    @contextmanager
    def span(self, operation="chat", *, current=True, **said):
        """A span; ``said`` GenAI attributes, set at its end as far as they are of the answer."""
        start = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "model-x",
        }
        opened = self.tracer.start_span(operation, attributes=start)
        with trace.use_span(opened, end_on_exit=True) if current else ending(opened):
            yield opened
            opened.set_attributes({f"gen_ai.{name}": value for name, value in said.items()})

    def call(self, tokens=12, **said):
        with self.span(**{"usage.input_tokens": tokens, "usage.output_tokens": 3, **said}):
            pass

    @property
    def processors(self):
        return self.tracing._active_span_processor._span_processors


@contextmanager
def ending(opened):
    try:
        yield
    finally:
        opened.end()


@pytest.fixture
def agent():
    return Agent()


def bind(ledger=None, spec="openai:model-x", **options):
    return Bound(parse_binding(spec, where="the test"), ledger or Ledger(), **options)


@pytest.fixture
def bound():
    return bind()


def inputs(bound):
    return [call.tokens.input for call in bound.calls]


def test_a_span_is_a_call_with_all_that_it_says(agent, bound):
    with bound.otel(agent.tracing), agent.span(current=False) as span:
        span.set_attributes(
            {
                "gen_ai.request.temperature": 0.5,
                "gen_ai.request.stop_sequences": ["END"],
                "gen_ai.request.stream": True,
                "gen_ai.response.model": "model-x-2026",
                "gen_ai.response.finish_reasons": ["stop"],
                "gen_ai.response.time_to_first_chunk": 0.25,
                "gen_ai.usage.input_tokens": 120,
                "gen_ai.usage.output_tokens": 30,
                "gen_ai.usage.cache_read.input_tokens": 100,
                "gen_ai.usage.cache_creation.input_tokens": 5,
                "gen_ai.usage.reasoning.output_tokens": 20,
                "gen_ai.input.messages": "France?",
                "gen_ai.output.messages": "Paris",
            }
        )
        span.end(end_time=span.start_time + 1_500_000_000)
    (call,) = bound.calls
    said = call.to_mapping()
    assert said.pop("start") == pytest.approx(span.start_time / 1e9)
    assert said == {
        "number": 1,
        "request": 1,
        "attempt": 1,
        "role": "target",
        "provider": "openai",
        "model": "model-x",
        "answered_by": "model-x-2026",
        "settings": {"temperature": 0.5, "stop": ["END"]},
        "tokens": {"input": 120, "output": 30, "cache_read": 100, "cache_write": 5, "reasoning": 20},
        "latency": 1.5,
        "first": 0.25,
        "waited": 0.0,
        "status": "ok",
        "finish": "stop",
        "charged": True,
        "streamed": True,
        "replayed": False,
    }
    assert bound._ledger.contents(1) == (b"France?", b"Paris")
    usage = bound.usage
    assert (usage.tokens_in, usage.tokens_out, usage.latency, usage.cost_usd) == (120, 30, 1.5, None)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"gen_ai.system": "OpenAI", "llm.request.type": "chat", "gen_ai.usage.prompt_tokens": 7}, "openai"),
        ({"gen_ai.operation.name": "text_completion", "gen_ai.usage.prompt_tokens": 7}, "unknown"),
        (
            {
                "gen_ai.operation.name": "generate_content",
                "gen_ai.provider.name": "gcp.gemini",
                "gen_ai.usage.prompt_tokens": 7,
            },
            "gcp.gemini",
        ),
    ],
)
def test_older_words_are_read_too(agent, bound, said, expected):
    with bound.otel(agent.tracing):
        agent.tracer.start_span("x", attributes=said | {"gen_ai.usage.completion_tokens": 2}).end()
    (call,) = bound.calls
    assert (call.provider, call.model, call.tokens.input, call.tokens.output) == (expected, None, 7, 2)


@pytest.mark.parametrize(
    "said",
    [
        {"gen_ai.operation.name": "embeddings"},
        {"gen_ai.operation.name": "create_agent"},
        {"gen_ai.operation.name": "invoke_workflow"},
        {"llm.request.type": "embedding"},
        {"http.request.method": "POST", "gen_ai.request.model": "model-x"},
    ],
)
def test_other_spans_are_no_calls(agent, bound, said):
    with bound.otel(agent.tracing):
        agent.tracer.start_span("x", attributes=said | {"gen_ai.usage.input_tokens": 9}).end()
    assert bound.calls == []
    assert bound.usage.tokens_in is None


def test_an_agent_and_its_tools_are_no_calls_and_their_sums_are_counted_in_none(agent, bound):
    with bound.otel(agent.tracing), agent.span("invoke_agent", **{"usage.input_tokens": 99}):
        agent.call(12)
        with agent.span("execute_tool"):
            agent.call(5)
    assert inputs(bound) == [12, 5]
    assert bound.usage.tokens_in == 17


@pytest.mark.parametrize(
    ("said", "tokens"),
    [
        ({}, (None, None, None)),
        ({"usage.input_tokens": 0, "usage.output_tokens": 0}, (None, None, None)),
        ({"usage.input_tokens": 12}, (12, None, None)),
        ({"usage.input_tokens": 12, "usage.output_tokens": 0}, (12, 0, None)),
        ({"usage.input_tokens": "12", "usage.output_tokens": True}, (None, None, None)),
        ({"usage.input_tokens": -1, "usage.output_tokens": 2.5}, (None, None, None)),
        ({"usage.input_tokens": 5, "usage.cache_read.input_tokens": 100}, (None, None, 100)),
        ({"usage.input_tokens": 500, "usage.cache_read_input_tokens": 100}, (500, None, 100)),
    ],
)
def test_what_is_not_said_or_cannot_be_stays_unknown(agent, bound, said, tokens):
    with bound.otel(agent.tracing), agent.span() as span:
        span.set_attributes({f"gen_ai.{name}": value for name, value in said.items()})
    (call,) = bound.calls
    assert (call.tokens.input, call.tokens.output, call.tokens.cache_read) == tokens
    assert bound.usage.tokens_in == tokens[0]
    assert call.answered_by is call.finish is call.first is None


def test_a_span_is_priced_as_other_calls_are(agent):
    pytest.importorskip("genai_prices")
    bound = bind(price=pricing.price)
    with bound.otel(agent.tracing):
        for name in ("openai", "xai", "x_ai", "nobody"):
            model = "gpt-4o" if name == "openai" else "grok-3"
            agent.call(1000, **{"provider.name": name, "request.model": model, "usage.output_tokens": 100})
    costs = [call.cost for call in bound.calls]
    assert costs[0].usd == pytest.approx(1000 * 2.5e-6 + 100 * 1e-5)
    assert costs[1].usd == costs[2].usd > 0
    assert costs[0].source.startswith("genai-prices ")
    assert costs[3] is None
    assert bound.usage.cost_usd is None


def test_a_server_of_ones_own_has_no_price_though_its_sdk_is_openais(agent):
    bound = bind(spec="openai-compatible:gpt-4o", price=pricing.price)
    with bound.otel(agent.tracing):
        agent.call()
    (call,) = bound.calls
    assert (call.provider, call.cost) == ("openai-compatible", None)


QUOTA = (
    "Error code: 429 - "
    "{'error': {'message': 'You exceeded your current quota', 'code': 'insufficient_quota'}}"
)
LONG = (
    "Error code: 400 - {'error': {'message': 'prompt is too long: 3 > 2', 'type': 'invalid_request_error'}}"
)
BROKE = "Error code: 400 - {'error': {'message': 'Your credit balance is too low'}}"


@pytest.mark.parametrize(
    ("kind", "description", "expected"),
    [
        ("429", None, ("provider_rate_limit", 429, False)),
        ("429", QUOTA, ("provider_quota", 429, False)),
        ("RateLimitError", QUOTA, ("provider_quota", 429, False)),
        ("openai.RateLimitError", None, ("provider_rate_limit", None, False)),
        ("rate_limit_exceeded", None, ("provider_rate_limit", None, True)),
        ("insufficient_quota", None, ("provider_quota", None, True)),
        ("AuthenticationError", "no such key", ("provider_auth", None, False)),
        ("503", "busy", ("provider_error", 503, False)),
        ("anthropic.BadRequestError", LONG, (None, 400, False)),
        ("anthropic.BadRequestError", BROKE, ("provider_quota", 400, False)),
        ("400", None, (None, 400, False)),
        ("context_length_exceeded", None, (None, None, True)),
        ("timeout", None, ("provider_timeout", None, True)),
        ("httpx.ReadTimeout", "", ("provider_timeout", None, True)),
        ("openai.APIConnectionError", "Connection error.", ("network_error", None, True)),
        ("openai.BadRequestError", "no", (None, None, True)),
        ("TimeoutError", "", (None, None, True)),
        ("mine.RateLimitError", "my own limit", (None, None, True)),
        ("_OTHER", "Error code: 429 is what the model wrote about", (None, None, True)),
        ("_OTHER", "the model wrote Error code: 429", (None, None, True)),
        ("_OTHER", "Error code: 529 - overloaded", ("provider_error", 529, False)),
        (None, f"RateLimitError: {QUOTA}", ("provider_quota", 429, False)),
        ("ValueError", "exceeded your current quota", (None, None, True)),
        (None, "it broke", (None, None, True)),
        (None, None, (None, None, True)),
    ],
)
def test_an_error_is_the_instruments_only_where_the_span_leaves_no_doubt(
    agent, bound, kind, description, expected
):
    with bound.otel(agent.tracing), agent.span() as span:
        if kind is not None:
            span.set_attribute("error.type", kind)
        span.set_status(trace.StatusCode.ERROR, description)
    (call,) = bound.calls
    assert (call.status, call.error, call.http_status, call.charged) == ("error", *expected)
    assert call.detail == (": ".join(part for part in (kind, description) if part) or None)
    assert bound.usage.tokens_in is None


def test_an_exception_that_the_span_records_names_its_class_and_a_cancelled_call_is_abandoned(agent, bound):
    class RateLimitError(Exception):
        """One of a project's own, whose bare name is the same."""

    with bound.otel(agent.tracing):
        for error in (RateLimitError("my own limit"), asyncio.CancelledError()):
            with suppress(RateLimitError, asyncio.CancelledError), agent.span() as span:
                span.set_attribute("error.type", type(error).__name__)
                raise error
    assert [(call.status, call.error) for call in bound.calls] == [("error", None), ("abandoned", None)]
    assert bound.calls[0].detail.endswith("RateLimitError: my own limit")


def test_spans_before_and_after_the_block_are_not_counted(agent, bound):
    agent.call(1)
    with bound.otel(agent.tracing):
        agent.call(2)
    agent.call(3)
    with bound.otel(agent.tracing):
        agent.call(4)
    bound.close()
    agent.call(5)
    assert inputs(bound) == [2, 4]
    assert bound.usage.tokens_in == 6


def test_a_span_may_end_after_its_block_and_not_after_its_trial(agent, bound):
    with bound.otel(agent.tracing):
        late = agent.tracer.start_span("chat", attributes={"gen_ai.operation.name": "chat"})
        later = agent.tracer.start_span("chat", attributes={"gen_ai.operation.name": "chat"})
        agent.call(4)
    late.set_attributes({"gen_ai.usage.input_tokens": 2, "gen_ai.usage.output_tokens": 1})
    late.end()
    assert bound.usage.tokens_in is None  # one is not over
    bound.close()
    later.end()
    assert inputs(bound) == [2, 4]
    assert bound.usage.tokens_in is None


def test_the_processor_goes_with_the_trial_and_other_processors_stay(agent):
    class Own(sdk.SpanProcessor):
        """One of the project's."""

    agent.tracing.add_span_processor(Own())
    for _ in range(3):
        bound = bind()
        with bound.otel(agent.tracing), bound.otel(agent.tracing):
            assert [type(p).__name__ for p in agent.processors] == ["Own", "TrialSpanProcessor"]
            agent.call(7)
        assert inputs(bound) == [7]
        bound.close()
        bound.close()
        assert [type(p).__name__ for p in agent.processors] == ["Own"]


def test_nothing_is_kept_of_a_trial_that_is_over(agent):
    bound = bind()
    with bound.otel(agent.tracing):
        agent.call()
    bound.close()
    kept = weakref.ref(bound._ledger)
    del bound
    gc.collect()
    assert kept() is None


def test_tasks_of_concurrent_trials_are_kept_apart(agent):
    trials = [bind() for _ in range(8)]

    async def ask(tokens):
        with agent.span(**{"usage.input_tokens": tokens, "usage.output_tokens": 1}):
            await asyncio.sleep(0)

    async def trial(number, bound):
        with bound.otel(agent.tracing):
            await asyncio.gather(*(ask(100 * number + i + 1) for i in range(8)))
            await asyncio.to_thread(agent.call, 100 * number + 9)

    async def everything():
        await asyncio.gather(*(trial(number, bound) for number, bound in enumerate(trials)))

    asyncio.run(everything())
    for number, bound in enumerate(trials):
        assert sorted(inputs(bound)) == [100 * number + i + 1 for i in range(9)]
        assert bound.usage.tokens_in == sum(inputs(bound))
        bound.close()


def test_threads_of_concurrent_trials_are_kept_apart(agent):
    ready = threading.Barrier(4)

    def trial(number):
        bound = bind()
        with bound.otel(agent.tracing), ThreadPoolExecutor(4) as pool:
            ready.wait()
            for i in range(20):
                pool.submit(contextvars.copy_context().run, agent.call, 100 * number + i + 1)
        bound.close()
        return bound

    with ThreadPoolExecutor(4) as pool:
        trials = list(pool.map(trial, range(4)))
    for number, bound in enumerate(trials):
        assert sorted(inputs(bound)) == [100 * number + i + 1 for i in range(20)]
        assert bound.usage.tokens_in == sum(inputs(bound))


def test_a_span_of_a_thread_without_context_is_in_no_trial_and_makes_its_sums_unknown(agent, bound):
    with bound.otel(agent.tracing):
        agent.call(5)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(agent.call, 7).result()
    assert inputs(bound) == [5]
    assert bound.usage.tokens_in is None
    with pytest.warns(UserWarning, match="1 span of model calls started in threads that carry no context"):
        bound.close()


def test_a_thread_that_is_only_handed_a_parent_is_in_the_trial(agent, bound):
    with bound.otel(agent.tracing), agent.span("invoke_agent") as around, ThreadPoolExecutor(1) as pool:
        given = trace.set_span_in_context(around, otel_context.Context())

        def ask():
            said = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7}
            agent.tracer.start_span("chat", context=given, attributes=said).end()

        pool.submit(ask).result()
    assert inputs(bound) == [7]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bound.close()


def test_what_a_trial_left_behind_is_never_the_next_ones(agent):
    first, second = bind(), bind()
    go = threading.Event()

    def late():
        go.wait(30)
        agent.call(99)

    with first.otel(agent.tracing):
        thread = threading.Thread(target=contextvars.copy_context().run, args=(late,))
        thread.start()
    first.close()
    with second.otel(agent.tracing):
        go.set()
        thread.join()
        agent.call(5)
    assert (inputs(first), inputs(second)) == ([], [5])
    assert second.usage.tokens_in == 5
    second.close()


def test_frameworks_around_sdks_are_counted_once_as_the_innermost_saw_it(agent, bound):
    with bound.otel(agent.tracing):
        with agent.span(**{"usage.input_tokens": 50}):
            agent.call(12)
            agent.call(13)  # it asked again
        inner = agent.tracer.start_span("chat", attributes={"gen_ai.operation.name": "chat"})
        with trace.use_span(inner), agent.span("chat", **{"usage.input_tokens": 1}):
            pass
        inner.end()
    assert inputs(bound) == [12, 13, 1]


def test_two_instrumentations_of_one_sdk_are_counted_once_by_the_answers_name(agent, bound):
    with bound.otel(agent.tracing):
        for answer in ("resp_1", "resp_2"):
            with agent.span(current=False, **{"usage.input_tokens": 50, "response.id": answer}):
                agent.call(12, **{"response.id": answer})
                with agent.span(current=False, **{"usage.input_tokens": 13}):  # names no answer
                    pass
    assert sorted(inputs(bound)) == [12, 12, 13, 13]


@pytest.mark.parametrize("current", [True, False])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("stream", [True, False])
def test_a_call_through_a_recorded_client_counts_as_the_transport_saw_it(agent, line, current, named, stream):
    bound = bind(line.ledger)
    with bound.otel(agent.tracing), agent.span(current=current, **{"usage.input_tokens": 9999}) as span:
        answer = line.call(stream=stream)
        if named:
            span.set_attribute("gen_ai.response.id", name_of(answer[0] if stream else answer))
    (call,) = bound.calls
    assert call.http_status == 200
    assert call.tokens.input != 9999
    assert bound.usage.tokens_in == call.tokens.input


def name_of(answer):
    for holder in ("message", "response"):
        answer = getattr(answer, holder, answer)
    return answer.id


@pytest.mark.parametrize("current", [True, False])
def test_a_failed_call_through_a_recorded_client_counts_once_too(agent, openai_line, current):
    bound = bind(openai_line.ledger)
    with bound.otel(agent.tracing), pytest.raises(Exception, match="429"), agent.span(current=current):
        openai_line.call("rate_limit")
    (call,) = bound.calls
    assert (call.http_status, call.error) == (429, "provider_rate_limit")


def test_64_async_calls_through_a_recorded_client_count_once_each(agent, openai_line):
    bound = bind(openai_line.ledger)

    async def ask(number):
        with agent.span(current=number % 2 == 0):
            await openai_line.acall()

    async def everything():
        with bound.otel(agent.tracing):
            await asyncio.gather(*(ask(number) for number in range(64)))

    asyncio.run(everything())
    assert len(bound.calls) == 64
    assert {call.http_status for call in bound.calls} == {200}


def test_a_call_with_ones_own_client_beside_recorded_ones_is_not_taken_for_one_of_them(agent, openai_line):
    bound = bind(openai_line.ledger)
    with bound.otel(agent.tracing):
        openai_line.call()
        agent.call(5)
        with agent.span("invoke_agent"):
            openai_line.call()
            agent.call(6, **{"response.id": "another"})
        with agent.span(
            current=False, **{"usage.input_tokens": 7, "usage.output_tokens": 1, "response.id": "open"}
        ):
            openai_line.call()  # while an answer of one's own is read
    assert [call.tokens.input for call in bound.calls if call.http_status is None] == [5, 6, 7]
    assert len(bound.calls) == 6


def test_a_judges_recorded_call_is_not_a_call_of_the_target(agent, openai_line):
    ledger = openai_line.ledger
    target, judge = bind(ledger), bind(ledger, role=Role.JUDGE)
    with target.otel(agent.tracing):
        with agent.span(), judge.call() as told:
            told.tokens(input=500, output=1)
        with judge.otel(agent.tracing):
            agent.call(600)
        agent.call(5)
    assert (inputs(target), inputs(judge)) == ([5], [500, 600])


def test_spans_inside_of_a_call_by_hand_are_told_by_hand(agent, bound):
    with bound.otel(agent.tracing), bound.call() as told:
        agent.call(12)
        told.tokens(input=13, output=1)
    assert inputs(bound) == [13]


def test_calls_are_numbered_as_they_began(agent, openai_line):
    bound = bind(openai_line.ledger)
    with bound.otel(agent.tracing):
        with agent.span(current=False, **{"usage.input_tokens": 1, "response.id": "first"}):
            agent.call(2, **{"response.id": "second"})
        openai_line.call()
        agent.call(4)
    assert inputs(bound)[:2] == [1, 2]
    assert inputs(bound)[3] == 4
    numbers = [call.number for call in bound.calls]
    assert numbers == sorted(set(numbers))


def test_the_breaker_is_asked_before_an_agent_is_let_loose(agent):
    def refuse():
        raise InstrumentFailure("provider_quota", "openai was not asked")

    with pytest.raises(InstrumentFailure, match="was not asked"), bind(gate=refuse).otel(agent.tracing):
        pytest.fail("the agent ran")


def test_a_tracer_provider_whose_spans_cannot_be_seen_is_refused(bound):
    cases = [
        (trace.NoOpTracerProvider(), "give it a TracerProvider of the OpenTelemetry SDK"),
        (sdk.TracerProvider(sampler=sampling.ALWAYS_OFF), "sampler is AlwaysOffSampler, which drops spans"),
        (
            sdk.TracerProvider(sampler=sampling.ParentBasedTraceIdRatio(0.5)),
            "root:TraceIdRatioBased{0.5}",
        ),
    ]
    for tracing, message in cases:
        with pytest.raises(Misuse) as refused, bound.otel(tracing):
            pytest.fail("it was taken")
        assert message in str(refused.value)
    with bound.otel(sdk.TracerProvider(sampler=sampling.ParentBasedTraceIdRatio(1.0))):
        pass
    with bound.call() as told:  # as before
        told.tokens(input=1, output=1)
    assert inputs(bound) == [1]


def test_without_opentelemetry_the_message_names_the_extra_and_recorded_calls_go_on(bound, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(Misuse, match=r"pip install 'pytest-crashlab\[otel\]'"), bound.otel():
        pytest.fail("it was taken")
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.context", None)
    with bound.call() as told:
        told.tokens(input=1, output=1)
    assert inputs(bound) == [1]


@pytest.fixture
def alone(monkeypatch):
    for name in ("PYTEST_ADDOPTS", "CI", "GITHUB_ACTIONS", "CRASHLAB_STORE", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


SUITE = """
import threading

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

trace.set_tracer_provider(TracerProvider(shutdown_on_exit=False))


def ask(tokens):
    said = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m"}
    with trace.get_tracer("agent").start_as_current_span("chat", attributes=said) as span:
        span.set_attributes({"gen_ai.usage.input_tokens": tokens, "gen_ai.usage.output_tokens": 1})
"""


def test_the_rows_of_a_session_say_what_the_active_tracer_provider_told(pytester, alone):
    pytester.makepyfile(
        SUITE
        + dedent("""
        @pytest.mark.crashlab(provider="openai:m")
        @pytest.mark.parametrize("tokens", [10, 20])
        def test_asks(provider, tokens):
            ask(1000)
            with provider.otel():
                ask(tokens)
                ask(tokens)

        @pytest.mark.crashlab(provider="openai:m")
        def test_strays(provider):
            with provider.otel():
                ask(1)
                thread = threading.Thread(target=ask, args=(2,))
                thread.start()
                thread.join()
        """)
    )
    arguments = ("-p", "pytest_crashlab.plugin", "--trials=2", "--trial-order=cases")
    result = pytester.runpytest_subprocess(*arguments)
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["*UserWarning: 1 span of model calls started in threads*"])
    store = Store.open(pytester.path / ".crashlab")
    rows = store.load(store.manifests()[0].id).trials.sort("case", "trial").to_dicts()
    assert [(row["tokens_in"], row["tokens_out"], row["models"]) for row in rows] == [
        (20, 2, "openai:m"),
        (20, 2, "openai:m"),
        (40, 2, "openai:m"),
        (40, 2, "openai:m"),
        (None, None, "openai:m"),
        (None, None, "openai:m"),
    ]


def test_a_session_without_a_tracer_provider_is_told_how_to_set_one(pytester, alone):
    pytester.makepyfile(
        "import pytest\n"
        "@pytest.mark.crashlab(provider='openai:m')\n"
        "def test_a(provider):\n"
        "    with provider.otel(): pass\n"
    )
    result = pytester.runpytest_subprocess("-p", "pytest_crashlab.plugin", "--trials=1")
    result.stdout.fnmatch_lines(["*provider.otel() finds no TracerProvider of the OpenTelemetry SDK*"])
    store = Store.open(pytester.path / ".crashlab")
    rows = store.load(store.manifests()[0].id).trials.to_dicts()
    assert [row["outcome"] for row in rows] == ["misdeclared"]


def test_opentelemetry_is_imported_by_nobody_who_does_not_ask():
    if importlib.util.find_spec("httpx") is None and importlib.util.find_spec("httpx2") is None:
        pytest.skip("httpx is not installed")
    script = """
        import sys
        from pytest_crashlab.provider.base import parse_binding
        from pytest_crashlab.provider.bound import Bound
        from pytest_crashlab.provider.calls import Ledger
        import pytest_crashlab.provider.otel

        bound = Bound(parse_binding("openai:m", where="x"), Ledger())
        with bound.call() as told:
            told.tokens(input=1, output=1)
        bound.close()
        assert not [name for name in sys.modules if name.startswith("opentelemetry")]
    """
    subprocess.run([sys.executable, "-c", dedent(script)], check=True)
