"""Does the model name the capital? One case a country, with the prompt that the session declares."""

from __future__ import annotations

from pathlib import Path

import pytest
from model import answer, load, missing

from pytest_crashlab import Check, Outcome, Vocabulary

MOST_TOKENS = 16  # as max_tokens in pytest.ini
PROMPTS = Path(__file__).with_name("prompts")
CAPITALS = {
    "Australia": "Canberra",
    "Canada": "Ottawa",
    "Cuba": "Havana",
    "Egypt": "Cairo",
    "France": "Paris",
    "Germany": "Berlin",
    "Greece": "Athens",
    "Ireland": "Dublin",
    "Italy": "Rome",
    "Japan": "Tokyo",
    "Kenya": "Nairobi",
    "Russia": "Moscow",
    "Spain": "Madrid",
    "Turkey": "Ankara",
}

ENDS = Vocabulary(
    Outcome.passed("named", "The answer names the capital."),
    Outcome.failed("another_answer", "The answer comes to its end and does not name the capital."),
    Outcome.failed("out_of_tokens", "The answer is cut and did not name the capital.", completed=False),
)

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"needs {' and '.join(missing())}: see README.md")


@pytest.fixture
def prompt(pytestconfig, trial):
    """The prompt: ``--crashlab-prompt=capital@example`` tries another version than ``plain``."""
    declared = pytestconfig.getoption("--crashlab-prompt") or "capital@plain"
    name, _, version = declared.partition("@")
    text = (PROMPTS / f"{version}.txt").read_text("utf-8")
    trial.prompt(name, version)
    return text.strip()


@pytest.mark.outcomes(ENDS)
@pytest.mark.checks(
    Check("capital", must="the answer names the capital"),
    Check("country", must="the answer is about the country that was asked for", required=False),
)
@pytest.mark.parametrize(("country", "capital"), CAPITALS.items(), ids=CAPITALS)
def test_capital(country, capital, prompt, provider, trial):
    load()  # before the run, so that the first trial's time is not that of a file
    question = prompt.format(country=country)
    trial.input, trial.expected = question, capital
    with trial.run(horizon=MOST_TOKENS, unit="tokens") as target:
        target.output = answer(question, provider=provider, seed=trial.seed)
        target.t = provider.usage.tokens_out

    is_named = capital in target.output
    is_about_it = country in target.output
    trial.check("country", is_about_it, expected=country, observed=target.output)
    trial.check(
        "capital",
        is_named,
        expected=capital,
        observed=target.output,
        failure_class="another city" if is_about_it else "another country",
    )
    if not is_named:
        trial.outcome("out_of_tokens" if target.exhausted else "another_answer")
