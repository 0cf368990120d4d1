"""The verdict card of every verdict, every reason for none, and every sentence that it can say.

The texts in ``snapshots/cards`` were read line by line before they were kept. ``CRASHLAB_SNAPSHOTS=write``
writes them anew; read the difference before committing it.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest

from pytest_crashlab import compare, report
from pytest_crashlab.compare.blockers import BEYOND_NORMAL
from pytest_crashlab.report.terminal import render_text
from pytest_crashlab.store import Store
from tests.stories import ANSI
from tests.unit.report.card_stories import FILE, STORIES
from tests.unit.report.conftest import teller

SNAPSHOTS = Path(__file__).parent / "snapshots" / "cards"
WIDE = 100_000
COMPARE, REPORT = (Path(package.__file__).parent for package in (compare, report))
SAYING = [
    *(COMPARE / f"{name}.py" for name in ("blockers", "claims", "compare", "history", "judges", "labels")),
    *(COMPARE / f"{name}.py" for name in ("measures", "notes", "policies", "sentences")),
    REPORT / "card.py",
]
NO_SENTENCES = {"bold red", "bold green", "the test itself"}


@pytest.fixture(scope="module")
def view_of(tmp_path_factory):
    """``view_of(name)``: the view of a story, made once."""
    made = {}

    def view(name):
        if name not in made:
            store = Store.open(tmp_path_factory.mktemp("card") / ".crashlab", create=True)
            made[name] = STORIES[name](teller(store))
        return made[name]

    return view


def card(view, width, *, color=False):
    """From the verdict to the end of what a session prints; coloured where asked for."""
    plain = render_text(view, width=width, color=False)
    title = f"\n{view.verdict.headline}\n"
    assert plain.count(title) == 1
    drawn = render_text(view, width=width, color=True) if color else plain
    before = plain[: plain.index(title)].count("\n") + 1
    return drawn.split("\n", before)[before]


@pytest.mark.parametrize("name", STORIES)
def test_card(view_of, name):
    """As it was kept, at both widths; in colour the same words, of which the kept ones are coloured."""
    view, drawn = view_of(name), ""
    for width in (80, 140):
        plain, coloured = card(view, width), card(view, width, color=True)
        assert ANSI.sub("", coloured) == plain
        too_long = [line for line in plain.splitlines() if len(line) > width]
        assert [line for line in too_long if FILE not in line and "crashlab " not in line] == []
        drawn += f"--- {width} columns\n{plain}\n"
    in_colour = [line for line in coloured.splitlines() if "\x1b" in line]
    drawn += "".join(f"{line}\n" for line in ("--- in colour", *in_colour)).replace("\x1b", r"\x1b")
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("CRASHLAB_SNAPSHOTS") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(drawn, encoding="utf-8", newline="\n")
    assert drawn == path.read_text(encoding="utf-8")


def test_no_snapshot_without_a_story():
    assert {path.stem for path in SNAPSHOTS.iterdir()} == set(STORIES)


@pytest.mark.parametrize("name", STORIES)
def test_colour_is_for_a_verdict_and_what_the_gate_fails_for(view_of, name):
    """Regressed and Improved, cases proven worse where their trials are trusted, and the gate that fails."""
    view = view_of(name)
    plain = card(view, 140).splitlines()
    expected = [plain[0]] if plain[0] not in {"No change", "No verdict"} else []
    if plain[0] != "No verdict":
        expected += [line for line in plain if "  proven worse  " in line]
    expected += [line for line in plain if line.startswith("The gate fails")]
    coloured = card(view, 140, color=True)
    assert re.findall(r"\x1b\[[0-9;]+m(.*?)\x1b\[0m", coloured) == expected


@pytest.mark.parametrize("name", STORIES)
def test_no_sentence_is_said_twice(view_of, name):
    lines = [line[2:] for line in card(view_of(name), WIDE).splitlines() if re.match("  [^ ]", line)]
    said = [sentence for line in lines for sentence in re.split(r"(?<=\.) (?=[A-Z])", line)]
    assert sorted(said) == sorted(set(said))


def codes(kind):
    """Every code that ``compare`` gives a Reason or a Note, from its source."""
    found = set()
    for path in COMPARE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == kind):
                continue
            (code,) = (word.value for word in node.keywords if word.arg == "code")
            if isinstance(code, ast.Constant):
                found.add(code.value)
            elif isinstance(code, ast.JoinedStr):
                start, arm = code.values
                assert ast.unparse(arm.value) == "arm"
                found |= {f"{start.value}{which}" for which in "ab"}
            else:
                # a reason that the simple rule takes for a note keeps its code
                assert (kind, ast.unparse(code)) == ("Note", "reason.code")
                found |= BEYOND_NORMAL
    return found


def test_every_reason_has_a_card_of_its_own(view_of):
    reasons = codes("Reason")
    assert len(reasons) > 20
    shown = {name.split("__")[0]: set() for name in STORIES}
    for name in STORIES:
        shown[name.split("__")[0]] |= {reason.code for reason in view_of(name).verdict.reasons}
    assert [code for code in sorted(reasons) if code not in shown.get(code, ())] == []


def test_every_note_of_a_comparison_is_on_a_card(view_of):
    """Those on one run alone are anomalies, which have no place on the card."""
    sources = [(COMPARE / name).read_text("utf-8") for name in ("anomalies.py", "caching.py")]
    anomalies = {code for source in sources for code in re.findall(r'Note\(\s*code="(\w+)"', source)}
    noted = {note.code for name in STORIES for note in view_of(name).verdict.notes}
    assert (codes("Note") | {"baseline_gate_failed"}) - anomalies - noted == set()


def sentences_of(path):
    """What the strings of a module say, cut where a value is put in; not what it documents or raises."""
    tree = ast.parse(path.read_text("utf-8"))
    silent = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for part in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            said = node.value.strip()
            if re.search("[a-z] +[a-z]", said) and said not in NO_SENTENCES:
                yield said


def test_every_sentence_is_on_a_card(view_of):
    said = "\n".join(card(view_of(name), WIDE) for name in STORIES)
    missing = {path.name: [part for part in sentences_of(path) if part not in said] for path in SAYING}
    assert {name: parts for name, parts in missing.items() if parts} == {}
