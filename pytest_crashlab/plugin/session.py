"""A session with trials, in the process that records: the single one or the xdist controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

from pytest_crashlab.errors import CrashlabError, StoreError, UsageError
from pytest_crashlab.plugin import conflicts, gating, manifest, resume, rounds
from pytest_crashlab.plugin.compat import case_id_of, is_grouped
from pytest_crashlab.plugin.configuration import stored_config
from pytest_crashlab.plugin.deciding import Assigned
from pytest_crashlab.plugin.fanout import Selection
from pytest_crashlab.plugin.module_state import ModuleState
from pytest_crashlab.plugin.ordering import effective_order
from pytest_crashlab.plugin.process import worker_name
from pytest_crashlab.plugin.recorder import Recorder
from pytest_crashlab.plugin.redacting import without_secrets
from pytest_crashlab.plugin.rows import Handover, row_of
from pytest_crashlab.plugin.stopped import BUDGET, budget_sentence, sentence, stops_in
from pytest_crashlab.plugin.stopping import StopOnSigterm
from pytest_crashlab.plugin.workers import Orders
from pytest_crashlab.records.case import CasePlan
from pytest_crashlab.records.outcome import INSTRUMENT_OUTCOMES, Kind
from pytest_crashlab.records.run import RunStatus, new_run_id
from pytest_crashlab.records.trial import Phase
from pytest_crashlab.store.layout import BUDGET_USE, CONTROL, StorePaths

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from pytest_crashlab.plugin.budget import BudgetKeeper
    from pytest_crashlab.plugin.keys import TrialOf
    from pytest_crashlab.plugin.lifecycle import ItemState
    from pytest_crashlab.plugin.settings import Order, Settings
    from pytest_crashlab.store.baselines import Resolution
    from pytest_crashlab.store.runs import RunWriter, Store, StoredRun

P = ParamSpec("P")
T = TypeVar("T")


class RunSession:
    """What is known of the run from the options to its last row.

    ``replaces`` the run that ``--save-baseline``'s name stood for at the start; ``reference`` what the
    baseline was named by and ``resolution`` how it was found (None: none asked for); ``baseline`` the
    stored run; ``selection`` what is planned, once collected; ``recorder`` the rows, once something is
    planned; ``problem`` a usage error that came up too late to raise; ``store_error`` why recording
    stopped; ``stop`` ends the session in order on SIGTERM, from the moment there is a run to seal.
    """

    def __init__(
        self, config: pytest.Config, settings: Settings, seed: int, *, run_id: str | None = None
    ) -> None:
        self.config = config
        self.settings = settings
        self.seed = seed
        self.run_id = run_id or new_run_id()
        self.order = effective_order(config, settings.order)
        self.remaining: resume.Remaining | None = None
        self.started = False
        self.store: Store | None = None
        self.replaces: str | None = None
        self.reference: str | None = None
        self.resolution: Resolution | None = None
        self.baseline: StoredRun | None = None
        self.selection: Selection | None = None
        self.writer: RunWriter | None = None
        self.recorder: Recorder | None = None
        self.problem: str | None = None
        self.store_error: str | None = None
        self.looks: list[str] = []
        self.module_state = ModuleState()
        self.stopped: dict[str, str] = {}
        self.budget: BudgetKeeper | None = None
        self.gated_cases = gating.GatedCases(everything=False, pairs={})
        self.stop = StopOnSigterm()
        self.handover = Handover()
        self._has_full_plan = False

    def start(self) -> None:
        """Open the store and resolve the baseline; raises ``UsageError`` where that cannot be."""
        conflicts.refuse(self.config)
        if self.settings.isolation == "round":
            rounds.refuse(self.config, self.order)
        from pytest_crashlab.store.runs import Store

        self.started = True
        if self.config.option.collectonly and not self.settings.store.exists():
            return  # nothing is stored, so nothing is created, and there is no run to compare with
        self.store = Store.open(self.settings.store, create=not self.config.option.collectonly)
        ref = self.settings.baseline
        if self.settings.resume is not None:
            ref = self._resume(self.store, self.settings.resume)
        if self.settings.save_baseline is not None:
            self.replaces = self.store.refs.read(self.settings.save_baseline)
        if ref is not None:
            self.reference = ref
            self._resolve(self.store, ref)
        elif self.settings.shared_seed:
            raise UsageError("--crashlab-seed=baseline needs a baseline: name one with --baseline")
        self.gated_cases = self._gated()
        self._share_seed_with_recording()

    def _share_seed_with_recording(self) -> None:
        """Record, or replay, with the recording's own seed; under ``--collect-only`` nothing is made."""
        settings = self.settings
        if (settings.record is None and settings.replay is None) or self.config.option.collectonly:
            return
        from pytest_crashlab.plugin import recordings

        drawn = settings.seed is None and not settings.shared_seed and self.remaining is None
        self.seed = recordings.begin(settings, self.seed, is_drawn=drawn)

    def _resume(self, store: Store, ref: str) -> str | None:
        """Take over a run that ended early; return the baseline it is compared with."""
        from pytest_crashlab.report.commands import run_name

        found = resume.find_run(store, ref)
        resume.refuse_changed_target(found, self.config.rootpath)
        resume.refuse_changed_sources(found, *manifest.source_digests(self.config.rootpath, self.settings))
        resume.refuse_other_trials(found, self.settings.trials)
        resume.refuse_changed_config(found, stored_config(self.config))
        resume.refuse_other_split(found, self.settings.split)
        rounds.refuse_shared(found, self.settings.isolation)
        self.run_id = found.id
        self.seed = self.seed if found.seed is None else found.seed
        self.order = effective_order(self.config, cast("Order", found.trial_order or self.order))
        self.remaining = resume.remaining(store, found)
        before = found.baseline or {}
        if self.settings.baseline is not None or before.get("id") is None:
            return self.settings.baseline or before.get("ref")
        return run_name(before.get("ref"), before["id"])

    def _resolve(self, store: Store, ref: str) -> None:
        from pytest_crashlab.store.baseline_refs import resolve_baseline

        # A file is named from where the command was typed; branches and runs know no folder.
        typed = self.config.invocation_params.dir / ref
        if ref.endswith(".crashrun") and typed.is_file():
            ref = str(typed)
        self.resolution = resolve_baseline(
            store,
            ref,
            cwd=self.config.rootpath,
            split=self.settings.split,
            own_run=self.run_id,
            saving=self.settings.save_baseline,
            environment=manifest.environment(),
        )
        if self.resolution.run is not None:
            self.baseline = self.resolution.load()
            if self.settings.shared_seed and self.remaining is None:
                self.seed = manifest.shared_seed(self.baseline)

    def _gated(self) -> gating.GatedCases:
        if self.settings.min_pass_rate is not None or self.bootstrapping:
            return gating.GatedCases(everything=True, pairs={})
        if self.baseline is None:
            return gating.GatedCases(everything=False, pairs={})
        from pytest_crashlab.compare.pairing import decided_identities

        return gating.GatedCases(everything=False, pairs=decided_identities(self.baseline))

    @property
    def bootstrapping(self) -> bool:
        """Whether a baseline is named that has no run yet: the run goes on gated."""
        return (
            self.resolution is not None
            and self.resolution.run is None
            and self.settings.baseline_missing == "gate"
        )

    def orders(self) -> Orders:
        """What the process that runs the tests must know."""
        return Orders(
            active=self.started,
            seed=self.seed,
            order=self.order,
            remaining=self.remaining,
            baseline_k=None if self.baseline is None else self.baseline.manifest.k,
            gate=self.gated_cases,
            folder=str(self.folder),
            measured=manifest.measured(self.baseline),
        )

    @property
    def folder(self) -> Path:
        """Where the run is kept, or will be."""
        return StorePaths(self.settings.store).run(self.run_id).folder

    def planned(self, selection: Selection) -> None:
        """The plan of this session: begin the run with it, or complete what ids alone told."""
        self.selection = selection
        if self.config.option.collectonly:
            return
        writer = self._begin()
        from pytest_crashlab.store.plan import Plan

        self._guarded(
            writer.write_plan,
            Plan(cases=selection.cases, seed=self.seed, order=self.order),
        )
        if self.remaining is None:
            self._guarded(writer.update, **manifest.planned_fields(self.config, selection, self.baseline))
            self._count_looks(self._opened(), writer)

    def _count_looks(self, store: Store, writer: RunWriter) -> None:
        """Count the run as a look at the holdouts it measures; raises ``StoreError`` where that fails."""
        if self.selection is None or not any(use.split == "holdout" for use in self.selection.datasets):
            return
        from pytest_crashlab.store.ledger import record_look

        against = None if self.baseline is None else self.baseline.manifest.id
        looks = record_look(store.ledger, store.manifest(self.run_id), "run", against=against)
        self.looks = [look.sentence for look in looks]
        self._guarded(writer.update, looks=self.looks)

    def planned_by_ids(self, ids: list[str]) -> None:
        """Begin the run with what ids tell, so that a worker's early death leaves no trial unplanned."""
        if self.selection is not None or not self.started or not ids:
            return  # no ids: nothing is left to run, or the workers refuse to; their last word tells
        try:
            self._planned_by_ids(ids)
        except CrashlabError as error:
            self.usage_error(str(error))

    def _planned_by_ids(self, ids: list[str]) -> None:
        if self.remaining is not None:
            cases = self.remaining.cases
            # A run that was killed before its first report knows no more of its cases than their ids.
            self._has_full_plan = all(case.pass_rule for case in cases)
            self.planned(Selection(cases=cases, collected=len(cases), once=[]))
            return
        planned: dict[str, int] = {}
        grouped = is_grouped(self.config)
        for nodeid in ids:
            case, _ = case_id_of(nodeid, grouped=grouped)
            planned[case] = planned.get(case, 0) + 1
        cases = [CasePlan(id=case, planned=k) for case, k in planned.items()]
        self.planned(Selection(cases=cases, collected=len(cases), once=[]))

    def nothing_left(self) -> None:
        """The workers had nothing to run: judge a resumed run as it is."""
        if self.remaining is None or self.selection is not None or self.config.option.collectonly:
            return
        cases = self.remaining.cases
        try:
            self.planned(Selection(cases=cases, collected=len(cases), once=[]))
        except CrashlabError as error:
            self.usage_error(str(error))

    def abandon(self) -> None:
        """The session ends with a usage error: what it began, if anything, is no run to wait for."""
        if self.writer is not None:
            self._guarded(self.writer.seal, RunStatus.FAILED)

    def _begin(self) -> RunWriter:
        if self.writer is None:
            if not self.started:  # trials asked for by a marker that a worker found
                self.start()
            from pytest_crashlab.plugin.budget import BudgetKeeper

            store, rest = self._opened(), self.remaining
            self.writer = (
                store.begin(manifest.new_manifest(self)) if rest is None else store.reopen(self.run_id)
            )
            if rest is not None:  # of a session that was killed
                for name in (CONTROL, BUDGET_USE):
                    (self.folder / name).unlink(missing_ok=True)
            self.recorder = Recorder(self.writer, {} if rest is None else rest.attempts)
            self.stop.install()
            self.budget = BudgetKeeper(self.settings.budget, self.folder)
            if self.settings.budget:
                self.config.pluginmanager.register(self.budget, "crashlab-budget-keeper")
        return self.writer

    def _opened(self) -> Store:
        if self.store is None:
            raise StoreError("the store is not open")
        return self.store

    def receive(self, plan: str | None, row: str | None) -> None:
        """Take what travelled with a report."""
        if plan is not None and not self._has_full_plan:
            self._has_full_plan = True
            try:
                self.planned(Selection.from_json(plan))
            except CrashlabError as error:  # the store of a run that a worker's marker asked for
                self.usage_error(str(error))
        if row is not None and self.recorder is not None:
            recorded = self._guarded(self.recorder.add, self.handover.take(row))
            if recorded is not None:
                self.config.hook.pytest_crashlab_trial_recorded(row=recorded)
                if recorded.kind is Kind.INSTRUMENT:
                    self._look_for_stops()
                if self.budget is not None and self.budget.reason is not None:
                    self._tell_budget(self.budget)

    def all_is_over(self) -> None:
        """Say which cases started fewer trials than planned for a budget of their own."""
        if self.budget is not None:
            self.budget.hear()
            self._tell_budget(self.budget)

    def _tell_budget(self, budget: BudgetKeeper) -> None:
        """Say why trials are not started, where some are left that are not."""
        planned = {} if self.selection is None else {c.id: c.planned for c in self.selection.cases}
        told = {f"{BUDGET}{case}": f"for {case}, {why}" for case, why in budget.cases.items()}
        if budget.reason is not None:
            told[BUDGET] = budget.reason
        for key in [key for key in told if key not in self.stopped]:
            case = key.removeprefix(BUDGET)
            left = {case: planned.get(case, 0)} if case else planned
            if self.recorder is not None and self.recorder.missing(left):
                self.stopped[key] = budget_sentence(told[key], self.run_id)

    def _look_for_stops(self) -> None:
        """Learn which providers the processes of this run do not ask any more."""
        if not (self.folder / CONTROL).exists():
            return
        clean = without_secrets(self.config)
        for provider, stop in stops_in(self.folder).items():
            if provider not in self.stopped:
                self.stopped[provider] = clean(sentence(provider, stop, self.run_id))

    def interrupted(self, of: TrialOf, state: ItemState) -> None:
        """The session was stopped inside a trial of this process: say which one; it gives no decision."""
        if self.recorder is None:
            return
        if state.assigned is None:
            state.assigned = Assigned(
                outcome=INSTRUMENT_OUTCOMES["interrupted"],
                site=None,
                phase=Phase.RUN if state.in_body else Phase.PREPARE,
                message="the session was stopped while this trial ran",
            )
        else:
            state.record_error = "the session was stopped in this trial's tear-down"
        row = row_of(of, state, worker=worker_name(self.config), without_secrets=without_secrets(self.config))
        recorded = self._guarded(self.recorder.add, row)
        if recorded is not None:
            self.config.hook.pytest_crashlab_trial_recorded(row=recorded)

    def left(self, case: str, trial: int, began: float) -> None:
        """The session was stopped while a worker ran a trial, of which nothing was heard any more."""
        if self.recorder is None:
            return
        message = "the session was stopped while this trial ran"
        recorded = self._guarded(self.recorder.left, case, trial, message, began=began)
        if recorded is not None:
            self.config.hook.pytest_crashlab_trial_recorded(row=recorded)

    def worker_lost(
        self, case: str, trial: int, worker: str, report: pytest.TestReport, began: float
    ) -> None:
        """A worker died in a trial: an undecided row, and no failure of the session if gated."""
        if self.recorder is None:
            return
        message = f"worker {worker} ended while it ran this trial"
        recorded = self._guarded(self.recorder.lost, case, trial, worker, message, began=began)
        if recorded is not None:
            self.config.hook.pytest_crashlab_trial_recorded(row=recorded)
        cases = [] if self.selection is None else self.selection.cases
        if any(plan.id == case and plan in self.gated_cases for plan in cases):
            gating.rewrite(report, gating.UNDECIDED, f"worker_lost: {message}")

    def usage_error(self, message: str) -> None:
        """A worker refused the session's arguments."""
        self.problem = self.problem or message

    def _guarded(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Record, or remember once why recording cannot go on: tests are not lost to a full disk."""
        if self.store_error is not None:
            return None
        try:
            return call(*args, **kwargs)
        except (OSError, StoreError) as error:
            self.store_error = str(error) or type(error).__name__
            return None
