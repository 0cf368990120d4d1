"""What a trial is called: the rules for plain tests and for tests that use the trial fixture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_crashlab import Outcome, Vocabulary

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

# pytest brings sub-tests since 9.0; before, a plugin did.
SUBTESTS = () if pytest.version_tuple >= (9,) else ("pytest_subtests.plugin",)

# body of a plain test -> the outcome label of each of its two trials
PLAIN = {
    "passes": ("assert True", "passed"),
    "asserts": ("assert False", "failed"),
    "fails": ("pytest.fail('no')", "failed"),
    "crashes": ("raise ValueError('no')", "crashed"),
    "exits": ("raise SystemExit(3)", "crashed"),
    "skips": ("pytest.skip('not here')", "skipped"),
    "xfails": ("pytest.xfail('known')", "xfailed"),
    "refused": ("raise ConnectionRefusedError('no')", "network_error"),
    "times_out": ("raise TimeoutError('slow')", "network_error"),
    "no_dns": ("import socket; raise socket.gaierror(-2, 'unknown')", "network_error"),
    "bad_url": ("import urllib.error; raise urllib.error.URLError('no route')", "network_error"),
    "http_status": ("import urllib.error; raise urllib.error.HTTPError('u', 500, 'no', {}, None)", "crashed"),
    "instrument": (
        "from pytest_crashlab.errors import InstrumentFailure; raise InstrumentFailure('sandbox_error', 'x')",
        "sandbox_error",
    ),
    "unknown_label": (
        "from pytest_crashlab.errors import InstrumentFailure; raise InstrumentFailure('shop_down')",
        "misdeclared",
    ),
    "timeout_plugin": ("pytest.fail('Timeout (>1.0s) from pytest-timeout.')", "wall_clock"),
}


@pytest.fixture
def suite(served: Suite) -> Suite:
    """How many workers there are makes no difference here."""
    return served


def test_plain_tests(suite: Suite) -> None:
    """Each way a plain test can end has its label, the same with and without workers."""
    bodies = "\n".join(f"def test_{name}():\n    {body}" for name, (body, _) in PLAIN.items())
    suite.files(test_plain=f"import pytest\n{bodies}\n")
    suite.run("--trials=2")
    assert suite.outcomes() == {
        f"test_plain.py::test_{name}": [label, label] for name, (_, label) in PLAIN.items()
    }


def test_marks(suite: Suite) -> None:
    """Skip and xfail marks exclude; an unexpected pass passes, a strict one fails."""
    suite.files(
        test_marks="""
        import pytest

        @pytest.mark.skip(reason="no")
        def test_skip(): pass

        @pytest.mark.xfail
        def test_xfail(): assert False

        @pytest.mark.xfail(run=False)
        def test_xfail_norun(): assert False

        @pytest.mark.xfail
        def test_xpass(): pass

        @pytest.mark.xfail(strict=True)
        def test_xpass_strict(): pass
        """
    )
    suite.run("--trials=2")
    assert {case.partition("::")[2]: labels for case, labels in suite.outcomes().items()} == {
        "test_skip": ["skipped", "skipped"],
        "test_xfail": ["xfailed", "xfailed"],
        "test_xfail_norun": ["xfailed", "xfailed"],
        "test_xpass": ["passed", "passed"],
        "test_xpass_strict": ["failed", "failed"],
    }


def test_fixture_failures(suite: Suite) -> None:
    """A fixture that fails before is a set-up error; one that fails after leaves the decision alone."""
    suite.files(
        test_fixtures="""
        import pytest

        @pytest.fixture
        def broken(): raise ValueError("no database")

        @pytest.fixture
        def asserts(): assert False

        @pytest.fixture
        def leaves_badly():
            yield
            raise OSError("still mounted")

        def test_before(broken): pass
        def test_assert_before(asserts): pass
        def test_after(leaves_badly): pass
        def test_fails_and_after(leaves_badly): assert False
        """
    )
    suite.run("--trials=1", "--crashlab-run-name=x")
    rows = {row["case"].partition("::")[2]: row for row in suite.last().trials.iter_rows(named=True)}
    assert {name: (row["outcome"], row["phase"]) for name, row in rows.items()} == {
        "test_before": ("setup_error", "prepare"),
        "test_assert_before": ("setup_error", "prepare"),
        "test_after": ("passed", "run"),
        "test_fails_and_after": ("failed", "run"),
    }
    assert rows["test_after"]["record_error"] == "teardown_error: OSError: still mounted"
    assert rows["test_before"]["record_error"] is None
    assert rows["test_before"]["infra_healthy"] is False
    assert rows["test_after"]["infra_healthy"] is True
    assert rows["test_before"]["message"] == "ValueError: no database"
    assert rows["test_before"]["site"] == "test_fixtures.py:4"


EVAL = """
import pytest
from pytest_crashlab import Check, Outcome, Vocabulary
from pytest_crashlab.errors import InstrumentFailure

