"""What options, ini keys and the environment come to: one frozen ``Settings`` a session."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from pytest_crashlab.errors import UsageError
from pytest_crashlab.plugin.configuration import declared_config
from pytest_crashlab.plugin.options import is_anything_asked
from pytest_crashlab.records.dataset import Split

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from pytest_crashlab.plugin.budget import Budget
    from pytest_crashlab.provider.base import Binding

Order = Literal["rounds", "cases"]
Method = Literal["mid-p", "exact", "normal"]
OnUnsupported = Literal["error", "once"]
OnMissing = Literal["gate", "note"]

POLICIES = ("regressions", "strict", "report")
METHODS = ("mid-p", "exact", "normal")
ORDERS = ("rounds", "cases")
ISOLATIONS = ("none", "round")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the options, ini keys and the environment ask for.

    ``margin`` and ``min_pass_rate`` are shares in 0..1; ``attachment_limit`` bytes. ``requested`` is
    True when any option or ini key asks for trials, a baseline, a threshold or a record.
    """

    off: bool
    trials: int | None
    ini_trials: int | None
    order: Order
    isolation: str
    baseline: str | None
    save_baseline: str | None
    min_pass_rate: float | None
    policy: str
    method: Method
    margin: float | None
    release: str | None
    prompt: str | None
    run_name: str | None
    external_id: str | None
    model: str | None
    providers: tuple[Binding, ...]
    retries: int
    outcomes: tuple[str, ...]
    split: Split
    sample: int | None
    target: tuple[str, ...]
    evaluation: tuple[str, ...]
    seed: int | None
    shared_seed: bool
    store: Path
    resume: str | None
    record: Path | None
    replay: Path | None
    budget: Budget
    reports: tuple[tuple[Path, str], ...]
    baseline_missing: OnMissing
    unsupported: OnUnsupported
    from_branch: bool
    watch_state: bool
    exceptions: dict[str, str]
    attachment_limit: int
    evidence_locals: bool
    requested: bool

    @classmethod
    def of(cls, config: pytest.Config) -> Settings:
        """Read and validate; a value that cannot be followed raises ``UsageError``."""
        read = _Reader(config)
        declared_config(config)  # a line that is not key=value is refused now
        flag_trials, off = _trials(read.flag("--trials"), "--trials")
        ini_trials, ini_off = _trials(read.ini("crashlab_trials"), "crashlab_trials")
        shared_seed = read.value("--crashlab-seed", "crashlab_seed") == "baseline"
        return cls(
            off=off or (ini_off and flag_trials is None),
            trials=flag_trials,
            ini_trials=ini_trials,
            order=cast("Order", read.choice("--trial-order", "crashlab_trial_order", ORDERS)),
            isolation=read.choice("--crashlab-isolation", "crashlab_isolation", ISOLATIONS),
            baseline=read.value("--baseline", "crashlab_baseline"),
            save_baseline=read.value("--save-baseline"),
            min_pass_rate=read.share("--min-pass-rate", "crashlab_min_pass_rate", points=False),
            policy=read.choice("--crashlab-policy", "crashlab_policy", POLICIES),
            method=cast("Method", read.choice("--crashlab-method", "crashlab_method", METHODS)),
            margin=read.share("--crashlab-margin", "crashlab_margin", points=True),
            release=read.value("--crashlab-release", "crashlab_release"),
            prompt=read.value("--crashlab-prompt", "crashlab_prompt"),
            run_name=read.flag("--crashlab-run-name"),
            external_id=read.flag("--crashlab-external-id"),
            model=read.value("--crashlab-model", "crashlab_model"),
            providers=read.providers(),
            retries=read.retries(),
            outcomes=read.labels("--crashlab-outcome", "crashlab_outcome"),
            split=Split(read.choice("--crashlab-split", None, tuple(Split))),
            sample=read.count("--crashlab-dataset-sample"),
            target=tuple(config.getini("crashlab_target")),
            evaluation=tuple(config.getini("crashlab_evaluation")),
            seed=None if shared_seed else read.integer("--crashlab-seed", "crashlab_seed"),
            shared_seed=shared_seed,
            store=read.store(),
            resume=read.value("--crashlab-resume"),
            record=read.folder("--crashlab-record"),
            replay=read.folder("--crashlab-replay"),
            budget=read.budget(),
            reports=read.reports(),
            baseline_missing=cast(
                "OnMissing",
                read.choice("--crashlab-baseline-missing", "crashlab_baseline_missing", ("gate", "note")),
            ),
            unsupported=cast(
                "OnUnsupported",
                read.choice("--crashlab-unsupported", "crashlab_unsupported", ("error", "once")),
            ),
            from_branch=bool(config.getoption("--crashlab-from-branch")),
            watch_state=bool(config.getoption("--crashlab-watch-state")),
            exceptions=read.exceptions(),
            attachment_limit=_size(
                str(config.getini("crashlab_attachment_limit")), "crashlab_attachment_limit"
            ),
            evidence_locals=bool(config.getini("crashlab_evidence_locals")),
            requested=is_anything_asked(config),
        )

    @property
    def measured_model(self) -> str | None:
        """The model that the run says it measures: what was given, else the default one of the ini key."""
        if self.model is None and self.providers:
            return self.providers[0].spec
        return self.model


