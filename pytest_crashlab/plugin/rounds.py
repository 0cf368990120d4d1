"""Fresh worker processes for each round of trials: ``--crashlab-isolation=round``.

A scheduler of xdist's own kind (``xdist.scheduler.protocol.Scheduling``). The workers of a round get
its trials alone, trial 1 of all cases, then trial 2 ..., and end with it; then as many new ones start.
So no two trials of a case share a process.
"""

from __future__ import annotations

import os
import re
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crashlab.errors import UsageError
from pytest_crashlab.plugin import process
from pytest_crashlab.plugin.compat import case_id_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_crashlab.store.schema import Manifest

OPTION = "--crashlab-isolation=round"
# A worker starts an item when it knows the one after it, so two are the least to keep it busy.
_AHEAD = 2


def refuse(config: pytest.Config, order: str) -> None:
    """Raise ``UsageError`` where trials cannot run in rounds of processes."""
    option = config.option
    if option.collectonly or process.is_worker(config):
        return
    if not process.distributes(config):
        raise UsageError(f"{OPTION} gives each round of trials worker processes of its own; add -n 1 or more")
    if option.dist != "load":
        raise UsageError(
            f"{OPTION} deals out the trials of a round itself, as --dist load does; "
            f"leave --dist {option.dist} out"
        )
    if len({re.sub(r"^\d+\*", "", str(spec)) for spec in option.tx or ()}) > 1:
        raise UsageError(f"{OPTION} starts the same workers again for each round; give --tx of one kind")
    if order == "cases":
        raise UsageError(
            f"{OPTION} runs a trial of every case before the next one; "
            "leave --trial-order=cases, --sw, --ff and --nf out"
        )


def refuse_shared(found: Manifest, isolation: str) -> None:
    """Raise ``UsageError`` where a run whose rounds had processes of their own would go on without."""
    if found.isolation == "round" != isolation:
        raise UsageError(f"run {found.id} was made with {OPTION}; give it again to go on with the run")


def header(isolation: str) -> list[str]:
    """What the session's header says about the processes of trials."""
    if isolation != "round":
        return []
    line = "crashlab: fresh worker processes for each round of trials"
    fixed = os.environ.get("PYTHONHASHSEED", "random")
    return [line if fixed == "random" else f"{line}; all have the hash seed {fixed} (PYTHONHASHSEED)"]


def make_scheduler(config: pytest.Config) -> RoundScheduling:
    """The scheduler for the controller's session. Raises ``UsageError`` for an xdist it does not know."""
    session = config.pluginmanager.get_plugin("dsession")
    start_like = getattr(session, "_clone_node", None)
    specs = getattr(getattr(session, "nodemanager", None), "specs", None)
    if start_like is None or specs is None:
        raise pytest.UsageError(f"{OPTION} does not know this version of pytest-xdist; use 3.6 to 3.8")
    return RoundScheduling(config, workers=len(specs), start_like=start_like)