SHOP = Vocabulary(
    Outcome.passed("refunded", "The order is refunded."),
    Outcome.failed("wrong_amount", "The order is refunded with another amount."),
    Outcome.failed("horizon_exhausted", "The agent used all of its turns.", completed=False),
    Outcome.instrument("shop_down", "The shop did not answer."),
)
CHECKS = Check("amount", must="equals the total"), Check("tidy", must="no more", required=False)
pytestmark = [pytest.mark.outcomes(SHOP), pytest.mark.checks(*CHECKS)]

def amount(trial, ok=True):
    trial.check("amount", ok, expected=30, observed=30 if ok else 3)

def test_default_pass(trial):
    with trial.run(horizon=5, unit="turns") as target: target.t = 2
    amount(trial)

def test_required_check_fails(trial):
    with trial.run(): pass
    amount(trial, ok=False)

def test_optional_check_fails(trial):
    amount(trial)
    trial.check("tidy", False)

def test_not_verified(trial):
    with trial.run(): pass

def test_check_not_evaluable(trial):
    trial.check("amount", None, why="the shop gave no order")

def test_explicit_fail(trial):
    trial.outcome("wrong_amount")

def test_horizon(trial):
    with trial.run(horizon=5, unit="turns") as target: target.t = 5
    amount(trial)
    trial.outcome("horizon_exhausted" if target.exhausted else "refunded")

def test_explicit_instrument(trial):
    trial.outcome("shop_down")

def test_pass_beside_failed_check(trial):
    amount(trial, ok=False)
    trial.outcome("refunded")

def test_label_unknown(trial):
    amount(trial)
    trial.outcome("refundid")

def test_target_raises(trial):
    with trial.run(): raise RuntimeError("agent broke")

def test_target_asserts(trial):
    with trial.run(): assert False, "the agent's own assertion"

def test_target_offline(trial):
    with trial.run(): raise ConnectionResetError("gone")

def test_verifier_breaks(trial):
    with trial.run(): pass
    {}["order"]

def test_verifier_asserts(trial):
    with trial.run(): pass
    assert 1 == 2

def test_prepare_breaks(trial):
    open("no/such/file")
    with trial.run(): pass

def test_instrument_in_verify(trial):
    with trial.run(): pass
    raise InstrumentFailure("shop_down", "503")

def test_check_twice(trial):
    amount(trial)
    amount(trial)

def test_bad_progress(trial):
    with trial.run(horizon=5, unit="turns") as target: target.t = 9
    amount(trial)

def test_nan_progress(trial):
    with trial.run(horizon=5, unit="turns") as target: target.t = float("nan")
    amount(trial)

def test_negative_progress(trial):
    with trial.run(horizon=5, unit="turns") as target: target.t = -1
    amount(trial)

def test_endless_horizon(trial):
    with trial.run(horizon=float("inf"), unit="turns"): pass
    amount(trial)

def test_nan_horizon(trial):
    with trial.run(horizon=float("nan"), unit="turns"): pass
    amount(trial)

def test_horizon_without_unit(trial):
    with trial.run(horizon=5): pass
    amount(trial)

def test_pass_label_then_assertion(trial):
    amount(trial)
    trial.outcome("refunded")
    assert False

def test_fail_label_then_assertion(trial):
    trial.outcome("wrong_amount")
    assert False

def test_swallowed_error_is_judged_by_checks(trial):
    try:
        with trial.run(): raise RuntimeError("handled")
    except RuntimeError:
        pass
    amount(trial)
