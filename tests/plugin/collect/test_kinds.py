"""Every kind of item runs exactly k times, with the outcomes of a plain run."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

EVERYTHING = ["_hypothesis_pytestplugin", "anyio.pytest_plugin", "pytest_asyncio.plugin"]
if pytest.version_tuple < (9,):
    EVERYTHING.append("pytest_subtests.plugin")

SUITE = """
import asyncio, unittest
import pytest
from hypothesis import given, settings, strategies as st

pytestmark = pytest.mark.filterwarnings("default")

def test_function(): pass

@pytest.mark.parametrize("x", [1, "b", None])
def test_parametrized(x): pass

@pytest.mark.parametrize("x", [1, 2], ids=["trial1", "a-trial2"])
def test_ids_that_look_like_trials(x): pass

@pytest.mark.skip
def test_skipped(): pass

def test_skips_itself(): pytest.skip("no")

@pytest.mark.xfail
def test_xfails(): assert 0

@pytest.mark.xfail
def test_xpasses(): pass

def test_fails(): assert 0

@pytest.fixture
def broken(): raise ValueError

def test_setup_fails(broken): pass

class TestClass:
    def test_method(self): pass
    @staticmethod
    def test_static(): pass
    @classmethod
    def test_of_class(cls): pass
    class TestInner:
        def test_inner(self): pass