class _Reader:
    """Flags before ini keys, with the name that a message should blame."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def flag(self, name: str) -> str | None:
        value = self.config.getoption(name)
        return None if value is None else str(value)

    def ini(self, name: str) -> str | None:
        value = self.config.getini(name)
        return None if value is None or value == "" else str(value).strip()

    def value(self, flag: str, ini: str | None = None) -> str | None:
        given, _ = self._given(flag, ini)
        return given

    def _given(self, flag: str, ini: str | None) -> tuple[str | None, str]:
        value = self.flag(flag)
        if value is not None:
            if not value.strip():
                raise UsageError(f"{flag} is empty; give it a value or leave it out")
            return value, flag
        return (None, flag) if ini is None else (self.ini(ini), ini)

    def choice(self, flag: str, ini: str | None, allowed: tuple[str, ...]) -> str:
        value, blame = self._given(flag, ini)
        if value is None:
            return allowed[0]
        if value not in allowed:
            raise UsageError(f"{blame}={value} is not known; choose one of {', '.join(allowed)}")
        return value

    def count(self, flag: str) -> int | None:
        value = self.value(flag)
        if value is None:
            return None
        if not value.isdecimal() or int(value) < 1:
            raise UsageError(f"{flag}={value} is no number of rows; give a whole number from 1 on")
        return int(value)

    def budget(self) -> Budget:
        from pytest_crashlab.plugin.budget import Budget

        value, blame = self._given("--crashlab-budget", "crashlab_budget")
        return Budget() if value is None else Budget.read(value, blame)

    def integer(self, flag: str, ini: str) -> int | None:
        value, blame = self._given(flag, ini)
        if value is None:
            return None
        try:
            return int(value)
        except ValueError:
            raise UsageError(
                f"{blame}={value} is no whole number; give one, for example {blame}=7, or 'baseline'"
            ) from None

    def labels(self, flag: str, ini: str) -> tuple[str, ...]:
        value, _ = self._given(flag, ini)
        return tuple(dict.fromkeys(part.strip() for part in (value or "").split(",") if part.strip()))

    def providers(self) -> tuple[Binding, ...]:
        """The models that ini lines name, each name once."""
        lines = self.config.getini("crashlab_provider")
        if not lines:
            return ()
        from pytest_crashlab.provider.base import parse_binding

        found = [parse_binding(line, where="crashlab_provider") for line in lines]
        names = [binding.name for binding in found]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(
                    f"crashlab_provider names two models {name!r}; give one another: 'other = provider:model'"
                )
        return tuple(found)

    def retries(self) -> int:
        value, blame = self._given("--crashlab-retries", "crashlab_retries")
        if value is None:
            return 2
        if not value.isascii() or not value.isdigit() or int(value) > 20:
            raise UsageError(f"{blame}={value} is out of range; give a whole number from 0 to 20")
        return int(value)

    def reports(self) -> tuple[tuple[Path, str], ...]:
        """Where to write reports, relative to where the command was typed, and in which format."""
        from pytest_crashlab.report.written import format_of

        names = self.labels("--crashlab-report", "crashlab_report")
        junit = self.value("--crashlab-junit", "crashlab_junit")
        folder = self.config.invocation_params.dir
        found = [(folder / name, format_of(name)) for name in names]
        return tuple(found if junit is None else [*found, (folder / junit, ".xml")])

    def share(self, flag: str, ini: str, *, points: bool) -> float | None:
        """A share in 0..1 from ``0.9`` or ``90%``; with ``points``, from points of pass rate (0..100)."""
        value, blame = self._given(flag, ini)
        if value is None:
            return None
        try:
            number = float(value.removesuffix("%"))
        except ValueError:
            number = math.nan
        if points or value.endswith("%"):
            number /= 100
        if not 0 <= number <= 1 or (points and number == 0):
            example = f"{blame}=5 for five points" if points else f"{blame}=0.9 or {blame}=90%"
            raise UsageError(f"{blame}={value} is out of range; write for example {example}")
        return number

    def store(self) -> Path:
        flag = self.flag("--crashlab-store")
        if flag is not None:
            return self.config.invocation_params.dir / flag
        where = os.environ.get("CRASHLAB_STORE") or self.ini("crashlab_store") or ".crashlab"
        return self.config.rootpath / where

    def folder(self, flag: str) -> Path | None:
        """A folder, relative to where the command was typed."""
        value = self.value(flag)
        return None if value is None else self.config.invocation_params.dir / value

    def exceptions(self) -> dict[str, str]:
        pairs = {}
        for line in self.config.getini("crashlab_exceptions"):
            name, equals, label = (part.strip() for part in line.partition("="))
            if not (name and equals and label):
                raise UsageError(
                    f"crashlab_exceptions has the line {line!r}; write it as 'module.Exception = label'"
                )
            pairs[name] = label
        return pairs


def _trials(value: str | None, blame: str) -> tuple[int | None, bool]:
    """``(k, off)`` of a trials option."""
    if value is None:
        return None, False
    if value == "off":
        return None, True
    try:
        k = int(value)
    except ValueError:
        k = 0
    if k < 1:
        raise UsageError(f"{blame}={value} is not a number of trials; give a whole number from 1 on, or off")
    return k, False


def _size(value: str, blame: str) -> int:
    """Bytes from ``500000``, ``500k`` or ``1M``."""
    number, unit = value.strip(), 1
    for suffix, factor in (("k", 2**10), ("m", 2**20)):
        if number.lower().endswith(suffix):
            number, unit = number[:-1], factor
    if not number.isdecimal() or not 1 <= int(number) * unit <= 2**26:
        raise UsageError(f"{blame}={value} is no size from 1 to 64M; write for example {blame}=500k")
    return int(number) * unit
