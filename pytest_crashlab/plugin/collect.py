"""From the cases that pytest selected to the trials that it will run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pytest

from pytest_crashlab.plugin import compat
from pytest_crashlab.plugin.clone import CannotRepeat, Cloner, setattr_raw
from pytest_crashlab.plugin.conflicts import refuse_items
from pytest_crashlab.plugin.hypothesis_trials import draws_examples, own_examples
from pytest_crashlab.plugin.identity import Identity
from pytest_crashlab.plugin.keys import TRIAL_KEY, TrialOf
from pytest_crashlab.plugin.ordering import Order, arrange, effective_order
from pytest_crashlab.records.case import CasePlan

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from pytest_crashlab.plugin.markers import TrialSpec

OnUnsupported = Literal["error", "once"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """What a session will run.

    ``items``: one a trial, in the order they run; ``cases`` in the order pytest collected them;
    ``unsupported``: id and reason of each case that runs once although more trials were planned;
    ``order``: the order that ``items`` follow, which --sw, --ff and --nf decide.
    """

    items: list[pytest.Item]
    cases: list[CasePlan]
    unsupported: list[tuple[str, str]]
    order: Order


class CollectHooks:
    """Calls ``expand_call`` after every plugin has selected and ordered the cases; looks after the trials.

    Register it last: of wrappers with ``tryfirst`` the one registered last ends last.
    """

    def __init__(
        self, expand_call: Callable[[pytest.Session, pytest.Config, list[pytest.Item]], None]
    ) -> None:
        self._expand_call = expand_call

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Let the others select, then make the trials."""
        result = yield
        self._expand_call(session, config, items)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Keep the examples of Hypothesis apart."""
        if not draws_examples(item):
            return (yield)
        with own_examples(item):
            return (yield)


def expand(
    items: Sequence[pytest.Item],
    *,
    spec_for: Callable[[pytest.Item], TrialSpec],
    order: Order,
    seed: int,
    unsupported: OnUnsupported,
) -> Expansion:
    """Make the trials of the cases in ``items``.

    ``spec_for`` says how many trials a case has and its threshold. A case with one trial keeps its
    item and its id. A case that cannot be repeated raises ``pytest.UsageError`` or, with
    ``unsupported="once"``, runs once and is listed. The same items and seed give the same trials in
    the same order in every process.
    """
    items = list({id(item): item for item in items}.values())
    if not items:
        return Expansion(items=[], cases=[], unsupported=[], order=order)
    config = items[0].config
    refuse_items(items)
    grouped = compat.is_grouped(config)
    order = effective_order(config, order)
    identity = Identity(config)
    cloner = Cloner(items)
    once: list[tuple[str, str]] = []
    cases: dict[str, CasePlan] = {}
    planned: list[tuple[pytest.Item, list[pytest.Item]]] = []
    for item in items:
        spec = spec_for(item)
        location = item.location
        case_id = compat.collected_id(item, grouped=grouped)
        count = spec.k
        make: Callable[[], pytest.Item] | None = None
        reason = "another test has the same id" if case_id in cases else None
        if count > 1 and reason is None:
            try:
                make = cloner.prepare(item)
            except CannotRepeat as error:
                reason = str(error)
        if reason is not None:
            if unsupported == "error":
                raise pytest.UsageError(_refusal(case_id, reason))
            once.append((case_id, reason))
            count = 1
            if case_id in cases:  # it cannot be told from the other one, so it stays plain pytest's
                planned.append((item, [item]))
                continue
        case = cases.setdefault(case_id, _plan(item, case_id, count, spec, identity))
        # An id of the user's that reads like a trial's gets a trial even where there is only one.
        suffixed = count > 1 or compat.case_id_of(case_id)[1] is not None
        group = compat.xdist_group(item) if grouped else ""
        trials = [item] if make is None else [make() for _ in range(count)]
        for number, trial in enumerate(trials, start=1):
            if suffixed:
                compat.set_trial_id(trial, number, case_id=case_id, group=group)
                _set_location(trial, number, location)
            trial.stash[TRIAL_KEY] = TrialOf(case=case, trial=number, run_seed=seed)
        planned.append((item, trials))
    return Expansion(
        items=arrange(planned, order=order, seed=seed),
        cases=list(cases.values()),
        unsupported=once,
        order=order,
    )


def _plan(item: pytest.Item, case_id: str, count: int, spec: TrialSpec, identity: Identity) -> CasePlan:
    path, line, _ = item.location
    # A case that runs once although more was planned cannot pass more often.
    min_passes = None if spec.min_passes is None else min(spec.min_passes, count)
    return CasePlan(
        id=case_id,
        planned=count,
        content=identity.content(item),
        pass_rule=identity.pass_rule(item, min_passes=min_passes, checks=spec.checks),
        min_passes=min_passes,
        vocabulary=spec.vocabulary,
        uses_trial=compat.uses_own_fixture(item, "trial"),
        file=path.replace("\\", "/"),
        line=None if line is None else line + 1,
    )


def _set_location(item: pytest.Item, trial: int, location: tuple[str, int | None, str]) -> None:
    """Name the trial in headlines too, and spare it the search for the source line of its case."""
    path, line, domain = location
    domain = f"{domain[:-1]}-trial{trial}]" if domain.endswith("]") else f"{domain}[trial{trial}]"
    setattr_raw(item, "location", (path, line, domain))


def _refusal(case_id: str, reason: str) -> str:
    return (
        f"{case_id} cannot be repeated ({reason}): leave it out, or set crashlab_unsupported=once "
        "to run such tests once."
    )
