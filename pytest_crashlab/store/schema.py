"""What a run's files hold: the manifest's fields and the tables' columns."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticSerializationError

from pytest_crashlab.errors import CorruptRun, FormatTooNew
from pytest_crashlab.records.outcome import Decision, Kind
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.records.trial import Phase
from pytest_crashlab.store.layout import FORMAT

if TYPE_CHECKING:
    import polars as pl


def utc_now() -> str:
    """Now, as manifests and the ledger write it: ``2026-11-30T06:33:00.123Z``."""
    return iso_utc(datetime.now(UTC).timestamp())


def iso_utc(seconds: float) -> str:
    """Seconds since the epoch as an ISO string in UTC, to the millisecond."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Manifest(BaseModel):
    """What a run says of itself without its tables being read.

    ``status`` how it ended; ``created``, ``updated``, ``finished`` ISO strings in UTC; ``k`` the
    trials asked for per case; ``planned_cases`` of ``total_cases`` were selected; ``partial`` a
    selection, a sample or an interrupted plan; ``replayed`` the provider's answers came from a
    recording; ``cached`` trials with an answer from a cache, None where none could be told from others;
    ``sources`` "target" and "evaluation" -> declared path -> digest of its files;
    ``seed_source`` "drawn", "given" or "baseline"; ``interleaved`` what all runs share whose trials
    ran in turn; ``dataset`` names of data sets, with commas between, and ``datasets`` how each was used
    (see :class:`pytest_crashlab.records.dataset.DatasetUse`); ``looks`` which look at a holdout the run
    was, in sentences; ``run_config`` the declared configuration and ``config_digest`` its digest, None
    without one; ``declared_outcomes`` labels whose rates are to be compared; ``git`` see
    :func:`pytest_crashlab.store.git.git_fields`; ``recorded_for`` the names it was promoted under;
    ``vocabularies`` what its tests declare, see
    :class:`pytest_crashlab.records.vocabulary_lint.Declared`; ``amendments`` what was excluded after
    the fact, see :mod:`pytest_crashlab.store.amendments`; ``models`` those that answered its targets;
    ``imported`` where a run comes from that no session recorded (see
    :mod:`pytest_crashlab.importing`); ``summary`` plain numbers for listings; ``outcomes`` deciding
    attempts per label; ``counts`` see :func:`pytest_crashlab.store.seal.count_trials`;
    ``dropped_lines`` journal lines that could not be read when it was sealed. Fields of later
    versions are kept.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    format: int = FORMAT
    id: str
    status: RunStatus = RunStatus.RUNNING
    name: str | None = None
    release: str | None = None
    prompt: str | None = None
    external_id: str | None = None
    created: str = Field(default_factory=utc_now)
    updated: str = Field(default_factory=utc_now)
    finished: str | None = None
    argv: list[str] = []
    k: int = 1
    trial_order: str | None = None
    seed: int | None = None
    planned_cases: int = 0
    total_cases: int = 0
    planned_trials: int = 0
    partial: bool = False
    replayed: bool = False
    cached: int | None = None
    dataset: str | None = None
    dataset_version: str | None = None
    split: str | None = None
    datasets: list[dict[str, Any]] = []
    looks: list[str] = []
    run_config: dict[str, str] = {}
    config_digest: str | None = None
    policy: str | None = None
    method: str | None = None
    margin: float | None = None
    min_pass_rate: float | None = None
    baseline: dict[str, Any] | None = None
    git: dict[str, Any] | None = None
    recorded_for: list[str] = []
    imported: dict[str, Any] | None = None
    environment: dict[str, Any] = {}
    model: str | None = None
    models: list[str] = []
    target_digest: str | None = None
    evaluation_digest: str | None = None
    sources: dict[str, dict[str, str]] = {}
    seed_source: str | None = None
    isolation: str | None = None
    hash_seed: str | None = None
    module_state: dict[str, Any] | None = None
    interleaved: str | None = None
    declared_outcomes: list[str] = []
    summary: dict[str, Any] | None = None
    outcomes: dict[str, int] = {}
    counts: dict[str, int] | None = None
    case_ids: list[str] = []
    vocabularies: list[dict[str, Any]] = []
    amendments: list[dict[str, Any]] = []
    gate: dict[str, Any] | None = None
    dropped_lines: int = 0
    warnings: list[str] = []

    def to_bytes(self) -> bytes:
        """The manifest as it is stored: indented JSON.

        Half a surrogate pair, as a case id or a path may hold, has no place in UTF-8 and becomes the
        replacement character, as in the journal.
        """
        try:
            return self.model_dump_json(indent=1).encode() + b"\n"
        except PydanticSerializationError:
            whole = type(self).model_construct(**_storable(self.model_dump()))
            return whole.model_dump_json(indent=1).encode() + b"\n"

    @classmethod
    def from_bytes(cls, content: bytes, where: str) -> Self:
        """The manifest in ``content``; ``where`` names its file in errors.

        Raises :class:`FormatTooNew` for a later format and :class:`CorruptRun` for anything that is
        no manifest.
        """
        try:
            manifest = cls.model_validate_json(content)
        except ValidationError as error:
            version = _format_of(content)
            if version is not None and version > FORMAT:
                raise _too_new(where, version) from None
            raise no_manifest(where, error) from None
        if manifest.format > FORMAT:
            raise _too_new(where, manifest.format)
        return manifest

    def with_fields(self, **fields: Any) -> Self:
        """A copy with other values, checked; :class:`TypeError` for a field that does not exist."""
        unknown = sorted(set(fields) - set(type(self).model_fields))
        if unknown:
            raise TypeError(f"a manifest has no field {unknown[0]!r}")
        return self.model_validate({**self.model_dump(), **fields})


def no_manifest(where: str, error: ValidationError) -> CorruptRun:
    """The error for a file that is no manifest, with the first thing that is wrong with it."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    what = f"{field}: {first['msg']}" if field else first["msg"]
    return CorruptRun(f"{where} is no manifest of a run ({what}); repair it or delete the run.")


