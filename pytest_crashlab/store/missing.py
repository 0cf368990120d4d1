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


def why_missing(
    candidates: Candidates, searched: str, *, branch_known: bool, shallow: bool
) -> tuple[str, str]:
    """One of the four names and one sentence: what is missing, why, and what to do.

    ``searched`` says where was looked in vain, or why nowhere; ``branch_known`` whether the name is a
    branch; ``shallow`` whether the clone lacks history.
    """
    target = candidates.target
    name = target.name
    if target.no_access is not None:
        return NO_ACCESS, (
            f"No baseline {name}: no access to the store ({target.no_access}); "
            "give this job the right to read it."
        )
    becomes = "this run becomes it." if target.saving else None
    save = becomes or f"'--save-baseline={name}' records it."
    recorded = candidates.recorded()
    if recorded and (shallow or not branch_known):
        newest, where = short_run(recorded[0].id), "shallow clone" if shallow else searched
        remedy = becomes or (
            "fetch the history ('git fetch --unshallow' or fetch-depth: 0) or promote one with "
            f"'crashlab baseline promote {name} {newest}'."
        )
        runs = "1 run of it is" if len(recorded) == 1 else f"{len(recorded)} runs of it are"
        return NOT_IN_CLONE, (
            f"No baseline {name}: {runs} at commits that are not in this clone ({where}); {remedy}"
        )
    if becomes is not None and not target.gone:
        return NEVER_RECORDED, f"No baseline {name} yet; {becomes}"
    if recorded:
        newest = short_run(recorded[0].id)
        return NEVER_RECORDED, (
            f"No baseline {name} yet: {searched}, and none was promoted; 'crashlab baseline promote {name} "
            f"{newest}' would make its newest run the baseline."
        )
    if target.gone:
        run_id, date = max(target.gone.items(), key=lambda item: item[1])
        when = f" on {date[:10]}" if date else ""
        return EXPIRED, f"No baseline {name}: expired or deleted ({short_run(run_id)}{when}); {save}"
    refused = candidates.recorded_but_refused()
    if refused:
        run_id, why = short_run(refused[0].run_id), refused[0].why
        return NEVER_RECORDED, f"No baseline {name} yet: {run_id} cannot be it, as {why}; {save}"
    return NEVER_RECORDED, f"No baseline {name} yet: nothing was recorded for it; {save}"
