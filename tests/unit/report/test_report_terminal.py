"""What a session prints. The texts in ``snapshots/`` were read line by line before they were kept.

``CRASHLAB_SNAPSHOTS=write`` writes them anew; read the difference before committing it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from pytest_crashlab.compare import CompareOptions
from pytest_crashlab.compare.history import History
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.report.layout import words
from pytest_crashlab.report.terminal import render_text
from tests.stories import ANSI, row

SNAPSHOTS = Path(__file__).parent / "snapshots"
FILE = "tests/test_agent.py::test_refund"


def ids(count, letters="PPPPP", first=0):
    return {f"{FILE}[case-{i}]": letters for i in range(first, first + count)}


def regressed(tell):
    b = {
        **ids(10),
        **ids(1, "FFFFF", 10),
        **ids(1, "PFPPP", 11),
        **ids(1, "PTPPC", 12),
        **ids(1, "PPPPE", 13),
        **ids(1, "PPPP.", 14),
        f"{FILE}[skipped]": "SSSSS",
        f"{FILE}[new]": "FFFFF",
    }
    a = {**ids(15), f"{FILE}[skipped]": "PPPPP", f"{FILE}[gone]": "PPPPP"}
    plans = {f"{FILE}[case-1]": {"min_passes": 4}, f"{FILE}[case-10]": {"min_passes": 3}}
    plans[f"{FILE}[new]"] = {"uses_trial": True}
    return tell(
        a,
        b,
        plans=plans,
        name="nightly",
        release="2.4.0",
        prompt="support@4",
        a_fields={"prompt": "support@3"},
        min_pass_rate=0.5,
    )


def improved(tell):
    return tell({**ids(9), **ids(1, "FFFFF", 9)}, ids(10))


def no_change(tell):
    return tell({**ids(9), **ids(1, "PPFPP", 9)}, {**ids(9), **ids(1, "PPPFF", 9)})


def proven_inside_margin(tell):
    return tell(ids(20), ids(20), options=CompareOptions(margin=0.05))


def no_verdict(tell):
    b = {**ids(7), **ids(2, "EE...", 7), **ids(1, "PPPPF", 9)}
    return tell(ids(10), b, status=RunStatus.CANCELLED, k=5)


def no_baseline(tell):
    return tell(None, ids(3), missing="No baseline main: never recorded.")


def ungated(tell):
    return tell(None, {f"{FILE}[a]": "P", f"{FILE}[b]": "F"}, partial=True, total_cases=5)


def unknown(tell):
    return tell(None, {f"{FILE}[a]": "EE", f"{FILE}[b]": ".."})


STORIES = [regressed, improved, no_change, proven_inside_margin, no_verdict, no_baseline, ungated, unknown]


def check(name, drawn):
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("CRASHLAB_SNAPSHOTS") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(drawn, encoding="utf-8", newline="\n")
    assert drawn == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("story", STORIES, ids=lambda s: s.__name__)
@pytest.mark.parametrize("width", [80, 140])
def test_session(tell, story, width):
    check(f"{story.__name__}_{width}", render_text(story(tell), width=width, color=False))


@pytest.mark.parametrize("width", [80, 140])
def test_all_of_a_run(tell, width):
    check(f"full_{width}", render_text(regressed(tell), width=width, color=False, full=True))


def test_colour(tell):
    check("regressed_80_colour", render_text(regressed(tell), width=80, color=True))


def test_ascii(tell):
    check("regressed_80_ascii", render_text(regressed(tell), width=80, color=False, encoding="ascii"))


@pytest.mark.parametrize("story", STORIES, ids=lambda s: s.__name__)
def test_no_line_is_wider_than_the_terminal_unless_it_has_something_to_copy(tell, story):
    view = story(tell)
    for width in (40, 80, 140):
        drawn = render_text(view, width=width, color=False, full=True)
        for line in drawn.splitlines():
            copyable = FILE in line or "crashlab " in line or line.startswith("    ")
            assert len(line) <= width or copyable, line


@pytest.mark.parametrize("story", STORIES, ids=lambda s: s.__name__)
def test_colour_is_for_regressed_and_improved_and_carries_nothing(tell, story):
    view = story(tell)
    plain = render_text(view, width=80, color=False)
    coloured = render_text(view, width=80, color=True)
    assert "\x1b" not in plain
    assert ANSI.sub("", coloured) == plain
    marked = re.findall(r"\x1b\[[0-9;]+m(.*?)\x1b\[0m", coloured)
    red = [*view.verdict.word.splitlines()] if view.verdict and story in (regressed, improved) else []
    if story is regressed:
        red += [line for line in plain.splitlines() if "proven worse" in line and "->" in line]
        red += ["The gate fails (exit code 1, policy regressions)."]
    assert marked == red


@pytest.mark.parametrize("story", STORIES, ids=lambda s: s.__name__)
def test_quiet_is_at_most_three_lines(tell, story):
    drawn = render_text(story(tell), width=80, color=False, quiet=True)
    assert 1 <= len(drawn.splitlines()) <= 3
    assert drawn.startswith("crashlab: run 20261130T063300Z-bbbbbb: pass rate ")


def test_quiet_says_the_rate_the_verdict_and_the_exit_code(tell):
    drawn = render_text(no_change(tell), width=80, color=False, quiet=True)
    rate, word, gate = drawn.splitlines()
    assert rate.endswith("50 of 50 trials decided, 0 undecided, 0 missing")
    assert "pass rate 96.0 % (these cases " in rate
    assert word.startswith("No change (Pass rate 98.0 % -> 96.0 % (-2.0 points)): Inside the noise: ± ")
    assert gate == "The gate passes (exit code 0, policy regressions)."


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "US-ASCII"])
def test_other_encodings_than_utf8_get_ascii(tell, encoding):
    view = regressed(tell)
    drawn = render_text(view, width=80, color=True, encoding=encoding)
    assert drawn.isascii()
    assert "(+/- " in drawn
    assert "± " in render_text(view, width=80, color=True, encoding="UTF-8")


def test_outcomes_come_before_any_comparison(tell):
    drawn = render_text(regressed(tell), width=80, color=False)
    order = [drawn.index(word) for word in ("Outcomes", "Pass rate", "Regressed", "The gate", "Next")]
    assert order == sorted(order)


def test_a_number_that_is_not_known_is_a_dash(tell):
    drawn = render_text(unknown(tell), width=140, color=False, full=True)
    assert "Pass rate -\n" in drawn
    assert re.search(r"behavioural success +- +- +no trials with a sound instrument", drawn)
    assert "Flip cases -: use at least 3 trials to see flips." in drawn
    assert re.search(r"\n +1 +- +- +- +- +0\n", drawn), "pass^1 over no case"
    assert "Disagreement of two trials of a case -" in drawn
    assert "0.0 %" in drawn, "but none of four scheduled trials passed, and that was measured"


def test_flips_of_no_case_are_not_0(tell):
    drawn = render_text(tell(None, {f"{FILE}[a]": "PP."}), width=80, color=False, full=True)
    assert "Flip cases -: no case has all of its planned trials decided.\n" in drawn


def test_ten_moved_cases_at_most(tell):
    view = tell(ids(12), ids(12, "PPPFF"))
    drawn = render_text(view, width=80, color=False)
    assert drawn.count("5/5 -> 3/5") == 10
    assert "    and 2 more\n" in drawn


def test_the_clearest_cases_come_first(tell):
    view = tell(ids(12), {**ids(9), **ids(1, "PPPPF", 9), **ids(1, "PFFFF", 10), **ids(1, "FFFFF", 11)})
    assert [c.case[-8:] for c in view.verdict.moved] == ["case-11]", "case-10]", "[case-9]"]
    lines = [
        line.split("  ")[-1]
        for line in render_text(view, width=80, color=False).splitlines()
        if "/5 ->" in line
    ]
    assert [name[-8:] for name in lines] == ["case-11]", "case-10]", "[case-9]"]


def hidden(tell):
    """One case is proven worse, and others rise as much: the mean does not move."""
    a = {**ids(1, "P" * 10), **ids(10, "PPPPPPPPPF", 1)}
    return tell(a, {**ids(1, "F" * 10), **ids(10, "P" * 10, 1)})


def test_no_change_does_not_hide_a_case_that_is_proven_worse(tell):
    view = hidden(tell)
    assert (view.verdict.word, view.gate.exit_code) == ("No change", 1)
    said = "No change of the mean; 1 case is proven worse"
    assert f"\n{said}\n  Pass rate 90.9 % -> 90.9 % (0.0 points).\n" in render_text(
        view, width=80, color=False
    )
    assert f"\n{said} (" in render_text(view, width=80, color=False, quiet=True)
    assert f"\x1b[1;31m{said}\x1b[0m" in render_text(view, width=80, color=True)


def test_a_missing_baseline_is_said_once(tell):
    view = tell(None, ids(3), missing="No baseline main yet; this run becomes it.")
    for quiet in (False, True):
        drawn = render_text(view, width=200, color=False, quiet=quiet)
        assert drawn.count("No baseline main") == 1
        assert "There is no number" not in drawn


def test_a_baseline_whose_own_gate_failed_is_said_on_the_card(tell):
    gate = {"word": "No change", "exit_code": 1, "because": ["1 case is proven worse: t."]}
    drawn = render_text(tell(ids(3), ids(3), a_fields={"gate": gate}), width=200, color=False)
    assert "  Note: The baseline's own gate failed (1 case is proven worse: t).\n" in drawn


def test_reasons_are_not_said_twice(tell):
    drawn = render_text(no_verdict(tell), width=300, color=False)
    assert drawn.count("This run is not finished (cancelled).") == 1
    assert "  For the reasons above.\n" in drawn


def test_text_of_tests_and_models_cannot_steer_the_terminal(tell):
    hostile = "t.py::t[\x1b]0;owned\x07\x1b[2J\r\n\x9b31m\u202eevil\u2028\x00]"
    label = row(hostile, 1, "F", outcome="fa\x1b[31miled", site="a\x1b[0m.py:1")
    view = tell({hostile: "PPPPP", **ids(9)}, {hostile: ".FFFF", **ids(9)}, rows=[label], name="n\x1b[5m\nx")
    for encoding in ("utf-8", "ascii"):
        drawn = render_text(view, width=80, color=False, encoding=encoding, full=True)
        raw = {c for c in drawn if not c.isprintable()} - {"\n"}
        assert raw == set()
        assert r"t.py::t[\x1b]0;owned\x07\x1b[2J\r\n\x9b31m\u202eevil\u2028\x00]" in drawn
        assert r"fa\x1b[31miled" in drawn


def test_letters_of_all_languages_stay(tell):
    drawn = render_text(tell(None, {"t.py::t[größe-東京-नमस्ते-🤖]": "P"}), width=80, color=False, full=True)
    assert "t.py::t[größe-東京-नमस्ते-🤖]" in drawn


def test_an_empty_run(tell):
    drawn = render_text(tell(None, {}), width=80, color=False, full=True)
    assert "No trial was planned." in drawn
    assert "Pass rate -" in drawn


def test_the_simple_rule_shows_its_own_interval(tell):
    view = tell(ids(20), ids(20, "PPPPF"), options=CompareOptions(method="normal"))
    drawn = render_text(view, width=80, color=False)
    assert "  simple rule 80.0 % to 80.0 %\n" in drawn
    assert "a normal approximation over cases" in " ".join(drawn.split())
    assert "These cases:" not in drawn


def test_names_that_are_left_out_are_listed_below_each_other_and_never_broken(tell):
    blank = f"{FILE}[a case with blanks in its name]"
    view = tell({**ids(5), blank: "PPPPP"}, {**ids(5), blank: "SSSSS"})
    drawn = render_text(view, width=50, color=False).splitlines()
    at = next(i for i, line in enumerate(drawn) if "(skipped_b)" in line)
    assert drawn[at : at + 2] == ["    1 skipped in this run (skipped_b):", f"      {blank}"]


def test_names_with_blanks_are_not_broken_in_a_sentence_either(tell):
    blank = f"{FILE}[how do I return order {{}} that arrived late]"
    names = [blank.format(n) for n in range(4)]
    view = tell({**ids(9), **dict.fromkeys(names, "PPPPP")}, {**ids(9), **dict.fromkeys(names, "FFFFF")})
    drawn = render_text(view, width=50, color=False).splitlines()
    at = next(i for i, line in enumerate(drawn) if "without a single pass" in line)
    assert drawn[at + 1 : at + 4] == [f"    {names[0]},", f"    {names[1]},", f"    {names[2]}"]
    at = next(i for i, line in enumerate(drawn) if line == "  4 cases are proven worse:")
    assert drawn[at + 1 : at + 4] == [f"  {names[0]},", f"  {names[1]},", f"  {names[2]}"]


@pytest.mark.parametrize(
    ("said", "cut"),
    [
        ("it is t.py::t[a b], and c", ["it", "is", "t.py::t[a b],", "and", "c"]),
        ("t.py::t[a b] and u.py::u[c d]", ["t.py::t[a b]", "and", "u.py::u[c d]"]),
        ("an open t.py::t[a b", ["an", "open", "t.py::t[a", "b"]),
        ("a list [1, 2] is none", ["a", "list", "[1,", "2]", "is", "none"]),
        ("two  blanks", ["two", "", "blanks"]),
    ],
)
def test_a_case_is_one_word(said, cut):
    assert list(words(said)) == cut


def test_a_judged_run_without_its_comparison_has_no_empty_lines(tell):
    view = tell(None, ids(1), gate={"word": "No change", "exit_code": 0, "because": []})
    assert "\n\n\n" not in render_text(view, width=80, color=False, full=True)


def test_every_interval_has_its_name(tell):
    drawn = render_text(regressed(tell), width=400, color=False)
    assert "These cases: -18.1 to -5.4 points (95 %; exact over trials, mid-p)." in drawn
    assert (
        "New cases of this kind: -33.7 to +14.1 points (95 %; clustered MOVER-Wilson); a change is not shown."
        in (drawn)
    )


def test_the_simple_rule_says_by_which_test_a_drop_would_be_found(tell):
    simple = tell(ids(20), ids(20, "PPPPF"), options=CompareOptions(method="normal"))
    assert "4 of 5 tries by the exact test." in render_text(simple, width=400, color=False)


@pytest.mark.parametrize(
    ("a", "b", "new", "drop"),
    [
        (
            {"t": "P"},
            {"t": "F"},
            "a change is not shown; one case says nothing about others.",
            "With this many trials not even a drop to 0 would be found in 4 of 5 tries.",
        ),
        (
            {"t": "FFF", "u": "FFF"},
            {"t": "FFF", "u": "FFF"},
            "a change is not shown, it takes 10 cases.",
            "Nothing passed in the baseline, so there is no drop to find.",
        ),
    ],
)
def test_what_few_trials_cannot_tell_is_said(tell, a, b, new, drop):
    drawn = render_text(tell(a, b), width=400, color=False)
    (line,) = (line for line in drawn.splitlines() if "New cases of this kind" in line)
    assert line.endswith(new)
    assert drop in drawn


@pytest.mark.parametrize("letters", ["PPPPP", "FFFFF", "PPFFF"])
def test_a_rule_without_a_width_names_none(tell, letters):
    """Cases that all change alike have no spread, so 1.96 standard errors of the simple rule are 0."""
    view = tell(ids(20), ids(20, letters), options=CompareOptions(method="normal"))
    drawn = render_text(view, width=400, color=False, full=True)
    assert view.verdict.half_width == 0
    assert not re.search(r"± 0\.0|0\.0 to 0\.0|-0\.0", drawn)
    said = "all cases changed alike, p < 0.0001" if letters != "PPPPP" else "no case changed"
    assert said in drawn


@pytest.mark.parametrize(("before", "alarms"), [(1, "0.03"), (4, "0.1"), (1000, "25.0")])
def test_how_many_false_alarms_are_to_be_expected(tell, before, alarms):
    options = CompareOptions(history=History(comparisons=before, repeats=0))
    view = tell(ids(20), ids(20), options=options)
    said = f"Comparisons in this store so far: {before:,}; expected false alarms: {alarms}."
    assert said in render_text(view, width=400, color=False)
    assert view.verdict.expected_false_alarms == pytest.approx(before / 40)
