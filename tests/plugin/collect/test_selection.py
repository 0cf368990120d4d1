"""What selects and orders tests acts on cases, in a session with trials and in the next one without."""

from __future__ import annotations

import json

import pytest

SUITE = {
    "test_one": """
import os
import pytest
BROKEN = os.environ.get("BROKEN", "").split()
@pytest.fixture(autouse=True)
def broken(request):
    case = request.node.name
    trial = request.node.nodeid.rpartition("trial")[2][:1]
    assert case not in BROKEN and f"{case}:{trial}" not in BROKEN

def test_a(): pass
@pytest.mark.parametrize("x", ["a", "b"])
def test_x(x): pass
@pytest.mark.slow
def test_c(): pass
""",
    "test_two": "def test_d(): pass\ndef test_e(): pass\ndef test_f(): pass",
}


@pytest.fixture(autouse=True)
def suite(pytester, monkeypatch):
    pytester.makepyfile(**SUITE)
    pytester.makeini("[pytest]\nmarkers = slow: takes long\n")

    def breaks(*names):
        monkeypatch.setenv("BROKEN", " ".join(names))

    breaks()
    return breaks


def ids(ran):
    """Short names of the cases that ran, each of which must have run three times."""
    assert all(sorted(n or 0 for n in numbers) in ([1, 2, 3], [0]) for numbers in ran.numbers.values())
    return [case.rpartition("::")[2] for case in dict.fromkeys(case for case, *_ in ran.rows)]


@pytest.mark.parametrize(
    ("args", "cases"),
    [
        (["-k", "test_x"], ["test_x[a]", "test_x[b]"]),
        (["-k", "test_x[a]"], ["test_x[a]"]),
        (["-k", "trial2"], []),
        (["-m", "slow"], ["test_c"]),
        (["test_one.py::test_x[b]"], ["test_x[b]"]),
        (["test_one.py::test_x"], ["test_x[a]", "test_x[b]"]),
        (["test_two.py"], ["test_d", "test_e", "test_f"]),
        (["--deselect", "test_one.py::test_x[b]", "test_one.py"], ["test_a", "test_c", "test_x[a]"]),
        (["-p", "pytest_split.plugin", "--splits=2", "--group=2"], ["test_d", "test_e", "test_f"]),
    ],
)
def test_options_select_cases(session, args, cases):
    ran = session(*args)
    assert sorted(ids(ran)) == cases
    selected = 3 * len(cases)
    assert ran.result.parseoutcomes().get("passed", 0) == selected


def test_the_count_of_deselected_tests_is_one_of_cases(session):
    ran = session("-k", "test_a")
    assert ran.result.parseoutcomes() == {"passed": 3, "deselected": 6}


def test_randomly_shuffles_cases_and_gives_each_trial_a_seed(session, pytester):
    pytester.makepyfile(
        test_draw="""
        import random
        seen = set()
        def test_draw():
            drawn = random.random()
            assert drawn not in seen
            seen.add(drawn)
        """
    )
    orders = set()
    for seed in (1, 2, 3):
        ran = session("--order=cases", f"--randomly-seed={seed}", plugins=("pytest_randomly",))
        assert ran.result.ret == 0
        singles = [f"test_{name}" for name in ("a", "c", "d", "draw", "e", "f")]
        assert sorted(ids(ran)) == [*singles, "test_x[a]", "test_x[b]"]
        orders.add(tuple(ids(ran)))
    assert len(orders) > 1
    again = session("--order=cases", "--randomly-seed=3", plugins=("pytest_randomly",))
    assert tuple(ids(again)) in orders


@pytest.mark.parametrize("workers", [0, 2])
def test_last_failed_runs_the_cases_that_failed(session, suite, workers):
    suite("test_x[b]", "test_e:2")
    assert session(workers=workers).result.ret == 1
    for k in (3, 1, 0):
        ran = session("--lf", k=k)
        assert ids(ran) == ["test_x[b]"] if k == 0 else sorted(ids(ran)) == ["test_x[b]"]
    suite()
    assert ids(session("--lf")) == ["test_x[b]"]
    assert len(ids(session("--lf", k=0))) == 7, "nothing failed last time"


