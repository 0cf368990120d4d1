"""The models of a test: which it is bound to, by option, ini key and marker, and what they used.

Imported by the first test that asks for a model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crashlab.errors import CrashlabError, InstrumentFailure, UsageError
from pytest_crashlab.plugin.author import derive_seed
from pytest_crashlab.plugin.breaker import Breaker
from pytest_crashlab.plugin.judging import MISDECLARED
from pytest_crashlab.plugin.keys import RUN_FOLDER_KEY, TRIAL_KEY
from pytest_crashlab.plugin.lifecycle import STATE_KEY
from pytest_crashlab.plugin.markers import Markers, where
from pytest_crashlab.plugin.process import worker_name
from pytest_crashlab.plugin.recordings import Recordings
from pytest_crashlab.plugin.redacting import without_secrets
from pytest_crashlab.plugin.settings import Settings
from pytest_crashlab.provider import pricing, repeats
from pytest_crashlab.provider.base import DEFAULT_NAME, Binding, Role, is_spec, parse_binding
from pytest_crashlab.provider.bound import Bound
from pytest_crashlab.provider.calls import Ledger, totals
from pytest_crashlab.provider.judge import Judge, readable, split
from pytest_crashlab.provider.scripted import Scripted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_crashlab.provider.base import Call
    from pytest_crashlab.provider.calls import Totals
    from pytest_crashlab.provider.judge import Vote

JUDGE = "judge"
_LONGEST_NAME = 120
# What a marker may say of its model; all else that it says is somebody else's.
MODEL_SETTINGS = frozenset(
    {
        "base_url",
        "retries",
        "timeout",
        "temperature",
        "top_p",
        "top_k",
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "stop",
        "reasoning_effort",
        "frequency_penalty",
        "presence_penalty",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A model as it was bound: by name, or one that is scripted."""

    binding: Binding
    scripted: Scripted | None = None


