"""The provider fixture in sessions: what a trial's row and its outcome say of its calls."""

from __future__ import annotations

import importlib.util
from textwrap import dedent

import pytest

from pytest_crashlab import load_run
from pytest_crashlab.store import Store

pytestmark = pytest.mark.skipif(
    not any(importlib.util.find_spec(name) for name in ("httpx", "httpx2")), reason="httpx is not installed"
)
HEAD = """
import pytest
from pytest_crashlab.provider.scripted import Reply, Scripted
"""


@pytest.fixture(autouse=True)
def _isolated(monkeypatch):
    for name in ("PYTEST_ADDOPTS", "CI", "GITHUB_ACTIONS", "CRASHLAB_STORE", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def session(pytester):
    """Run a suite in this process; gives the result and the rows of the run by (case, trial)."""

    def run(source, *arguments, ini="", code=None):
        pytester.makepyfile(HEAD + dedent(source))
        pytester.makeini(f"[pytest]\n{ini}")
        result = pytester.runpytest_inprocess("-p", "pytest_crashlab.plugin", *arguments)
        if code is not None:
            assert result.ret == code, result.stdout.str()
        store = Store.open(pytester.path / ".crashlab")
        manifest = store.manifests()[0]
        return result, manifest, store.load(manifest.id).trials.sort("case", "trial").to_dicts()

    return run


def test_what_the_target_used_is_in_its_row(session):
    _, _, rows = session(
        """
        @pytest.mark.crashlab(provider=Scripted(Reply(text="Paris", tokens_in=12, tokens_out=3)))
        def test_asks_twice(provider):
            assert provider.ask("France?").text == provider.ask("Sure?").text == "Paris"

        def test_asks_nobody(): pass

        @pytest.mark.crashlab(provider="inhouse:m1")
        def test_by_hand(provider):
            with provider.call() as call:
                call.tokens(input=7, output=1)
                call.cost_usd = 0.25
        """,
        "--trials=2",
        code=0,
    )
    used = [(row["tokens_in"], row["tokens_out"], row["cost_usd"], row["cost_basis"]) for row in rows]
    assert used == [(None,) * 4] * 2 + [(24, 6, None, None)] * 2 + [(7, 1, 0.25, "billed")] * 2


def test_models_that_answered_and_prompts_that_requests_name_are_kept(session):
    _, manifest, rows = session(
        """
        @pytest.mark.crashlab(provider=Scripted("Paris", model="m-2026"), judge=Scripted("yes", model="j"))
        @pytest.mark.parametrize("version", [None, "7"])
        def test_asks(trial, provider, judge, version):
            prompt = {"id": "pmpt_x"} | ({} if version is None else {"version": version})
            trial.prompt("own", 1)
            with provider.http_client() as client:
                asked = {"model": provider.model, "input": "France?", "prompt": prompt}
                assert client.post("/v1/responses", json=asked).status_code == 200

        def test_asks_nobody(): pass
        """,
        "--trials=1",
        "--crashlab-prompt=pmpt_x@7",
        code=0,
    )
    assert [(row["models"], row["prompt"]) for row in rows] == [
        ("scripted:m-2026", "own@1, pmpt_x@7"),
        ("scripted:m-2026", "own@1, pmpt_x"),
        (None, None),
    ]
    assert manifest.models == ["scripted:m-2026"]


def test_a_fault_of_the_provider_is_undecided_and_a_refused_question_is_not(session):
    _, _, rows = session(
        """
        def script(prompt, luck):
            return Reply(fault=prompt)

        @pytest.mark.crashlab(provider=Scripted(script), retries=0)
        @pytest.mark.parametrize("fault", ["quota", "timeout", "too_long"])
        def test_asks(provider, fault):
            provider.ask(fault)
        """,
        "--trials=1",
    )
    found = {row["case"].rpartition("[")[2]: row["outcome"] for row in rows}
    assert found == {"quota]": "provider_quota", "timeout]": "provider_timeout", "too_long]": "crashed"}


def test_an_error_of_an_sdk_is_undecided_in_a_test_that_has_no_fixture(session):
    pytest.importorskip("openai")
    _, _, rows = session(
        """
        def test_asks(unused_tcp_port=9):
            import openai
            client = openai.OpenAI(api_key="k", base_url="http://127.0.0.1:9/v1", max_retries=0)
            client.chat.completions.create(model="m", messages=[])
        """,
        "--trials=1",
    )
    assert [row["outcome"] for row in rows] == ["network_error"]


def test_a_projects_own_word_on_an_exception_comes_first(session):
    pytest.importorskip("openai")
    _, _, rows = session(
        """
        def test_asks():
            import openai
            client = openai.OpenAI(api_key="k", base_url="http://127.0.0.1:9/v1", max_retries=0)
            client.chat.completions.create(model="m", messages=[])
        """,
        "--trials=1",
        ini="crashlab_exceptions = openai.APIConnectionError = failed",
    )
    assert [row["outcome"] for row in rows] == ["failed"]


def test_a_judges_tokens_are_never_the_targets_and_its_name_is_kept(session):
    _, manifest, rows = session(
        """
        YES = '{"reason": "fine", "pass": true}'

        @pytest.mark.crashlab(
            provider=Scripted(Reply(text="Paris", tokens_in=12, tokens_out=3)),
            judge=Scripted(Reply(text=YES, tokens_in=500, tokens_out=70), model="strict"),
        )
        def test_judged(trial, provider, judge):
            with trial.run() as target:
                target.output = provider.ask("France?").text
            verdict = judge("Is it a city?", answer=target.output, votes=3)
            trial.check("city", verdict, why=verdict.why, judge=verdict.judge)
            assert (judge.provider.usage.tokens_in, provider.usage.tokens_in) == (1500, 12)
        """,
        "--trials=1",
        code=0,
    )
    assert [(row["tokens_in"], row["tokens_out"]) for row in rows] == [(12, 3)]
    checks = load_run(manifest.id, store=".crashlab").checks.to_dicts()
    assert [(c["ok"], c["judge"].partition(",")[0], c["why"]) for c in checks] == [
        (True, "scripted:strict", "3 of 3 votes passed, 2 needed: fine")
    ]


def test_a_judge_without_an_answer_gives_no_decision_and_no_judge_is_a_mistake(session):
    _, _, rows = session(
        """
        @pytest.mark.crashlab(judge=Scripted("perhaps"))
        def test_a(judge):
            judge("Is it a city?", answer="Paris")

        def test_b(judge): pass
        """,
        "--trials=1",
    )
    assert [row["outcome"] for row in rows] == ["judge_error", "misdeclared"]
    assert "no model is bound to judge" in rows[1]["message"]


BINDINGS = """
def test_bound(provider):
    print("bound:", provider.binding.spec, provider.settings, provider.binding.retries)
    assert provider.named("critic").model == "claude-x"
"""
INI = "crashlab_provider =\n    openai:gpt-x temperature=0\n    critic = anthropic:claude-x\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "openai:gpt-x {'temperature': 0} 2"),
        (("--crashlab-retries=5",), "openai:gpt-x {'temperature': 0} 5"),
        (("--crashlab-model=gpt-y",), "openai:gpt-y {'temperature': 0} 2"),
        (("--crashlab-model=anthropic:claude-y",), "anthropic:claude-y {} 2"),
        (("--crashlab-model=critic",), "anthropic:claude-x {} 2"),
    ],
)
def test_models_are_bound_by_ini_and_option(session, arguments, expected):
    result, manifest, _ = session(BINDINGS, "--trials=1", "-s", *arguments, ini=INI, code=0)
    result.stdout.fnmatch_lines([f"*bound: {expected}"])
    given = [a.partition("=")[2] for a in arguments if "model" in a]
    assert manifest.model == (given[0] if given else "openai:gpt-x")


