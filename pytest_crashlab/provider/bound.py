"""What a test sees of a model: clients whose calls are recorded, a plain question, and what was used."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_crashlab.provider import asking, clients, played, replaying
from pytest_crashlab.provider.base import NO_TOKENS, Basis, Cost, Misuse, Role, Tokens
from pytest_crashlab.provider.calls import Totals, totals
from pytest_crashlab.provider.exchange import Asked, Sender
from pytest_crashlab.provider.transport import Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from pytest_crashlab.provider.asking import Answer
    from pytest_crashlab.provider.base import Binding, Call
    from pytest_crashlab.provider.calls import Ledger
    from pytest_crashlab.provider.replaying import Replay
    from pytest_crashlab.provider.scripted import Playing
    from pytest_crashlab.provider.taping import Tape

# Options of an HTTP client by which requests would leave on another way than the recorded one.
_DETOURS = ("http_client", "transport", "mounts", "proxy", "proxies")


@dataclass(slots=True, kw_only=True)
class HandCall:
    """A call that a test makes by hand: say of it what is known; what is not said stays unknown.

    ``model`` the one that answered; ``finish`` why it stopped; ``cost_usd`` US dollars that the provider
    billed; ``request_id`` the provider's.
    """

    model: str | None = None
    finish: str | None = None
    request_id: str | None = None
    cost_usd: float | None = None
    known: Tokens = field(default=NO_TOKENS)

    def tokens(
        self,
        *,
        input: int | None = None,  # noqa: A002  the word that every provider has for it
        output: int | None = None,
        cache_read: int | None = None,
        cache_write: int | None = None,
        reasoning: int | None = None,
    ) -> None:
        """The tokens of the call; ``input`` with what was cached, ``output`` with the reasoning."""
        self.known = Tokens(
            input=input, output=output, cache_read=cache_read, cache_write=cache_write, reasoning=reasoning
        )


class Bound:
    """One model, in one trial, in one role.

    ``others`` the models that a test may ask for by name. Before each call ``gate`` is asked, and
    ``limit`` with the calls of the trial in this role that are over; both may raise. ``tape`` what the
    trial's exchanges are recorded on, and ``replay`` what they are answered from, where they are.
    """

    def __init__(
        self,
        binding: Binding,
        ledger: Ledger,
        *,
        role: Role = Role.TARGET,
        seed: int = 0,
        playing: Playing | None = None,
        gate: Callable[[], None] | None = None,
        price: Callable[[Call], Cost | None] | None = None,
        others: Callable[[str], Bound] | None = None,
        tape: Tape | None = None,
        replay: Replay | None = None,
    ) -> None:
        self.binding = binding
        sender = Sender(
            binding=binding,
            ledger=ledger,
            role=role,
            replayed=replay is not None,
            scripted=playing is not None,
        )
        self._wire = Wire(sender, seed=seed, gate=self._before_a_call, tape=tape)
        self._replay = replay
        self._gate = gate
        self.limit: Callable[[Sequence[Call]], None] | None = None
        self._ledger = ledger
        self._role = role
        self._playing = playing
        self._price = price
        self._others = others
        self._to_close: list[Any] = []

    def __repr__(self) -> str:
        return f"<provider {self.binding.spec}>"

    @property
    def model(self) -> str:
        """The model's name, as requests are to say it."""
        return self.binding.model

    @property
    def name(self) -> str:
        """The provider's name."""
        return self.binding.provider

    @property
    def settings(self) -> dict[str, Any]:
        """What requests are to say beside it, such as temperature: pass it on as ``**provider.settings``."""
        return dict(self.binding.settings)

    def named(self, name: str) -> Bound:
        """Another model of this test, by the name that it was bound under."""
        if self._others is None:
            raise KeyError(name)
        found = self._others(name)
        found.limit = self.limit
        return found

    def _before_a_call(self) -> None:
        if self._gate is not None:
            self._gate()
        if self.limit is not None:
            self.limit(self.calls)

    def client(self, **options: Any) -> Any:
        """The SDK's own client for the model's provider: ``openai.OpenAI`` or ``anthropic.Anthropic``.

        ``options`` go to it as they are; retries are the provider's (``crashlab_retries``), not the
        SDK's. Closed at the end of the trial.
        """
        return self._sdk(is_async=False, **options)

    def async_client(self, **options: Any) -> Any:
        """The same for ``async`` tests; close it yourself, or use ``async with``."""
        return self._sdk(is_async=True, **options)

    def http_client(self, *, library: str | None = None, **options: Any) -> Any:
        """An ``httpx2`` or ``httpx`` client (``library``) for any library that takes one."""
        self._refuse_detours(options)
        made = clients.http_client(
            self._wire, is_async=False, library=library, inner=self._inner(), **options
        )
        self._to_close.append(made)
        return made

    def async_http_client(self, *, library: str | None = None, **options: Any) -> Any:
        """The same for ``async`` tests; close it yourself."""
        self._refuse_detours(options)
        return clients.http_client(self._wire, is_async=True, library=library, inner=self._inner(), **options)

    def _sdk(self, *, is_async: bool, **options: Any) -> Any:
        self._refuse_detours(options)
        sdk = options.pop("sdk", None)
        if self._playing is not None and sdk is None:
            sdk = clients.sdk_for(("openai", "anthropic"))
        made = clients.sdk_client(self._wire, is_async=is_async, sdk=sdk, inner=self._inner(), **options)
        if not is_async:
            self._to_close.append(made)
        return made

    def _inner(self) -> Callable[[Any], Any] | None:
        if self._replay is not None:
            return partial(replaying.transport, replay=self._replay, role=str(self._role), provider=self.name)
        return None if self._playing is None else partial(played.transport, playing=self._playing)

    def _refuse_detours(self, options: Mapping[str, Any]) -> None:
        """While answers come from a recording nothing is to reach a network."""
        given = next((name for name in _DETOURS if options.get(name) is not None), None)
        if self._replay is not None and given is not None:
            raise Misuse(
                f"{self.binding.spec}: a client with {given}= of its own cannot be replayed; leave it out "
                "under --crashlab-replay"
            )

    def ask(
        self, prompt: str | Sequence[Mapping[str, Any]], *, system: str | None = None, **settings: Any
    ) -> Answer:
        """Ask the model one plain question, without an SDK (needs httpx2 or httpx).

        ``prompt`` a text, or messages with role and content. Raises :class:`InstrumentFailure` where the
        instrument failed and :class:`~pytest_crashlab.provider.asking.Refused` where the question is at
        fault.
        """
        asked = asking.question(
            self.binding, prompt, system=system, settings=settings, is_sent=self._replay is None
        )
        with clients.http_client(self._wire, is_async=False, inner=self._inner()) as client:
            with asking.failures_told():
                response = client.post(asked.url, headers=dict(asked.headers), json=dict(asked.body))
            return asking.understand(response)

    async def aask(
        self, prompt: str | Sequence[Mapping[str, Any]], *, system: str | None = None, **settings: Any
    ) -> Answer:
        """The same for ``async`` tests."""
        asked = asking.question(
            self.binding, prompt, system=system, settings=settings, is_sent=self._replay is None
        )
        async with clients.http_client(self._wire, is_async=True, inner=self._inner()) as client:
            with asking.failures_told():
                response = await client.post(asked.url, headers=dict(asked.headers), json=dict(asked.body))
            return asking.understand(response)

    @contextlib.contextmanager
    def call(self, model: str | None = None, **settings: Any) -> Generator[HandCall, None, None]:
        """Record a call that is made in the block by means that nothing here knows of.

        ``with provider.call(temperature=0) as call: ...; call.tokens(input=12, output=3)``
        """
        if self._replay is not None:
            raise self._replay.by_hand()
        asked = Asked(
            number=self._ledger.begin_request(), model=model or self.model, settings=settings, body=b""
        )
        attempt = self._wire.attempt(asked, 1, 0.0)
        told = HandCall()
        watch = self._ledger.watch
        try:
            with contextlib.nullcontext() if watch is None else watch.aside():
                yield told
        except BaseException as error:
            attempt.failed_by_hand(error)
            raise
        cost = None
        if told.cost_usd is not None and (told.cost_usd > 0 or not told.known.input):
            cost = Cost(usd=float(told.cost_usd), basis=Basis.BILLED, source="told by the test")
        attempt.told_by_hand(
            model=told.model, finish=told.finish, request_id=told.request_id, tokens=told.known, cost=cost
        )

    def otel(self, tracer_provider: Any | None = None) -> contextlib.AbstractContextManager[None]:
        """Record the calls of an agent that brings its own client, from OpenTelemetry's GenAI spans.

        ``with provider.otel(): run_agent()``; ``tracer_provider`` the one that the instrumentation uses,
        None for the active one. Spans that start in the block count. Nothing here holds a call back.
        """
        from pytest_crashlab.provider.otel import Listener

        self._before_a_call()
        return self._ledger.watched(Listener).listen(tracer_provider, self._role, self.binding.provider)

    @property
    def calls(self) -> list[Call]:
        """The calls of this trial in this role that are over, in the order in which they began."""
        found = self._ledger.calls(self._role)
        price = self._price
        return found if price is None else [c if c.cost else replace(c, cost=price(c)) for c in found]

    @property
    def usage(self) -> Totals:
        """What they add up to."""
        return totals(self.calls, still_open=self._ledger.open(self._role))

    def close(self) -> None:
        """Close the sync clients that were handed out, and listen to no more spans."""
        for made in self._to_close:
            made.close()
        if self._ledger.watch is not None:
            self._ledger.watch.close()