class Models:
    """The models of one test, and the calls to them in one trial."""

    def __init__(
        self, item: pytest.Item, sources: Mapping[str, Source], retries: int, recordings: Recordings
    ) -> None:
        of = item.stash.get(TRIAL_KEY, None)
        case, trial, seed = (item.nodeid, 1, 0) if of is None else (of.case.id, of.trial, of.run_seed)
        self.ledger = Ledger()
        self.breaker: Breaker | None = None
        self.replay = recordings.replay(case, trial)
        self._tape = recordings.tape()
        self._write_tape = partial(recordings.write, case, trial)
        self._is_over = False
        self._disagreed: list[bool] = []  # by judgements of two votes or more
        self._seed = derive_seed(seed, case, trial)
        self._sources = sources
        self._retries = retries
        self._made: dict[tuple[str, Role], Bound] = {}

    def target(self, name: str | None = None) -> Bound:
        """The model by its name; None: the first that was bound, which is none that only judges."""
        return self._bound(name, Role.TARGET)

    def judge(self, name: str | None = None) -> Bound:
        """The same model in the role of a judge, whose calls are not the target's."""
        return self._bound(name, Role.JUDGE)

    @property
    def names(self) -> list[str]:
        """The names of the models that are bound, the default one first."""
        return list(self._sources)

    def source(self, name: str | None) -> Source:
        """The model that a name stands for, or that ``provider:model`` names. Raises for neither."""
        first = next(iter(self._sources), JUDGE)
        if name is None and first != JUDGE:
            return self._sources[first]
        if name is not None and name in self._sources:
            return self._sources[name]
        if name is not None and is_spec(name):
            return Source(binding=parse_binding(name, where="the model's name"))
        known = ", ".join(self._sources) or "none"
        if name is None:
            raise InstrumentFailure(
                MISDECLARED,
                "no model is bound: mark the test crashlab(provider='openai:gpt-x'), set crashlab_provider "
                "or give --crashlab-model=openai:gpt-x",
            )
        raise InstrumentFailure(MISDECLARED, f"no model is bound by the name {name!r} (there is {known})")

    def _bound(self, name: str | None, role: Role) -> Bound:
        source = self.source(name)
        key = (source.binding.name if name is None else name, role)
        if key not in self._made:
            binding = source.binding
            if binding.retries is None:
                binding = replace(binding, retries=self._retries)
            self._made[key] = Bound(
                binding,
                self.ledger,
                role=role,
                seed=self._seed,
                playing=None if source.scripted is None else source.scripted.play(self._seed),
                gate=self._gate(source),
                price=pricing.price,
                others=self.target if role is Role.TARGET else self.judge,
                tape=self._tape if source.scripted is None else None,
                replay=self.replay if source.scripted is None else None,
            )
        return self._made[key]

    def _gate(self, source: Source) -> Callable[[], None] | None:
        if self.breaker is None or source.scripted is not None or self.replay is not None:
            return None
        return partial(self.breaker.refuse, source.binding.provider)

    def columns(self) -> dict[str, Any]:
        """What the trial's row says of the target's calls and, apart from them, of the judges'."""
        replayed = {} if self.replay is None or not self.replay.asked else {"replayed": True}
        return {**self._of_target(), **self._of_judges(), **replayed, **self._of_answers()}

    def _of_target(self) -> dict[str, Any]:
        used, models = self._used(Role.TARGET)
        if used is None:
            return {}
        return {
            "tokens_in": used.tokens_in,
            "tokens_out": used.tokens_out,
            "cost_usd": used.cost_usd,
            "cost_basis": used.cost_basis,
            "models": models,
        }

    def _of_judges(self) -> dict[str, Any]:
        used, models = self._used(Role.JUDGE)
        if used is None:
            return {}
        return {
            "judge_calls": used.calls,
            "judge_tokens_in": used.tokens_in,
            "judge_tokens_out": used.tokens_out,
            "judge_s": used.latency,
            "judge_cost_usd": used.cost_usd,
            "judge_cost_basis": used.cost_basis,
            "judge_models": models,
            "judge_voted": len(self._disagreed),
            "judge_split": sum(self._disagreed),
        }

    def _of_answers(self) -> dict[str, Any]:
        """What answers are known by when they come again; whether a cache is seen in this trial alone."""
        calls = self.ledger.calls()
        keys = repeats.kept(calls)
        cached = repeats.cached_within(calls)
        if not keys and not cached:
            return {}
        return {"answers": " ".join(keys) or None, "cached": cached}

    def _used(self, role: Role) -> tuple[Totals | None, str]:
        found = self.ledger.calls(role)
        if not found:
            return None, ""
        priced = [c if c.cost else replace(c, cost=pricing.price(c)) for c in found]
        models = ", ".join(dict.fromkeys(_named(call) for call in found))
        return totals(priced, still_open=self.ledger.open(role)), models

    def heard(self, votes: Sequence[Vote]) -> None:
        """Count a judgement by its ``votes``: one vote says nothing of whether the judge is sure."""
        if readable(votes) > 1:
            self._disagreed.append(split(votes))

    def prompts(self) -> list[str]:
        """The stored prompts (NAME@VERSION) that requests of the target asked the provider to use."""
        said = (call.settings.get("prompt") for call in self.ledger.calls(Role.TARGET))
        return [prompt for prompt in said if isinstance(prompt, str)]

    def documents(self) -> list[dict[str, Any]]:
        """Each call of the trial, the target's and the judges', with what it sent and received."""
        found = []
        for call in self.ledger.calls():
            priced = call if call.cost else replace(call, cost=pricing.price(call))
            sent, received = self.ledger.contents(call.number)
            contents = {
                "sent": sent.decode("utf-8", "replace"),
                "received": received.decode("utf-8", "replace"),
            }
            found.append(priced.to_mapping() | {name: text for name, text in contents.items() if text})
        return found

    def close(self) -> None:
        """Close the clients that were handed out, and tell what the calls of the trial came to."""
        if self.breaker is not None and self.replay is None and not self._is_over:
            played = {s.binding.provider for s in self._sources.values() if s.scripted is not None}
            self.breaker.heard([call for call in self.ledger.calls() if call.provider not in played])
        self._is_over = True
        for bound in self._made.values():
            bound.close()
        if self._tape is not None:
            self._write_tape(self._tape)


MODELS_KEY = pytest.StashKey[Models]()
_BREAKER_KEY = pytest.StashKey[Breaker]()
_READER_KEY = pytest.StashKey["_Reader"]()


