"""From the selected cases to trials, in the process that collects: a worker or the single one."""

from __future__ import annotations

import atexit
import gc
import json
import weakref
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crashlab.errors import CrashlabError, UsageError
from pytest_crashlab.plugin import collect, gating, process, resume, workers
from pytest_crashlab.plugin.compat import collected_id, is_grouped
from pytest_crashlab.plugin.keys import DATASETS_NAME, TRIAL_KEY
from pytest_crashlab.plugin.marker_names import MARKERS
from pytest_crashlab.plugin.markers import Markers, TrialSpec, resolve_trials
from pytest_crashlab.plugin.vocabularies import Vocabularies
from pytest_crashlab.records.case import CasePlan
from pytest_crashlab.records.dataset import DatasetUse

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from pytest_crashlab.plugin.settings import Settings
    from pytest_crashlab.plugin.start import Starter


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is going to run: the cases with their planned trials, and how many were collected.

    ``collected`` counts the cases before any selection; ``once`` lists (case id, why) of tests that
    cannot be repeated and run a single time; ``datasets`` where the cases come from;
    ``vocabularies`` what the cases declare, see
    :class:`pytest_crashlab.records.vocabulary_lint.Declared`.
    """

    cases: list[CasePlan]
    collected: int
    once: list[tuple[str, str]]
    datasets: list[DatasetUse] = field(default_factory=list)
    vocabularies: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> str:
        """JSON text for the way from a worker to the controller."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Selection:
        """The selection of ``to_json``."""
        data = json.loads(text)
        return cls(
            cases=[CasePlan(**case) for case in data["cases"]],
            collected=data["collected"],
            once=[(case, why) for case, why in data["once"]],
            datasets=[DatasetUse(**use) for use in data["datasets"]],
            vocabularies=data["vocabularies"],
        )


