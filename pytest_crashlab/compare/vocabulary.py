"""How a run used its labels: which place assigned which, and whether a label means one thing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.records.vocabulary_lint import (
    Declared,
    Finding,
    Use,
    lint_declared,
    lint_used,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crashlab.store import StoredRun

OPENING = "Vocabulary: "


def vocabulary_findings(run: StoredRun) -> tuple[Finding, ...]:
    """Everything about the vocabularies that ``run``'s tests declare which asks for a look."""
    declared = [Declared.from_mapping(data) for data in run.manifest.vocabularies]
    if not declared:
        return ()
    return (*lint_declared(declared), *lint_used(declared, uses_of(run)))


def with_vocabulary_warnings(warnings: Sequence[str], run: StoredRun) -> list[str]:
    """``warnings`` of a run with those about its vocabularies brought up to date."""
    kept = [warning for warning in warnings if not warning.startswith(OPENING)]
    return [*kept, *(warning_of(f) for f in vocabulary_findings(run) if f.allowed is None)]


def warning_of(finding: Finding) -> str:
    """A finding as a warning, with what silences it."""
    return f'{OPENING}{finding.text} (No mistake? silence={{"{finding.key}": "why"}})'


def uses_of(run: StoredRun) -> tuple[Use, ...]:
    """The deciding trials of tests that declare a vocabulary, counted by test, label, phase and place."""
    import polars as pl

    planned = run.cases.filter(pl.col("vocabulary").fill_null("") != "").select("case", "vocabulary")
    has_limit = pl.col("horizon").is_not_null() & pl.col("t").is_not_null()
    rows = (
        run.trials.filter(pl.col("deciding") & pl.col("kind").is_not_null())
        .join(planned, on="case")
        .group_by(
            "vocabulary",
            pl.col("case").str.split("[").list.first().alias("test"),
            pl.col("outcome").alias("label"),
            pl.col("kind").cast(pl.String),
            pl.col("phase").cast(pl.String),
            "site",
        )
        .agg(
            count=pl.len(),
            at_limit=(has_limit & (pl.col("t") >= pl.col("horizon"))).sum(),
            below=(has_limit & (pl.col("t") < pl.col("horizon"))).sum(),
        )
        .sort("vocabulary", "test", "label", "phase", "site", nulls_last=True)
    )
    return tuple(Use(**row) for row in rows.iter_rows(named=True))
