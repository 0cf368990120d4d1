"""JUnit: one test case per case, whatever became of its trials."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from pytest_crashlab.errors import UsageError
from pytest_crashlab.report.junit import junit_xml, write_junit
from tests.stories import row

DONE = "20261130T063300Z-bbbbbb"


def suite(store, view):
    root = ET.fromstring(junit_xml(store.load(DONE), view))  # noqa: S314  written a line before
    assert root.tag == "testsuites"
    (only,) = root
    return only


def results(element):
    """Case -> (tag, message) or None for a pass."""
    found = {}
    for case in element.iter("testcase"):
        key = f"{case.get('classname')}::{case.get('name')}".removeprefix("::")
        assert key not in found, "nothing twice"
        child = next((c for c in case if c.tag != "properties"), None)
        found[key] = None if child is None else (child.tag, child.get("message"))
    return found


def properties(element):
    return {p.get("name"): p.get("value") for p in element.find("properties")}


def test_gated_cases_are_what_the_gate_says(store, tell):
    a = dict.fromkeys(("fine", "dead", "down", "lost", "away", "partly"), "PPPPP")
    b = {
        "fine": "PPPPP",
        "dead": "FFFFF",
        "down": "PPPPF",
        "lost": "E.",
        "away": "SSSSS",
        "partly": "PPPPE",
    }
    a |= {f"t{i}": "PPPPP" if i else "PPEEE" for i in range(10)}
    b |= {f"t{i}": "PPPPP" for i in range(10)}
    view = tell(a, b)
    assert view.verdict.word == "Regressed"
    found = results(suite(store, view))
    assert {case: result for case, result in found.items() if not case.startswith("t")} == {
        "fine": None,
        "dead": ("failure", "5/5 -> 0/5 trials passed: proven worse."),
        "down": ("failure", "5/5 -> 4/5 trials passed: worse in a run that regressed."),
        "lost": ("skipped", "1 undecided, 1 missing of 2 trials"),
        "away": ("skipped", "5 excluded of 5 trials"),
        "partly": None,
    }
    assert suite(store, view).attrib == {
        "name": "pytest-crashlab",
        "tests": "16",
        "failures": "2",
        "errors": "0",
        "skipped": "2",
        "time": "38.000",  # 76 of 77 trials reported, half a second each
        "timestamp": "2026-11-30T06:33:00.000",
    }


def test_a_failing_trial_of_a_gate_that_passes_is_no_failure(store, tell):
    found = results(suite(store, tell({"t": "PPPPP"}, {"t": "PPPPF"})))
    assert found == {"t": None}


def test_a_missed_threshold_of_a_case_is_its_failure(store, tell):
    view = tell(None, {"t": "PFFFF", "u": "FFFFF"}, plans={"t": {"min_passes": 2}})
    assert results(suite(store, view)) == {
        "t": ("failure", "t passed 1 of 5 decided trials; it has to pass at least 2."),
        "u": ("failure", "failed"),  # not gated: as in plain pytest
    }


def test_cases_outside_the_gate_read_as_in_plain_pytest(store, tell):
    rows = [row("fail", 2, "F", message="assert 1 == 2"), row("error", 1, "E", message="no route to host")]
    b = {
        "t": "PP",
        "pass": "PP",
        "fail": "P.",
        "error": ".P",
        "both": "EF",
        "skip": "SS",
        "lost": "P.",
        "none": "NN",
    }
    view = tell({"t": "PP"}, b, rows=rows)
    assert results(suite(store, view)) == {
        "t": None,
        "pass": None,
        "fail": ("failure", "assert 1 == 2"),
        "error": ("error", "no route to host"),
        "both": ("failure", "failed"),
        "skip": ("skipped", "2 excluded of 2 trials"),
        "lost": ("skipped", "1 missing of 2 trials"),
        "none": ("skipped", "2 missing of 2 trials"),
    }


def test_a_threshold_on_the_run_gates_every_case(store, tell):
    assert results(suite(store, tell(None, {"t": "PF", "u": "EE"}, min_pass_rate=0.1))) == {
        "t": None,
        "u": ("skipped", "2 undecided of 2 trials"),
    }


def test_trials_are_properties_of_their_case_and_lines_of_its_failure(store, tell):
    rows = [row("t", 2, "E"), row("t", 2, "F", attempt=2, message="boom", site="a.py:7")]
    view = tell(None, {"t": "P.N."}, rows=rows)
    element = suite(store, view)
    (case,) = element.iter("testcase")
    assert properties(case) == {
        "crashlab.outcome": "Incomplete",
        "crashlab.planned": "4",
        "crashlab.passes": "1",
        "crashlab.decided": "2",
        "crashlab.undecided": "0",
        "crashlab.missing": "2",
        "crashlab.excluded": "0",
        "crashlab.trial.1": "passed",
        "crashlab.trial.2": "failed",
        "crashlab.trial.3": "no_outcome",
    }
    assert case.find("failure").text.splitlines() == [
        "trial 1: passed in 0.50 s at test_agent.py:10",
        "trial 2: failed in 0.50 s at a.py:7: boom",
        "trial 3: no_outcome in 0.50 s at test_agent.py:17",
    ]


def test_the_suite_says_what_the_verdict_was(store, tell):
    view = tell({"t": "PPP"}, {"t": "FFF"})
    assert properties(suite(store, view)) == {
        "crashlab.run": DONE,
        "crashlab.status": "completed",
        "crashlab.baseline": "20261129T063300Z-aaaaaa",
        "crashlab.verdict": "No verdict",
        "crashlab.headline": "No verdict",
        "crashlab.sentence": "Pass rate 100.0 points lower than the baseline. This is not a verdict.",
        "crashlab.reason.1": view.verdict.reasons[0].text,
        "crashlab.exit_code": "10",
        "crashlab.policy": "regressions",
    }


@pytest.mark.parametrize(
    ("case", "classname", "name"),
    [
        ("tests/unit/test_a.py::test_x", "tests.unit.test_a", "test_x"),
        ("test_a.py::TestC::test_x[a::b/c.py-1]", "test_a.TestC", "test_x[a::b/c.py-1]"),
        ("docs/index.md::index.md", "docs.index.md", "index.md"),
        ("alone", "", "alone"),
    ],
)
def test_names_are_those_of_pytests_own_file(store, tell, case, classname, name):
    (element,) = suite(store, tell(None, {case: "P"})).iter("testcase")
    assert (element.get("classname"), element.get("name")) == (classname, name)


def test_any_character_makes_valid_xml(store, tell):
    hostile = "t.py::t[<&\">'\x00\x08\x0b\x1b\x7f\x85\ufffe\U0001f916 ]]>\n\t]"
    bad = row(hostile, 1, "F", message="<b>\x1b[31m & ]]>\x00", outcome="l\x01abel", site="<\x02>:1")
    element = suite(store, tell(None, {hostile: "."}, rows=[bad]))
    (case,) = element.iter("testcase")
    assert case.get("name") == "t[<&\">'#x00#x08#x0B#x1B\x7f\x85#xFFFE\U0001f916 ]]>\n\t]"
    assert case.find("failure").get("message") == "<b>#x1B[31m & ]]>#x00"
    assert properties(case)["crashlab.trial.1"] == "l#x01abel"


def test_an_empty_run_is_an_empty_suite(store, tell):
    element = suite(store, tell(None, {}))
    assert (element.get("tests"), results(element)) == ("0", {})


def test_the_file_is_written_with_its_folder(store, tell, tmp_path):
    path = tmp_path / "reports" / "junit.xml"
    view = tell(None, {"größe": "P"})
    write_junit(path, store.load(DONE), view)
    assert path.read_text(encoding="utf-8").startswith('<?xml version="1.0" encoding="utf-8"?>\n<testsuites')
    assert "größe" in path.read_text(encoding="utf-8")


def test_a_path_that_cannot_be_written_is_one_sentence(store, tell, tmp_path):
    (tmp_path / "file").write_text("")
    view = tell(None, {"t": "P"})
    with pytest.raises(UsageError, match=r"junit\.xml cannot be written .*; name another path\."):
        write_junit(tmp_path / "file" / "junit.xml", store.load(DONE), view)
