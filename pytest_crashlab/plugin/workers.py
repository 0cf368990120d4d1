"""pytest-xdist: what the controller tells its workers and hears from them.

The one module that knows of xdist. Its hooks are optional: the package works without it loaded.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from time import time
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crashlab.plugin import module_state, rounds
from pytest_crashlab.plugin.compat import case_id_of, is_grouped, without_group
from pytest_crashlab.plugin.gating import GatedCases
from pytest_crashlab.plugin.process import USAGE_OUTPUT, WORKER_INPUT
from pytest_crashlab.plugin.resume import Remaining

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crashlab.plugin.session import RunSession
    from pytest_crashlab.plugin.settings import Order


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What a worker needs to know from the controller.

    ``active`` whether a run was asked for by option or ini key (else only markers can start one);
    ``order`` of the trials; ``baseline_k`` trials a case of the baseline, None without one;
    ``remaining`` what a resumed run has to do, None for a new one; ``folder`` the run's, for evidence;
    ``measured`` what the baseline measured (``run``, ``dataset``, ``split``), None without one.
    """

    active: bool
    seed: int
    order: Order = "rounds"
    baseline_k: int | None = None
    gate: GatedCases = field(default_factory=GatedCases)
    remaining: Remaining | None = None
    folder: str | None = None
    measured: dict[str, str | None] | None = None

    def to_json(self) -> str:
        """JSON text: execnet carries text of any size, but no dataclass."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Orders:
        """The orders of ``to_json``."""
        data = json.loads(text)
        rest = data.pop("remaining", None)
        return cls(
            **{**data, "gate": GatedCases(**data.get("gate", {}))},
            remaining=None if rest is None else Remaining.from_mapping(rest),
        )


def orders_for(config: pytest.Config) -> Orders | None:
    """The controller's orders in an xdist worker; None in any other process."""
    given = getattr(config, "workerinput", {}).get(WORKER_INPUT)
    return None if given is None else Orders.from_json(given)


def tell_usage_error(config: pytest.Config, message: str) -> None:
    """In a worker: let the controller end the session with this sentence."""
    output: dict[str, Any] = config.workeroutput  # type: ignore[attr-defined]
    output[USAGE_OUTPUT] = message


class ControllerHooks:
    """xdist's hooks on the controller, handed on to the session."""

    def __init__(self, session: RunSession) -> None:
        self._session = session
        self._grouped = is_grouped(session.config)
        self._running: dict[str, float] = {}  # node id of a test that a worker runs, and since when

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config) -> rounds.RoundScheduling | None:
        """Deal out trials by rounds, where each is to have processes of its own."""
        chosen = self._session.settings.isolation == "round" and config.option.dist == "load"
        return rounds.make_scheduler(config) if chosen else None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give each worker its orders before it starts."""
        node.workerinput[WORKER_INPUT] = self._session.orders().to_json()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Learn what is planned from the ids, before the first report brings the plan itself."""
        self._session.planned_by_ids([str(i) for i in ids])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A worker begins a test."""
        self._running[nodeid] = time()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Make ids the same with and without groups, before anybody shows or keeps them."""
        if report.when == "teardown":  # the report that brings the row
            self._running.pop(report.nodeid, None)
        if self._grouped:
            without_group(report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """A worker died while it ran ``crashitem``: say so in the run and keep the gate judging."""
        case, trial = case_id_of(str(crashitem), grouped=self._grouped)
        node: Any = getattr(report, "node", None)
        began = self._running.pop(str(crashitem), None) or time()
        self._session.worker_lost(case, trial or 1, str(node.gateway.id), report, began)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Name the trials that the workers ran when the session was stopped."""
        if session.exitstatus != pytest.ExitCode.INTERRUPTED:
            return
        for nodeid, began in self._running.items():
            case, trial = case_id_of(nodeid, grouped=self._grouped)
            if trial is not None:
                self._session.left(case, trial, began)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear whether a worker refused the session's arguments, and what state its trials changed."""
        output = getattr(node, "workeroutput", None) or {}
        if (message := output.get(USAGE_OUTPUT)) is not None:
            self._session.usage_error(str(message))
        if (found := output.get(module_state.OUTPUT)) is not None:
            self._session.module_state.add(found)
