"""One case per row: ids, selections, splits, samples and what the run keeps of them."""

from __future__ import annotations

import json

import pytest

from pytest_crashlab.cli import main
from pytest_crashlab.store import Store

LOAD = ("-p", "pytest_crashlab.plugin", "-p", "xdist.plugin")
MARKED = """
import pytest
@pytest.mark.crashlab(dataset="refunds.jsonl")
def test_refund(row):
    assert row.input["order"] * 10 == row.expected
"""
SPLIT = """
import pytest
from pytest_crashlab import Dataset
REFUNDS = Dataset.read("refunds.jsonl", version="2.1", holdout=0.5, salt="s")
@pytest.mark.crashlab(dataset=REFUNDS)
def test_refund(row):
    assert row.input["order"] * 10 == row.expected
"""
ROWS = [{"id": str(i), "input": {"order": i}, "expected": 10 * i, "labels": ["x"]} for i in range(1, 9)]


@pytest.fixture
def suite(pytester):
    write(pytester, ROWS)
    pytester.makepyfile(test_refund=MARKED)
    return pytester


def write(pytester, rows, name="refunds.jsonl"):
    pytester.path.joinpath(name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def run(pytester, *arguments):
    return pytester.runpytest_inprocess(*LOAD, *arguments)


def store(pytester):
    return Store.open(pytester.path / ".crashlab")


def last(pytester):
    return store(pytester).manifests()[0]


def case(number):
    return f"test_refund.py::test_refund[{number}]"


def test_a_case_per_row_in_a_plain_session_which_keeps_nothing(suite):
    result = run(suite, "-v")
    result.assert_outcomes(passed=8)
    result.stdout.fnmatch_lines(["crashlab: data set refunds: 8 rows", "*::test_refund?42? *", "*"][:1])
    assert not suite.path.joinpath(".crashlab").exists()


@pytest.mark.parametrize("selection", [("-k", "4"), (case(4),), ("--lf",)])
def test_rows_are_cases_for_every_selection(suite, selection):
    if selection == ("--lf",):
        write(suite, [*ROWS[:3], {**ROWS[3], "expected": 0}, *ROWS[4:]])
        run(suite, "--trials=2")
    run(suite, "--trials=2", *selection)
    assert last(suite).case_ids == [case(4)]
    assert last(suite).partial


def test_the_manifest_names_the_data_set(suite):
    result = run(suite, "--trials=2")
    assert result.ret == 0
    manifest = last(suite)
    assert (manifest.dataset, manifest.dataset_version, manifest.split) == ("refunds", None, None)
    (use,) = manifest.datasets
    assert (use["name"], use["rows"], use["cases"], len(use["digest"])) == ("refunds", 8, 8, 32)
    assert (manifest.planned_cases, manifest.planned_trials, manifest.partial) == (8, 16, False)


def test_labels_metadata_and_places_change_no_content_and_an_input_does(suite):
    def contents():
        run(suite, "--trials=1")
        cases = store(suite).load(last(suite).id).cases
        return dict(zip(cases["case"], cases["content"], strict=True))

    before, digest = contents(), last(suite).datasets[0]["digest"]
    write(suite, [{**row, "labels": ["y"], "note": 1} for row in ROWS[::-1]])
    assert contents() == before
    assert last(suite).datasets[0]["digest"] == digest
    write(suite, [*ROWS[:7], {**ROWS[7], "input": {"order": 8, "vip": True}}])
    after = contents()
    assert {name for name in after if after[name] != before[name]} == {case(8)}
    assert last(suite).datasets[0]["digest"] != digest


def test_rows_under_xdist_come_with_the_plan(suite):
    suite.makepyfile(test_refund=SPLIT)
    result = run(suite, "-n1", "--trials=2", "--crashlab-dataset-sample=2")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["crashlab: data set refunds 2.1, split dev: 2 of 8 rows are cases; not run: *"]
    )
    manifest = last(suite)
    assert (manifest.dataset, manifest.dataset_version, manifest.split) == ("refunds", "2.1", "dev")
    assert (manifest.planned_cases, manifest.planned_trials, manifest.partial) == (2, 4, True)


def test_rows_that_are_no_cases_are_counted_with_the_reason(suite):
    write(suite, [*ROWS, {"id": "a", "input": {"order": 1}}, {"id": "b", "expected": 1}])
    result = run(suite, "--trials=1")
    result.stdout.fnmatch_lines(
        ["crashlab: data set refunds: 8 of 10 rows are cases; not run: 1 without expected, 1 without input"]
    )
    assert not last(suite).partial


