"""Orders: rounds spread the trials of a case, and neither order sets up a fixture more often."""

from __future__ import annotations

import random
from collections import Counter

import pytest

LOG = """
def log(name):
    with open("setups.log", "a") as stream:
        stream.write(name + "\\n")
"""

FIXTURES = """
import pytest
from log import log

@pytest.fixture(scope="session")
def s(): log("s")

@pytest.fixture(scope="session", params=["x", "y"])
def sp(request): log("sp" + request.param)

@pytest.fixture(scope="session")
def on_sp(sp): log("on_sp")

@pytest.fixture(scope="module")
def m(): log("m")

@pytest.fixture(scope="module", params=[1, 2])
def mp(request): log(f"mp{request.param}")

@pytest.fixture(scope="class")
def c(): log("c")

@pytest.fixture(scope="class", params=[[1], [2]])
def cp(request): log(f"cp{request.param}")

@pytest.fixture
def f(): log("f")

@pytest.fixture
def later(request): request.getfixturevalue("m")
"""

PACKAGE = """
import pytest
from log import log

@pytest.fixture(scope="package")
def p(): log("p")
"""

EACH_TRIAL = {"f"}


@pytest.fixture
def setups(pytester, session):
    """Run the suite and count the set-ups of each fixture."""

    def count(*args, **kwargs):
        path = pytester.path / "setups.log"
        path.unlink(missing_ok=True)
        ran = session(*args, **kwargs)
        assert ran.result.ret == 0
        return Counter(path.read_text(encoding="utf-8").split() if path.exists() else ()), ran

    pytester.makepyfile(log=LOG, shared_fixtures=FIXTURES)
    pytester.makeini("[pytest]\naddopts = -p shared_fixtures\n")
    pytester.syspathinsert()
    return count


def assert_no_further_setups(setups, k=3):
    plain, _ = setups(k=0)
    assert plain
    for order in ("rounds", "cases"):
        trials, ran = setups(f"--order={order}", k=k)
        more = {name: (trials[name], plain[name]) for name in trials if trials[name] > plain[name]}
        assert set(more) <= EACH_TRIAL, f"{order}: {more} in {ran.order}"
        assert all(trials[name] == k * plain[name] for name in EACH_TRIAL)
        assert all(sorted(numbers) == list(range(1, k + 1)) for numbers in ran.numbers.values())


@pytest.mark.parametrize("scope", ["class", "module", "package", "session"])
@pytest.mark.parametrize("params", ["None", "[1, 2, 3]"])
def test_a_fixture_of_any_scope_is_set_up_as_often_as_in_a_plain_run(pytester, setups, scope, params):
    package = pytester.mkpydir("pack")
    (package / "conftest.py").write_text(
        f"import pytest\nfrom log import log\n"
        f"@pytest.fixture(scope='{scope}', params={params})\n"
        f"def fixture(request): log('fixture' + str(getattr(request, 'param', '')))\n"
    )
    body = (
        "def test_free(): pass\n"
        "class TestA:\n  def test_1(self, fixture): pass\n  def test_2(self, fixture, f): pass\n"
        "class TestB:\n  def test_1(self, fixture): pass\n  def test_2(self): pass\n"
    )
    for name in ("test_one.py", "test_two.py"):
        (package / name).write_text(body)
    assert_no_further_setups(setups)


OTHER_MEANS = {
    "setup_module": """
def setup_module(): log("setup_module")
def test_a(): pass
def test_b(): pass
""",
    "setup_class": """
class TestA:
    def setup_class(cls): log("setup_class")
    def test_a(self): pass
    def test_b(self): pass
def test_c(): pass
""",
    "setUpClass": """
import unittest
class TestA(unittest.TestCase):
    @classmethod
    def setUpClass(cls): log("setUpClass")
    def test_a(self): pass
    def test_b(self): pass
class TestB(unittest.TestCase):
    def test_a(self): pass
""",
    "setUpModule": """
import unittest
def setUpModule(): log("setUpModule")
class TestA(unittest.TestCase):
    def test_a(self): pass
    def test_b(self): pass
""",
    "indirect": """
import pytest
@pytest.mark.parametrize("m", [1, 2], indirect=True)
class TestA:
    def test_a(self, m): pass
    def test_b(self, m): pass
""",
    "parametrize with a scope": """
import pytest
x = pytest.mark.parametrize("x", [1, 2], scope="module")
@pytest.fixture(scope="module")
def on_x(x): log("on_x")
@x
def test_a(x, m): pass
@x
def test_b(x): pass
@x
def test_c(on_x): pass
""",
    "getfixturevalue in a fixture": """
def test_a(later): pass
def test_b(m): pass
def test_c(later): pass
""",
    "getfixturevalue in a test": """
def test_a(request): request.getfixturevalue("m")
def test_b(): pass
def test_c(request): request.getfixturevalue("m")
""",
    "fixturenames of a hook": """
import pytest
def test_a(): pass
def test_b(): pass
@pytest.fixture(scope="module")
def by_hook(): log("by_hook")
""",
    "getfixture in a doctest": """
def a():
    '''
    >>> getfixture("m")
    '''
def b():
    '''
    >>> getfixture("m")
    '''
""",
}