def models_for(request: pytest.FixtureRequest) -> Models:
    """The models of the requesting test, made once a trial; their use goes into the trial's row."""
    item = request.node
    state = item.stash.get(STATE_KEY, None)
    known: Models | None = item.stash.get(MODELS_KEY, None)
    if known is not None and (state is None or state.usage is not None):
        return known
    reader = request.config.stash.setdefault(_READER_KEY, _Reader(request.config))
    try:
        models = Models(item, reader.sources(item), reader.settings.retries, reader.recordings)
    except CrashlabError as error:
        raise InstrumentFailure(MISDECLARED, str(error)) from error
    item.stash[MODELS_KEY] = models
    models.breaker = _breaker(request.config)
    if state is not None:
        state.usage = models
    return models


def _breaker(config: pytest.Config) -> Breaker | None:
    """The breaker of this process; None where no run is recorded."""
    folder = config.stash.get(RUN_FOLDER_KEY, None)
    if folder is None:
        return None
    return config.stash.setdefault(_BREAKER_KEY, Breaker(folder, worker_name(config)))


def judge_for(request: pytest.FixtureRequest) -> Judge:
    """The model that judges in the requesting test; never the target's own unless it is named so."""
    models = models_for(request)
    if JUDGE not in models.names:
        raise InstrumentFailure(
            MISDECLARED,
            "no model is bound to judge: mark the test crashlab(judge='openai:gpt-x'), or name one in "
            "crashlab_provider: 'judge = openai:gpt-x'",
        )
    return Judge(models.judge(JUDGE), models.heard)


class _Reader:
    """Which models a test is bound to: the option before the marker before the ini key."""

    def __init__(self, config: pytest.Config) -> None:
        self.settings = Settings.of(config)
        self.recordings = Recordings(self.settings, without_secrets(config))
        self._markers = Markers(config)

    def sources(self, item: pytest.Item) -> dict[str, Source]:
        """The models of a test by name, the default one first. Raises :class:`UsageError`."""
        said = self._markers.settings(item)
        place = f"{where(item)}: the marker crashlab"
        found = {binding.name: Source(binding=binding) for binding in self.settings.providers}
        given = said.get("provider")
        if given is not None:
            found = {**self._marked(given, place), **_without_default(found)}
        found = self._chosen(found, self.settings.model)
        if said.get("judge") is not None:
            found[JUDGE] = _source(said["judge"], place, JUDGE)
        first = next(iter(found), JUDGE)
        if first == JUDGE:  # it judges, and nothing else is bound
            return found
        own = {name: said[name] for name in sorted(MODEL_SETTINGS & said.keys())}
        extra = said.get("model_settings", {})
        found[first] = replace(
            found[first], binding=found[first].binding.with_settings({**own, **extra}, place)
        )
        return found

    def _marked(self, given: Any, place: str) -> dict[str, Source]:
        if isinstance(given, dict):
            return {name: _source(value, place, name) for name, value in given.items()}
        return {DEFAULT_NAME: _source(given, place, DEFAULT_NAME)}

    def _chosen(self, found: dict[str, Source], model: str | None) -> dict[str, Source]:
        """With the default model replaced by what ``--crashlab-model`` names, unless that is scripted."""
        if model is None:
            return found
        if model in found:
            return {model: found[model], **{name: s for name, s in found.items() if name != model}}
        first = next(iter(found), DEFAULT_NAME)
        before = found.get(first)
        if before is not None and before.scripted is not None:
            return found
        if is_spec(model):
            wanted = parse_binding(model, where="--crashlab-model")
            return {**found, first: Source(binding=replace(wanted, name=first))}
        if before is not None:
            return {**found, first: Source(binding=replace(before.binding, model=model))}
        return found


def _named(call: Call) -> str:
    """The model of a call, as the answer names it where it does: "openai:gpt-x-2026-04-14"."""
    name = f"{call.provider}:{call.answered_by or call.model or 'unknown'}"
    return "".join(c for c in name if c.isprintable()).replace(",", " ")[:_LONGEST_NAME]


def _without_default(found: Mapping[str, Source]) -> dict[str, Source]:
    return {name: source for name, source in found.items() if name != DEFAULT_NAME}


def _source(given: object, place: str, name: str) -> Source:
    if isinstance(given, Scripted):
        return Source(binding=replace(given.binding, name=name), scripted=given)
    if isinstance(given, str):
        return Source(binding=replace(parse_binding(given, where=place), name=name))
    raise UsageError(
        f"{place} has provider={given!r}; give it a text such as 'openai:gpt-x', or Scripted(...)"
    )
