"""What was measured: declared files, seeds and labels in the manifest, and what a resumed run refuses."""

from __future__ import annotations

import pytest

from pytest_crashlab.store import Store

LOAD = ("-p", "pytest_crashlab.plugin")
INI = """
[pytest]
crashlab_target = agent.py
crashlab_evaluation =
    test_*.py
    data
"""


@pytest.fixture
def project(pytester):
    pytester.makeini(INI)
    pytester.makepyfile(agent="ANSWER = 42\n", test_agent="def test_answer():\n    assert True\n")
    pytester.mkdir("data").joinpath("cases.txt").write_text("one\n", "utf-8")
    return pytester


def manifests(pytester):
    return Store.open(pytester.path / ".crashlab").manifests()


def test_digests_follow_the_files(project):
    project.runpytest_inprocess(*LOAD, "--trials=2")
    project.runpytest_inprocess(*LOAD, "--trials=2")
    project.path.joinpath("agent.py").write_text("ANSWER = 41\n", "utf-8")
    project.runpytest_inprocess(*LOAD, "--trials=2")
    third, second, first = manifests(project)
    assert first.target_digest == second.target_digest != third.target_digest
    assert first.evaluation_digest == second.evaluation_digest == third.evaluation_digest is not None
    assert set(first.sources["evaluation"]) == {"test_*.py", "data"}


def test_nothing_named_is_not_known(pytester):
    pytester.makepyfile("def test_answer():\n    pass\n")
    pytester.runpytest_inprocess(*LOAD, "--trials=2")
    (manifest,) = manifests(pytester)
    assert (manifest.target_digest, manifest.evaluation_digest) == (None, None)
    assert manifest.seed_source == "drawn"


def test_a_path_that_is_not_there_is_refused(project):
    project.makeini("[pytest]\ncrashlab_target = agnet.py\n")
    result = project.runpytest_inprocess(*LOAD, "--trials=2")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*crashlab_target names agnet.py, and there is no such file in *"])


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("agent.py", "its target changed since it began (agent.py)"),
        ("data/cases.txt", "its evaluation changed since it began (data)"),
    ],
)
def test_a_run_is_not_resumed_with_other_sources(project, file, said):
    project.runpytest_inprocess(*LOAD, "--trials=2")
    project.path.joinpath(file).write_text("other\n", "utf-8")
    result = project.runpytest_inprocess(*LOAD, "--crashlab-resume=latest")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*{said.replace('[', '[[]')}*"])


def test_a_shared_seed_is_the_baselines(project):
    project.runpytest_inprocess(*LOAD, "--trials=2", "--save-baseline=main", "--baseline=main")
    project.runpytest_inprocess(
        *LOAD,
        "--baseline=main",
        "--crashlab-seed=baseline",
        "--crashlab-model=m2",
        "--crashlab-outcome=failed,passed",
    )
    second, first = manifests(project)
    assert (second.seed, second.seed_source) == (first.seed, "baseline")
    assert (second.model, second.declared_outcomes) == ("m2", ["failed", "passed"])


def test_a_shared_seed_needs_a_baseline(project):
    result = project.runpytest_inprocess(*LOAD, "--trials=2", "--crashlab-seed=baseline")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--crashlab-seed=baseline needs a baseline: name one with --baseline*"])


def test_a_session_says_what_it_compared(project):
    project.runpytest_inprocess(*LOAD, "--trials=4", "--save-baseline=main", "--baseline=main")
    project.path.joinpath("agent.py").write_text("ANSWER = 41\n", "utf-8")
    result = project.runpytest_inprocess(
        *LOAD, "--baseline=main", "--crashlab-seed=baseline", "--crashlab-outcome=failed"
    )
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "*Both runs share their seeds: 4 pairs of trials compared, one by one.",
            "*outcome failed: 0.0 % -> 0.0 % (0.0 points, *), not proven; 4*",
            "*What changed: the target's source.",
            "*A/A factor): not calibrated.",
        ]
    )


def test_equal_runs_calibrate_the_next_one(project):
    project.makepyfile(
        test_agent="""
            import os

            def test_answer(trial):
                assert trial.number <= int(os.environ["PASSES"])
            """
    )
    for passes in (2, 4, 3):
        project._monkeypatch.setenv("PASSES", str(passes))
        result = project.runpytest_inprocess(*LOAD, "--trials=4", "--save-baseline=main", "--baseline=main")
    # 2 of 4 and 4 of 4: d = 1/2, v = 6 * 2 / (7 * 4 * 4) = 3/28, d^2 / v = 7/3
    result.stdout.fnmatch_lines(["*Same-source control: *", "*A/A factor): 2.33."])
