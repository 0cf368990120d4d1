"""Rows of files and of Python: what they become, which one is refused, and which are cases."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys

import polars as pl
import pytest

from pytest_crashlab import Dataset
from pytest_crashlab.datasets.selecting import select
from pytest_crashlab.errors import UsageError
from pytest_crashlab.records.dataset import Split

ROWS = [
    {"id": "42", "input": {"order": 42}, "expected": 30, "labels": ["vip"], "metadata": {"shop": "a"}},
    {"id": "43", "input": {"order": 43}, "expected": 25.5},
    {"id": "44", "input": {"order": 44}, "expected": "none"},
]


def written(tmp_path, lines, name="refunds.jsonl"):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def rows(count, **fields):
    return [{"id": f"r{i}", "input": i, "expected": i, **fields} for i in range(count)]


def test_json_lines(tmp_path):
    data = Dataset.read(written(tmp_path, [json.dumps(row) for row in ROWS]), version="2.1")
    assert (data.name, data.version, len(data)) == ("refunds", "2.1", 3)
    first, second, _ = data
    assert (first.id, first.input, first.expected) == ("42", {"order": 42}, 30)
    assert (first.labels, first.metadata, first.where) == (("vip",), {"shop": "a"}, "refunds.jsonl:1")
    assert (second.labels, second.metadata) == ((), {})
    assert repr(first) == "Row(id='42')"


def test_csv_cells_are_text_and_empty_ones_are_not_there(tmp_path):
    text = 'id,input,expected,labels,shop\r\n1,"two\nlines",yes,"a, b",x\r\n\r\n2,what,,,\r\n'
    path = tmp_path / "refunds.csv"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    first, second = Dataset.read(path)
    assert (first.input, first.expected, first.labels) == ("two\nlines", "yes", ("a", "b"))
    assert (first.metadata, first.where) == ({"shop": "x"}, "refunds.csv:2")
    assert (second.expected, second.labels, second.metadata, second.where) == (None, (), {}, "refunds.csv:5")


def test_parquet_keeps_types_and_writes_dates_as_text(tmp_path):
    path = tmp_path / "refunds.parquet"
    pl.DataFrame(
        {
            "id": [1, 2],
            "input": [{"order": 42, "day": dt.date(2026, 11, 30)}, {"order": 43, "day": None}],
            "expected": [30.0, None],
            "labels": [["vip"], []],
        }
    ).write_parquet(path)
    first, second = Dataset.read(path)
    assert (first.id, first.input, first.expected) == ("1", {"order": 42, "day": "2026-11-30"}, 30.0)
    assert (first.labels, second.labels, second.expected) == (("vip",), (), None)
    assert second.where == "refunds.parquet, row 2"


def test_fields_under_other_names_and_the_rest_as_metadata(tmp_path):
    path = written(tmp_path, ['{"question": "2+2", "answer": "4", "level": 1, "metadata": {"by": "me"}}'])
    (row,) = Dataset.read(path, columns={"input": "question", "expected": "answer"})
    assert (row.input, row.expected, row.metadata) == ("2+2", "4", {"level": 1, "by": "me"})


def test_a_relative_path_starts_at_the_file_that_names_it(tmp_path, monkeypatch):
    written(tmp_path, [json.dumps(ROWS[0])])
    tmp_path.joinpath("user.py").write_text(
        "from pytest_crashlab import Dataset\nDATA = Dataset.read('refunds.jsonl')\n", "utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import user

    assert [row.id for row in user.DATA] == ["42"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['{"input": 1}', "{oops"], "refunds.jsonl:2 is no JSON (Expecting property name"),
        (['{"input": 1}', " ", "[1]"], "refunds.jsonl:3 is list; write a row with keys"),
        (['{"id": "a", "input": 1}', '{"id": "a", "input": 2}'], "refunds.jsonl:2 has the id 'a' of"),
        (['{"input": 1}', '{"input": 1}'], "refunds.jsonl:2 repeats refunds.jsonl:1 (the same input"),
        (['{"id": 1.5, "input": 1}'], "refunds.jsonl:1 is no row: its id cannot be read; give text"),
        (['{"id": true, "input": 1}'], "its id cannot be read"),
        (['{"id": " ", "input": 1}'], "refunds.jsonl:1 has an empty id"),
        (['{"input": 1, "labels": "vip"}'], "its labels cannot be read; give a list of texts"),
        (['{"input": 1, "metadata": 3}'], "its metadata cannot be read; give an object"),
        (['{"inputs": 1}'], "refunds.jsonl:1 has the key 'inputs': if that is its input, rename it"),
        (['{"input": 1, "input": 2}'], "refunds.jsonl:1 cannot be read: it has the key 'input' twice"),
        (['{"input": NaN}'], "refunds.jsonl:1 cannot be read: NaN is no JSON value"),
        (['{"input": 1e999}'], "refunds.jsonl:1 is no row: it holds what JSON cannot"),
        (['{"input": 1, "by": 1, "metadata": {"by": 2}}'], "has 'by' both beside metadata and in it"),
        ([""], "refunds.jsonl has no row"),
    ],
)
def test_the_bad_row_is_named(tmp_path, lines, said):
    data = Dataset.read(written(tmp_path, lines))
    with pytest.raises(UsageError) as caught:
        len(data)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"id,input\n1\n", "a.csv:2 has 1 cells, and the first line has 2"),
        ("a.csv", b"id,id\n1,2\n", "a.csv:1 names a column twice"),
        ("a.csv", b'id,input\n1,"open\n', "is no CSV"),
        ("a.csv", b"id,input\n1,\xff\n", "is not UTF-8"),
        ("a.parquet", b"PAR0", "is no Parquet file"),
        ("a.xlsx", b"", "is of no known kind; give a .jsonl, .csv or .parquet file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, said):
    tmp_path.joinpath(name).write_bytes(content)
    with pytest.raises(UsageError) as caught:
        len(Dataset.read(tmp_path / name))
    assert said in str(caught.value)


def test_a_file_that_is_not_there_and_columns_that_are_not(tmp_path):
    with pytest.raises(UsageError, match=r"gone.jsonl cannot be read \(No such file"):
        len(Dataset.read(tmp_path / "gone.jsonl"))
    path = written(tmp_path, ['{"input": 1}'])
    with pytest.raises(UsageError, match="has no 'question' in any row, and columns= names it"):
        len(Dataset.read(path, columns={"input": "question"}))
    with pytest.raises(UsageError, match="columns= names the field 'question'"):
        len(Dataset.read(path, columns={"question": "input"}))


@pytest.mark.parametrize("holdout", [0, 1, 30, -0.1, "0.3", True])
def test_a_holdout_that_is_no_share(holdout):
    with pytest.raises(UsageError, match="is no share of the rows"):
        Dataset.from_rows([{"input": 1}], name="a", holdout=holdout)


@pytest.mark.parametrize("name", ["", " a", "a,b", "a\nb"])
def test_a_name_that_listings_could_not_show(name):
    with pytest.raises(UsageError, match="cannot be the name of a data set"):
        Dataset.from_rows([{"input": 1}], name=name)


def test_a_row_from_python_that_json_cannot_hold():
    with pytest.raises(UsageError, match="row 2 of a is no row: its input cannot be read; give a JSON value"):
        len(Dataset.from_rows([{"input": 1}, {"input": object()}], name="a"))


def test_moved_rows_and_other_labels_change_no_id_and_no_digest():
    given = [{"input": i, "expected": i} for i in range(5)]
    data = Dataset.from_rows(given, name="a")
    moved = [{**row, "labels": ["new"], "note": "x"} for row in reversed(given)]
    other = Dataset.from_rows(moved, name="a")
    assert [row.id for row in reversed(list(other))] == [row.id for row in data]
    assert other.digest == data.digest
    given[2]["expected"] = 7
    changed = Dataset.from_rows(given, name="a")
    assert changed.digest != data.digest
    assert [a.id == b.id for a, b in zip(changed, data, strict=True)] == [True, True, False, True, True]


def test_content_tells_types_apart_and_not_the_order_of_keys():
    contents = [
        next(iter(Dataset.from_rows([{"input": value}], name="a"))).content
        for value in (1, 1.0, "1", True, {"a": 1, "b": 2}, {"b": 2, "a": 1})
    ]
    assert len(set(contents[:4])) == 4
    assert contents[4] == contents[5]


def test_what_a_trial_changes_in_a_row_no_other_sees():
    (row,) = Dataset.from_rows([{"input": {"list": [1]}, "metadata": {"seen": []}}], name="a")
    mine = row.fresh()
    mine.input["list"].append(2)
    mine.metadata["seen"].append(1)
    assert (row.input, row.metadata) == ({"list": [1]}, {"seen": []})
    assert mine.content == row.content


def test_a_split_follows_from_ids_alone():
    data = Dataset.from_rows(rows(1000), name="a", holdout=0.3, salt="s")
    kept = {row.id for row in data if data.split_of(row) is Split.HOLDOUT}
    assert 250 < len(kept) < 350
    more = Dataset.from_rows([*reversed(rows(1000)), *rows(1, id="new")], name="a", holdout=0.3, salt="s")
    assert {row.id for row in more if more.split_of(row) is Split.HOLDOUT} - {"new"} == kept
    salted = Dataset.from_rows(rows(1000), name="a", holdout=0.3, salt="t")
    assert {row.id for row in salted if salted.split_of(row) is Split.HOLDOUT} != kept


def test_every_row_is_a_case_or_counted_under_one_reason():
    given = [*rows(40), {"id": "no input", "expected": 1}, {"id": "no expected", "input": 1}]
    data = Dataset.from_rows(given, name="a", holdout=0.5)
    dev, use = select(data, split=Split.DEV)
    holdout, other = select(data, split=Split.HOLDOUT)
    assert {row.id for row in dev} | {row.id for row in holdout} == {f"r{i}" for i in range(40)}
    assert len(dev) + len(holdout) == 40
    assert (use.rows, use.cases, use.no_input, use.no_expected, use.other_split, use.split) == (
        (42, len(dev), 1, 1, len(holdout), "dev")
    )
    assert (other.cases, other.other_split, other.split) == (len(holdout), len(dev), "holdout")


def test_a_data_set_without_a_holdout_is_all_dev_and_expected_may_be_waived():
    data = Dataset.from_rows([{"input": 1}, {"input": 2}], name="a", requires_expected=False)
    assert [len(select(data, split=split)[0]) for split in Split] == [2, 0]
    assert select(data, split=Split.DEV)[1].split is None


def test_a_sample_follows_from_its_seed_and_not_from_the_order():
    data = Dataset.from_rows(rows(100), name="a")
    moved = Dataset.from_rows(rows(100)[::-1], name="a")
    drawn, use = select(data, split=Split.DEV, sample=10, seed=7)
    again, _ = select(moved, split=Split.DEV, sample=10, seed=7)
    other, _ = select(data, split=Split.DEV, sample=10, seed=8)
    assert len(drawn) == 10
    assert (use.cases, use.unsampled, use.sample, use.seed) == (10, 90, 10, 7)
    assert {row.id for row in again} == {row.id for row in drawn} != {row.id for row in other}
    assert [row.id for row in drawn] == sorted((row.id for row in drawn), key=lambda i: int(i[1:]))
    assert select(data, split=Split.DEV, sample=100, seed=7)[1].unsampled == 0


def test_naming_a_data_set_imports_no_library():
    code = (
        "import sys; from pytest_crashlab import Dataset; Dataset.from_rows([{'input': 1}], name='a');"
        "print(*{'numpy', 'polars', 'pydantic', 'pytest'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
