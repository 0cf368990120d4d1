"""In how many trials the declared prompt was seen."""

from __future__ import annotations

import pytest
from stories import record, row

from pytest_crashlab.compare.prompts import prompt_sentence


def seen(store, prompts, letters=None, **manifest):
    """The sentence for a case whose trials said ``prompts`` in turn."""
    letters = letters or "P" * len(prompts)
    rows = [row("a", i, letters[i - 1], prompt=prompt) for i, prompt in enumerate(prompts, 1)]
    run = record(store, {"a": "." * len(prompts)}, rows=rows, **manifest)
    return prompt_sentence(run)


@pytest.mark.parametrize(
    ("prompts", "declared", "said"),
    [
        ([None, None], None, None),
        ([None, None], "refund@7", "Prompt refund@7: no trial said which prompt it used."),
        (["refund@7"] * 4, "refund@7", "Prompt refund@7: seen in 4 of 4 trials."),
        (
            ["refund@7", "refund@7, system@1", "refund@6", None],
            "refund@7",
            "Prompt refund@7: seen in 2 of 4 trials; others: system@1 in 1, refund@6 in 1; 1 said nothing.",
        ),
        (["x"], "refund@7", "Prompt refund@7: seen in 0 of 1 trial; others: x in 1."),
        (["a", "a"], None, "No prompt was declared; of 2 trials, seen: a in 2."),
        (
            ["a", "b", "c", "d, e"],
            None,
            "No prompt was declared; of 4 trials, seen: a in 1, b in 1, c in 1 and 2 more.",
        ),
    ],
)
def test_every_count_has_its_denominator(store, prompts, declared, said):
    assert seen(store, prompts, prompt=declared) == said


def test_skipped_trials_and_those_without_an_outcome_are_not_counted(store):
    said = seen(store, ["refund@7", "refund@7", None, None], "PFSN", prompt="refund@7")
    assert said == "Prompt refund@7: seen in 2 of 2 trials."
