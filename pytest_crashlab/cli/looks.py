"""Looks at holdouts from the command line: counted before anything is shown, and said on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.cli import output
from pytest_crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_crashlab.store import Manifest, Store


def count_comparison(store: Store, candidate: Manifest, baseline_id: str) -> None:
    """Count a comparison of a holdout run, where it is not one that was counted before."""
    from pytest_crashlab.store.ledger import record_look

    _say(look.sentence for look in record_look(store.ledger, candidate, "comparison", against=baseline_id))


def count_view(store: Store, manifest: Manifest, *, look: bool) -> None:
    """Count a look at what single trials of a holdout run said; raises ``UsageError`` without ``--look``."""
    from pytest_crashlab.store.ledger import is_sealed, looks_of, record_look

    if not is_sealed(manifest):
        return
    if not look:
        so_far = "; ".join(
            f"{found.dataset}: {found.of_version} looks so far, {found.of_dataset} at any version"
            for found in looks_of(store.ledger, manifest)
        )
        raise UsageError(
            f"Run {manifest.id} measured a holdout, so what its trials said is sealed; --look shows it and "
            f"counts as a look ({so_far})."
        )
    _say(found.sentence for found in record_look(store.ledger, manifest, "view"))


def _say(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        output.complain(sentence)
