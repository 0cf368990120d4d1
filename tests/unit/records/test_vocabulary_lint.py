"""What gives away a label that means two things."""

from __future__ import annotations

import pytest

from pytest_crashlab import Outcome, Vocabulary
from pytest_crashlab.records.vocabulary_lint import MANY, Declared, Use, lint_declared, lint_used

PASSED = Outcome.passed("solved", "The tests of the task pass.")
WRONG = Outcome.failed("wrong_patch", "The patch leaves a test failing.")
CRASHED = Outcome.crashed("crashed", "The agent ended by an exception of its own.")


def declared(*outcomes, key="v", where="test_agent.py::test_fix", **options):
    return Declared.of(Vocabulary(*outcomes, **options), key=key, where=where)


def use(label, kind, count=1, site="agent.py:10", **fields):
    given = {"vocabulary": "v", "test": "test_agent.py::test_fix", "phase": "verify", **fields}
    return Use(label=label, kind=kind, site=site, count=count, **given)


def keys(findings):
    return [f.key for f in findings]


def test_a_good_vocabulary_has_no_finding():
    assert lint_declared([declared(PASSED, WRONG, CRASHED)]) == ()


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ((PASSED, Outcome.failed("x", " ")), ["no_definition:x"]),
        ((PASSED, Outcome.failed("x", "It failed or it hung.")), ["or_in_definition:x"]),
        ((PASSED, Outcome.failed("x", "A word for orders.")), []),
        ((PASSED, WRONG, Outcome.failed("wrong_patch", "Another.")), ["duplicate_label:wrong_patch"]),
        ((WRONG,), ["no_pass_label"]),
    ],
)
def test_what_a_declaration_gives_away(outcomes, expected):
    assert keys(lint_declared([declared(*outcomes)])) == expected


def test_one_label_of_two_kinds_in_two_vocabularies():
    other = declared(PASSED, Outcome.instrument("wrong_patch", "No."), key="w", where="test_b.py::test_b")
    (found,) = lint_declared([declared(PASSED, WRONG), other])
    assert found.key == "kinds_differ:wrong_patch"
    assert "fail in test_agent.py::test_fix and instrument in test_b.py::test_b" in found.text


def test_a_silenced_finding_keeps_its_reason():
    silence = {"or_in_definition:x": "the order book is one thing"}
    (found,) = lint_declared([declared(PASSED, Outcome.failed("x", "This or that."), silence=silence)])
    assert found.allowed == "the order book is one thing"


@pytest.mark.parametrize(
    ("silence", "words"),
    [
        ({"nonsense:solved": "why"}, "names no finding"),
        ({"mixed_causes:unknown": "why"}, "names no finding"),
        ({"mixed_causes": "why"}, "names no finding"),
        ({"mixed_causes:solved": " "}, "needs the reason"),
    ],
)
def test_silence_that_names_nothing_is_refused(silence, words):
    with pytest.raises(ValueError, match=words):
        Vocabulary(PASSED, WRONG, silence=silence)


def test_silence_of_the_whole_vocabulary_and_of_a_built_in_label():
    vocabulary = Vocabulary(WRONG, silence={"no_pass_label": "only failures", "mixed_causes:crashed": "one"})
    assert set(vocabulary.silence) == {"no_pass_label", "mixed_causes:crashed"}


def test_never_assigned_looks_only_at_trials_that_could_have_been_it():
    vocabulary = [declared(PASSED, WRONG, CRASHED, Outcome.instrument("shop_down", "No answer."))]
    assert lint_used(vocabulary, [use("solved", "pass", 10 * MANY)]) == ()
    few = [use("solved", "pass", 10 * MANY), use("crashed", "crash", MANY - 1)]
    assert lint_used(vocabulary, few) == ()
    many = [use("solved", "pass"), use("crashed", "crash", MANY)]
    assert keys(lint_used(vocabulary, many)) == ["never_assigned:wrong_patch"]


def test_one_label_in_two_phases():
    uses = [use("wrong_patch", "fail", phase="run", site="a.py:1"), use("wrong_patch", "fail", site="a.py:9")]
    (found,) = lint_used([declared(PASSED, WRONG)], uses)
    assert found.key == "several_phases:wrong_patch"
    assert "in run (a.py:1) and in verify (a.py:9)" in found.text


def test_a_crash_assigned_at_two_places_of_one_test_may_mix_causes():
    uses = [use("crashed", "crash", 196, site="agent.py:21"), use("crashed", "crash", 3, site="agent.py:40")]
    (found,) = lint_used([declared(PASSED, CRASHED)], uses)
    assert found.key == "mixed_causes:crashed"
    assert "2 places in test_agent.py::test_fix: agent.py:21 (196), agent.py:40 (3)" in found.text


def test_tests_that_each_crash_at_a_line_of_their_own_mix_nothing():
    uses = [use("crashed", "crash", site=f"test_agent.py:{n}", test=f"test_{n}") for n in range(5)]
    assert lint_used([declared(PASSED, CRASHED)], uses) == ()


def test_a_wrong_answer_may_be_told_at_many_lines():
    uses = [use("wrong_patch", "fail", site=f"test_agent.py:{n}") for n in range(5)]
    assert lint_used([declared(PASSED, WRONG)], uses) == ()


def test_a_time_out_with_and_without_a_used_up_horizon_mixes_two_limits():
    slow = Outcome.failed("timed_out", "The agent used all of its turns.", completed=False)
    uses = [use("timed_out", "fail", 12, at_limit=12), use("timed_out", "fail", 3, below=3)]
    (found,) = lint_used([declared(PASSED, slow)], uses)
    assert found.key == "mixed_causes:timed_out"
    assert "12 trials that used up the declared horizon and 3 that had not" in found.text
    assert lint_used([declared(PASSED, slow)], uses[:1]) == ()


def test_a_pass_that_two_lines_assign_may_be_a_failure_nobody_saw():
    uses = [use("solved", "pass", 30, site="t.py:9"), use("solved", "pass", 2, site="t.py:14")]
    assert keys(lint_used([declared(PASSED, WRONG)], uses)) == ["mixed_causes:solved"]


def test_what_a_run_keeps_of_a_vocabulary_comes_back():
    before = declared(PASSED, WRONG, silence={"mixed_causes:solved": "both see the same file"})
    assert Declared.from_mapping(before.to_mapping()) == before


@pytest.mark.parametrize("label", ["", "  ", "two\nlines", "red\x1b[31m", "x" * 201, 5, None])
def test_a_label_is_a_line(label):
    with pytest.raises(ValueError, match="needs a label: one line of text"):
        Outcome.failed(label, "It failed.")


def test_a_definition_is_text():
    with pytest.raises(TypeError, match=r"Outcome\('x'\) has the definition None; write a sentence"):
        Outcome.failed("x", None)