def test_a_trial_cannot_change_the_row_of_the_next(suite):
    suite.makepyfile(
        test_refund=MARKED.replace(
            "    assert", "    assert 'seen' not in row.input\n    row.input['seen'] = 1\n    assert"
        )
    )
    assert run(suite, "--trials=3").ret == 0
    assert last(suite).outcomes == {"passed": 24}


def test_several_data_sets_in_one_session(suite):
    write(suite, [{"input": 1, "expected": 1}], "orders.jsonl")
    suite.makepyfile(
        test_orders="""
        import pytest
        from pytest_crashlab import Dataset
        @pytest.mark.crashlab(dataset=Dataset.read("orders.jsonl", version="7"))
        def test_order(row): assert row.input == row.expected
        def test_plain(): pass
        """
    )
    run(suite, "--trials=1")
    manifest = last(suite)
    assert (manifest.dataset, manifest.dataset_version) == ("orders, refunds", "7, none")
    assert [use["name"] for use in manifest.datasets] == ["orders", "refunds"]
    assert manifest.planned_cases == 10
    run(suite, "--trials=1", "test_refund.py")
    assert last(suite).dataset == "refunds"


def test_two_that_share_a_name_and_differ_are_refused(suite):
    suite.mkdir("sub")
    suite.path.joinpath("sub", "test_other.py").write_text(MARKED, "utf-8")
    suite.path.joinpath("sub", "refunds.jsonl").write_text(
        '{"input": {"order": 1}, "expected": 10}\n', "utf-8"
    )
    result = run(suite, "--trials=1")
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        ["ERROR: two data sets of this session are called refunds and differ in rows*"]
    )


@pytest.mark.parametrize("options", [(), ("--trials=2",), ("-n1",)])
def test_a_wrong_row_ends_the_session_with_one_sentence(suite, options):
    write(suite, [*ROWS, {"id": "8", "input": 1}])
    result = run(suite, *options)
    assert result.ret == 4
    said = "ERROR: refunds.jsonl:9 has the id '8' of refunds.jsonl:8; give each row an id of its own"
    assert said in [*result.stderr.lines, *result.stdout.lines]
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            MARKED.replace("(row)", "()"),
            "*test_refund.py:2: test_refund has a data set and does not take the fix*",
        ),
        (
            MARKED.replace('"refunds.jsonl"', "3"),
            "*the marker crashlab has dataset=3; give a Dataset or a path*",
        ),
        (MARKED.replace("refunds.jsonl", "gone.jsonl"), "*gone.jsonl cannot be read (No such file*"),
        (MARKED.replace(")\n", ', split="dev")\n', 1), "*has split=, and one session measures one split*"),
    ],
)
def test_markers_that_cannot_be_followed(suite, source, said):
    suite.makepyfile(test_refund=source)
    result = run(suite)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: {said}"])


def test_a_test_without_a_data_set_is_told_what_the_fixture_needs(suite):
    suite.makepyfile(test_refund="def test_refund(row): pass")
    run(suite).stdout.fnmatch_lines(["*test_refund.py:1: the fixture row has no data set to give a row of;*"])


def test_a_fixture_of_the_project_may_build_on_row_or_take_its_name(suite):
    suite.makeconftest("""
        import pytest
        @pytest.fixture
        def order(row): return row.input["order"]
        """)
    suite.makepyfile(
        test_refund=MARKED.replace("(row)", "(order)").replace(
            'row.input["order"] * 10 == row.expected', "order"
        ),
        test_own="""
        import pytest
        pytestmark = pytest.mark.crashlab(dataset="gone.jsonl")
        @pytest.fixture
        def row(): return "mine"
        def test_own(row): assert row == "mine"
        def test_without(): pass
        @pytest.mark.parametrize("row", [1, 2])
        def test_direct(row): assert row in (1, 2)
        """,
        test_wrapped="""
        import pytest
        @pytest.fixture
        def row(row): return row.input["order"]
        @pytest.mark.crashlab(dataset="refunds.jsonl")
        def test_wrapped(row): assert row > 0
        """,
    )
    run(suite).assert_outcomes(passed=8 + 4 + 8)


def test_rows_beside_other_parameters(suite):
    suite.makepyfile(
        test_refund=MARKED.replace(
            "def test_refund(row)", "@pytest.mark.parametrize('style', 'ab')\ndef test_refund(style, row)"
        )
    )
    run(suite, "--trials=1").assert_outcomes(passed=16)
    assert {i for i in last(suite).case_ids if "[4" in i or "4]" in i or "-4" in i}