class Fanout:
    """Expands the items of this process and hands the plan to whoever records."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        starter: Starter,
        orders: workers.Orders | None,
        *,
        deselected: int = 0,
    ) -> None:
        self._config = config
        self.settings = settings
        self._starter = starter
        self._orders = orders
        self._markers = Markers(config)
        self._vocabularies = Vocabularies(config, self._markers)
        self._deselected = deselected
        self._plain: TrialSpec | None = None

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Count what a selection leaves out."""
        self._deselected += len(items)

    def expand(self, session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Replace the selected cases in ``items`` by their trials."""
        try:
            if self._wanted(items):
                with _no_garbage_collection():
                    self._expand(items)
                _take_apart_at_exit(session)
        except (CrashlabError, pytest.UsageError) as error:
            if not process.is_worker(config):
                raise pytest.UsageError(str(error)) from None
            workers.tell_usage_error(config, str(error))
            items.clear()

    def _wanted(self, items: list[pytest.Item]) -> bool:
        if process.is_worker(self._config):
            active = self._orders is not None and self._orders.active
        else:
            active = self.settings.requested
        return active or any(self._markers.trials(item) is not None for item in items)

    def _expand(self, items: list[pytest.Item]) -> None:
        orders = self._orders
        if orders is None:
            run_session = self._starter.session_for_process()
            orders = run_session.orders()
        rest = orders.remaining
        if rest is not None and rest.selection:
            _leave_out(items, {case.id for case in rest.cases})
        planned = {} if rest is None else {case.id: case for case in rest.cases}
        collected = len(items) + self._deselected
        datasets = self._datasets(items, orders)
        expansion = collect.expand(
            items,
            spec_for=lambda item: self._spec(item, orders.baseline_k, planned),
            order=orders.order,
            seed=orders.seed,
            unsupported=self.settings.unsupported,
        )
        items[:] = expansion.items
        if rest is not None:
            resume.refuse_changed_plan(rest.cases, expansion.cases)
            items[:] = [item for item in items if not _is_decided(item, rest)]
        _refuse_strangers(expansion.cases, orders.gate)
        selection = Selection(
            cases=expansion.cases,
            collected=collected,
            once=expansion.unsupported,
            datasets=datasets,
            vocabularies=[declared.to_mapping() for declared in self._vocabularies.declared.values()],
        )
        self._starter.register_lifecycle(self.settings, orders.seed, orders.gate)
        if process.is_worker(self._config):
            self._config.pluginmanager.register(_PlanCourier(selection.to_json()), "crashlab-plan")
        else:
            run_session.planned(selection)

    def _datasets(self, items: list[pytest.Item], orders: workers.Orders) -> list[DatasetUse]:
        """Where the cases come from; refuses a baseline of other data sets or of the other split."""
        if not self._config.pluginmanager.has_plugin(DATASETS_NAME):
            return []
        from pytest_crashlab.plugin import datasets

        used = datasets.used_by(self._config, items)
        datasets.refuse_other_baseline(used, orders.measured)
        return used

    def _spec(self, item: pytest.Item, baseline_k: int | None, planned: dict[str, CasePlan]) -> TrialSpec:
        """How often ``item`` runs; refuses its markers now rather than in its first trial."""
        before = planned.get(collected_id(item, grouped=is_grouped(self._config))) if planned else None
        if before is None and not any(mark.name in MARKERS for mark in item.iter_markers()):
            spec = self._unmarked(baseline_k)
            if self._vocabularies.only_markers:
                return spec
            return replace(spec, vocabulary=self._vocabularies.key_of(item, item.nodeid))
        vocabulary = self._vocabularies.key_of(item, item.nodeid)
        checks = self._markers.checks(item)
        if before is not None:
            return TrialSpec(
                k=before.planned, min_passes=before.min_passes, checks=checks, vocabulary=vocabulary
            )
        spec = resolve_trials(
            item,
            self._markers,
            option=self.settings.trials,
            ini=self.settings.ini_trials,
            baseline=baseline_k,
        )
        return replace(spec, vocabulary=vocabulary) if vocabulary else spec

    def _unmarked(self, baseline_k: int | None) -> TrialSpec:
        """What applies to most tests of most suites."""
        if self._plain is None:
            asked = (self.settings.trials, self.settings.ini_trials, baseline_k)
            self._plain = TrialSpec(k=next((k for k in asked if k is not None), 1))
        return self._plain


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Trials live to the session's end: to look through all of them again and again finds nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _take_apart_at_exit(session: pytest.Session) -> None:
    """Spare the interpreter, as it ends, the search for garbage among all trials: most of its last second.

    Each item and its keywords refer to each other; without that they go as soon as the session does.
    """

    def take_apart() -> None:
        alive = reference()
        if alive is None:
            return
        for item in alive.items:
            if TRIAL_KEY in item.stash:
                vars(item).clear()
        alive.items.clear()

    reference = weakref.ref(session, lambda _: atexit.unregister(take_apart))
    atexit.register(take_apart)


def _refuse_strangers(cases: list[CasePlan], gate: gating.GatedCases) -> None:
    """Raise ``UsageError`` where not one case is in the baseline, before anything is spent."""
    if gate.pairs and cases and not any(case.id in gate.pairs for case in cases):
        raise UsageError(
            f"none of the {len(cases)} cases to run ({cases[0].id} ...) is among the {len(gate.pairs)} of "
            "the baseline; name another baseline, or record a new one with --save-baseline and no --baseline"
        )


def _leave_out(items: list[pytest.Item], planned: set[str]) -> None:
    """Deselect what a resumed run of selected cases has nothing to do with."""
    grouped = bool(items) and is_grouped(items[0].config)
    others = [item for item in items if collected_id(item, grouped=grouped) not in planned]
    if others:
        items[0].config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if collected_id(item, grouped=grouped) in planned]


def _is_decided(item: pytest.Item, rest: resume.Remaining) -> bool:
    of = item.stash[TRIAL_KEY]
    return of.trial in rest.decided.get(of.case.id, ())


class _PlanCourier:
    """Puts the plan on the first report that leaves a worker.

    A worker's output arrives only when it ends, and never from one that died; a report arrives now.
    """

    def __init__(self, plan: str) -> None:
        self._plan: str | None = plan

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if self._plan is not None:
            gating.attach_plan(report, self._plan)
            self._plan = None
        return report
