"""The few fields of a manifest that are asked of every run of a store: for lists, and for its history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_crashlab.errors import StoreError
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store.layout import FORMAT
from pytest_crashlab.store.manifests import StoreProblem, manifest_bytes, run_ids
from pytest_crashlab.store.schema import Manifest, no_manifest, utc_now

if TYPE_CHECKING:
    from pytest_crashlab.store.layout import StorePaths

# What is not a field is not kept, and costs next to nothing: case ids are most of a manifest.
_CONFIG = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class _Git(BaseModel):
    model_config = _CONFIG

    branch: str | None = None
    commit: str | None = None


class _Summary(BaseModel):
    model_config = _CONFIG

    pass_rate: float | None = None
    undecided: int | None = None
    missing: int | None = None


class _Gate(BaseModel):
    model_config = _CONFIG

    word: str | None = None
    exit_code: int | None = None


class _Baseline(BaseModel):
    model_config = _CONFIG

    id: str | None = None


class RunHead(BaseModel):
    """Fields of a :class:`pytest_crashlab.store.schema.Manifest`, with the types that a list needs."""

    model_config = _CONFIG

    format: int = FORMAT
    id: str
    status: RunStatus = RunStatus.RUNNING
    name: str | None = None
    release: str | None = None
    prompt: str | None = None
    created: str = Field(default_factory=utc_now)
    k: int = 1
    planned_cases: int = 0
    dataset: str | None = None
    dataset_version: str | None = None
    split: str | None = None
    replayed: bool = False
    cached: int | None = None
    model: str | None = None
    target_digest: str | None = None
    evaluation_digest: str | None = None
    baseline: _Baseline | None = None
    git: _Git | None = None
    summary: _Summary | None = None
    gate: _Gate | None = None
    amendments: list[dict[str, Any]] = []

    @classmethod
    def from_bytes(cls, content: bytes, where: str) -> Self:
        """The head of the manifest in ``content``; raises what ``Manifest.from_bytes`` does."""
        try:
            head = cls.model_validate_json(content)
        except ValidationError as error:
            Manifest.from_bytes(content, where)  # says what is wrong with most of them
            raise no_manifest(where, error) from None
        if head.format > FORMAT:
            Manifest.from_bytes(content, where)
        return head


def read_head(paths: StorePaths, run_id: str) -> RunHead:
    """The head of a run's manifest; raises as :func:`pytest_crashlab.store.manifests.read_manifest`."""
    path, content = manifest_bytes(paths, run_id)
    return RunHead.from_bytes(content, str(path))


def list_heads(paths: StorePaths) -> tuple[list[RunHead], list[StoreProblem]]:
    """The heads of all runs, newest first, and the runs whose manifest could not be read."""
    found: list[RunHead] = []
    problems: list[StoreProblem] = []
    for run_id in run_ids(paths):
        try:
            found.append(read_head(paths, run_id))
        except StoreError as error:
            if paths.runs.joinpath(run_id).is_dir():  # else it was deleted since it was listed
                problems.append(StoreProblem(run_id=run_id, text=str(error)))
    found.sort(key=lambda head: (head.created, head.id), reverse=True)
    return found, problems
