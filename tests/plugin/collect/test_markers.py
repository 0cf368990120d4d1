"""The markers: what they accept, what they refuse and whose they are."""

from __future__ import annotations

import pytest

USAGE = pytest.ExitCode.USAGE_ERROR


def counts(ran):
    return {case.rpartition("::")[2]: len(numbers) for case, numbers in ran.numbers.items()}


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("trials(0)", "the marker trials needs a whole number of at least 1, not 0; write trials(5"),
        ("trials(-1)", "needs a whole number of at least 1, not -1"),
        ("trials(True)", "needs a whole number of at least 1, not True"),
        ("trials(2.0)", "needs a whole number of at least 1, not 2.0"),
        ("trials('3')", "needs a whole number of at least 1, not '3'"),
        ("trials(None)", "needs a whole number of at least 1, not None"),
        ("trials()", "needs a number; write trials(5)."),
        ("trials(fixed=True)", "needs a number; write trials(5)."),
        ("trials(1, 2)", "takes one number; write trials(5)."),
        ("trials(1, k=1)", "takes one number; write trials(5)."),
        ("trials(5, min_pass=4)", "does not know 'min_pass'; write trials(5, fixed=True, min_passes=4)."),
        ("trials(5, min_passes=6)", "asks for min_passes=6 of 5 trials; write at most min_passes=5."),
        ("trials(5, min_passes=-1)", "needs min_passes as a whole number of at least 0, not -1"),
        ("trials(5, min_passes=True)", "needs min_passes as a whole number of at least 0, not True"),
        ("trials(5, fixed=1)", "needs fixed=True or fixed=False, not 1"),
        (
            "crashlab(trials=0)",
            "the marker crashlab needs a whole number of at least 1, not 0; write crashlab(trials=5",
        ),
        ("crashlab(fixed=True)", "the marker crashlab needs a number beside fixed=True"),
    ],
)
def test_a_wrong_argument_is_refused_with_the_place_and_what_to_write(session, pytester, marker, message):
    pytester.makepyfile(f"import pytest\n\ndef test_a(): pass\n\n@pytest.mark.{marker}\ndef test_b(): pass\n")
    ran = session(k=None)
    assert ran.result.ret == USAGE
    lines = [line for line in ran.result.errlines if line.startswith("ERROR: ")]
    assert len(lines) == 1
    assert lines[0].startswith(
        f"ERROR: {pytester.path.name and ''}" + next(iter(pytester.path.glob("test_*.py"))).name + ":5: "
    )
    assert message in lines[0]
    assert ran.rows == []


@pytest.mark.parametrize(
    ("marker", "option", "ran"),
    [
        ("trials(3)", None, 3),
        ("trials(k=3)", None, 3),
        ("trials(3)", 2, 2),
        ("trials(3, fixed=True)", 2, 3),
        ("trials(3, min_passes=3)", None, 3),
        ("trials(3, min_passes=0)", 1, 1),
        ("crashlab(trials=3)", None, 3),
        ("crashlab(trials=3, fixed=True)", 2, 3),
        ("crashlab(dataset='x')", 2, 2),
    ],
)
def test_the_marker_and_the_option_decide_together(session, pytester, marker, option, ran):
    pytester.makepyfile(f"import pytest\n@pytest.mark.{marker}\ndef test_b(): pass\n")
    assert counts(session(k=option)) == {"test_b": ran}


def test_a_threshold_that_the_option_puts_out_of_reach_is_refused(session, pytester):
    pytester.makepyfile("import pytest\n@pytest.mark.trials(5, min_passes=4)\ndef test_b(): pass\n")
    ran = session(k=3)
    assert ran.result.ret == USAGE
    assert any(
        "min_passes=4 cannot be reached in 3 trials; lower min_passes or write fixed=True" in line
        for line in ran.result.errlines
    )
    kept = session(k=None)
    assert kept.plan["cases"][0][-1] == 4


