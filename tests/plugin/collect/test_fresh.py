"""What one trial changes on its item, no other trial sees."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("order", ["rounds", "cases"])
def test_what_a_run_writes_on_its_item_is_gone_in_the_next_trial(session, pytester, order):
    pytester.makepyfile(
        """
        import pytest

        KEY = pytest.StashKey()
        paths = set()

        @pytest.fixture
        def dirty(request, record_property, tmp_path):
            node = request.node
            assert KEY not in node.stash
            node.stash[KEY] = 1
            assert not any(mark.name == "late" for mark in node.own_markers)
            assert "late" not in node.keywords
            request.applymarker(pytest.mark.late)
            assert node.user_properties == []
            record_property("seen", 1)
            assert node.extra_keyword_matches == set()
            node.extra_keyword_matches.add("seen")
            assert node._report_sections == []
            node.add_report_section("setup", "seen", "text")
            assert "seen" not in node.funcargs
            node.funcargs["seen"] = 1
            assert tmp_path not in paths
            paths.add(tmp_path)
            assert not list(tmp_path.iterdir())
            (tmp_path / "seen").touch()
            assert request.node is request._pyfuncitem

        def test_function(dirty): pass

        @pytest.mark.parametrize("x", [1, 2])
        def test_parametrized(dirty, x): pass

        class TestClass:
            def test_method(self, dirty):
                assert vars(self) == {}
                self.seen = True
        """
    )
    pytester.makeini("[pytest]\nmarkers = late: set while a test runs")
    ran = session(f"--order={order}")
    ran.result.assert_outcomes(passed=12)


def test_an_xfail_applied_at_run_time_counts_for_its_trial_alone(session, pytester):
    pytester.makepyfile(
        """
        import pytest
        runs = []
        def test_a(request):
            runs.append(1)
            if len(runs) == 2:
                request.applymarker(pytest.mark.xfail)
            assert len(runs) != 2
        """
    )
    session("--order=cases").result.assert_outcomes(passed=2, xfailed=1)


def test_what_hooks_set_at_collection_is_there_in_every_trial(session, pytester):
    pytester.makepyfile(
        hooks="""
        import pytest
        KEY = pytest.StashKey()
        def pytest_itemcollected(item):
            item.stash[KEY] = item.name
            item.user_properties.append(("collected", item.name))
            item.notes = {"list": [item.name]}
        def pytest_collection_modifyitems(items):
            for item in items:
                item.add_marker("added")
                if item.name == "test_b":
                    item.add_marker(pytest.mark.skip)
        """,
        test_it="""
        from hooks import KEY
        def test_a(request):
            node = request.node
            assert node.stash[KEY] == "test_a"
            assert node.user_properties == [("collected", "test_a")]
            assert node.get_closest_marker("added")
            assert node.notes == {"list": ["test_a"]}
            node.notes["list"].append("changed")
        def test_b(): assert 0
        """,
    )
    pytester.makeini("[pytest]\nmarkers = added: set by a hook")
    pytester.syspathinsert()
    session("-p", "hooks").result.assert_outcomes(passed=3, skipped=3)


def test_a_test_case_has_an_instance_a_trial(session, pytester):
    pytester.makepyfile(
        """
        import unittest
        seen = []
        class TestA(unittest.TestCase):
            def test_a(self):
                assert not hasattr(self, "mine")
                assert not any(self is other for other in seen)
                self.mine = True
                seen.append(self)
            def tearDown(self):
                assert self.mine
        class TestLoop(unittest.IsolatedAsyncioTestCase):
            async def asyncSetUp(self): self.ready = True
            async def test_loop(self): assert self.ready
        """
    )
    session().result.assert_outcomes(passed=6)


def test_a_doctest_starts_with_the_names_of_its_module_alone(session, pytester):
    pytester.makepyfile(
        module='''
        names = []
        def a():
            """
            >>> "mine" in globals()
            False
            >>> mine = 1
            >>> names is not None
            True
            """
        '''
    )
    pytester.maketxtfile(test_text=">>> 'mine' in globals()\nFalse\n>>> mine = 1\n")
    session("--doctest-modules").result.assert_outcomes(passed=6)


def test_a_custom_item_gets_its_own_copy_of_its_data(session, pytester):
    pytester.makepyfile(
        items="""
        import pytest
        def pytest_collect_file(parent, file_path):
            if file_path.suffix == ".spec":
                return SpecFile.from_parent(parent, path=file_path)
        class SpecFile(pytest.File):
            def collect(self):
                self.results = []
                yield SpecItem.from_parent(self, name="a")
        class SpecItem(pytest.Item):
            __slots__ = ("__steps",)
            def __init__(self, **kwargs):
                super().__init__(**kwargs)
                self.data = {"steps": [1, {"x": {1, 2}}]}
                self.__steps = [1]
                self.loop = self.data["steps"]
                self.loop.append(self.loop)
                self.results = self.parent.results
                self.check = self.really_check
            def really_check(self):
                assert self.really_check.__self__ is self.check.__self__ is self
                assert self.__steps == [1]
                self.__steps.append(2)
                first, second, again = self.data["steps"]
                assert (first, second) == (1, {"x": {1, 2}})
                assert again[2] is again
                second["x"].add(3)
                self.results.append(self.nodeid)
                assert len(self.parent.results) == int(self.nodeid[-2])
            def runtest(self):
                self.check()
        """
    )
    pytester.syspathinsert()
    pytester.makefile(".spec", one="")
    session("-p", "items", "--order=cases").result.assert_outcomes(passed=3)


def test_an_object_that_a_plugin_put_in_place_of_the_test_stays(session, pytester):
    pytester.makepyfile(
        hooks="""
        import functools, types
        def pytest_collection_modifyitems(items):
            for item in items:
                original = item.obj
                if item.cls is None:
                    item.obj = lambda: None
                elif item.name == "test_bound":
                    def replaced(self):
                        assert vars(self) == {}
                        self.seen = 1
                    item.obj = types.MethodType(replaced, item.instance)
        """,
        test_it="""
        def test_a(): assert 0
        class TestA:
            def test_bound(self): assert 0
            def test_plain(self):
                assert vars(self) == {}
                self.seen = 1
        """,
    )
    pytester.syspathinsert()
    session("-p", "hooks").result.assert_outcomes(passed=9)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("self.steps = iter([1])", "keeps in .steps a list_iterator, which the first trial would use up"),
        ("self.steps = (x for x in ())", "keeps in .steps a generator"),
        ("self.text = io.StringIO('a')", "keeps in .text a StringIO"),
        ("self.run = Runner(self)", "keeps in .run a Runner that refers back to it"),
        ("self.run = functools.partial(print, self)", "keeps in .run a partial that refers back to it"),
        ("original = self.runtest; self.runtest = lambda: original()", "a function that refers back to it"),
        ("self.ask = TopRequest(self, _ispytest=True)", "keeps in .ask the fixture request of one run"),
    ],
)
def test_an_item_that_cannot_be_repeated_is_refused_or_runs_once(session, pytester, kind, why):
    pytester.makepyfile(
        items=f"""
        import functools, io
        import pytest
        from _pytest.fixtures import TopRequest
        class Runner:
            def __init__(self, item): self.item = item
        def pytest_collect_file(parent, file_path):
            if file_path.suffix == ".spec":
                return SpecFile.from_parent(parent, path=file_path)
        class SpecFile(pytest.File):
            def collect(self):
                yield SpecItem.from_parent(self, name="a")
        class SpecItem(pytest.Item):
            def __init__(self, **kwargs):
                super().__init__(**kwargs)
                self._fixtureinfo = self.session._fixturemanager.getfixtureinfo(self, None, None)
                {kind}
            def runtest(self): pass
        """,
        test_it="def test_it(): pass",
    )
    pytester.syspathinsert()
    pytester.makefile(".spec", one="")
    refused = session("-p", "items")
    assert refused.result.ret == pytest.ExitCode.USAGE_ERROR
    message = [line for line in refused.result.errlines if line.startswith("ERROR: ")]
    assert len(message) == 1
    assert message[0].startswith("ERROR: one.spec::a cannot be repeated (items.SpecItem keeps")
    assert why in message[0]
    assert "crashlab_unsupported=once" in message[0]
    once = session("-p", "items", "--unsupported=once")
    once.result.assert_outcomes(passed=4)
    assert [case for case, _ in once.plan["unsupported"]] == ["one.spec::a"]
    assert once.numbers["one.spec::a"] == [None]
    session("-p", "items", k=1).result.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("def __new__(cls, *, name, parent): return super().__new__(cls)", "cannot be made anew: "),
        ("def __copy__(self): raise TypeError", "defines its own way to be copied"),
        ("def __reduce__(self): raise TypeError", "defines its own way to be copied"),
    ],
)
def test_a_class_that_cannot_be_copied_is_refused(session, pytester, body, why):
    pytester.makepyfile(
        items=f"""
        import pytest
        def pytest_collect_file(parent, file_path):
            if file_path.suffix == ".spec":
                return SpecFile.from_parent(parent, path=file_path)
        class SpecFile(pytest.File):
            def collect(self):
                yield SpecItem.from_parent(self, name="a")
        class SpecItem(pytest.Item):
            {body}
            def runtest(self): pass
        """
    )
    pytester.syspathinsert()
    pytester.makefile(".spec", one="")
    ran = session("-p", "items")
    assert ran.result.ret == pytest.ExitCode.USAGE_ERROR
    assert any(f"items.SpecItem {why}" in line for line in ran.result.errlines)


def test_two_tests_with_one_id_are_refused_or_run_once(session, pytester):
    pytester.makepyfile(
        items="""
        import pytest
        def pytest_collect_file(parent, file_path):
            if file_path.suffix == ".spec":
                return SpecFile.from_parent(parent, path=file_path)
        class SpecFile(pytest.File):
            def collect(self):
                yield SpecItem.from_parent(self, name="a")
                yield SpecItem.from_parent(self, name="a")
        class SpecItem(pytest.Item):
            def runtest(self): pass
        """
    )
    pytester.syspathinsert()
    pytester.makefile(".spec", one="")
    refused = session("-p", "items")
    assert refused.result.ret == pytest.ExitCode.USAGE_ERROR
    assert any("another test has the same id" in line for line in refused.result.errlines)
    once = session("-p", "items", "--unsupported=once")
    once.result.assert_outcomes(passed=4)
    assert len(once.plan["cases"]) == 1
    assert len(once.plan["unsupported"]) == 1
    # With one trial as well: the second would pass for another attempt of the first.
    assert session("-p", "items", k=1).result.ret == pytest.ExitCode.USAGE_ERROR


def test_who_kept_the_trials_finds_them_whole_after_the_session(pytester):
    """What spares the interpreter's end must not be noticed before it."""
    pytester.makepyfile(test_it="def test_a(tmp_path): pass")
    pytester.makepyfile(
        runner="""
        import atexit, pytest

        class Keeper:
            def pytest_collection_finish(self, session):
                self.items = list(session.items)

        keeper = Keeper()
        atexit.register(lambda: print("at exit:", *(item.nodeid for item in keeper.items)))
        assert pytest.main(["-q", "-p", "pytest_crashlab.plugin", "--trials=2"], plugins=[keeper]) == 0
        for item in keeper.items:
            print("kept:", item.name, "test_a" in item.keywords, item.function.__name__, item.fixturenames)
        """
    )
    result = pytester.runpython("runner.py")
    result.stdout.fnmatch_lines(
        ["kept: test_a True test_a [[]'tmp_path_factory', 'tmp_path', 'request'[]]"] * 2
    )
    result.stdout.fnmatch_lines(["at exit: test_it.py::test_a[[]trial1] test_it.py::test_a[[]trial2]"])
