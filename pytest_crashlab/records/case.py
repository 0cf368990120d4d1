"""A case: one test item as pytest collects it without trials."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePlan:
    """What is planned for one case before any trial runs.

    ``id`` the node id without trials; ``planned`` how many trials; ``content`` digest of what the
    case asks (parameters, dataset row's input and expected); ``pass_rule`` digest of what makes it
    pass (required checks, thresholds, the test's own source), None where it cannot be known;
    ``min_passes`` a threshold of its own; ``uses_trial`` whether the test asks for the ``trial``
    fixture (an eval case); ``vocabulary`` the key of its vocabulary in the manifest's ``vocabularies``,
    "" for the built-in one; ``file`` and ``line`` (1-based) of the test.
    """

    id: str
    planned: int
    content: str = ""
    pass_rule: str | None = None
    min_passes: int | None = None
    uses_trial: bool = False
    vocabulary: str = ""
    file: str | None = None
    line: int | None = None


def trial_of(test_id: str) -> tuple[str, int] | None:
    """The case and the number of a trial's id: ``test_x[b-trial2]`` is trial 2 of ``test_x[b]``.

    None for an id that does not read like a trial's. A parameter may be named so as well, so an id that
    is there as it stands is a case.
    """
    before, bracket, inside = test_id.rpartition("[")
    parameters, _, last = inside.removesuffix("]").rpartition("-")
    number = last.removeprefix("trial")
    if not bracket or not inside.endswith("]") or last == number or not number.isdecimal():
        return None
    return (f"{before}[{parameters}]" if parameters else before), int(number)