def test_the_closest_marker_counts(session, pytester):
    pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.trials(2)
        def test_module(): pass
        @pytest.mark.trials(3)
        class TestA:
            def test_class(self): pass
            @pytest.mark.crashlab(trials=4)
            def test_own(self): pass
        @pytest.mark.parametrize("x", [1, pytest.param(2, marks=pytest.mark.trials(1))])
        def test_param(x): pass
        """
    )
    assert counts(session(k=None)) == {
        "test_module": 2,
        "test_class": 3,
        "test_own": 4,
        "test_param[1]": 2,
        "test_param[2]": 1,
    }


@pytest.mark.parametrize("how", ["ini", "conftest", "subdirectory"])
def test_a_marker_of_the_project_s_own_is_left_alone(session, pytester, how):
    source = """
    import pytest
    @pytest.mark.trials("what the project means by it", 7)
    def test_a(): pass
    @pytest.mark.trials("also")
    @pytest.mark.crashlab(trials=2)
    def test_b(): pass
    """
    line = "trials(why, n): of this project"
    if how == "ini":
        pytester.makeini(f"[pytest]\nmarkers =\n    {line}\n")
    else:
        folder = pytester.path if how == "conftest" else pytester.mkdir("sub")
        pytester.makepyfile(
            mine=f"def pytest_configure(config): config.addinivalue_line('markers', {line!r})"
        )
        pytester.syspathinsert()
        with (folder / "conftest.py").open("a") as stream:
            text = (
                "\nfrom mine import pytest_configure\n"
                if how == "subdirectory"
                else (
                    f"\n_ours = pytest_configure\ndef pytest_configure(config):\n    _ours(config)\n"
                    f"    config.addinivalue_line('markers', {line!r})\n"
                )
            )
            stream.write(text)
        if how == "subdirectory":
            pytester.makepyfile(**{"sub/test_sub": source})
            assert counts(session("--strict-markers", "sub", k=None)) == {"test_a": 1, "test_b": 2}
            return
    pytester.makepyfile(source)
    assert counts(session("--strict-markers", k=None)) == {"test_a": 1, "test_b": 2}


def test_our_markers_are_registered(session):
    ran = session("--markers", "--strict-markers")
    ran.result.stdout.fnmatch_lines(
        [
            "@pytest.mark.trials(k, *",
            "@pytest.mark.outcomes(vocabulary)*",
            "@pytest.mark.checks(*",
            "@pytest.mark.crashlab(*",
        ]
    )


READER = """
import pytest
from pytest_crashlab import Check, Outcome, Vocabulary
from pytest_crashlab.plugin.markers import Markers

V = Vocabulary(Outcome.passed("good", "It is good."))
"""


def test_outcomes_checks_and_settings_are_read(session, pytester):
    pytester.makepyfile(
        READER
        + """
pytestmark = [pytest.mark.crashlab(dataset="d", split="dev"), pytest.mark.checks(Check("a", must="be a"))]

@pytest.mark.outcomes(V)
@pytest.mark.checks(Check("b", must="be b", required=False))
@pytest.mark.crashlab(split="holdout", trials=1)
def test_a(request):
    markers = Markers(request.config)
    assert markers.outcomes(request.node) is V
    assert [check.name for check in markers.checks(request.node)] == ["a", "b"]
    assert markers.settings(request.node) == {"dataset": "d", "split": "holdout"}

def test_b(request):
    markers = Markers(request.config)
    assert markers.outcomes(request.node) is None
    assert [check.name for check in markers.checks(request.node)] == ["a"]
"""
    )
    session(k=1).result.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("marker", "read", "message"),
    [
        (
            "outcomes('good')",
            "outcomes",
            "the marker outcomes takes one Vocabulary; write outcomes(Vocabulary(...)).",
        ),
        ("outcomes(V, V)", "outcomes", "takes one Vocabulary"),
        ("outcomes(vocabulary=V)", "outcomes", "takes one Vocabulary"),
        ("checks()", "checks", "takes Check objects"),
        ("checks('a')", "checks", "takes Check objects"),
        (
            "checks(Check('a', must='x'), Check('a', must='y'))",
            "checks",
            "declares 'a' twice and differently",
        ),
        ("crashlab('d')", "settings", "takes no positional argument; write crashlab(name=value)."),
    ],
)
def test_wrong_declarations_are_refused(session, pytester, marker, read, message):
    pytester.makepyfile(
        READER
        + f"""
@pytest.mark.{marker}
def test_a(request):
    with pytest.raises(pytest.UsageError) as caught:
        Markers(request.config).{read}(request.node)
    text = str(caught.value)
    assert text.startswith(request.path.name + ":7: ") and {message!r} in text and "\\n" not in text
"""
    )
    session("-p", "no:cacheprovider", k=0).result.assert_outcomes(passed=1)