"""

EVAL_OUTCOMES = {
    "default_pass": ("refunded", "verify"),
    "required_check_fails": ("failed", "verify"),
    "optional_check_fails": ("refunded", "verify"),
    "not_verified": ("not_verified", "verify"),
    "check_not_evaluable": ("not_verified", "verify"),
    "explicit_fail": ("wrong_amount", "verify"),
    "horizon": ("horizon_exhausted", "verify"),
    "explicit_instrument": ("shop_down", "verify"),
    "pass_beside_failed_check": ("misdeclared", "verify"),
    "label_unknown": ("misdeclared", "verify"),
    "target_raises": ("crashed", "run"),
    "target_asserts": ("crashed", "run"),
    "target_offline": ("network_error", "run"),
    "verifier_breaks": ("verifier_error", "verify"),
    "verifier_asserts": ("failed", "verify"),
    "prepare_breaks": ("setup_error", "prepare"),
    "instrument_in_verify": ("shop_down", "verify"),
    "check_twice": ("misdeclared", "verify"),
    "bad_progress": ("misdeclared", "verify"),
    "nan_progress": ("misdeclared", "verify"),
    "negative_progress": ("misdeclared", "verify"),
    "endless_horizon": ("misdeclared", "prepare"),
    "nan_horizon": ("misdeclared", "prepare"),
    "horizon_without_unit": ("misdeclared", "prepare"),
    "pass_label_then_assertion": ("misdeclared", "verify"),
    "fail_label_then_assertion": ("wrong_amount", "verify"),
    "swallowed_error_is_judged_by_checks": ("refunded", "verify"),
}


def test_trial_fixture(suite: Suite) -> None:
    """Every rule of the trial fixture, with the phase that decided."""
    suite.files(test_eval=EVAL)
    suite.run("--trials=1")
    rows = {row["case"].partition("::test_")[2]: row for row in suite.last().trials.iter_rows(named=True)}
    assert {name: (row["outcome"], row["phase"]) for name, row in rows.items()} == EVAL_OUTCOMES
    assert (rows["horizon"]["t"], rows["horizon"]["horizon"], rows["horizon"]["t_unit"]) == (5, 5, "turns")
    assert rows["horizon"]["target_completed"] is False
    assert rows["explicit_fail"]["target_completed"] is True
    lines = (suite.root / "test_eval.py").read_text().splitlines()
    assert (
        lines[int(rows["explicit_fail"]["site"].partition(":")[2]) - 1] == '    trial.outcome("wrong_amount")'
    )
    assert rows["required_check_fails"]["message"] == "check 'amount': expected 30, observed 3"
    checks = suite.last().checks.filter(case="test_eval.py::test_optional_check_fails")
    assert checks.select("name", "required", "ok").rows() == [("amount", True, True), ("tidy", False, False)]


@pytest.mark.parametrize("trials", ["off", None], ids=["off", "plain"])
def test_trial_fixture_in_a_plain_session(single: Suite, trials: str | None) -> None:
    """Without trials nothing is recorded, and a trial that does not pass fails its test."""
    single.files(test_eval=EVAL)
    result = single.run(*([] if trials is None else [f"--trials={trials}"]))
    passing = sum(label == "refunded" for label, _ in EVAL_OUTCOMES.values())
    result.assert_outcomes(passed=passing, failed=len(EVAL_OUTCOMES) - passing)
    assert result.ret == 1
    assert not (single.root / ".crashlab").exists()


def test_classification_by_hook_and_ini(suite: Suite) -> None:
    """A project's hook answers before its ini, and both before the built-in table."""
    suite.pytester.makeini(
        """
        [pytest]
        crashlab_exceptions =
            builtins.ConnectionError = crashed
            builtins.LookupError = provider_error
        """
    )
    suite.pytester.makeconftest(
        """
        def pytest_crashlab_classify_exception(exception, phase):
            if isinstance(exception, KeyError):
                return "judge_error"
        """
    )
    suite.files(
        test_it="""
        def test_hook(): {}["x"]
        def test_ini(): [][1]
        def test_ini_over_builtin(): raise ConnectionError("x")
        def test_builtin(): raise TimeoutError("x")
        """
    )
    suite.run("--trials=1")
    assert {case.partition("::test_")[2]: labels[0] for case, labels in suite.outcomes().items()} == {
        "hook": "judge_error",
        "ini": "provider_error",
        "ini_over_builtin": "crashed",
        "builtin": "network_error",
    }


