"""``crashlab diff A B --copy FILE.jsonl``: cases of a list become a data set, from what real runs kept."""

from __future__ import annotations

import json

import pytest

from pytest_crashlab.cli import main

SECRET = "sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
ROWS = [
    {"id": "a", "input": {"q": "Spätzle?"}, "expected": "1", "labels": ["x"]},
    {"id": "b", "input": "two", "expected": {"n": 2}},
    {"id": "secret", "input": f"the key is {SECRET}", "expected": "3"},
    {"id": "long", "input": "x" * 5000, "expected": "4"},
]
SUITE = """
import os, pytest
BAD = "BAD" in os.environ

@pytest.mark.crashlab(dataset="rows.jsonl")
def test_row(row): assert not BAD

@pytest.mark.crashlab(dataset="rows.jsonl")
@pytest.mark.parametrize("size", [1])
def test_sized(row, size): assert not BAD or row.id != "a"

@pytest.mark.parametrize("n", [1, 2])
def test_n(n): assert not BAD or n == 1

def test_bare(): assert not BAD
"""


@pytest.fixture
def runs(pytester, monkeypatch):
    """Runs the suite; every session leaves one run."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("PYTEST_ADDOPTS", "CI", "GITHUB_ACTIONS", "CRASHLAB_STORE", "PYTEST_XDIST_WORKER", "BAD"):
        monkeypatch.delenv(name, raising=False)
    pytester.makepyfile(test_it=SUITE)
    (pytester.path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))

    def run(*args, bad=False):
        with monkeypatch.context() as patch:
            if bad:
                patch.setenv("BAD", "1")
            return pytester.runpytest_inprocess(
                *("-p", "pytest_crashlab.plugin", "-o", "crashlab_attachment_limit=1k", "--trials=8", "-q"),
                *args,
            )

    return run


@pytest.fixture
def crashlab(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def call(*args):
        capsys.readouterr()
        code = main(args)
        said, error = capsys.readouterr()
        return code, said.splitlines()[-1:], error

    return call


def rows_of(path):
    return {row["id"]: row for row in map(json.loads, path.read_text("utf-8").splitlines())}


def test_the_rows_are_what_the_cases_ask_and_are_cases_again(runs, crashlab, pytester):
    runs("--save-baseline=main")
    runs("--baseline=main", bad=True)
    code, said, _ = crashlab(
        "diff", "main", "latest", "--show", "worse", "--limit", "1", "--copy", "hard.jsonl"
    )
    sentence = "4 rows written; 3 cases left out, whose input was not kept whole."
    again = "Dataset.read('hard.jsonl', requires_expected=False) makes cases of them."
    assert (code, said) == (0, [f"{sentence} {again}"])
    found = rows_of(pytester.path / "hard.jsonl")
    asked = {name: {k: row.get(k) for k in ("input", "expected")} for name, row in found.items()}
    assert asked == {
        "a": {"input": ROWS[0]["input"], "expected": "1"},
        "b": {"input": "two", "expected": {"n": 2}},
        "a-1": {"input": {"row": ROWS[0]["input"], "size": 1}, "expected": "1"},
        "2": {"input": {"n": 2}, "expected": None},
    }
    assert found["b"]["metadata"]["case"] == "test_it.py::test_row[b]"
    pytester.makepyfile(
        test_again="""
        import pytest
        from pytest_crashlab import Dataset

        @pytest.mark.crashlab(dataset=Dataset.read("hard.jsonl", requires_expected=False))
        def test_again(row): assert row.metadata["case"].startswith("test_it.py::test_")
        """
    )
    runs("test_again.py", "-vv", "--trials=1").assert_outcomes(passed=4)


def test_ids_that_two_cases_share_are_told_apart(runs, crashlab, pytester):
    pytester.makepyfile(
        test_it="""
        import os, pytest

        @pytest.mark.parametrize("n", [1])
        def test_one(n): assert "BAD" not in os.environ

        @pytest.mark.parametrize("n", [1])
        def test_two(n): assert "BAD" not in os.environ
        """
    )
    runs("--save-baseline=main")
    runs("--baseline=main", bad=True)
    assert crashlab("diff", "main", "latest", "--copy", "hard.jsonl")[0] == 0
    assert rows_of(pytester.path / "hard.jsonl").keys() == {
        "test_it.py::test_one[1]",
        "test_it.py::test_two[1]",
    }


def test_where_no_input_was_kept_nothing_is_written(runs, crashlab, pytester):
    pytester.makepyfile(test_it="import os\ndef test_bare(): assert 'BAD' not in os.environ")
    runs("--save-baseline=main")
    runs("--baseline=main", bad=True)
    code, said, error = crashlab("diff", "main", "latest", "--copy", "hard.jsonl")
    assert (code, said) == (4, [])
    assert "of none of these cases the input was kept whole" in error
    assert not (pytester.path / "hard.jsonl").exists()
    code, said, _ = crashlab("diff", "main", "latest", "--copy", "hard.txt")
    assert (code, said) == (0, ["1 case copied; 'pytest @hard.txt' runs them."])


def test_a_holdout_stays_sealed_without_a_look(runs, crashlab, pytester):
    pytester.makepyfile(
        test_it="""
        import os, pytest
        from pytest_crashlab import Dataset
        ROWS = Dataset.read("rows.jsonl", holdout=0.99, salt="1")

        @pytest.mark.crashlab(dataset=ROWS)
        def test_row(row): assert "BAD" not in os.environ
        """
    )
    runs("--crashlab-split=holdout", "--save-baseline=main")
    runs("--crashlab-split=holdout", "--baseline=main", bad=True)
    code, _, error = crashlab("diff", "main", "latest", "--copy", "hard.jsonl")
    assert code == 4
    assert "--look shows it and counts as a look" in error
    assert not (pytester.path / "hard.jsonl").exists()
    code, _, error = crashlab("diff", "main", "latest", "--copy", "hard.jsonl", "--look")
    assert code == 0
    assert "Look 2 at the holdout of rows" in error
    assert "a" in rows_of(pytester.path / "hard.jsonl")