class TestUnit(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.ready = True
    def setUp(self): self.fresh = []
    def test_unit(self):
        assert self.ready and not self.fresh
        self.fresh.append(1)
    @unittest.skip("no")
    def test_unit_skipped(self): pass
    @unittest.expectedFailure
    def test_unit_xfails(self): assert 0
    def test_subtests(self):
        for i in range(3):
            with self.subTest(i=i):
                pass
    def test_failing_subtest(self):
        for i in range(3):
            with self.subTest(i=i):
                assert i != 1

class TestPlainUnit(unittest.TestCase):
    def test_in_a_class_without_setup(self): pass

@unittest.skip("all of it")
class TestSkippedUnit(unittest.TestCase):
    def test_never(self): pass

class TestAsyncUnit(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self): self.loop = asyncio.get_running_loop()
    async def test_coroutine(self): assert self.loop is asyncio.get_running_loop()

@pytest.mark.asyncio
async def test_asyncio(): await asyncio.sleep(0)

class TestAsyncio:
    @pytest.mark.asyncio(loop_scope="class")
    async def test_one(self):
        assert not hasattr(self, "seen")
        self.seen = True
    @pytest.mark.asyncio(loop_scope="class")
    async def test_two(self): pass

@pytest.mark.anyio
async def test_anyio(anyio_backend_name): pass

@settings(max_examples=3)
@given(st.integers())
def test_hypothesis(x): pass

class TestHypothesis:
    @settings(max_examples=3)
    @given(st.integers())
    def test_method(self, x): pass

@pytest.mark.asyncio
@settings(max_examples=3)
@given(st.integers())
async def test_async_hypothesis(x): pass

def test_core_subtests(subtests):
    with subtests.test("one"): pass
    with subtests.test("two"): pass
"""

MODULE = '''
def double(x):
    """
    >>> y = double(2)
    >>> y
    4
    """
    return 2 * x

class Thing:
    """
    >>> Thing().name
    'thing'
    """
    name = "thing"
'''

TEXT = """
>>> a = [1]
>>> a.append(2)
>>> a
[1, 2]
"""

ITEMS = """
import pytest

def pytest_collect_file(parent, file_path):
    if file_path.suffix == ".spec":
        return SpecFile.from_parent(parent, path=file_path)

class SpecFile(pytest.File):
    def collect(self):
        for line in self.path.read_text().splitlines():
            yield SpecItem.from_parent(self, name=line, steps=[line, "end"])

class SpecItem(pytest.Item):
    def __init__(self, *, steps, **kwargs):
        super().__init__(**kwargs)
        self.steps = steps

    def runtest(self):
        assert self.steps.pop() == "end"

    def reportinfo(self):
        return self.path, 0, f"spec: {self.name}"
"""


@pytest.fixture
def everything(pytester):
    pytester.makepyfile(test_suite=SUITE, module=MODULE)
    pytester.maketxtfile(test_text=TEXT)
    pytester.makefile(".spec", things="a\nb [c] d\ne[f]\n")
    return ["--doctest-modules", "-p", "spec_items", *(arg for name in EVERYTHING for arg in ("-p", name))]


@pytest.fixture(autouse=True)
def spec_items(pytester):
    pytester.makepyfile(spec_items=ITEMS)
    pytester.syspathinsert()
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")


def test_three_trials_give_three_times_each_outcome_of_a_plain_run(session, everything):
    plain = session(*everything, k=0, subprocess=True)
    assert {kind for _, kind in plain.trials} >= {
        "call passed",
        "call failed",
        "call xfailed",
        "call xpassed",
        "call skipped",
        "setup skipped",
        "setup failed",
        "call passed subtest",
    }
    for order, workers in (("rounds", 0), ("rounds", 2), ("cases", 0)):
        ran = session(*everything, f"--order={order}", workers=workers, subprocess=True)
        assert ran.trials == {key: 3 * count for key, count in plain.trials.items()}
        assert {case: sorted(numbers) for case, numbers in ran.numbers.items()} == {
            case: [1, 2, 3] for case in plain.numbers
        }
        assert ran.result.ret == plain.result.ret == 1


def test_one_trial_keeps_ids_and_order(session, everything):
    plain = session(*everything, k=0, subprocess=True)
    one = session(*everything, k=1, subprocess=True)
    assert one.trials == plain.trials
    changed = {case for case, number, *_ in one.rows if number is not None}
    assert {case.rpartition("::")[2] for case in changed} == {
        "test_ids_that_look_like_trials[trial1]",
        "test_ids_that_look_like_trials[a-trial2]",
    }
    assert [case for case, *_ in one.rows] == [case for case, *_ in plain.rows]


def test_trial_ids_end_in_the_trial(session, pytester):
    pytester.makepyfile(
        """
        import pytest
        def test_x(): pass
        @pytest.mark.parametrize("p", ["b"])
        def test_y(p): pass
        @pytest.mark.parametrize("p", [""])
        def test_z(p): pass
        """
    )
    ran = session("--order=cases", k=2)
    assert [nodeid.rpartition("::")[2] for nodeid in ran.plan["items"]] == [
        "test_x[trial1]",
        "test_x[trial2]",
        "test_y[b-trial1]",
        "test_y[b-trial2]",
        "test_z[-trial1]",
        "test_z[-trial2]",
    ]


def test_the_headline_of_a_failure_names_the_trial(session, pytester):
    pytester.makepyfile("def test_x(): assert 0")
    ran = session("--order=cases", k=2)
    ran.result.stdout.fnmatch_lines(["*___ test_x[[]trial1] ___*", "*___ test_x[[]trial2] ___*"])


def test_junit_names_every_trial_once(session, everything, pytester):
    session(*everything, "--junitxml=out.xml", subprocess=True)
    cases = [
        (case.get("classname"), case.get("name"))
        for case in ET.parse(pytester.path / "out.xml").iter("testcase")  # noqa: S314
    ]
    whole = [case for case in cases if "sub" not in (case[1] or "")]
    assert len(set(whole)) == len(whole) > 100


def test_a_marker_sets_its_own_number_of_trials(session, pytester):
    pytester.makepyfile(
        """
        import pytest
        def test_plain(): pass
        @pytest.mark.trials(4)
        def test_four(): pass
        @pytest.mark.trials(2, fixed=True)
        def test_two(): pass
        """
    )
    ran = session(k=None)
    assert {case.rpartition("::")[2]: len(numbers) for case, numbers in ran.numbers.items()} == {
        "test_plain": 1,
        "test_four": 4,
        "test_two": 2,
    }
    ran = session(k=3)
    assert {case.rpartition("::")[2]: len(numbers) for case, numbers in ran.numbers.items()} == {
        "test_plain": 3,
        "test_four": 3,
        "test_two": 2,
    }