def test_failing_subtests_fail_the_trial(suite: Suite) -> None:
    """A sub-test that fails fails its trial, in functions and in TestCases."""
    suite.files(
        test_subs="""
        import unittest

        def test_sub(subtests):
            for i in range(3):
                with subtests.test(i=i):
                    assert i != 1

        class TestSub(unittest.TestCase):
            def test_it(self):
                for i in range(3):
                    with self.subTest(i=i):
                        self.assertNotEqual(i, 1)
        """
    )
    result = suite.run("--trials=2", plugins=SUBTESTS)
    assert set(map(tuple, suite.outcomes().values())) == {("failed", "failed")}
    assert result.ret == 1


def test_messages_are_redacted(single: Suite) -> None:
    """A key in an exception's text does not reach the store."""
    key = "sk-" + "a1B2" * 8
    single.files(test_key=f"def test_key(): raise ValueError('401 for {key}')")
    single.run("--trials=1")
    message = single.last().trials["message"][0]
    assert message == "ValueError: 401 for [redacted]"
    assert not any(
        key.encode() in path.read_bytes() for path in (single.root / ".crashlab").rglob("*") if path.is_file()
    )


TRAPS = """
import pytest
from pytest_crashlab import Check

@pytest.mark.checks(Check("amount", must="x"))
def test_required_check_without_trial(): pass

async def judge(): return False

def test_nan(trial): trial.check("s", float("nan"))
def test_score(trial): trial.check("s", 1.7)
def test_coroutine(trial): trial.check("s", judge())
def test_one(trial): trial.check("s", 1)
def test_zero(trial): trial.check("s", 0.0)
def test_text(trial): trial.check("s", "found")

def test_bad_str():
    class Bad(Exception):
        def __str__(self): raise RuntimeError
    raise Bad

@pytest.fixture
def early(subtests):
    with subtests.test("early"): assert 0

def test_subtest_in_setup(early): pass

@pytest.fixture
def late(subtests):
    yield
    with subtests.test("late"): assert 0

def test_subtest_in_teardown(late): pass

@pytest.mark.xfail
def test_xfail_by_check(trial): trial.check("s", False)

@pytest.mark.xfail(strict=True)
def test_xfail_strict_by_check(trial): trial.check("s", False)

@pytest.mark.xfail(strict=True)
def test_xpass_strict(trial): trial.check("s", True)
"""

TRAPPED = {
    "required_check_without_trial": "not_verified",
    "nan": "not_verified",
    "score": "misdeclared",
    "coroutine": "misdeclared",
    "one": "passed",
    "zero": "failed",
    "text": "passed",
    "bad_str": "crashed",
    "subtest_in_setup": "failed",
    "subtest_in_teardown": "passed",
    "xfail_by_check": "xfailed",
    "xfail_strict_by_check": "xfailed",
    "xpass_strict": "failed",
}


@pytest.mark.parametrize("gated", [(), ("--min-pass-rate=0.01",)], ids=["ungated", "gated"])
def test_what_looks_like_a_pass_and_is_none(single: Suite, gated: tuple[str, ...]) -> None:
    single.files(test_traps=TRAPS)
    single.run("--trials=1", *gated, plugins=SUBTESTS)
    assert {case.partition("::test_")[2]: labels[0] for case, labels in single.outcomes().items()} == TRAPPED
    late = single.last().trials.filter(case="test_traps.py::test_subtest_in_teardown")
    assert late["record_error"][0].startswith("teardown_error: ")


def test_a_vocabulary_keeps_the_kind_of_built_in_labels() -> None:
    with pytest.raises(ValueError, match="'failed' is built in and of the kind fail"):
        Vocabulary(Outcome.passed("ok", "Fine."), Outcome.passed("failed", "Fine too."))
    assert Vocabulary(Outcome.failed("failed", "In my words."))["failed"].definition == "In my words."