@pytest.mark.parametrize("means", OTHER_MEANS)
def test_set_ups_by_other_means_are_not_repeated_either(pytester, setups, means):
    for name in ("test_one", "test_two"):
        pytester.makepyfile(**{name: f"from log import log\n{OTHER_MEANS[means]}"})
    pytester.makepyfile(
        hook="""
        def pytest_collection_modifyitems(items):
            for item in items:
                if hasattr(getattr(item, "module", None), "by_hook"):
                    item.fixturenames.append("by_hook")
        """
    )
    own = " ".join(f"--ignore={name}.py" for name in ("log", "shared_fixtures", "hook"))
    pytester.makeini(f"[pytest]\naddopts = -p shared_fixtures -p hook --doctest-modules {own}\n")
    assert_no_further_setups(setups)


def test_a_package_with_its_own_setup_is_entered_once(pytester, setups):
    for name in ("one", "two"):
        package = pytester.mkpydir(name)
        (package / "__init__.py").write_text(f"from log import log\ndef setup_module(): log('{name}')\n")
        (package / f"test_{name}.py").write_text("def test_a(): pass\ndef test_b(): pass\n")
    assert_no_further_setups(setups)


def test_a_custom_node_with_its_own_setup_is_entered_once(pytester, setups):
    pytester.makepyfile(
        nodes="""
        import pytest
        from log import log
        def pytest_collect_file(parent, file_path):
            if file_path.suffix == ".spec":
                return SpecFile.from_parent(parent, path=file_path)
        class SpecFile(pytest.File):
            def setup(self): log(self.name)
            def collect(self):
                yield SpecItem.from_parent(self, name="a")
                yield SpecItem.from_parent(self, name="b")
        class SpecItem(pytest.Item):
            def runtest(self): pass
        """
    )
    pytester.makefile(".spec", one="", two="")
    pytester.makeini("[pytest]\naddopts = -p shared_fixtures -p nodes\n")
    assert_no_further_setups(setups)


@pytest.mark.parametrize("loop_scope", ["class", "module", "package", "session"])
def test_an_event_loop_is_made_as_often_as_in_a_plain_run(pytester, setups, loop_scope):
    body = f"""
import asyncio
import pytest
import log
seen = set()
def look():
    loop = asyncio.get_running_loop()
    if loop not in seen:
        seen.add(loop)
        log.log("loop")
@pytest.mark.asyncio(loop_scope="{loop_scope}")
async def test_a(): look()
class TestA:
    @pytest.mark.asyncio(loop_scope="{loop_scope}")
    async def test_a(self): look()
    @pytest.mark.asyncio(loop_scope="{loop_scope}")
    async def test_b(self): look()
"""
    if loop_scope == "class":
        body = body.replace('@pytest.mark.asyncio(loop_scope="class")\nasync def test_a(): look()\n', "")
    package = pytester.mkpydir("pack")
    for name in ("test_one.py", "test_two.py"):
        (package / name).write_text(body)
    pytester.makeini(
        "[pytest]\naddopts = -p shared_fixtures -p pytest_asyncio.plugin\n"
        "asyncio_default_fixture_loop_scope = function\n"
    )
    plain, _ = setups(k=0)
    trials, _ = setups("--order=rounds")
    assert trials == plain


def random_suite(seed):
    """Modules in and out of packages, whose tests and classes ask for any mixture of fixtures."""
    choose = random.Random(seed)
    names = ["s", "sp", "on_sp", "m", "mp", "f", "later"]

    def ask(extra):
        return choose.sample([*names, *extra], choose.choice([0, 0, 1, 1, 2, 3]))

    def module(extra):
        lines = ["from log import log"]
        if choose.random() < 0.2:
            lines.append("def setup_module(): log(__name__)")
        for number in range(choose.randint(1, 4)):
            if choose.random() < 0.5:
                lines.append(f"def test_{number}({', '.join(ask(extra))}): pass")
                continue
            lines.append(f"class Test{number}:")
            if choose.random() < 0.2:
                lines.append(f"    def setup_class(cls): log(__name__ + '{number}')")
            lines += [
                f"    def test_{method}({', '.join(['self', *ask([*extra, 'c', 'cp'])])}): pass"
                for method in range(choose.randint(1, 3))
            ]
        return "\n".join(lines)

    return {
        "test_a.py": module([]),
        "pack/test_b.py": module(["p"]),
        "pack/test_c.py": module(["p"]),
        "pack/inner/test_d.py": module(["p"]),
        "test_e.py": module([]),
    }