def test_dev_by_default_and_the_holdout_when_asked_for(suite):
    suite.makepyfile(test_refund=SPLIT)
    dev = run(suite, "--trials=1")
    first = last(suite)
    holdout = run(suite, "--trials=1", "--crashlab-split=holdout")
    second = last(suite)
    assert (first.split, second.split) == ("dev", "holdout")
    assert {*first.case_ids} | {*second.case_ids} == {case(i) for i in range(1, 9)}
    assert not {*first.case_ids} & {*second.case_ids}
    count = len(first.case_ids)
    dev.stdout.fnmatch_lines(["  Measured on cases you can tune on."])
    holdout.stdout.fnmatch_lines(["  Holdout run. Look 1 at the holdout of refunds 2.1; deleted runs count."])
    dev.stdout.fnmatch_lines(
        [f"*2.1, split dev: {count} of 8 rows are cases; not run: {8 - count} in the holdout"]
    )
    holdout.stdout.fnmatch_lines(
        [f"*split holdout: {8 - count} of 8 rows are cases; not run: {count} in dev"]
    )
    assert not first.partial
    assert not second.partial


def test_a_holdout_is_recorded_without_being_asked_and_never_off_the_record(suite):
    suite.makepyfile(test_refund=SPLIT)
    run(suite, "--crashlab-split=holdout")
    assert last(suite).split == "holdout"
    result = run(suite, "--crashlab-split=holdout", "--trials=off")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --crashlab-split=holdout is a look that has to be counted, and*"])


def test_a_split_without_a_row_leaves_no_case(suite):
    result = run(suite, "--trials=1", "--crashlab-split=holdout")
    assert result.ret == 5
    result.stdout.fnmatch_lines(["*refunds: 0 of 8 rows are cases; not run: 8 on no holdout, as it has none"])


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--crashlab-split=test", "*--crashlab-split=test is not known; choose one of dev, holdout"),
        (
            "--crashlab-dataset-sample=0",
            "*--crashlab-dataset-sample=0 is no number of rows; give a whole number*",
        ),
    ],
)
def test_options_that_cannot_be_followed(suite, option, said):
    result = run(suite, option)
    assert result.ret == 4
    result.stderr.fnmatch_lines([said])


def test_a_sample_follows_from_the_seed_and_makes_the_run_partial(suite):
    result = run(suite, "--trials=1", "--crashlab-dataset-sample=3", "--crashlab-seed=7")
    result.stdout.fnmatch_lines(["*refunds: 3 of 8 rows are cases; not run: 5 not drawn (seed 7)"])
    first = last(suite)
    again = run(suite, "--collect-only", "-q", "--crashlab-dataset-sample=3", "--crashlab-seed=7")
    assert [line for line in again.outlines if "::" in line] == first.case_ids
    assert (first.planned_cases, first.total_cases, first.partial) == (3, 8, True)
    assert (first.datasets[0]["sample"], first.datasets[0]["seed"]) == (3, 7)
    run(suite, "--trials=1", "--crashlab-dataset-sample=100")
    assert not last(suite).partial


def test_a_baseline_of_another_data_set_is_refused(suite):
    run(suite, "--trials=1")
    baseline = last(suite).id
    write(suite, ROWS, "orders.jsonl")
    suite.makepyfile(test_refund=MARKED.replace("refunds", "orders"))
    result = run(suite, "--trials=1", f"--baseline={baseline}")
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        [f"*baseline {baseline} measured the data set refunds, and this session measures orders*"]
    )


@pytest.mark.parametrize(("before", "now"), [("dev", "holdout"), ("holdout", "dev")])
def test_a_baseline_of_the_other_split_is_refused(suite, before, now):
    suite.makepyfile(test_refund=SPLIT)
    run(suite, "--trials=1", f"--crashlab-split={before}", "--save-baseline=main")
    baseline = last(suite).id
    result = run(suite, "--trials=1", f"--crashlab-split={now}", f"--baseline={baseline}")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*it is of another split ({before}, not {now})*"])


def test_a_data_set_more_is_no_other_data_set(suite):
    run(suite, "--trials=1")
    baseline = last(suite).id
    write(suite, [{"input": 1, "expected": 1}], "orders.jsonl")
    suite.makepyfile(test_orders=MARKED.replace("refunds", "orders").replace('["order"] * 10', ""))
    result = run(suite, "--trials=1", f"--baseline={baseline}")
    assert result.ret == 0
    assert last(suite).dataset == "orders, refunds"


