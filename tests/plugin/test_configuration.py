"""What a session declares: configuration and prompts, kept with the run and read by tests."""

from __future__ import annotations

import pytest

from pytest_crashlab.plugin.configuration import config_digest
from pytest_crashlab.store import Store

LOAD = ("-p", "pytest_crashlab.plugin")
TEST = """
def test_config(run_config):
    assert dict(run_config) == {"temperature": "0.2", "top_k": "5"}
"""


@pytest.fixture
def suite(pytester):
    pytester.makeini("[pytest]\ncrashlab_config =\n    temperature = 0\n    top_k=5\n")
    pytester.makepyfile(TEST)
    return pytester


def run(pytester, *arguments):
    return pytester.runpytest_inprocess(*LOAD, *arguments)


def runs(pytester):
    return Store.open(pytester.path / ".crashlab").manifests()


def test_values_of_the_command_win_and_are_kept(suite):
    assert run(suite, "--crashlab-config=temperature=0.2").ret == 0
    (manifest,) = runs(suite)
    assert manifest.run_config == {"temperature": "0.2", "top_k": "5"}
    assert len(manifest.config_digest) == 32


def test_the_ini_file_alone_starts_no_run_and_the_fixture_reads_it(suite):
    suite.makepyfile('def test_config(run_config): assert run_config["temperature"] == "0"')
    run(suite).assert_outcomes(passed=1)
    assert not suite.path.joinpath(".crashlab").exists()


def test_the_digest_follows_the_values_and_not_their_order():
    one, other = {"a": "1", "b": "2"}, {"b": "2", "a": "1"}
    assert config_digest(one) == config_digest(other) != config_digest({"a": "1", "b": "3"})
    assert config_digest({"a": "1=b"}) != config_digest({"a=1": "b"})


def test_secrets_are_not_kept_and_change_no_digest(pytester):
    pytester.makepyfile("def test(run_config): assert len(run_config['api_key']) == 3")
    for key in ("one", "two"):
        assert run(pytester, "--trials=1", f"--crashlab-config=api_key={key}").ret == 0
    second, first = runs(pytester)
    assert first.run_config == {"api_key": "[redacted]"}
    assert first.config_digest == second.config_digest


def test_without_configuration_there_is_no_digest(pytester):
    pytester.makepyfile("def test(run_config): assert not run_config")
    assert run(pytester, "--trials=1").ret == 0
    assert (runs(pytester)[0].run_config, runs(pytester)[0].config_digest) == ({}, None)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--crashlab-config=hot"], "*--crashlab-config has 'hot'; write key=value"),
        (["--crashlab-config==1"], "*--crashlab-config has '=1'; write key=value"),
        (
            ["--crashlab-config=a=1", "--crashlab-config=a=2"],
            "*--crashlab-config gives 'a' two values, '1' and '2'; keep one of them",
        ),
    ],
)
def test_a_line_that_cannot_be_followed(suite, options, said):
    result = run(suite, *options)
    assert result.ret == 4
    result.stderr.fnmatch_lines([said])


def test_a_run_is_not_resumed_under_another_configuration(suite):
    run(suite, "--trials=1", "--crashlab-config=temperature=0.2")
    result = run(suite, "--crashlab-resume=latest", "--crashlab-config=temperature=0.3")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*its declared configuration changed since it began (temperature); *"])


def test_prompts_are_kept_with_the_trials(pytester):
    pytester.makepyfile(
        """
        import pytest
        def test_prompt(trial):
            trial.prompt("refund", 7)
            trial.prompt("refund", 7)
            if trial.number == 2:
                trial.prompt("system")
        def test_none(trial): pass
        def test_wrong(trial): trial.prompt("a, b")
        """
    )
    result = run(pytester, "--trials=2", "--crashlab-prompt=refund@7", "--crashlab-config=depth=3")
    result.stdout.fnmatch_lines(
        [
            "  Prompt refund@7: seen in 2 of 6 trials; others: system in 1; 4 said nothing.",
            "  Configuration: depth=3.",
        ]
    )
    trials = Store.open(pytester.path / ".crashlab").load(runs(pytester)[0].id).trials
    found = {
        (case.rpartition("::")[2], trial): (prompt, outcome)
        for case, trial, prompt, outcome in trials.select("case", "trial", "prompt", "outcome").iter_rows()
    }
    assert found["test_prompt", 1] == ("refund@7", "passed")
    assert found["test_prompt", 2] == ("refund@7, system", "passed")
    assert found["test_none", 1] == (None, "passed")
    assert found["test_wrong", 1] == (None, "misdeclared")
