"""The folder of ``--crashlab-record`` and ``--crashlab-replay``: a file for each trial that asked a model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crashlab.errors import InstrumentFailure, StoreError, UsageError
from pytest_crashlab.provider import tapes
from pytest_crashlab.store.atomic import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from pytest_crashlab.plugin.settings import Settings
    from pytest_crashlab.provider.replaying import Replay
    from pytest_crashlab.provider.taping import Tape

RECORD, REPLAY = "--crashlab-record", "--crashlab-replay"


def refuse(settings: Settings) -> None:
    """Raise :class:`UsageError` where the options cannot be followed, before anything is spent."""
    if settings.record is not None and settings.replay is not None:
        raise UsageError(f"{RECORD} and {REPLAY} exclude each other; leave one of them out")
    if settings.record is not None:
        if settings.off:
            raise UsageError(f"{RECORD} records trials, and trials are off; leave one of them out")
        _recorded_seed(settings.record)
    if settings.replay is not None:
        _refuse_damaged(settings.replay)


def _recorded_seed(folder: Path) -> int | None:
    """The seed of the recording in ``folder``; None for a folder that is empty or not there."""
    try:
        found = (folder / tapes.HEAD).read_bytes()
    except FileNotFoundError:
        if folder.is_dir() and any(not p.name.startswith(".tmp-") for p in folder.iterdir()):
            raise UsageError(
                f"{RECORD}={folder} holds other things and is no recording; name a new or empty folder"
            ) from None
        return None
    except NotADirectoryError:
        raise UsageError(f"{RECORD}={folder} is a file or lies below one; name a folder") from None
    except OSError as error:
        raise UsageError(f"{folder / tapes.HEAD} cannot be read ({error.strerror or error})") from None
    return tapes.read_head(found, str(folder / tapes.HEAD))


def _refuse_damaged(folder: Path) -> None:
    """Read a recording once: what is damaged is told now, and not in the middle of the run."""
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "is not there"
        raise UsageError(f"{REPLAY}={folder} {what}; make a recording with {RECORD}={folder}")
    head = folder / tapes.HEAD
    if not head.exists():
        raise UsageError(
            f"{REPLAY}={folder} is no recording (it has no {tapes.HEAD}); make one with {RECORD}"
        )
    tapes.read_head(_read(head), str(head))
    for path in sorted(folder.glob("*.jsonl")):
        tapes.read_tape(_read(path), str(path))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror or error})") from None


def begin(settings: Settings, seed: int, *, is_drawn: bool) -> int:
    """The seed of the run: the recording's own, as requests may follow from it. Makes the folder.

    ``is_drawn``: nobody asked for this ``seed``. Raises :class:`UsageError` where the folder cannot be
    written, or holds a recording of another seed than was asked for.
    """
    if settings.replay is not None:
        recorded = tapes.read_head(_read(settings.replay / tapes.HEAD), str(settings.replay / tapes.HEAD))
        return recorded if is_drawn and recorded is not None else seed
    folder = settings.record
    if folder is None:
        return seed
    recorded = _recorded_seed(folder)
    if recorded is not None and recorded != seed:
        if is_drawn:
            return recorded
        raise UsageError(
            f"{RECORD}={folder} was recorded with another seed ({recorded}); name another folder, or leave "
            "the seed out"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / tapes.HEAD, tapes.head(seed))
    except OSError as error:
        raise UsageError(f"{RECORD}={folder} cannot be made ({error.strerror or error})") from None
    except StoreError as error:
        raise UsageError(f"{RECORD}: {error}") from None
    return seed


class Recordings:
    """One process's part: a tape for each trial that begins, to record on or to answer from."""

    def __init__(self, settings: Settings, redactor: Callable[[str], str]) -> None:
        self._record = settings.record
        self._replay = settings.replay
        self._redactor = redactor

    def tape(self) -> Tape | None:
        """A new tape, where trials are recorded."""
        if self._record is None:
            return None
        from pytest_crashlab.provider.taping import Tape

        return Tape(self._redactor)

    def write(self, case: str, trial: int, tape: Tape) -> None:
        """Write the file of a trial that is over, in the place of an earlier one. Raises ``StoreError``."""
        if self._record is None:
            return
        path = self._record / tapes.file_name(case, trial)
        write_whole(path, tapes.tape_bytes(self._redactor(case), trial, tape.close()))

    def replay(self, case: str, trial: int) -> Replay | None:
        """The recorded answers of a trial, where it is replayed."""
        if self._replay is None:
            return None
        from pytest_crashlab.provider.replaying import Replay

        path = self._replay / tapes.file_name(case, trial)
        exchanges: list[tapes.Exchange] = []
        unknown = None if path.exists() else "none of this trial was recorded"
        try:
            if unknown is None:
                exchanges = tapes.read_tape(_read(path), str(path))[2]
        except UsageError as error:  # it was whole when the session began
            unknown = str(error)
        return Replay(f"{case}, trial {trial}", exchanges, self._redactor, unknown=unknown)


class ReplayGuard:
    """Holds a trial to what was recorded: one that missed an answer is no pass, whatever its test says."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """End a trial without an answer as what it is, also where the test went on without one."""
        try:
            result = yield
        except (pytest.skip.Exception, pytest.exit.Exception, KeyboardInterrupt, InstrumentFailure):
            raise
        except BaseException as error:
            missed = _missed(item)
            if missed is None:
                raise
            raise missed.with_traceback(error.__traceback__) from error
        if (missed := _missed(item)) is not None:
            raise missed
        return result


def _missed(item: pytest.Item) -> InstrumentFailure | None:
    providers: Any = sys.modules.get("pytest_crashlab.plugin.providers")
    models = None if providers is None else item.stash.get(providers.MODELS_KEY, None)
    if models is None or models.replay is None or models.replay.missing is None:
        return None
    from pytest_crashlab.provider.replaying import MISSING

    return InstrumentFailure(MISSING, models.replay.missing)
