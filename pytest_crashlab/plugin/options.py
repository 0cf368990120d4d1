"""Options, ini keys and what they come to: one frozen ``Settings`` a session."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from pytest_crashlab.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

Order = Literal["rounds", "cases"]
Method = Literal["mid-p", "exact", "normal"]
OnUnsupported = Literal["error", "once"]
OnMissing = Literal["gate", "note"]

POLICIES = ("regressions", "strict", "report")
METHODS = ("mid-p", "exact", "normal")
ORDERS = ("rounds", "cases")
ISOLATIONS = ("none", "round")

# (flag, ini key or None, metavar, help): all of them are plain strings here and validated in
# ``Settings.of``, so that a wrong value gets one sentence instead of argparse's usage text.
_VALUED = (
    ("--trials", "crashlab_trials", "N|off", "run every test N times; off: no trials, nothing recorded"),
    ("--trial-order", "crashlab_trial_order", "ORDER", "rounds (default): all cases once, then again; cases"),
    (
        "--crashlab-isolation",
        "crashlab_isolation",
        "HOW",
        "none (default); round: fresh worker processes for each round of trials (needs -n)",
    ),
    ("--baseline", "crashlab_baseline", "REF", "the run to compare with: a branch, a run id, release:X ..."),
    ("--save-baseline", None, "NAME", "promote this run to be the baseline NAME when the gate passes"),
    (
        "--min-pass-rate",
        "crashlab_min_pass_rate",
        "RATE",
        "fail below this pass rate over all cases (0.9, 90%%)",
    ),
    ("--crashlab-policy", "crashlab_policy", "NAME", "regressions (default), strict or report"),
    ("--crashlab-method", "crashlab_method", "NAME", "mid-p (default), exact or normal"),
    (
        "--crashlab-margin",
        "crashlab_margin",
        "POINTS",
        "the smallest drop that matters, in points of pass rate",
    ),
    ("--crashlab-release", "crashlab_release", "LABEL", "the release this run measures"),
    ("--crashlab-prompt", "crashlab_prompt", "NAME@VERSION", "the prompt this run measures"),
    ("--crashlab-model", "crashlab_model", "NAME", "the model this run measures"),
    (
        "--crashlab-outcome",
        "crashlab_outcome",
        "LABELS",
        "compare how often these outcomes occur (labels, with commas between)",
    ),
    ("--crashlab-run-name", None, "TEXT", "a name for this run"),
    ("--crashlab-external-id", None, "TEXT", "your own key for this run"),
    ("--crashlab-seed", "crashlab_seed", "N|baseline", "fix the run's seed; baseline: share the baseline's"),
    (
        "--crashlab-store",
        "crashlab_store",
        "DIR",
        "where runs are kept (default: .crashlab; or CRASHLAB_STORE)",
    ),
    ("--crashlab-resume", None, "RUN", "go on with a run: only its planned trials without a decision"),
    ("--crashlab-junit", "crashlab_junit", "PATH", "write JUnit XML with one test case per case"),
    (
        "--crashlab-baseline-missing",
        "crashlab_baseline_missing",
        "HOW",
        "gate (default): no verdict; note: go on",
    ),
    (
        "--crashlab-unsupported",
        "crashlab_unsupported",
        "HOW",
        "a test that cannot be repeated: error (default); once",
    ),
)
_SWITCHES = (("--crashlab-from-branch", "let a run of another branch be promoted by --save-baseline"),)


_SOURCES = (
    ("crashlab_target", "files, folders or globs of what is measured: they tell a change from a control"),
    ("crashlab_evaluation", "files, folders or globs of what measures it: tests, data sets, judges"),
)


def add_options(parser: pytest.Parser) -> None:
    """Declare the options and ini keys; nothing heavy is imported."""
    group = parser.getgroup("crashlab", "repeated trials and a gate on a stored baseline")
    for flag, ini, metavar, text in _VALUED:
        group.addoption(flag, action="store", default=None, metavar=metavar, help=text)
        if ini is not None:
            parser.addini(ini, f"{text.replace('%%', '%')} ({flag})", default=None)
    for flag, text in _SWITCHES:
        group.addoption(flag, action="store_true", default=False, help=text)
    for key, text in _SOURCES:
        parser.addini(key, text, type="linelist", default=[])
    parser.addini(
        "crashlab_exceptions",
        "one 'module.Exception = label' a line: the outcome of a test that raises it",
        type="linelist",
        default=[],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the options, ini keys and the environment ask for.

    ``margin`` and ``min_pass_rate`` are shares in 0..1. ``requested`` is True when any option or ini
    key asks for trials, a baseline, a threshold or a record.
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
    outcomes: tuple[str, ...]
    target: tuple[str, ...]
    evaluation: tuple[str, ...]
    seed: int | None
    shared_seed: bool
    store: Path
    resume: str | None
    junit: Path | None
    baseline_missing: OnMissing
    unsupported: OnUnsupported
    from_branch: bool
    exceptions: dict[str, str]
    requested: bool

    @classmethod
    def of(cls, config: pytest.Config) -> Settings:
        """Read and validate; a value that cannot be followed raises ``UsageError``."""
        read = _Reader(config)
        flag_trials, off = _trials(read.flag("--trials"), "--trials")
        ini_trials, ini_off = _trials(read.ini("crashlab_trials"), "crashlab_trials")
        junit = read.value("--crashlab-junit", "crashlab_junit")
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
            outcomes=read.labels("--crashlab-outcome", "crashlab_outcome"),
            target=tuple(config.getini("crashlab_target")),
            evaluation=tuple(config.getini("crashlab_evaluation")),
            seed=None if shared_seed else read.integer("--crashlab-seed", "crashlab_seed"),
            shared_seed=shared_seed,
            store=read.store(),
            resume=read.value("--crashlab-resume"),
            junit=None if junit is None else config.invocation_params.dir / junit,
            baseline_missing=cast(
                "OnMissing",
                read.choice("--crashlab-baseline-missing", "crashlab_baseline_missing", ("gate", "note")),
            ),
            unsupported=cast(
                "OnUnsupported",
                read.choice("--crashlab-unsupported", "crashlab_unsupported", ("error", "once")),
            ),
            from_branch=bool(config.getoption("--crashlab-from-branch")),
            exceptions=read.exceptions(),
            requested=read.anything_asked,
        )


class _Reader:
    """Flags before ini keys, with the name that a message should blame."""

    # What changes where or how, but asks for no trials by itself.
    _PASSIVE = frozenset(
        {"--crashlab-store", "--crashlab-unsupported", "--trial-order", "--crashlab-isolation"}
    )

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    @property
    def anything_asked(self) -> bool:
        flags = [flag for flag, *_ in _VALUED if flag not in self._PASSIVE]
        starters = ("crashlab_trials", "crashlab_baseline", "crashlab_min_pass_rate", "crashlab_junit")
        return any(self.flag(f) is not None for f in flags) or any(self.ini(k) is not None for k in starters)

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

    def choice(self, flag: str, ini: str, allowed: tuple[str, ...]) -> str:
        value, blame = self._given(flag, ini)
        if value is None:
            return allowed[0]
        if value not in allowed:
            raise UsageError(f"{blame}={value} is not known; choose one of {', '.join(allowed)}")
        return value

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
