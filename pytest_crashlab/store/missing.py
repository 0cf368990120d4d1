"""Why a name has no run: four causes that ask for four different remedies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.store.candidates import short_run

if TYPE_CHECKING:
    from pytest_crashlab.store.candidates import Candidates

NEVER_RECORDED = "never recorded"
EXPIRED = "expired or deleted"
NO_ACCESS = "no access"
NOT_IN_CLONE = "not in this clone"


def why_missing(candidates: Candidates, base: str, *, branch_known: bool, shallow: bool) -> tuple[str, str]:
    """One of the four names and a sentence that says what to do.

    ``base`` words for the commit that the walk began at; ``branch_known`` whether the name is a
    branch; ``shallow`` whether the clone lacks history.
    """
    target = candidates.target
    name = target.name
    if target.no_access is not None:
        return NO_ACCESS, (
            f"No baseline {name}: no access to the store ({target.no_access}); "
            "give this job the right to read it."
        )
    recorded = candidates.recorded()
    if recorded and (shallow or not branch_known):
        return NOT_IN_CLONE, (
            f"No baseline {name}: {_runs(len(recorded))} recorded for it at commits that are not in "
            f"this clone ({'shallow clone' if shallow else base}); fetch the history "
            f"('git fetch --unshallow' or fetch-depth: 0) or promote one with "
            f"'crashlab baseline promote {name} {short_run(recorded[0].id)}'."
        )
    if recorded:
        return NEVER_RECORDED, (
            f"No baseline {name}: never recorded at or before {base}; the newest run recorded for it is "
            f"{short_run(recorded[0].id)}, and 'crashlab baseline promote {name} "
            f"{short_run(recorded[0].id)}' makes it the baseline."
        )
    if target.gone:
        run_id, date = max(target.gone.items(), key=lambda item: item[1])
        when = f" on {date[:10]}" if date else ""
        return EXPIRED, (
            f"No baseline {name}: expired or deleted ({short_run(run_id)}{when}); "
            f"record it again with '--save-baseline={name}'."
        )
    refused = candidates.recorded_but_refused()
    if refused:
        return NEVER_RECORDED, (
            f"No baseline {name}: never recorded for this; {short_run(refused[0].run_id)} may not be "
            f"used, as {refused[0].why}. Record one with '--save-baseline={name}'."
        )
    return NEVER_RECORDED, (f"No baseline {name}: never recorded; record it with '--save-baseline={name}'.")


def _runs(count: int) -> str:
    return "1 run was" if count == 1 else f"{count} runs were"
