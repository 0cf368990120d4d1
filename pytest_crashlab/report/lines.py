"""Lines of lists, from manifests alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.report import views

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crashlab.store import Manifest


def run_line(manifest: Manifest, names: Sequence[str] = (), *, stale: bool = False) -> views.RunLineView:
    """One line of the list of runs, without reading a table. Numbers a run did not store are None."""
    summary = manifest.summary or {}
    return views.RunLineView(
        id=manifest.id,
        status=manifest.status.value,
        stale=stale,
        name=manifest.name,
        release=manifest.release,
        prompt=manifest.prompt,
        dataset=manifest.dataset,
        dataset_version=manifest.dataset_version,
        split=manifest.split,
        branch=(manifest.git or {}).get("branch"),
        commit=(manifest.git or {}).get("commit"),
        cases=manifest.planned_cases,
        k=manifest.k,
        pass_rate=summary.get("pass_rate"),
        undecided=summary.get("undecided"),
        missing=summary.get("missing"),
        started=manifest.created,
        word=(manifest.gate or {}).get("word"),
        exit_code=(manifest.gate or {}).get("exit_code"),
        names=tuple(names),
        amended=bool(manifest.amendments),
    )


def baseline_line(
    name: str,
    run_id: str,
    manifest: Manifest | None,
    *,
    promoted: str | None = None,
    earlier: Manifest | None = None,
    back: int = 0,
) -> views.BaselineLineView:
    """One name; ``earlier`` is the run it stood for ``back`` promotions ago.

    Their difference is known only where both ran the same cases.
    """
    rate, before = _stored_rate(manifest), _stored_rate(earlier)
    if manifest is not None and earlier is not None and set(manifest.case_ids) != set(earlier.case_ids):
        before = (
            None  # another set of cases: the difference of the means would be the cases', not the target's
        )
    commit = None if manifest is None else (manifest.git or {}).get("commit")
    return views.BaselineLineView(
        name=name,
        run=run_id,
        status=None if manifest is None else manifest.status.value,
        promoted=promoted,
        commit=commit,
        pass_rate=rate,
        drift=None if rate is None or before is None or not back else rate - before,
        drift_over=back,
    )


def _stored_rate(manifest: Manifest | None) -> float | None:
    return None if manifest is None else (manifest.summary or {}).get("pass_rate")
