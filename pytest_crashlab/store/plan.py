"""The plan of a run, kept beside its journal while it is running."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Any

from pytest_crashlab.errors import CorruptRun
from pytest_crashlab.records.case import CasePlan
from pytest_crashlab.store.layout import FORMAT

_CASE_FIELDS = tuple(f.name for f in fields(CasePlan))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a session means to run: its cases in collection order, the seed, the order of trials."""

    cases: list[CasePlan] = field(default_factory=list)
    seed: int | None = None
    order: str | None = None

    def to_bytes(self) -> bytes:
        """The plan as JSON."""
        data = {
            "format": FORMAT,
            "seed": self.seed,
            "order": self.order,
            "cases": [{name: _storable(getattr(case, name)) for name in _CASE_FIELDS} for case in self.cases],
        }
        return json.dumps(data, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_bytes(cls, content: bytes, where: str) -> Plan:
        """The plan in ``content``; :class:`CorruptRun` when it holds none."""
        try:
            data: dict[str, Any] = json.loads(content)
            cases = [
                CasePlan(**{name: case[name] for name in _CASE_FIELDS if name in case})
                for case in data["cases"]
            ]
            return cls(cases=cases, seed=data["seed"], order=data["order"])
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptRun(
                f"{where} is no plan of a run ({error!r}); delete it to go on with the journal alone."
            ) from None

    @property
    def planned_trials(self) -> int:
        """How many trials there are in all."""
        return sum(case.planned for case in self.cases)


def _storable(value: object) -> object:
    """Without halves of surrogate pairs, which tables cannot hold: as the journal writes them."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value
