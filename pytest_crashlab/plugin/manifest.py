"""What a session says of itself in its run's manifest."""

from __future__ import annotations

import os
import platform
import re
import shlex
import sys
from dataclasses import asdict
from importlib import metadata
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import UsageError
from pytest_crashlab.plugin import sources
from pytest_crashlab.plugin.configuration import config_digest, stored_config
from pytest_crashlab.plugin.redacting import redactor_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import pytest

    from pytest_crashlab.plugin.fanout import Selection
    from pytest_crashlab.plugin.session import RunSession
    from pytest_crashlab.plugin.settings import Settings
    from pytest_crashlab.records.dataset import DatasetUse
    from pytest_crashlab.store.runs import StoredRun
    from pytest_crashlab.store.schema import Manifest

_PACKAGES = ("pytest-crashlab", "pytest", "pytest-xdist", "numpy", "scipy", "polars")
# The libraries that most targets call their models by: another version may ask or retry otherwise.
_CLIENTS = (
    "anthropic",
    "google-genai",
    "httpx",
    "langchain-core",
    "litellm",
    "llama-cpp-python",
    "mistralai",
    "openai",
    "transformers",
)


def new_manifest(session: RunSession) -> Manifest:
    """The manifest of a run that is about to begin."""
    from pytest_crashlab.store.git import git_fields, read_head
    from pytest_crashlab.store.schema import Manifest

    settings, clean = session.settings, redactor_of(session.config)
    target, evaluation = source_digests(session.config.rootpath, settings)
    stored = stored_config(session.config)
    return Manifest(
        id=session.run_id,
        name=None if settings.run_name is None else clean(settings.run_name),
        release=settings.release,
        prompt=settings.prompt,
        external_id=None if settings.external_id is None else clean(settings.external_id),
        argv=[clean(str(argument)) for argument in session.config.invocation_params.args],
        trial_order=session.order,
        isolation=settings.isolation,
        hash_seed=os.environ.get("PYTHONHASHSEED", "random"),
        seed=session.seed,
        seed_source="baseline" if settings.shared_seed else "drawn" if settings.seed is None else "given",
        model=settings.measured_model,
        run_config=stored,
        config_digest=config_digest(stored),
        declared_outcomes=list(settings.outcomes),
        sources={"target": target, "evaluation": evaluation},
        target_digest=sources.combined(target),
        evaluation_digest=sources.combined(evaluation),
        policy=settings.policy,
        method=settings.method,
        margin=settings.margin,
        min_pass_rate=settings.min_pass_rate,
        baseline=baseline_fields(session),
        git=git_fields(read_head(session.config.rootpath)),
        environment=environment(),
    )


def source_digests(root: Path, settings: Settings) -> tuple[dict[str, str], dict[str, str]]:
    """Digests of what is measured and of what measures it. Raises ``UsageError``."""
    return (
        sources.digests("crashlab_target", root, settings.target),
        sources.digests("crashlab_evaluation", root, settings.evaluation),
    )


def shared_seed(baseline: StoredRun) -> int:
    """The baseline's seed, for a run whose trials are to be pairs. Raises ``UsageError`` for none."""
    seed = baseline.manifest.seed
    if seed is None:
        raise UsageError(
            f"the baseline {baseline.manifest.id} has no seed to share; leave --crashlab-seed out"
        )
    return seed


def baseline_fields(session: RunSession) -> dict[str, Any] | None:
    """Which baseline was asked for, which run it came to, and why."""
    resolution = session.resolution
    if resolution is None:
        return None
    return {
        "ref": session.settings.baseline,
        "id": None if resolution.run is None else resolution.run.id,
        "reason": resolution.reason,
        "notes": [note.text for note in resolution.notes],
    }


def measured(baseline: StoredRun | None) -> dict[str, str | None] | None:
    """What a baseline measured, for the processes that know what this session measures."""
    if baseline is None:
        return None
    found = baseline.manifest
    return {"run": found.id, "dataset": found.dataset, "split": found.split}


def dataset_fields(used: Sequence[DatasetUse]) -> dict[str, Any]:
    """What the manifest says of the data sets that the cases come from."""
    if not used:
        return {}
    from pytest_crashlab.plugin import datasets

    return {
        "dataset": datasets.measured_names(used),
        "dataset_version": datasets.measured_versions(used),
        "split": datasets.measured_split(used),
        "datasets": [asdict(use) for use in used],
    }


def planned_fields(config: pytest.Config, selection: Selection, baseline: StoredRun | None) -> dict[str, Any]:
    """What the plan adds once the tests are collected."""
    planned = [case.planned for case in selection.cases]
    partial = is_partial(config, selection, baseline)
    unsampled = sum(use.unsampled_cases for use in selection.datasets)
    return {
        "k": max(planned, default=1),
        "planned_cases": len(planned),
        "total_cases": selection.collected + unsampled if partial else len(planned),
        "planned_trials": sum(planned),
        "partial": partial,
        "case_ids": [case.id for case in selection.cases],
        "vocabularies": selection.vocabularies,
        **dataset_fields(selection.datasets),
    }


def is_partial(config: pytest.Config, selection: Selection, baseline: StoredRun | None) -> bool:
    """Whether something selected a part of the cases: then the run cannot become a baseline.

    What the project's own ``addopts`` leave out belongs to the definition of its suite. Paths alone
    are no selection, since a suite is often run by its path; they are one where the baseline has
    cases of a file that is still there and of which nothing was collected.
    """
    if _selects(str(argument) for argument in config.invocation_params.args):
        return True
    if any(use.unsampled for use in selection.datasets):
        return True
    own = [*config.getini("addopts"), *shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))]
    if len(selection.cases) < selection.collected and not _selects(own):
        return True  # by something that leaves no trace in the command: a plugin that splits, say
    return baseline is not None and _passes_over_files(config, selection, baseline)


_SELECTING = re.compile(
    r"-[km]|--(lf|last-failed|sw|stepwise|deselect|ignore|ignore-glob|splits|group|shard)\b"
)


def _selects(arguments: Iterable[str]) -> bool:
    """Whether one of the command's words selects a part of the cases."""
    return any("::" in argument or _SELECTING.match(argument) for argument in arguments)


def _passes_over_files(config: pytest.Config, selection: Selection, baseline: StoredRun) -> bool:
    collected = {_file_of(case.id) for case in selection.cases}
    others = {_file_of(case) for case in baseline.cases["case"]} - collected
    return any((config.rootpath / name).exists() for name in others)


def _file_of(case: str) -> str:
    return case.partition("::")[0]


def environment() -> dict[str, Any]:
    """Python, platform and the packages that decide how a run is made."""
    packages = {}
    for name in (*_PACKAGES, *_CLIENTS):
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "platform": platform.platform(),
        "packages": packages,
    }