def test_each_run_of_a_holdout_is_a_look_also_when_it_is_deleted(suite):
    suite.makepyfile(test_refund=SPLIT)
    run(suite, "--trials=1")
    assert last(suite).looks == []
    first = run(suite, "--trials=2", "--crashlab-split=holdout")
    first.stdout.fnmatch_lines(["crashlab: Look 1 at the holdout of refunds 2.1; deleted runs count."])
    store(suite).delete(last(suite).id)
    suite.makepyfile(test_refund=SPLIT.replace("2.1", "2.2"))
    second = run(suite, "--trials=1", "--crashlab-split=holdout")
    said = "Look 1 at the holdout of refunds 2.2, 2 at any version; deleted runs count."
    second.stdout.fnmatch_lines([f"crashlab: {said}"])
    assert last(suite).looks == [said]
    run(suite, "--crashlab-split=holdout", "--collect-only")
    assert len(store(suite).ledger.read("look")) == 2


def test_a_resumed_run_is_the_same_look_and_keeps_its_split(suite):
    stop = "    import os\n    if 'STOP' in os.environ: pytest.exit('no')\n    assert"
    suite.makepyfile(test_refund=SPLIT.replace("    assert", stop))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STOP", "1")
        run(suite, "--trials=1", "--crashlab-split=holdout")
    assert last(suite).status == "cancelled"
    refused = run(suite, f"--crashlab-resume={last(suite).id}")
    assert refused.ret == 4
    refused.stderr.fnmatch_lines(
        ["*measured the holdout split; to go on with it, give --crashlab-split=holdout"]
    )
    assert run(suite, "--crashlab-resume=latest", "--crashlab-split=holdout").ret == 0
    assert (last(suite).status, last(suite).split) == ("completed", "holdout")
    assert len(store(suite).ledger.read("look")) == 1


def test_a_look_that_cannot_be_counted_is_not_taken(suite):
    suite.makepyfile(test_refund=SPLIT)
    run(suite, "--trials=1")
    suite.path.joinpath(".crashlab", "ledger.jsonl").mkdir()
    result = run(suite, "--trials=1", "--crashlab-split=holdout")
    assert result.ret == 4
    assert "trials, " not in result.stdout.str()


def test_what_trials_of_a_holdout_said_is_shown_by_counted_looks_alone(suite, capsys):
    suite.makepyfile(test_refund=SPLIT)
    run(suite, "--trials=1", "--crashlab-split=holdout")
    first = last(suite)
    run(suite, "--trials=1", "--crashlab-split=holdout", f"--baseline={first.id}")
    second = last(suite)
    options = ["--store", str(suite.path / ".crashlab")]
    capsys.readouterr()

    def crashlab(*arguments):
        code = main([*options, *arguments])
        return code, *capsys.readouterr()

    code, out, error = crashlab("view", second.id, "--case", second.case_ids[0])
    assert (code, out) == (4, "")
    assert "--look shows it and counts as a look (refunds: 2 looks so far, 2 at any version)" in error
    code, out, error = crashlab("view", second.id, "--case", second.case_ids[0], "--look")
    assert code == 0
    assert second.case_ids[0] in out
    assert error == "crashlab: Look 3 at the holdout of refunds 2.1; deleted runs count.\n"
    code, out, _ = crashlab("view", second.id)
    assert (code, "Holdout run. Look 2 at the holdout of refunds 2.1" in out) == (0, True)
    assert crashlab("diff", first.id, second.id)[2].endswith(
        "Look 3 at the holdout of refunds 2.1; deleted runs count.\n"
    )
    assert crashlab("diff", second.id, first.id)[2].endswith(
        "Look 4 at the holdout of refunds 2.1; deleted runs count.\n"
    )
    code, _, error = crashlab("gate", first.id, "--baseline", second.id, "--json")
    assert error == "crashlab: Look 4 at the holdout of refunds 2.1; deleted runs count.\n"


def test_runs_of_dev_are_open(suite, capsys):
    suite.makepyfile(test_refund=SPLIT)
    run(suite, "--trials=1")
    capsys.readouterr()
    assert (
        main(["--store", str(suite.path / ".crashlab"), "view", "latest", "--case", last(suite).case_ids[0]])
        == 0
    )
    assert capsys.readouterr().err == ""
    assert store(suite).ledger.read("look") == []