def test_one_failing_trial_is_enough_for_last_failed(session, suite):
    suite("test_a:2", "test_x[a]:3")
    session()
    assert sorted(ids(session("--lf", k=0))) == ["test_a", "test_x[a]"]


def test_a_case_that_did_not_run_stays_failed(session, suite):
    suite("test_a", "test_c")
    session()
    suite()
    session("-k", "test_a")
    assert ids(session("--lf", k=0)) == ["test_c"]


def test_a_file_that_cannot_be_collected_stays_failed(session, pytester):
    pytester.makepyfile(test_bad="import nothing_of_that_name")
    session("--continue-on-collection-errors")
    cached = json.loads((pytester.path / ".pytest_cache/v/cache/lastfailed").read_text())
    assert cached == {"test_bad.py": True}


def test_failed_first_runs_all_trials_of_failed_cases_first(session, suite):
    suite("test_c")
    session()
    ran = session("--ff")
    assert [case for case, _ in ran.order[:3]] == ["test_c"] * 3
    assert len(ran.order) == 21


def test_new_first_knows_cases(session, pytester):
    session()
    cached = json.loads((pytester.path / ".pytest_cache/v/cache/nodeids").read_text())
    assert cached == ["test_one.py::" + name for name in ("test_a", "test_c", "test_x[a]", "test_x[b]")] + [
        f"test_two.py::test_{name}" for name in "def"
    ]
    pytester.makepyfile(test_three="def test_new(): pass")
    assert session("--nf").order[:3] == [("test_new", 1), ("test_new", 2), ("test_new", 3)]


@pytest.mark.parametrize("k", [3, 0])
def test_stepwise_goes_on_at_the_case_that_failed(session, suite, k):
    suite("test_x[a]:2")
    first = session("--sw")
    assert first.order == [("test_a", 1), ("test_a", 2), ("test_a", 3), ("test_x[a]", 1), ("test_x[a]", 2)]
    suite()
    ran = session("--sw", k=k)
    assert ids(ran) == ["test_x[a]", "test_x[b]", "test_c", "test_d", "test_e", "test_f"]
    assert len(ids(session("--sw"))) == 7, "nothing failed last time"


def test_stepwise_keeps_the_case_while_it_fails(session, suite):
    suite("test_x[a]")
    session("--sw")
    session("--sw")
    suite("test_x[a]", "test_d")
    again = session("--sw")
    assert again.order == [("test_x[a]", 1)]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_session_without_a_cache_is_fine(session, suite, pytester, workers):
    suite("test_a")
    ran = session("-p", "no:cacheprovider", "-p", "no:stepwise", workers=workers)
    assert ran.result.parseoutcomes() == {"passed": 18, "errors": 3}
    assert not (pytester.path / ".pytest_cache").exists()


def test_collecting_alone_leaves_the_cache(session, suite, pytester):
    suite("test_a")
    session()
    session("--collect-only")
    assert ids(session("--lf", k=0)) == ["test_a"]


def test_a_worker_group_is_no_part_of_a_case(session, suite, pytester):
    pytester.makepyfile(
        test_group="""
        import os
        import pytest
        @pytest.mark.xdist_group("g")
        @pytest.mark.parametrize("x", [1, 2])
        def test_g(x, worker_id):
            with open(f"on-{worker_id}", "a"): pass
            assert x == 1
        @pytest.mark.xdist_group("g")
        def test_h(worker_id):
            with open(f"on-{worker_id}", "a"): pass
        """
    )
    ran = session("--dist=loadgroup", "test_group.py", workers=2)
    assert sorted(ids(ran)) == ["test_g[1]", "test_g[2]", "test_h"]
    assert len(list(pytester.path.glob("on-*"))) == 1, "one worker ran the group"
    assert ids(session("--lf", k=0)) == ["test_g[2]"]