class RoundScheduling:
    """Deals out one round after the other.

    ``workers`` of each round; ``start_like(node)`` starts another worker of the kind of ``node``, as
    xdist does for one that crashed.
    """

    def __init__(self, config: pytest.Config, *, workers: int, start_like: Callable[[Any], Any]) -> None:
        self._config = config
        self._workers = workers
        self._start_like = start_like
        self._collections: dict[Any, list[str] | None] = {}
        self._sent: dict[Any, list[int]] = {}
        self._rounds: deque[deque[int]] = deque()
        self._pending: deque[int] = deque()
        self._differ = False
        self.collection: list[str] | None = None

    @property
    def nodes(self) -> list[Any]:
        """The workers that are there."""
        return list(self._sent)

    @property
    def collection_is_completed(self) -> bool:
        """Whether it is known what there is to run."""
        if self.collection is not None:
            return True
        known = [collection for collection in self._collections.values() if collection is not None]
        return len(known) >= self._workers

    @property
    def tests_finished(self) -> bool:
        """Whether the last worker of the last round needs no more than the word to end."""
        if self._differ:
            return True
        if self.collection is None or self._rounds or self._pending:
            return False
        return all(len(items) < _AHEAD for items in self._sent.values())

    @property
    def has_pending(self) -> bool:
        """Whether a trial has not been done yet."""
        return bool(self._rounds or self._pending or any(self._sent.values()))

    def add_node(self, node: Any) -> None:
        """A worker is there and collects."""
        self._sent[node] = []
        self._collections[node] = None

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """A worker has collected; one that found something else than the first gets nothing to run."""
        found = list(collection)
        if self.collection is not None and not self._same(self.collection, found, "the first round", node):
            node.shutdown()
            self._rounds.clear()
            self._pending.clear()  # what is left stays missing
            return
        self._collections[node] = found

    def schedule(self) -> None:
        """Give work to the workers that have collected."""
        if self.collection is None and not self._begin():
            self._differ = True
            return
        ready = [node for node in self._sent if self._collections[node] is not None]
        if 0 < len(self._pending) < _AHEAD * len(ready):
            for position in range(len(self._pending)):
                self._send(ready[position % len(ready)], 1)
        for node in ready:
            self._fill(node)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:  # noqa: ARG002
        """A worker has done a trial."""
        self._sent[node].remove(item_index)
        self._fill(node)

    def mark_test_pending(self, item: str) -> None:
        """Somebody wants a trial of a crashed worker run again."""
        self._pending.appendleft((self.collection or []).index(item))
        for node in self._sent:
            self._fill(node)

    def remove_pending_tests_from_node(self, node: Any, indices: Sequence[int]) -> None:
        """Only work stealing asks for this."""
        raise NotImplementedError

    def remove_node(self, node: Any) -> str | None:
        """A worker is gone; return the trial it died in, None where it had nothing left.

        One that ended has its process ended too: it would stay, with its memory, to the end of the
        session.
        """
        left = self._sent.pop(node)
        if getattr(node, "workeroutput", None) is not None:
            node.gateway.exit()
        self._collections.pop(node, None)
        crashed = None
        if left and self.collection is not None:
            crashed = self.collection[left.pop(0)]
            self._pending.extendleft(reversed(left))  # they are still of this round
        if self._pending:
            for other in self._sent:
                self._fill(other)
        if not self._sent and not self._pending and self._rounds:
            self._pending = self._rounds.popleft()
            # xdist itself starts another in the place of one that crashed
            for _ in range(self._workers - (crashed is not None)):
                self._start_like(node)
        return crashed

    def _begin(self) -> bool:
        """Take what all workers have collected and divide it into rounds; False where they differ."""
        collections = [(node, ids) for node, ids in self._collections.items() if ids is not None]
        first, ids = collections[0]
        if not all(self._same(ids, other, first.gateway.id, node) for node, other in collections[1:]):
            return False
        self.collection = ids
        rounds: dict[int, deque[int]] = {}
        for index, nodeid in enumerate(ids):
            rounds.setdefault(case_id_of(nodeid)[1] or 1, deque()).append(index)
        self._rounds.extend(rounds[trial] for trial in sorted(rounds))
        if self._rounds:
            self._pending = self._rounds.popleft()
        return True

    def _same(self, expected: list[str], found: list[str], whose: str, node: Any) -> bool:
        from xdist.report import report_collection_diff  # type: ignore[import-untyped]

        difference = report_collection_diff(expected, found, whose, node.gateway.id)
        if difference is None:
            return True
        report = pytest.CollectReport(
            nodeid=node.gateway.id, outcome="failed", longrepr=difference, result=[]
        )
        self._config.hook.pytest_collectreport(report=report)
        return False

    def _fill(self, node: Any) -> None:
        """Keep a worker busy, or let it end where its round has nothing more to give."""
        if node.shutting_down or self._collections.get(node) is None:
            return
        if not self._pending:
            node.shutdown()
            return
        ahead = max(_AHEAD, len(self._pending) // (4 * max(1, len(self._sent))))
        if len(self._sent[node]) < max(_AHEAD, ahead // 2):
            self._send(node, ahead - len(self._sent[node]))
        if not self._pending:
            node.shutdown()

    def _send(self, node: Any, count: int) -> None:
        chosen = [self._pending.popleft() for _ in range(min(count, len(self._pending)))]
        if not chosen:
            return
        try:
            node.send_runtest_some(chosen)
        except OSError:  # it has died, which xdist is about to tell
            self._pending.extendleft(reversed(chosen))
            self._collections[node] = None
        else:
            self._sent[node].extend(chosen)