@pytest.mark.parametrize("seed", range(6))
def test_no_suite_needs_a_further_set_up(pytester, setups, seed):
    package = pytester.mkpydir("pack")
    (package / "conftest.py").write_text(PACKAGE)
    (package / "inner").mkdir()
    (package / "inner" / "__init__.py").touch()
    for path, source in random_suite(seed).items():
        (pytester.path / path).write_text(source)
    assert_no_further_setups(setups)


def test_a_class_scoped_fixture_outside_a_class_belongs_to_its_function(pytester, setups):
    pytester.makepyfile("def test_a(c, cp): pass\ndef test_b(c): pass")
    plain, _ = setups(k=0)
    trials, ran = setups(k=2)
    assert trials == {name: 2 * count for name, count in plain.items()}
    assert [trial for _, trial in ran.order] == [1, 1, 1, 2, 2, 2]


FREE = "\n".join(f"def test_{name}(): pass" for name in "abcdefgh")


def test_rounds_run_all_free_cases_once_before_any_twice(pytester, session):
    pytester.makepyfile(test_one=FREE, test_two=FREE)
    ran = session(k=4)
    rounds = [ran.order[start : start + 16] for start in range(0, 64, 16)]
    assert [{trial for _, trial in each} for each in rounds] == [{1}, {2}, {3}, {4}]
    orders = {
        tuple(case for case, _, when, *_ in ran.rows if when == "call")[i : i + 16] for i in range(0, 64, 16)
    }
    assert len(orders) == 4, "each round has an order of its own"


def test_the_seed_decides_the_order_of_rounds(pytester, session):
    pytester.makepyfile(FREE)
    first, again, other = (session(f"--seed={seed}").order for seed in (5, 5, 6))
    assert first == again != other
    assert Counter(first) == Counter(other)


def test_cases_keep_the_trials_of_a_case_together(pytester, session):
    pytester.makepyfile("def test_a(): pass\ndef test_b(): pass")
    assert session("--order=cases", k=2).order == [
        (f"test_{name}", trial) for name in "ab" for trial in (1, 2)
    ]


def test_a_fixture_group_goes_round_in_its_original_order(pytester, session):
    pytester.makepyfile(
        """
        import pytest
        @pytest.fixture(scope="module", params=[1, 2])
        def m(request): pass
        def test_b(m): pass
        def test_a(m): pass
        """
    )
    assert session(k=2).order == [
        (f"test_{name}[{param}]", trial) for param in (1, 2) for trial in (1, 2) for name in "ba"
    ]


def test_a_test_case_without_class_set_up_is_free(pytester, session):
    pytester.makepyfile(
        """
        import unittest
        class TestA(unittest.TestCase):
            def test_a(self): pass
            def test_b(self): pass
        class TestB(unittest.TestCase):
            def test_c(self): pass
        """
    )
    assert [trial for _, trial in session(k=2).order] == [1, 1, 1, 2, 2, 2]


def test_the_round_of_cases_with_different_numbers_of_trials(pytester, session):
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.trials(3)
        def test_a(): pass
        @pytest.mark.trials(1)
        def test_b(): pass
        @pytest.mark.trials(2)
        def test_c(): pass
        """
    )
    ran = session(k=None)
    assert [(sorted(case for case, _, when, *_ in ran.rows if when == "call"))] == [
        [f"{ran.plan['cases'][0][0][:-1]}{name}" for name in "aaabcc"]
    ]
    assert ran.order[-1] == ("test_a", 3)


@pytest.mark.parametrize("option", ["--ff", "--sw", "--nf"])
def test_options_that_order_cases_keep_their_order(pytester, session, option):
    pytester.makepyfile(FREE)
    ran = session(option)
    assert ran.plan["order"] == "cases"
    assert ran.order == [(f"test_{name}", trial) for name in "abcdefgh" for trial in (1, 2, 3)]


def test_one_trial_keeps_the_collected_order(pytester, session):
    pytester.makepyfile(FREE)
    assert session(k=1).order == [(f"test_{name}", None) for name in "abcdefgh"]
