"""What a test author holds: the trial in progress, its target, its checks and its outcome."""

from __future__ import annotations

import hashlib
import inspect
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import InstrumentFailure
from pytest_crashlab.plugin.attachments import DEFAULT_LIMIT, Kept
from pytest_crashlab.plugin.checking import Given, Verification, evaluated
from pytest_crashlab.plugin.measured import word
from pytest_crashlab.plugin.running import Run, Target, TimeoutIs, declared_target
from pytest_crashlab.records.trial import Phase

if TYPE_CHECKING:
    from pytest_crashlab.records.check import Check, CheckRow
    from pytest_crashlab.records.outcome import Vocabulary


def derive_seed(run_seed: int, case: str, trial: int) -> int:
    """A seed in 0..2**63-1 for one trial, the same for the same run seed, case and number."""
    text = f"{run_seed}\0{case}\0{trial}".encode(errors="surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1


@dataclass(frozen=True, slots=True)
class Named:
    """The outcome that an author named: where, in which phase, as which class of failure."""

    label: str
    site: str
    failure_class: str | None
    phase: Phase


@dataclass(slots=True)
class Trial:
    """One trial of a case.

    ``case`` the case's id; ``number`` 1..k (1 without trials); ``seed`` a whole number that differs
    from trial to trial and is the same again when the run is repeated with its seed; ``input`` what the
    target was asked and ``expected`` what it should have made of it, kept where the trial is looked at.
    """

    case: str
    number: int
    seed: int
    root: Path
    vocabulary: Vocabulary
    declared: dict[str, Check] = field(default_factory=dict)
    phase: Phase = Phase.PREPARE
    target: Target | None = None
    run_duration: float | None = None
    run_error: BaseException | None = None
    results: dict[str, CheckRow] = field(default_factory=dict)
    prompts: list[str] = field(default_factory=list)
    attachment_limit: int = DEFAULT_LIMIT
    kept: Kept | None = field(default=None, repr=False)
    input: Any = None
    expected: Any = None
    run_started: float = 0.0
    decided: bool = False
    named: Named | None = None

    def run(
        self,
        *,
        horizon: float | None = None,
        unit: str | None = None,
        timeout: float | None = None,
        timeout_is: TimeoutIs = "instrument",
    ) -> Run:
        """Mark where the target runs: ``with trial.run(horizon=20, unit="turns") as target:``.

        What an exception inside it means is the target's doing unless a classification says that
        the instrument failed; what follows is verification. ``horizon`` the target's declared limit
        in ``unit``. Also ``async with``. May be entered once.

        ``timeout`` ends it after so many seconds. A clock is the machine's, and a slow candidate meets it
        more often, so such a trial is undecided (``wall_clock``); with ``timeout_is="target"`` the time is
        part of what is asked, and the trial goes on to verification with ``target.timed_out`` True and
        cannot pass. ``async with`` cancels; a plain ``with`` interrupts by a signal in the main thread,
        elsewhere the time is looked at when the block ends.
        """
        return Run(self, declared_target(horizon, unit, timeout, timeout_is))

    def enter_run(self, target: Target) -> None:
        """Begin the run phase; called by the context manager that ``run`` returns."""
        if self.target is not None:
            raise InstrumentFailure("misdeclared", "trial.run() was entered twice; a trial has one run phase")
        self.target = target
        self.phase = Phase.RUN
        self.run_started = time.perf_counter()

    def leave_run(self, error: BaseException | None) -> None:
        """End the run phase, by ``error`` if one was raised; called by the same context manager."""
        self.run_duration = time.perf_counter() - self.run_started
        self.run_error = error
        self.phase = Phase.VERIFY

    def check(
        self,
        name: str,
        ok: object,
        *,
        required: bool = True,
        expected: object = None,
        observed: object = None,
        why: str | None = None,
        evidence: object = None,
        judge: str | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
        failure_class: str | None = None,
    ) -> bool:
        """Record what a criterion came to and return whether it holds.

        ``ok`` is read as true or false; None and NaN say that it could not be evaluated. With
        ``at_least`` or ``at_most``, given here or where the check is declared, it is a number, which is
        kept; without them a number other than 0 and 1 is no answer to whether it holds. A check that the
        test declares with ``@pytest.mark.checks`` takes ``required`` from there; one that is not required
        is soft: it is recorded and fails nothing. Evaluating a name twice is an error of the test
        (``misdeclared``).

        ``expected``, ``observed`` and ``evidence`` are kept for whoever looks at the trial, ``why`` says
        why it holds or not. ``judge`` names who judged, where it is not the test's own code (a model
        with its version, say): runs judged differently are not compared. ``failure_class`` names the kind
        of failure, for the trial too where this check fails it.
        """
        given = Given(
            site=self._caller(),
            required=required,
            expected=expected,
            observed=observed,
            why=why,
            judge=judge,
            at_least=at_least,
            at_most=at_most,
            failure_class=failure_class,
        )
        held = self.settle(name, ok, given)
        if evidence is not None or (not held and (expected is not None or observed is not None)):
            self.keep().saw(
                name,
                expected=None if held else expected,
                observed=None if held else observed,
                evidence=evidence,
            )
        return bool(held)

    def verify(
        self, name: str, *, required: bool = True, why: str | None = None, failure_class: str | None = None
    ) -> Verification:
        """A criterion as a block of assertions: ``with trial.verify("amount"): assert ...``.

        An assertion that fails in it makes the check ``name`` fail, and the test goes on after the block,
        so that several blocks all tell what failed. Any other exception ends the test as elsewhere.
        """
        given = Given(site=self._caller(), required=required, why=why, failure_class=failure_class)
        return Verification(self, name, given)

    def settle(self, name: str, ok: object, given: Given, *, why: str | None = None) -> bool | None:
        """Note what a check came to; called by ``check`` and by the block that ``verify`` returns."""
        self._refuse_late(f"check {name!r} at {given.site}")
        if why is not None:
            given = replace(given, why=why)
        result = evaluated(name, ok, given, self.declared.get(name))
        if name in self.results:
            raise InstrumentFailure(
                "misdeclared", f"check {name!r} is evaluated a second time at {given.site}"
            )
        self.results[name] = result
        return result.ok

    def _refuse_late(self, what: str) -> None:
        """A fixture's tear-down comes too late to change what the trial came to, and must not seem to."""
        if self.decided:
            raise InstrumentFailure(
                "misdeclared",
                f"{what} comes after the trial was decided; say it in the test",
            )

    def attach(self, name: str, data: object, *, media_type: str | None = None) -> None:
        """Keep ``data`` beside the trial, as it is now, for whoever looks into it later.

        ``data`` text, bytes, a ``pathlib.Path`` (the file is read now), an image, or what JSON can hold.
        ``media_type`` says what it is, where that is not seen from it. What is larger than
        ``crashlab_attachment_limit`` is cut, and says so. A name is attached once; what cannot be kept
        is an error of the test (``misdeclared``).
        """
        self.keep().attach(name, data, media_type=media_type)

    def keep(self) -> Kept:
        """What is kept of this trial besides its row; made when something is."""
        if self.kept is None:
            self.kept = Kept(limit=self.attachment_limit)
        return self.kept

    def prompt(self, name: str, version: str | int | None = None) -> None:
        """Say which prompt the target was given; a trial that used several says each.

        Reports count the trials that said the declared one (``--crashlab-prompt NAME@VERSION``).
        """
        shown = str(name) if version is None else f"{name}@{version}"
        if not str(name).strip() or "," in shown or not shown.isprintable():
            raise InstrumentFailure(
                "misdeclared", f"trial.prompt({name!r}, {version!r}): give name and version without commas"
            )
        if shown not in self.prompts:
            self.prompts.append(shown)

    def outcome(self, label: str, *, failure_class: str | None = None) -> None:
        """Say what happened, by a label of the test's vocabulary; the last call counts.

        ``failure_class`` names the kind of failure across labels, for example "fabrication". The place
        that calls this is kept as the outcome's site, with the phase the trial was in.
        """
        site = self._caller()
        self._refuse_late(f"the outcome at {site}")
        if failure_class is not None:
            word(failure_class, f"failure_class at {site}")
        self.named = Named(word(label, f"the outcome at {site}"), site, failure_class, self.phase)

    @property
    def has_judged(self) -> bool:
        """Whether the author has begun to judge: named an outcome or evaluated a check."""
        return self.named is not None or bool(self.results)

    def _caller(self) -> str:
        """``file:line`` of the first frame outside this module that does not hide itself, as helpers do."""
        frame = inspect.currentframe()
        while frame is not None and (
            frame.f_code.co_filename == __file__ or "__tracebackhide__" in frame.f_code.co_varnames
        ):
            frame = frame.f_back
        if frame is None:  # an interpreter without frames: better no place than a wrong one
            return "unknown"
        return relative_site(frame.f_code.co_filename, frame.f_lineno, self.root)


def relative_site(filename: str, line: int, root: Path) -> str:
    """``file:line`` with the file relative to the project's root where it lies below it."""
    path = Path(filename)
    try:
        name = path.relative_to(root).as_posix()
    except ValueError:
        name = path.as_posix()
    return f"{name}:{line}"
