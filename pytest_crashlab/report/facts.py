"""What a run says of its cases, its prompt and its configuration, in sentences for the head of a report."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from pytest_crashlab.compare.sentences import several
from pytest_crashlab.records.dataset import DatasetUse, Split

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_crashlab.store import Manifest, StoredRun

_KNOWN = frozenset(field.name for field in fields(DatasetUse))


def run_facts(run: StoredRun) -> tuple[str, ...]:
    """The sentences of ``run``: its split, rows that were no cases, its prompt, its configuration."""
    from pytest_crashlab.compare.prompts import prompt_sentence

    prompt = prompt_sentence(run)
    manifest = run.manifest
    said = () if prompt is None else (prompt,)
    return (*_cases(manifest), *said, *_models(manifest), *_configuration(manifest))


def _cases(manifest: Manifest) -> Iterator[str]:
    if manifest.split == Split.DEV:
        yield "Measured on cases you can tune on."
    if manifest.split == Split.HOLDOUT:
        yield f"Holdout run. {' '.join(manifest.looks)}".rstrip()
    for stored in manifest.datasets:
        use = DatasetUse(**{name: value for name, value in stored.items() if name in _KNOWN})
        if use.cases < use.rows:
            yield f"{use.sentence[0].upper()}{use.sentence[1:]}."


def _models(manifest: Manifest) -> Iterator[str]:
    if manifest.models:
        yield f"Answered by {several(manifest.models)}."


def _configuration(manifest: Manifest) -> Iterator[str]:
    if manifest.run_config:
        values = ", ".join(f"{key}={value}" for key, value in manifest.run_config.items())
        yield f"Configuration: {values}."
