"""A number that is not known is a dash with its reason, null, or left out: never 0, in any report."""

from __future__ import annotations

import html
import json
import re
import types
import typing
import xml.etree.ElementTree as ET
from dataclasses import fields, is_dataclass, replace

import pytest

from pytest_crashlab.compare import CompareOptions
from pytest_crashlab.compare.history import History
from pytest_crashlab.records.check import CheckRow
from pytest_crashlab.report import views
from pytest_crashlab.report.checks import CheckLineView
from pytest_crashlab.report.history import HistoryView, history_json, history_line, render_history
from pytest_crashlab.report.json import dumps, runs_json, session_json
from pytest_crashlab.report.junit import junit_xml
from pytest_crashlab.report.lines import baseline_line, run_line
from pytest_crashlab.report.listing import render_baselines, render_runs
from pytest_crashlab.report.markdown import session_markdown
from pytest_crashlab.report.terminal import render_text
from pytest_crashlab.store import Store
from tests.stories import record, row
from tests.unit.report.conftest import teller

WIDE = 1000
NUMBER = re.compile(r"\d[\d.,]*")
# Numbers of the reasons themselves.
REASONS = re.compile("use at least 3 trials to see flips|not even a drop to 0 would be found in 4 of 5 tries")
RENDERERS = {
    "terminal": lambda view: render_text(view, width=WIDE, color=False),
    "all": lambda view: render_text(view, width=WIDE, color=False, full=True),
    "quiet": lambda view: render_text(view, width=WIDE, color=False, quiet=True),
    "markdown": lambda view: html.unescape(session_markdown(view)),
}


def used(case, more):
    """What one trial took, more of it in a later case."""
    times = more * (1 + case / 7)
    return {
        "run_duration": times,
        "tokens_in": 100 + 7 * case,
        "tokens_out": 20 + 7 * case,
        "cost_usd": times / 100,
        "cost_basis": "billed",
        "judge_calls": 3 + case,
        "judge_tokens_in": 1500 + 7 * case,
        "judge_tokens_out": 200 + 7 * case,
        "judge_s": times / 2,
        "judge_cost_usd": times / 4,
        "judge_cost_basis": "estimated",
        "judge_models": "strict",
        "judge_voted": 1,
        "judge_split": int(case == 4),
        "cached": False,
    }


def measured(more):
    """12 cases x 5 trials of which everything is known."""
    rows = [(c, t, "F" if c in {1, 2} and t > 3 - more else "P") for c in range(12) for t in range(1, 6)]
    tone = {"name": "tone", "required": False, "judge": "strict", "kind": "judge"}
    return {
        "checks": [
            (row(f"t{c}", t, letter, **used(c, more)), [CheckRow(**tone, ok=t != 2, value=0.5 + c / 30)])
            for c, t, letter in rows
        ]
    }


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    tell = teller(Store.open(tmp_path_factory.mktemp("known") / ".crashlab", create=True))
    planned = {f"t{c}": "....." for c in range(12)}
    options = CompareOptions(margin=0.02, aa_factor=1.2, history=History(comparisons=40, repeats=0))
    return tell(planned, planned, a_fields=measured(1), options=options, **measured(2))


def numbers_that_may_be_unknown(view):
    names = {**vars(views), "CheckLineView": CheckLineView}
    for name, kind in typing.get_type_hints(view, names).items():
        if isinstance(kind, types.UnionType) and {type(None)} < {*kind.__args__} & {type(None), int, float}:
            yield name


def paths(view, before=()):
    """Where the view holds a number that may be unknown; of a list its first entry."""
    for name in numbers_that_may_be_unknown(type(view)):
        yield (*before, name)
    for field in fields(view):
        held = getattr(view, field.name)
        if is_dataclass(held):
            yield from paths(held, (*before, field.name))
        elif isinstance(held, tuple) and held and is_dataclass(held[0]):
            yield from paths(held[0], (*before, field.name, 0))


def without(view, path):
    if not path:
        return None
    if path[0] == 0:
        return (without(view[0], path[1:]), *view[1:])
    return replace(view, **{path[0]: without(getattr(view, path[0]), path[1:])})


def at(data, path):
    for key in path:
        data = data[key]
    return data


