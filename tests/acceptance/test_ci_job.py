"""A CI job from end to end in real repositories: main promotes, a branch regresses, a fork has nothing."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text("utf-8")
SUITE = """
import pytest
from agent import answer

@pytest.mark.parametrize("n", range(4))
def test_agent(n):
    assert answer(n) == n, f"got {answer(n)}"
"""
RIGHT, WRONG = "def answer(n): return n\n", "def answer(n): return -1 - n\n"


class Job:
    """A checkout with its own cache of the store, as CI restores one."""

    def __init__(self, folder, environment):
        self.folder = folder
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "CI", "GITHUB_"))},
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": "-p pytest_crashlab.plugin",
            **{
                f"GIT_{who}_{what}": "ada@example.org"
                for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
            **environment,
        }

    def run(self, *command):
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )

    def git(self, *arguments):
        done = self.run("git", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def pytest(self, *arguments):
        return self.run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments)


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    """A project whose main has recorded its baseline; the store is the cache that other jobs restore."""
    folder = tmp_path_factory.mktemp("ci") / "origin"
    folder.mkdir()
    job = Job(folder, {})
    job.git("init", "-q", "-b", "main")
    (folder / "test_agent.py").write_text(SUITE)
    (folder / "agent.py").write_text(RIGHT)
    job.git("add", ".")
    job.git("commit", "-q", "-m", "works")
    done = job.pytest("--trials=5", "--baseline=main", "--save-baseline=main")
    assert done.returncode == 0, done.stdout
    assert "Saved as baseline main." in done.stdout
    job.git("switch", "-q", "-c", "change")
    (folder / "agent.py").write_text(WRONG)
    job.git("commit", "-q", "-am", "break it")
    return job


def checkout(origin, folder, *options, branch="change", **environment):
    origin.git("clone", "-q", *options, "--branch", branch, f"file://{origin.folder}", str(folder))
    return Job(folder, environment)


def test_a_branch_that_regresses_fails_with_a_comment(origin, tmp_path):
    page = tmp_path / "summary.md"
    job = checkout(
        origin,
        tmp_path / "clone",
        CRASHLAB_STORE=str(origin.folder / ".crashlab"),
        GITHUB_ACTIONS="true",
        GITHUB_STEP_SUMMARY=str(page),
    )
    done = job.pytest("--trials=5", "--baseline=main", "--crashlab-report=crashlab.md")
    assert done.returncode == 1
    comment = (job.folder / "crashlab.md").read_text("utf-8")
    assert comment.startswith("<!-- pytest-crashlab -->\n### 🔴 Regressed")
    assert "5/5 → 0/5" in comment
    assert "got -1" in comment
    assert page.read_text("utf-8").startswith(comment)
    marks = [line for line in done.stdout.splitlines() if line.startswith("::error ")]
    assert len(marks) == 4
    assert all(mark.startswith("::error file=test_agent.py,line=5,") for mark in marks)


def test_a_clone_of_depth_one_says_what_it_compares_with(origin, tmp_path):
    job = checkout(origin, tmp_path / "clone", "--depth=1", CRASHLAB_STORE=str(origin.folder / ".crashlab"))
    done = job.pytest("--trials=5", "--baseline=main")
    assert done.returncode == 1
    assert "Regressed" in done.stdout
    assert "its newest promotion: no branch is called main" in done.stdout


PULL_REQUEST = {
    "CI": "true",
    "GITHUB_ACTIONS": "true",
    "GITHUB_EVENT_NAME": "pull_request",
    "GITHUB_BASE_REF": "main",
    "GITHUB_HEAD_REF": "change",
    "GITHUB_REF": "refs/pull/1/merge",
}


def test_a_pull_request_fails_in_the_checkout_that_github_makes_and_passes_once_it_is_mended(
    origin, tmp_path
):
    """One commit deep, on no branch; the second job writes its comment over the first one's."""
    store = {"CRASHLAB_STORE": str(origin.folder / ".crashlab")}
    job = checkout(origin, tmp_path / "clone", "--depth=1", **store, **PULL_REQUEST)
    job.git("switch", "-q", "--detach")
    comments = []
    for code in (1, 0):
        done = job.pytest("--trials=5", "--baseline=main", "--crashlab-report=crashlab.md")
        assert done.returncode == code, done.stdout
        assert "its newest promotion: branch main is not in this clone" in done.stdout
        assert "The baseline is not an ancestor of this change (shallow clone)." in done.stdout
        assert done.stdout.count("\n::error ") == (4 if code else 0)
        comments.append((job.folder / "crashlab.md").read_text("utf-8"))
        (job.folder / "agent.py").write_text(RIGHT)
        job.git("commit", "-q", "--allow-empty", "-am", "mend it")
    assert comments[0].startswith("<!-- pytest-crashlab -->\n### 🔴 Regressed")
    assert comments[1].startswith("<!-- pytest-crashlab -->\n### ⚪ No change")
    assert "**The gate passes (exit code 0, policy regressions).**" in comments[1]


