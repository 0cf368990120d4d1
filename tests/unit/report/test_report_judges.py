"""What judges took is told apart from the target, in each report."""

from __future__ import annotations

import json

import pytest

from pytest_crashlab.report.json import dumps, session_json
from pytest_crashlab.report.markdown import session_markdown
from pytest_crashlab.report.terminal import render_text
from tests.stories import row


def judged(case, trial, letter="P", **fields):
    told = {
        "judge_calls": 3,
        "judge_tokens_in": 1500,
        "judge_tokens_out": 200,
        "judge_s": 0.5,
        "judge_cost_usd": 0.25,
        "judge_cost_basis": "estimated",
        "judge_models": "openai:strict",
        "judge_voted": 1,
        "judge_split": 0,
    }
    return row(case, trial, letter, tokens_in=10, **{**told, **fields})


ROWS = [
    judged("a", 1),
    judged("a", 2, judge_split=1),
    judged("b", 1, judge_cost_usd=None, judge_cost_basis=None, judge_models="openai:strict, openai:other"),
    row("b", 2, "P", tokens_in=10),
]


@pytest.fixture
def view(tell):
    return tell(None, {"a": "..", "b": ".."}, rows=ROWS)


def test_a_summary_has_the_totals_and_the_flips_of_the_judge(view):
    drawn = render_text(view, width=120, color=False)
    block = drawn.split("\nJudge ")[1].split("\n\n")[0]
    assert [line.strip() for line in block.splitlines()] == [
        "openai:other, openai:strict (no part of the target's numbers)",
        (
            "9 calls, time 1.5 s, tokens in 4,500, tokens out 600, "
            "cost 0.5 USD (estimated, 2 of 3 trials told it)"
        ),
        "Judge flips 1 of 3 judgements of two votes or more",
    ]


def test_the_whole_view_has_them_a_trial_and_the_target_its_own(view):
    drawn = render_text(view, width=120, color=False, full=True)
    of_target = drawn.split("cost of the target")[1].split("\n\n")[0]
    assert "40 tokens  4 of 4 trials that ran" in of_target
    block = drawn.split("cost of the judge openai:other, openai:strict")[1].split("\n\n")[0]
    lines = {line[2:14].strip(): " ".join(line[14:].split()) for line in block.splitlines()[2:]}
    assert lines["calls"].endswith("9 calls 3 of 3 trials that asked a judge; the cases do not differ")
    assert lines["tokens in"].startswith("1,500 tokens - 4,500 tokens 3 of 3 trials")
    assert "estimated; 2 of 3 trials that asked a judge" in lines["cost"]
    assert block.splitlines()[-1] == "  Judge flips 1 of 3 judgements of two votes or more"


def test_markdown_and_json_have_them(view):
    document = session_markdown(view)
    assert "| Judge | `openai:other`, `openai:strict` | | |" in document
    assert "| Judge in all, tokens in | 4500 tokens | | 3 of 3 trials that asked a judge |" in document
    assert "| Judge in all, cost | 0.5 USD | | 2 of 3 trials that asked a judge, estimated |" in document
    assert "| Judge flips | 1 | | 3 judgements of two votes or more |" in document
    told = json.loads(dumps(session_json(view)))
    judges = told["judges"]
    assert (judges["models"], judges["flips"], judges["flips_of"]) == (
        ["openai:other", "openai:strict"],
        1,
        3,
    )
    assert [(u["name"], u["total"]) for u in judges["usage"]] == [
        ("calls", 9.0),
        ("time", 1.5),
        ("tokens in", 4500.0),
        ("tokens out", 600.0),
        ("cost", 0.5),
    ]
    assert [u["total"] for u in told["usage"] if u["name"] == "tokens in"] == [40.0]


def test_what_is_not_known_is_a_dash(tell):
    nothing = dict.fromkeys(
        ("judge_tokens_in", "judge_tokens_out", "judge_s", "judge_cost_usd", "judge_cost_basis")
    )
    view = tell(None, {"a": "."}, rows=[judged("a", 1, judge_calls=1, judge_voted=0, **nothing)])
    drawn = render_text(view, width=120, color=False)
    assert "  1 call, time -, tokens in -, tokens out -, cost -\n" in drawn
    assert "  Judge flips -: no judgement had two votes that could be read.\n" in drawn
    assert "| Judge flips | - | | no judgement had two votes that could be read |" in session_markdown(view)
    assert json.loads(dumps(session_json(view)))["judges"]["flips"] is None


def test_a_cost_of_0_beside_tokens_is_not_known(tell):
    view = tell(None, {"a": "."}, rows=[judged("a", 1, judge_cost_usd=0.0, judge_cost_basis="billed")])
    (cost,) = (used for used in view.judges.usage if used.name == "cost")
    assert (cost.value, cost.total, cost.trials) == (None, None, 0)


def test_a_run_without_a_judge_says_nothing_of_one(tell):
    view = tell(None, {"a": ".."})
    assert view.judges is None
    assert "judge" not in render_text(view, width=120, color=False, full=True).lower()
    assert "judge" not in session_markdown(view).lower()
