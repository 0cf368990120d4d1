"""Lines of lists, from manifests alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.report import views

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crashlab.store import Manifest
    from pytest_crashlab.store.heads import RunHead


def run_line(head: RunHead, names: Sequence[str] = (), *, stale: bool = False) -> views.RunLineView:
    """One line of the list of runs, without reading a table. Numbers a run did not store are None."""
    git, summary, gate = head.git, head.summary, head.gate
    return views.RunLineView(
        id=head.id,
        status=head.status.value,
        stale=stale,
        name=head.name,
        release=head.release,
        prompt=head.prompt,
        dataset=head.dataset,
        dataset_version=head.dataset_version,
        split=head.split,
        branch=None if git is None else git.branch,
        commit=None if git is None else git.commit,
        cases=head.planned_cases,
        k=head.k,
        pass_rate=None if summary is None else summary.pass_rate,
        undecided=None if summary is None else summary.undecided,
        missing=None if summary is None else summary.missing,
        started=head.created,
        word=None if gate is None else gate.word,
        exit_code=None if gate is None else gate.exit_code,
        names=tuple(names),
        amended=bool(head.amendments),
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