def test_a_number_that_is_taken_away_leaves_no_number(known):
    """One by one: a report without it says no number that it did not say before, and nothing of Python's."""
    whole = {name: render(known).splitlines() for name, render in RENDERERS.items()}
    tried = 0
    for path in paths(known):
        view = without(known, path)
        assert at(json.loads(dumps(session_json(view))), path) is None, path
        for name, render in RENDERERS.items():
            before, after = whole[name], render(view).splitlines()
            gone = " ".join(line for line in before if line not in after)
            new = REASONS.sub("", " ".join(line for line in after if line not in before))
            assert {*NUMBER.findall(new)} <= {*NUMBER.findall(gone)}, (path, name)
            assert not re.search(r"\b(None|nan|inf)\b", new), (path, name)
        tried += 1
    assert tried > 50


def test_everything_can_be_known(known):
    """So that the test above takes away what was there."""
    data = json.loads(dumps(session_json(known)))
    unknown = [path for path in paths(known) if at(data, path) is None]
    # latencies have no total; these runs share no seeds; rates are not tested
    assert unknown == [("usage", 0, "total"), ("verdict", "trial_pairs"), ("verdict", "deltas", 0, "p")]


@pytest.fixture
def nothing(tell):
    """Nothing was decided, in the baseline neither; one case of which no trial arrived."""
    return tell(
        {"t": "EEE", "lost": "PPP"}, {"t": "EEE", "lost": "..."}, rows=[row("t", 4, "E", judge_calls=2)]
    )


def test_what_nobody_told_is_one_line_of_a_comment(nothing):
    page = session_markdown(nothing)
    assert (
        "| latency p50, latency p95, tokens in, tokens out, cost | - | - | no trial reported it |\n" in page
    )
    assert "| Judge in all, cost | - | | 0 of 1 trials that asked a judge |\n" in page
    assert "| Judge in all, calls | 2 calls | | 1 of 1 trials that asked a judge |\n" in page


def test_a_free_answer_beside_tokens_has_no_cost(tell):
    rows = [row("t", 1, "P", tokens_in=10, cost_usd=0.0, cost_basis="billed")]
    page = session_markdown(tell(None, {"t": "."}, rows=rows))
    why = "a cost of 0 was reported beside tokens that were used, so it is not known"
    assert f"| cost | - | - | {why} |\n" in page
    assert "| latency p50, latency p95, tokens out | - | - | no trial reported it |\n" in page


def test_the_time_of_a_case_that_never_ran_is_left_out_of_junit(nothing, store):
    (suite,) = ET.fromstring(junit_xml(store.load(nothing.run.id), nothing))  # noqa: S314  made here
    times = {case.get("name"): case.get("time") for case in suite.iter("testcase")}
    assert times == {"t": "2.000", "lost": None}
    assert suite.get("time") == "2.000"


def test_the_time_of_a_run_that_never_began_is_left_out_of_junit(tell, store):
    view = tell(None, {"t": "..."})
    (suite,) = ET.fromstring(junit_xml(store.load(view.run.id), view))  # noqa: S314  made here
    assert suite.get("time") is None


def test_lists_have_a_dash_for_a_run_that_told_nothing(store):
    run = record(store, {"t": "..."}, run_id="20261130T063300Z-cccccc")
    line = run_line(run.manifest)
    drawn = render_runs([line], now=0.0, width=80, color=False).splitlines()
    assert drawn[1].split() == [run.manifest.id, "0s", "1", "x", "3", "-", "-", "-"]
    (listed,) = json.loads(dumps(runs_json([line], [])))["runs"]
    unknown = ("pass_rate", "undecided", "missing", "word", "exit_code")
    assert [listed[name] for name in unknown] == [None] * len(unknown)
    name = baseline_line("main", "20261130T063300Z-dddddd", None)
    drawn = render_baselines([name], width=80, color=False).splitlines()[1]
    assert drawn.split()[2:5] == ["-", "-", "-"]


def test_a_case_that_was_never_decided_has_no_share(store):
    run = record(store, {"t": "E.."}, run_id="20261130T063300Z-cccccc")
    view = HistoryView(case="t", lines=(history_line(run, "t"),), more=0)
    assert "  ?..      0/0         -\n" in render_history(view, width=80, color=False)
    assert history_json(view)["runs"][0]["share"] is None
