"""The digests of a case change with what it asks and what makes it pass, and with nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_crashlab.plugin.canonical import canonical
from pytest_crashlab.plugin.identity import digest

BASE = '''
import pytest
from unittest import mock
from hypothesis import given, strategies as st

def helper(): return 1

@pytest.mark.parametrize("x", [1, 2])
def test_a(x):
    text = """
    a   # no comment

    b"""
    assert helper() == 1, "a # in a string"

class TestA:
    @mock.patch("os.getcwd")
    def test_m(self, getcwd):
        assert True
    @given(st.integers())
    def test_h(self, x):
        assert x == x
    @staticmethod
    def test_s(): pass

async def test_c(): assert 1
'''


@pytest.fixture
def rules(pytester, session):
    """The pass rules of the cases of each source, all collected in one session."""

    def run(*sources, args=()):
        for number, source in enumerate(sources):
            (pytester.path / f"test_it{number}.py").write_text(source, encoding="utf-8")
        ran = session("-p", "_hypothesis_pytestplugin", "--collect-only", *args, k=1)
        assert ran.result.ret == 0
        found = [{} for _ in sources]
        for case in ran.plan["cases"]:
            file, _, name = case[0].partition("::")
            found[int(file.removeprefix("test_it").removesuffix(".py"))][name.rpartition("::")[2]] = case[3]
        return found

    return run


def changed(before, after):
    assert before.keys() == after.keys()
    return {case for case in before if before[case] != after[case]}


def variants(replacements):
    """BASE, and BASE with each of the replacements made."""
    yield BASE
    for old, new in replacements:
        assert old in BASE
        yield BASE.replace(old, new)


def test_every_kind_of_function_has_a_pass_rule(rules):
    (base,) = rules(BASE)
    assert base.keys() == {"test_a[1]", "test_a[2]", "test_m", "test_h", "test_s", "test_c"}
    assert None not in base.values()
    assert base["test_a[1]"] == base["test_a[2]"]
    assert len(set(base.values())) == 5


UNCHANGED = [
    ("def helper(): return 1", "# a comment\n\n\ndef helper(): return 1 + 0"),
    ("def test_a(x):\n", "# why\ndef test_a(x):  # so\n    # more\n\n"),
    (
        'assert helper() == 1, "a # in a string"',
        'assert helper() == 1, "a # in a string"   # really\n\n    # end\n',
    ),
    (
        '@pytest.mark.parametrize("x", [1, 2])',
        '@pytest.mark.parametrize("x", [2, 1])\n@pytest.mark.filterwarnings("default")',
    ),
    ("async def test_c(): assert 1", "async def test_c(): assert 1\n\n\n"),
    ("        assert True\n", "        assert True  \n\n"),
    ('@mock.patch("os.getcwd")', '@mock.patch("os.getpid")'),
]


def test_comments_decorators_and_other_code_are_no_pass_rule(rules):
    base, *found = rules(*variants((old, new) for old, new in UNCHANGED))
    assert [changed(base, rule) for rule in found] == [set()] * len(UNCHANGED)


def test_a_function_may_move_to_another_margin(rules):
    flat = "def test_a():\n    for x in [1]:\n        assert x\n"
    deep = "if True:\n    def test_a():\n        for x in [1]:\n            assert x\n"
    assert changed(*rules(flat, deep)) == set()


CHANGED = [
    ("assert helper() == 1", "assert helper() >= 1", {"test_a[1]", "test_a[2]"}),
    ('"a # in a string"', '"a # in a strinG"', {"test_a[1]", "test_a[2]"}),
    ("    a   # no comment\n", "    a   # No comment\n", {"test_a[1]", "test_a[2]"}),
    ("    a   # no comment\n\n", "    a   # no comment\n", {"test_a[1]", "test_a[2]"}),
    ("    a   # no comment\n", "    a   # no comment \n", {"test_a[1]", "test_a[2]"}),
    ("        assert True", "        assert 1", {"test_m"}),
    ("assert x == x", "assert x <= x", {"test_h"}),
    ("def test_s(): pass", "def test_s(): assert 1", {"test_s"}),
    ("def test_c(): assert 1", "def test_c(): assert 2", {"test_c"}),
]


def test_the_function_s_own_source_is_its_pass_rule(rules):
    base, *found = rules(*variants((old, new) for old, new, _ in CHANGED))
    assert [changed(base, rule) for rule in found] == [cases for *_, cases in CHANGED]


def test_thresholds_and_required_checks_are_part_of_the_pass_rule(rules):
    source = (
        "import pytest\nfrom pytest_crashlab import Check\n"
        "@pytest.mark.crashlab(trials=1, min_passes={})\n@pytest.mark.checks({})\ndef test_a(): pass\n"
    )
    a, b, optional = ('Check("a", must="x")', 'Check("b", must="x")', 'Check("b", must="x", required=False)')
    judged = ((1, a), (0, a), (1, f"{a}, {b}"), (1, f"{b}, {a}"), (1, f"{a}, {optional}"))
    found = [rule["test_a"] for rule in rules(*(source.format(*by) for by in judged))]
    assert found[0] == found[4]
    assert found[2] == found[3]
    assert len(set(found)) == 3


def test_kinds_and_bounds_of_required_checks_are_part_of_the_pass_rule(rules):
    checks = {
        "plain": "",
        "words": 'kind="judge"',
        "low": "at_least=0.5",
        "high": "at_most=0.5",
        "higher": "at_least=0.6",
        "soft": "at_least=0.6, required=False",
        "same": "at_least=0.5",
    }
    source = (
        "import pytest\nfrom pytest_crashlab import Check\n"
        '@pytest.mark.checks(Check("a", must="x", {}))\ndef test_a(): pass\n'
    )
    found = rules(*(source.format(check) for check in checks.values()))
    rule = {name: its["test_a"] for name, its in zip(checks, found, strict=True)}
    assert rule.pop("same") == rule["low"]
    assert len(set(rule.values())) == len(rule)


def test_doctests_custom_items_and_unknown_functions(rules, pytester):
    doctest = 'def a():\n    """\n    {}\n    >>> 1 + 1{}\n    2\n    """\n'
    texts = ("Text.", ""), ("Other text.", ""), ("", " + 0")
    first, other_text, other_code = (
        list(rule.values())
        for rule in rules(*(doctest.format(*t) for t in texts), args=["--doctest-modules"])
    )
    assert len(first) == 1
    assert first == other_text != other_code
    for number in range(len(texts)):
        (pytester.path / f"test_it{number}.py").unlink()
    made = "exec('def test_a(): pass')\ntest_b = lambda: None\n"
    assert rules(made) == [{"test_a": None, "test_b": None}]


def test_a_file_and_a_line_are_counted_from_one(session, pytester):
    pytester.makepyfile(**{"sub/test_it": "# one\n\nimport pytest\n@pytest.mark.skip\ndef test_a(): pass\n"})
    assert session(k=1).plan["cases"][0][4:6] == ["sub/test_it.py", 4]


CONTENT = """
import dataclasses, enum, pathlib
import pytest
class Colour(enum.Enum):
    RED = {red}