def test_a_marker_binds_a_model_before_the_ini_and_names_others(session):
    result, _, _ = session(
        """
        @pytest.mark.crashlab(provider={"writer": "openai:a", "critic": "anthropic:claude-x"}, top_p=0.5)
        def test_bound(provider):
            print("bound:", provider.binding.name, provider.settings)
            assert provider.named("critic").model == "claude-x"
            assert provider.named("openai:other").model == "other"
        """,
        "--trials=1",
        "-s",
        ini=INI,
        code=0,
    )
    result.stdout.fnmatch_lines(["*bound: writer {'top_p': 0.5}"])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def test_a(provider): pass", "no model is bound: mark the test crashlab(provider='openai:gpt-x')"),
        (
            "@pytest.mark.crashlab(provider=7)\ndef test_a(provider): pass",
            "the marker crashlab has provider=7; give it a text such as 'openai:gpt-x'",
        ),
        (
            "@pytest.mark.crashlab(provider='openai:x')\ndef test_a(provider): provider.named('critic')",
            "no model is bound by the name 'critic' (there is default)",
        ),
    ],
)
def test_a_binding_that_cannot_be_followed_is_the_tests_mistake(session, source, message):
    _, _, rows = session(source, "--trials=1")
    assert [row["outcome"] for row in rows] == ["misdeclared"]
    assert message in rows[0]["message"]


@pytest.mark.parametrize(
    ("ini", "arguments", "message"),
    [
        ("crashlab_provider = gpt-x", (), "crashlab_provider has 'gpt-x', which names no model"),
        (
            "crashlab_provider =\n    openai:a\n    openai:b",
            (),
            "crashlab_provider names two models 'default'",
        ),
        ("", ("--crashlab-retries=many",), "--crashlab-retries=many is out of range"),
    ],
)
def test_a_binding_that_cannot_be_read_ends_the_session(pytester, ini, arguments, message):
    pytester.makepyfile("def test_a(): pass")
    pytester.makeini(f"[pytest]\n{ini}")
    result = pytester.runpytest_inprocess("-p", "pytest_crashlab.plugin", *arguments)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*{message}*"])


def test_the_fixture_works_without_trials(pytester):
    pytester.makepyfile(
        HEAD + "@pytest.mark.crashlab(provider=Scripted('yes'))\n"
        "def test_a(provider):\n    assert provider.ask('x').text == 'yes'\n"
        "    assert provider.usage.calls == 1\n"
    )
    result = pytester.runpytest_inprocess("-p", "pytest_crashlab.plugin")
    result.assert_outcomes(passed=1)
    assert not (pytester.path / ".crashlab").exists()


def test_what_a_test_asks_wrongly_is_not_the_targets_crash(session):
    _, _, rows = session(
        """
        @pytest.mark.crashlab(provider="inhouse:m1")
        def test_a(provider):
            provider.client()
        """,
        "--trials=1",
    )
    assert [row["outcome"] for row in rows] == ["misdeclared"]
    assert "no SDK is known for 'inhouse'; use provider.http_client()" in rows[0]["message"]
