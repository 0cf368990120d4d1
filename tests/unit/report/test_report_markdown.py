"""Markdown reports: what they say, that foreign text is inert, and that they are cut where they must be."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from pytest_crashlab.errors import UsageError
from pytest_crashlab.records.comparison import Policy
from pytest_crashlab.report.annotations import annotations_of, github_lines, gitlab_json
from pytest_crashlab.report.markdown import MARKER, code, inert, session_markdown, shorten, shorten_bytes
from pytest_crashlab.report.written import append_summary, format_of, places, write_reports
from tests.stories import record, row

HOSTILE = [
    "![x](https://evil.example/a.png)",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "@octocat please merge",
    "`code` ``` fence",
    "| a | b |\n|---|---|",
    "[link](javascript:alert(1)) https://evil.example www.evil.example",
    "\x1b[31mred\x1b[0m \u202e reversed",
    "<!-- pytest-crashlab -->",
    "</details></code>",
    "- item",
    "1. item",
    "= setext",
    "#12 and $x$",
]


def rendered(document):
    return MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(document)


def kinds(tokens):
    for token in tokens:
        yield token.type
        yield from kinds(token.children or ())


@pytest.fixture
def regressed(tell):
    a = {f"tests/test_a.py::test_{n}": "PPPP" for n in range(12)}
    b = {f"tests/test_a.py::test_{n}": "FFFF" if n < 11 else "PPPP" for n in range(12)}
    return tell(a, b)


def test_a_regression_reads_as_one(regressed):
    document = session_markdown(regressed)
    assert document.startswith(f"{MARKER}\n### 🔴 Regressed")
    assert "The gate fails (exit code 1, policy regressions)." in document
    message = "<br>`trial 1: failed at test_agent.py:11`"
    assert f"| `tests/test_a.py::test_0`{message} | 4/4 → 0/4 | -100.0 | proven worse |" in document
    assert "and 1 more that moved" in document
    assert "```sh\ncrashlab diff 20261129T063300Z-aaaaaa 20261130T063300Z-bbbbbb\n```" in document
    tables = [t for t in rendered(document) if t.type == "table_open"]
    assert len(tables) >= 3


@pytest.mark.parametrize("a", [None, {"t.py::a": "PPP"}])
def test_what_is_not_known_is_a_dash(tell, a):
    document = session_markdown(tell(a, {"t.py::a": "EEE"}))
    assert "| Pass rate, these cases | - | - | 0 cases, 0 decided trials |" in document
    assert "| Flip cases | - |" in document


def test_bounds_that_read_alike_are_written_once(tell):
    rows = [row(f"t{c}", 1, "P", run_duration=0.00002 + c / 1e6) for c in range(40)]
    page = session_markdown(tell(None, {f"t{c}": "." for c in range(40)}, rows=rows))
    assert "| latency p50 | < 0.1 ms | < 0.1 ms | 40 of 40 trials |" in page


def test_without_a_baseline_there_is_no_verdict(tell):
    document = session_markdown(tell(None, {"t.py::a": "PPF"}))
    assert document.startswith(f"{MARKER}\n### Pass rate 66.7 %")
    assert "Regressed" not in document


def test_no_verdict_says_why(tell):
    document = session_markdown(tell({"t.py::a": "PPP"}, {"t.py::a": "EEE"}))
    assert "No verdict" in document.splitlines()[1]
    assert "Reason: " in document


@pytest.mark.parametrize("said", HOSTILE)
def test_what_tests_and_models_said_does_nothing(regressed, said):
    verdict = regressed.verdict
    cases = (replace(verdict.cases[0], case=f"t.py::t[{said}]", message=said), *verdict.cases[1:])
    view = replace(
        regressed,
        verdict=replace(verdict, cases=cases),
        run=replace(regressed.run, release=said, warnings=(said,)),
        outcomes=(replace(regressed.outcomes[0], label=said), *regressed.outcomes[1:]),
    )
    document = session_markdown(view)
    plain = list(kinds(rendered(session_markdown(regressed))))
    found = list(kinds(rendered(document)))
    for active in ("link_open", "image", "html_block", "fence", "table_open"):
        assert found.count(active) == plain.count(active), active
    shown = {t.content for t in rendered(document) if t.type == "html_inline"}
    assert not any("script" in tag or "img" in tag for tag in shown)
    assert document.count(MARKER) == 1
    assert "@octocat" not in document.replace("`@octocat", "").replace("t[@octocat", "")
    assert "\x1b" not in document
    assert "\u202e" not in document


@pytest.mark.parametrize("said", HOSTILE)
def test_inert_text_renders_as_what_it_was(said):
    (paragraph,) = [t for t in rendered(f"- x{inert(said)}") if t.type == "inline"]
    words = "".join(t.content for t in paragraph.children if t.type in {"text", "text_special"})
    from pytest_crashlab.report.figures import text

    assert words == f"x{text(said)}"


@pytest.mark.parametrize("said", ["- item", "+ item", "1. item", "2) item", "=====", "# head", "> quote"])
def test_inert_text_begins_no_block(said):
    assert [t.type for t in rendered(f"word\n{inert(said)}")] == [
        "paragraph_open",
        "inline",
        "paragraph_close",
    ]


def test_code_holds_quotes_and_bars():
    assert code("a`b|c") == "<code>a&#96;b&#124;c</code>"
    assert code("plain") == "`plain`"
    assert code(None) == "-"


def test_a_long_report_is_cut_at_a_line_and_stays_whole(tell):
    a = {f"tests/test_{n}.py::test_{'long' * 10}": "PPPP" for n in range(60)}
    b = {f"tests/test_{n}.py::test_{'long' * 10}": "FPPP" for n in range(60)}
    whole = session_markdown(tell(a, b))
    for most in range(600, len(whole), 97):
        cut = shorten(whole, most)
        assert len(cut) <= most
        assert cut.endswith("*The report is cut here; `crashlab view` shows all of it.*\n")
        assert cut.count("<details>") == cut.count("</details>")
        assert cut.count("\n```") % 2 == 0
    assert shorten(whole, len(whole)) == whole
    bytes_ = shorten_bytes(whole + "→" * 5000 + "\n", 3000)
    assert len(bytes_.encode()) <= 3000


def test_annotations_name_file_and_line_of_what_got_worse(regressed):
    found = annotations_of(regressed, {"tests/test_a.py::test_0": ("tests/test_a.py", 7)})
    assert len(found) == 10
    (first,) = [note for note in found if note.case == "tests/test_a.py::test_0"]
    line = github_lines((first,))[0]
    assert line.startswith(
        "::error file=tests/test_a.py,line=7,title=tests/test_a.py%3A%3Atest_0::4/4 -> 0/4"
    )
    entry = json.loads(gitlab_json((first,)))[0]
    assert entry["location"] == {"path": "tests/test_a.py", "lines": {"begin": 7}}
    assert entry["severity"] == "major"


def test_a_command_cannot_be_smuggled_into_an_annotation(regressed):
    (note, *_) = annotations_of(regressed, {})
    said = "\n::set-output name=x::y\r::error::z"
    (line,) = github_lines((replace(note, sentence=said, case=f"a,b:{said}"),))
    assert "\n" not in line
    assert "\r" not in line
    title = line.split("title=")[1].split("::")[0]
    assert "," not in title
    assert ":" not in title


def test_reports_go_where_their_names_say(tell, store, tmp_path):
    view = tell({"t.py::a": "PPPP"}, {"t.py::a": "FFFF"}, policy=Policy.STRICT)
    run = record(store, {"t.py::a": "FFFF"}, run_id="20261130T063300Z-cccccc")
    names = ["a/report.md", "report.json", "report.xml", "gl.codequality.json"]
    assert write_reports([(tmp_path / name, format_of(name)) for name in names], run, view) == []
    assert (tmp_path / "a/report.md").read_text("utf-8") == session_markdown(view)
    assert json.loads((tmp_path / "report.json").read_text())["schema"] == "crashlab.session"
    assert "<testsuites" in (tmp_path / "report.xml").read_text("utf-8")
    assert json.loads((tmp_path / "gl.codequality.json").read_text())[0]["check_name"] == "pytest-crashlab"


def test_a_report_that_cannot_be_written_is_a_sentence(tell, store, tmp_path):
    view = tell(None, {"t.py::a": "P"})
    run = record(store, {"t.py::a": "P"}, run_id="20261130T063300Z-cccccc")
    (tmp_path / "file").touch()
    problems = write_reports(
        [(tmp_path / "file" / "report", ".md"), (tmp_path / "file" / "report", ".xml")], run, view
    )
    assert len(problems) == 2
    assert all("cannot be written" in problem and "name another path" in problem for problem in problems)
    assert "cannot be written" in append_summary(tmp_path / "file" / "s.md", view)


def test_a_summary_is_added_to_what_is_there(tell, tmp_path):
    (tmp_path / "summary.md").write_text("before\n")
    view = tell(None, {"t.py::a": "P"})
    assert append_summary(tmp_path / "summary.md", view) is None
    assert append_summary(tmp_path / "summary.md", view) is None
    kept = (tmp_path / "summary.md").read_text("utf-8")
    assert kept.startswith("before\n")
    assert kept.count(MARKER) == 2


def test_another_ending_is_refused():
    with pytest.raises(UsageError, match=r"names no format; end it in \.md, \.json, \.xml"):
        format_of("report.html")


def test_places_are_those_of_the_plan(store):
    run = record(store, {"t.py::a": "P"}, plans={"t.py::a": {"file": "t.py", "line": 3}})
    assert places(run) == {"t.py::a": ("t.py", 3)}
    assert row("t.py::a", 1, "P").site == "test_agent.py:10"
