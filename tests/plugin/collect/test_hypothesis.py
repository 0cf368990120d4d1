"""Trials of Hypothesis tests draw examples of their own, whatever happened before."""

from __future__ import annotations

import json

import pytest

PLUGIN = "_hypothesis_pytestplugin"

SUITE = """
import json
import pytest
from hypothesis import HealthCheck, given, seed, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

def draw(name, request, x):
    with open("drawn.jsonl", "a") as stream:
        stream.write(json.dumps([name, request.node.nodeid, x]) + "\\n")

quick = settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])

@quick
@given(st.integers())
def test_function(request, x): draw("function", request, x)

@pytest.mark.parametrize("p", [1, 2])
@quick
@given(x=st.integers())
def test_parametrized(request, p, x): draw(f"parametrized{p}", request, x)

class TestClass:
    @quick
    @given(x=st.integers())
    def test_method(self, request, x): draw("method", request, x)

@seed(7)
@quick
@given(st.integers())
def test_seeded(request, x): draw("seeded", request, x)

class Machine(RuleBasedStateMachine):
    @rule(x=st.integers())
    def step(self, x):
        import os
        with open("drawn.jsonl", "a") as stream:
            stream.write(json.dumps(["machine", os.environ["PYTEST_CURRENT_TEST"].split(" ")[0], x]) + "\\n")

TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=3, stateful_step_count=3)
"""


@pytest.fixture
def drawn(pytester, session):
    """Run and return for each test the examples of each trial."""
    pytester.makepyfile(SUITE)

    def run(*args, **kwargs):
        path = pytester.path / "drawn.jsonl"
        path.unlink(missing_ok=True)
        ran = session("-p", PLUGIN, "-p", "no:cacheprovider", *args, **kwargs)
        ran.result.assert_outcomes(passed=18 if kwargs.get("k", 3) else 6)
        examples: dict[str, dict[str, list[int]]] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            name, nodeid, x = json.loads(line)
            examples.setdefault(name, {}).setdefault(nodeid[-7:-1], []).append(x)
        return examples

    return run


@pytest.mark.parametrize(("ci", "workers"), [(False, 0), (True, 0), (True, 2)])
def test_trials_draw_distinct_examples(drawn, monkeypatch, ci, workers):
    if ci:
        monkeypatch.setenv("CI", "true")
    examples = drawn(workers=workers, subprocess=True)
    assert examples.keys() == {"function", "parametrized1", "parametrized2", "method", "seeded", "machine"}
    for name, trials in examples.items():
        assert trials.keys() == {"trial1", "trial2", "trial3"}, name
        assert len({tuple(xs) for xs in trials.values()}) == 3, name


def test_the_run_s_seed_decides_what_is_drawn(drawn):
    first, again, other = (drawn(f"--seed={seed}", subprocess=True) for seed in (1, 1, 2))
    assert first == again
    assert first["function"] != other["function"]
    assert first["seeded"] == other["seeded"], "the test's own seed stays in charge"


def test_hypothesis_seed_decides_instead_of_the_run_s(drawn):
    first, again, other = (
        drawn(f"--seed={seed}", f"--hypothesis-seed={given}", subprocess=True)
        for seed, given in ((1, 5), (2, 5), (1, 6))
    )
    assert first == again
    assert first["function"] != other["function"]


def test_a_failing_example_is_not_replayed_in_the_next_trial(pytester, session):
    pytester.makepyfile(
        """
        from hypothesis import given, settings, strategies as st
        runs = []
        @settings(max_examples=5)
        @given(st.integers(0, 2**64))
        def test_rare(x):
            global first
            runs.append(x)
            if len(runs) == 3:
                first = x
            assert x != globals().get("first")
        """
    )
    ran = session("-p", PLUGIN, "--order=cases", k=4)
    assert [kind for _, _, when, kind, _ in ran.rows if when == "call"] == [
        "failed",
        "passed",
        "passed",
        "passed",
    ]
    assert not (pytester.path / ".hypothesis" / "examples").exists()


def test_settings_are_as_before_when_the_trial_is_over(pytester, session):
    pytester.makepyfile(
        """
        from hypothesis import HealthCheck, given, settings, strategies as st
        @settings(max_examples=3, deadline=1234)
        @given(st.integers())
        def test_a(x):
            inner = test_a._hypothesis_internal_use_settings
            assert inner.database is None and inner.max_examples == 3
            assert HealthCheck.differing_executors in inner.suppress_health_check
            assert isinstance(test_a._hypothesis_internal_use_seed, int)
        BEFORE = test_a._hypothesis_internal_use_settings
        def test_b():
            # The very object: what it suppresses also depends on whether Hypothesis sees a CI machine.
            assert test_a._hypothesis_internal_use_settings is BEFORE
            assert test_a._hypothesis_internal_use_settings.max_examples == 3
            assert test_a._hypothesis_internal_use_seed is None
        """
    )
    session("-p", PLUGIN, "--order=cases").result.assert_outcomes(passed=6)


def test_other_health_checks_still_speak(pytester, session):
    pytester.makepyfile(
        """
        from hypothesis import given, strategies as st
        @given(st.integers())
        def test_a(tmp_path, x): pass
        """
    )
    ran = session("-p", PLUGIN, k=2)
    ran.result.assert_outcomes(failed=2)
    ran.result.stdout.fnmatch_lines(["*function-scoped fixture*"])