def _storable(value: Any) -> Any:
    if isinstance(value, StrEnum):
        return value
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list) else value


def _format_of(content: bytes) -> int | None:
    try:
        version = json.loads(content)["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return version if isinstance(version, int) else None


def _too_new(where: str, version: int) -> FormatTooNew:
    return FormatTooNew(
        f"{where} has format {version} and this version reads format {FORMAT}; upgrade pytest-crashlab."
    )


def case_columns() -> dict[str, pl.DataType]:
    """Columns of cases.parquet, one row a planned case in collection order."""
    import polars as pl

    return {
        "case": pl.String(),
        "planned": pl.Int32(),
        "content": pl.String(),
        "pass_rule": pl.String(),
        "min_passes": pl.Int32(),
        "uses_trial": pl.Boolean(),
        **_vocabulary_columns(),
        "file": pl.String(),
        "line": pl.Int32(),
    }


def trial_columns() -> dict[str, pl.DataType]:
    """Columns of trials.parquet: one row an attempt, all attempts kept; a missing trial has no row.

    ``decision`` follows from ``kind`` and is null where no outcome was stored; ``deciding`` marks
    the one attempt that counts for its trial. The other columns are those of
    :class:`pytest_crashlab.records.trial.TrialRow`.
    """
    import polars as pl

    return {
        "case": pl.String(),
        "trial": pl.Int32(),
        "attempt": pl.Int32(),
        "outcome": pl.String(),
        "kind": pl.Enum([kind.value for kind in Kind]),
        "decision": pl.Enum([decision.value for decision in Decision]),
        "deciding": pl.Boolean(),
        "phase": pl.Enum([phase.value for phase in Phase]),
        "infra_healthy": pl.Boolean(),
        "target_completed": pl.Boolean(),
        "t": pl.Float64(),
        "horizon": pl.Float64(),
        "t_unit": pl.String(),
        "start": pl.Float64(),
        "duration": pl.Float64(),
        "run_duration": pl.Float64(),
        **_phase_columns(),
        "worker": pl.String(),
        "site": pl.String(),
        "failure_class": pl.String(),
        "message": pl.String(),
        "record_error": pl.String(),
        **_usage_columns(),
        **_prompt_columns(),
        **_judge_use_columns(),
        **_replay_columns(),
        **_answer_columns(),
    }


def later_columns(table: str) -> frozenset[str]:
    """Columns that ``table`` (cases, trials, checks) of format 1 may lack: they came later.

    They are null where they are not.
    """
    return frozenset(
        {
            "cases": _vocabulary_columns(),
            "trials": {
                **_phase_columns(),
                **_usage_columns(),
                **_prompt_columns(),
                **_judge_use_columns(),
                **_replay_columns(),
                **_answer_columns(),
            },
            "checks": {**_judge_columns(), **_measured_columns()},
        }[table]
    )


def _usage_columns() -> dict[str, pl.DataType]:
    import polars as pl

    return {
        "tokens_in": pl.Int64(),
        "tokens_out": pl.Int64(),
        "cost_usd": pl.Float64(),
        "cost_basis": pl.String(),
    }


def _prompt_columns() -> dict[str, pl.DataType]:
    import polars as pl

    return {"prompt": pl.String(), "models": pl.String()}


def _judge_use_columns() -> dict[str, pl.DataType]:
    import polars as pl

    return {
        "judge_calls": pl.Int64(),
        "judge_tokens_in": pl.Int64(),
        "judge_tokens_out": pl.Int64(),
        "judge_s": pl.Float64(),
        "judge_cost_usd": pl.Float64(),
        "judge_cost_basis": pl.String(),
        "judge_models": pl.String(),
        "judge_voted": pl.Int64(),
        "judge_split": pl.Int64(),
    }


def _replay_columns() -> dict[str, pl.DataType]:
    import polars as pl

    return {"replayed": pl.Boolean()}


def _answer_columns() -> dict[str, pl.DataType]:
    import polars as pl

    return {"answers": pl.String(), "cached": pl.Boolean()}


def _phase_columns() -> dict[str, pl.DataType]:
    import polars as pl

    return {"prepare_s": pl.Float64(), "verify_s": pl.Float64(), "record_s": pl.Float64()}


def _vocabulary_columns() -> dict[str, pl.DataType]:
    import polars as pl

    return {"vocabulary": pl.String()}


def check_columns() -> dict[str, pl.DataType]:
    """Columns of checks.parquet: one row a check of an attempt; ``ok`` null: not evaluated."""
    import polars as pl

    return {
        "case": pl.String(),
        "trial": pl.Int32(),
        "attempt": pl.Int32(),
        "name": pl.String(),
        "required": pl.Boolean(),
        "ok": pl.Boolean(),
        "why": pl.String(),
        "site": pl.String(),
        **_judge_columns(),
        **_measured_columns(),
    }


def _measured_columns() -> dict[str, pl.DataType]:
    import polars as pl

    return {
        "value": pl.Float64(),
        "at_least": pl.Float64(),
        "at_most": pl.Float64(),
        "kind": pl.String(),
        "failure_class": pl.String(),
        "must": pl.String(),
    }


def _judge_columns() -> dict[str, pl.DataType]:
    import polars as pl

    return {"judge": pl.String()}