def test_a_fork_that_regresses_has_nothing_to_compare_with_and_says_so_in_its_comment(origin, tmp_path):
    job = checkout(origin, tmp_path / "clone", "--depth=1", **PULL_REQUEST)
    done = job.pytest("--trials=5", "--baseline=main", "--crashlab-report=crashlab.md")
    assert done.returncode == 10
    comment = (job.folder / "crashlab.md").read_text("utf-8")
    assert comment.startswith("<!-- pytest-crashlab -->\n### ⚪ No verdict")
    assert "No baseline main yet: nothing was recorded for it" in comment
    assert "| Pass rate, these cases | 0.0 % |" in comment


def test_a_fork_has_no_baseline_and_does_not_fail_for_it(origin, tmp_path):
    job = checkout(origin, tmp_path / "clone")
    (job.folder / "agent.py").write_text(RIGHT)
    gated = job.pytest("--trials=5", "--baseline=main")
    assert gated.returncode == 10
    assert "No baseline main yet" in gated.stdout
    noted = job.pytest(
        "--trials=5", "--baseline=main", "--crashlab-baseline-missing=note", "--crashlab-report=crashlab.md"
    )
    assert noted.returncode == 0
    assert (job.folder / "crashlab.md").read_text("utf-8").startswith("<!-- pytest-crashlab -->")


def commands():
    """Each command of the page that is ours, as one would type it."""
    found = re.findall(r"(?:^|[\s'\"])((?:pytest|crashlab) (?:--|baseline|plan)[^\n`|']*)", PAGE)
    return sorted({re.sub(r"\$JENKINS_HOME", "jenkins", command).strip() for command in found})


def test_the_page_has_the_commands_that_are_run():
    assert len(commands()) >= 9


def test_the_scripts_of_the_workflows_are_shell():
    """Each step's script, where GitHub has put in what stands in double braces."""
    yaml = pytest.importorskip("yaml")
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    pages = [yaml.safe_load(block) for block in blocks]
    lists = [page for page in pages if isinstance(page, list)]
    for page in pages:
        if isinstance(page, dict):
            lists += [job["steps"] for job in page.get("jobs", {}).values()]
    scripts = [step["run"] for steps in lists for step in steps if "run" in step]
    assert len(scripts) >= 6
    for script in scripts:
        assert "${{" not in script  # what others may choose comes by the environment
        done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), script


# One process runs all, and imports what judges a run once.
DRIVER = """
import json, sys
import polars, pytest, scipy.special
from pytest_crashlab.cli import main
for program, *arguments in json.load(sys.stdin):
    code = pytest.main([*arguments]) if program == "pytest" else main(arguments)
    print("\\nended", json.dumps([int(code), program, *arguments]))
"""


def test_the_commands_of_the_page_run(origin, tmp_path):
    """In one checkout, one after the other; none is refused as a usage error."""
    job = checkout(origin, tmp_path / "clone", branch="main", CRASHLAB_STORE=str(tmp_path / "store"))
    (job.folder / "tests").mkdir()
    ordered = sorted(
        commands(), key=lambda command: ("baseline.crashrun" in command, "export" not in command)
    )
    asked = [["pytest", "--trials=2", "--save-baseline=main"]]
    for command in ordered:
        words = shlex.split(command)
        asked.append(["--trials=2" if word.startswith("--trials") else word for word in words])
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps(asked),
        cwd=job.folder,
        env=job.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    ended = [json.loads(line[6:]) for line in done.stdout.splitlines() if line.startswith("ended ")]
    assert [command for _, *command in ended] == asked, done.stderr
    assert {code for code, *_ in ended} <= {0, 10}, done.stdout
