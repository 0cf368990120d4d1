"""Whether the prompt that a run declares is the one its trials say they used."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_crashlab.compare.sentences import count

if TYPE_CHECKING:
    from pytest_crashlab.store import StoredRun

_MOST_OTHERS = 3


def prompt_sentence(run: StoredRun) -> str | None:
    """In how many trials the declared prompt was seen, and which others; None where there is no prompt.

    Counted over the trials with an outcome, skipped ones aside. Trials that said nothing of a prompt leave
    it unknown: where no trial said a word, no number is given.
    """
    declared = run.manifest.prompt
    if run.trials["prompt"].null_count() == len(run.trials):
        return None if declared is None else f"Prompt {declared}: no trial said which prompt it used."
    seen: Counter[str] = Counter()
    total = silent = 0
    for deciding, kind, prompt in run.trials.select("deciding", "kind", "prompt").iter_rows():
        if not deciding or kind in (None, "excluded"):
            continue
        total += 1
        silent += prompt is None
        seen.update(prompt.split(", ") if prompt else ())
    others = [f"{name} in {n}" for name, n in seen.most_common() if name != declared]
    rest = "" if len(others) <= _MOST_OTHERS else f" and {len(others) - _MOST_OTHERS} more"
    also = f"{', '.join(others[:_MOST_OTHERS])}{rest}"
    unsaid = f"; {silent} said nothing" if silent else ""
    if declared is None:
        return f"No prompt was declared; of {count(total, 'trial')}, seen: {also}{unsaid}."
    found = f"Prompt {declared}: seen in {seen[declared]} of {count(total, 'trial')}"
    return f"{found}{f'; others: {also}' if others else ''}{unsaid}."