@dataclasses.dataclass
class Point:
    x: int
    y: object = None
class Plain: pass
@pytest.fixture(params=[1])
def fixture(request): pass
@pytest.mark.parametrize("a, b", [pytest.param({a}, {b}, id="one")])
def test_it(a, b, fixture): pass
def test_plain(): pass
"""


@pytest.fixture
def content(pytester, session):
    def run(a="1", b="2", red=1):
        pytester.makepyfile(test_it=CONTENT.format(a=a, b=b, red=red))
        cases = session("--collect-only", k=1).plan["cases"]
        return {case[0].rpartition("::")[2].partition("[")[0]: case[2] for case in cases}

    return run


def test_content_is_that_of_the_parameters(content):
    base = content()
    assert base["test_it"] != base["test_plain"]
    assert content() == base
    assert content(red=2) == base
    for a, b in (("2", "1"), ("True", "2"), ("1.0", "2"), ("'1'", "2"), ("1", "[2]"), ("1", "None")):
        other = content(a, b)
        assert other["test_it"] != base["test_it"], (a, b)
        assert other["test_plain"] == base["test_plain"]
    assert content("Plain()") == content("Plain()") != base
    assert content("Colour.RED", red=1) == content("Colour.RED", red=5)
    assert content("Point(1)") == content("Point(x=1, y=None)") != content("Point(1, 2)")


class Opaque:
    pass


class Chatty:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


class Rude:
    def __repr__(self):
        raise RuntimeError


class Text(str):
    __slots__ = ()


ROOT = Path("/project")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (1, "int:1"),
        (-0.0, "float:-0.0"),
        ("é\ud800", "str:'é\\ud800'"),
        (b"\x00", "bytes:b'\\x00'"),
        (
            [1, (2,), {"b": 1, "a": {3, 1}}],
            "list[int:1, tuple[int:2], dict{str:'a'=set{int:1, int:3}, str:'b'=int:1}]",
        ),
        (ROOT / "data" / "a.json", "path:data/a.json"),
        (Path("/elsewhere/a"), "path:/elsewhere/a"),
        (Path, "pathlib:Path"),
        (len, "builtins:len"),
        (Opaque(), f"{__name__}.Opaque@id"),
        (Rude(), f"{__name__}.Rude@id"),
        (Chatty("<at 0x7f00aa>"), f"{__name__}.Chatty@id"),
        (Chatty("<fine>"), f"{__name__}.Chatty:<fine>"),
        (lambda: 1, f"{__name__}:<lambda>@id"),
        (Text("a"), f"{__name__}.Text:'a'"),
    ],
)
def test_values_are_written_in_one_way(value, text):
    assert canonical(value, ROOT, "id") == text


def test_a_value_that_holds_itself_comes_to_an_end():
    value: list[object] = [1]
    value.append(value)
    assert canonical(value, ROOT, "id") == "list[int:1, ...]"


def test_a_long_array_is_written_whole():
    import numpy as np

    one, other = np.zeros(5000), np.zeros(5000)
    other[2500] = 1
    assert canonical(one, ROOT, "id") != canonical(other, ROOT, "id")
    assert canonical(np.float64(1.5), ROOT, "id") == "numpy.float64:1.5"


def test_values_are_written_alike_in_another_process():
    code = (
        "from pathlib import Path; from pytest_crashlab.plugin.canonical import canonical\n"
        "print(canonical({'b', 'a', 'c', ('x', frozenset('xyz'))}, Path('/'), 'id'))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(texts) == 1


def test_a_digest_knows_where_a_part_ends():
    assert digest("a", "bc") != digest("ab", "c")
    assert len(digest("\ud800")) == 32
