"""Sessions that record what models answer, and sessions that are answered from there."""

from __future__ import annotations

import importlib.util
import json
import shutil

import pytest
from wire import Server

from pytest_crashlab.store import Store

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("openai", "anthropic")),
    reason="the openai and anthropic SDKs are not installed (extra providers-test)",
)
HEAD = """
import asyncio, os, pytest

URL = os.environ["URL"]
ASKED = [{"role": "user", "content": "The capital of France?"}]

def chat(client, **given):
    return client.chat.completions.create(model="model-x", messages=ASKED, **given)

def openai(fault="ok", **given):
    return pytest.mark.crashlab(provider="openai:model-x", base_url=f"{URL}/{fault}/v1", **given)

def anthropic(fault="ok"):
    return pytest.mark.crashlab(provider="anthropic:model-x", base_url=f"{URL}/{fault}")
"""
EVERY_WAY = """
@openai()
def test_chat(provider):
    client = provider.client()
    assert chat(client).choices[0].message.content == "Paris"
    assert client.responses.create(model="model-x", input=ASKED).output_text == "Paris"

@openai()
def test_stream(provider):
    parts = [e.choices[0].delta.content for e in chat(provider.client(), stream=True) if e.choices]
    assert "".join(filter(None, parts)) == "Paris"

@openai()
def test_async(provider):
    async def ask():
        async with provider.async_client() as client:
            answer = await chat(client)
            stream = await client.responses.create(model="model-x", input=ASKED, stream=True)
            return answer, [event.type async for event in stream]
    answer, events = asyncio.run(ask())
    assert answer.choices[0].message.content == "Paris"
    assert events[-1] == "response.completed"

@anthropic()
def test_messages(provider):
    asked = {"model": "model-x", "messages": ASKED, "max_tokens": 50}
    client = provider.client()
    assert client.messages.create(**asked).content[0].text == "Paris"
    with client.messages.stream(**asked) as stream:
        assert "".join(stream.text_stream) == "Paris"

    async def ask():
        async with provider.async_client() as client:
            events = [e.type async for e in await client.messages.create(**asked, stream=True)]
            return events, await client.messages.create(**asked)
    events, answer = asyncio.run(ask())
    assert events[-1] == "message_stop"
    assert answer.content[0].text == "Paris"

@openai("packed")
def test_compressed_and_plain(provider):
    assert provider.ask("The capital of France?").text == "Paris"
    with provider.http_client(library="httpx") as client:
        assert client.get("models").json() == {"object": "list", "data": []}

@pytest.mark.crashlab(provider="openai:model-x", judge="openai:judge-x", base_url=f"{URL}/ok/v1")
def test_judged(provider, judge):
    assert judge.provider.client(base_url=f"{URL}/ok/v1").models.list().data == []
    assert provider.ask("The capital of France?").text == "Paris"
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    """Run a suite with a server of its own: (result, said, newest run, requests that the server saw)."""
    for name in ("PYTEST_ADDOPTS", "CI", "GITHUB_ACTIONS", "CRASHLAB_STORE", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(source, *arguments, key="sk-loopback-000000000001"):
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            if key is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, key)
        pytester.makepyfile(test_it=HEAD + source)
        with Server() as server:
            monkeypatch.setenv("URL", server.url("")[:-1])
            load = ("-p", "pytest_crashlab.plugin", "-p", "xdist.plugin")
            result = pytester.runpytest_inprocess(*load, *arguments)
            asked = sum(server.seen.values())
        said = " ".join((result.stdout.str() + result.stderr.str()).split())
        folder = pytester.path / ".crashlab"
        stored = None
        if folder.exists() and (found := Store.open(folder)).manifests():
            stored = found.load(found.manifests()[0].id)
        return result, said, stored, asked

    return run


def tapes(pytester, folder="tapes"):
    return sorted((pytester.path / folder).glob("*.jsonl"))


def rows(stored):
    return stored.trials.sort("case", "trial").to_dicts()


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["one", "two"])
def test_every_client_is_answered_from_the_recording(suite, pytester, workers):
    _, said, live, asked = suite(EVERY_WAY, "--trials=2", "--crashlab-record=tapes", *workers)
    assert live.manifest.outcomes == {"passed": 12}, said
    assert asked == 2 * (2 + 1 + 2 + 4 + 1 + 1)
    assert not live.manifest.replayed
    assert len(tapes(pytester)) == 12

    _, said, replayed, asked = suite(EVERY_WAY, "--trials=2", "--crashlab-replay=tapes", *workers, key=None)
    assert replayed.manifest.outcomes == {"passed": 12}, said
    assert asked == 0
    assert replayed.manifest.replayed
    for then, now in zip(rows(live), rows(replayed), strict=True):
        assert (then["replayed"], now["replayed"]) == (None, True)
        for told in ("tokens_in", "tokens_out", "cost_usd", "models"):
            assert now[told] == then[told]
        assert then["run_duration"] > 0
        assert now["run_duration"] is None


ONE = """
@openai()
def test_one(provider):
    assert provider.ask("The capital of France?").text == "Paris"
"""


def record(suite, source=ONE, *arguments):
    result, said, live, asked = suite(source, *(arguments or ("--trials=2",)), "--crashlab-record=tapes")
    assert live.manifest.outcomes.keys() <= {"passed"}, said
    return result, live, asked


def test_a_request_that_was_not_recorded_gives_no_decision_and_is_not_sent(suite):
    record(suite)
    other = ONE.replace("France?", "Spain?")
    _, said, replayed, asked = suite(other, "--trials=3", "--crashlab-replay=tapes")
    assert asked == 0
    assert replayed.manifest.outcomes == {"replay_missing": 3}, said
    assert replayed.manifest.counts["undecided"] == 3
    first, _, third = rows(replayed)
    assert (
        "there is no recorded answer to request 1 of test_it.py::test_one, trial 1 (POST http://127.0.0.1:"
        in first["message"]
    )
    assert first["message"].endswith("the recording has no such request")
    assert third["message"].endswith("none of this trial was recorded")
    assert [row["replayed"] for row in (first, third)] == [True, True]
    assert (first["tokens_in"], first["cost_usd"]) == (None, None)


CAUGHT = """
@openai()
def test_sdk(provider):
    try:
        chat(provider.client(), seed=SEED)
    except Exception:
        pass

@openai()
def test_fails_besides(provider):
    try:
        chat(provider.client(), seed=SEED)
    except Exception:
        assert False

@openai()
def test_async(provider):
    async def ask():
        async with provider.async_client() as client:
            await asyncio.gather(chat(client, seed=SEED), return_exceptions=True)
    asyncio.run(ask())
"""


def test_a_missing_answer_that_the_test_swallows_is_no_pass_and_no_fail(suite):
    record(suite, "SEED = 1" + CAUGHT)
    _, said, replayed, asked = suite("SEED = 2" + CAUGHT, "--trials=2", "--crashlab-replay=tapes")
    assert replayed.manifest.outcomes == {"replay_missing": 6}, said
    assert asked == 0


def test_answers_beyond_those_that_were_recorded_are_missing(suite):
    record(suite)
    twice = ONE + "    provider.ask('The capital of France?')\n"
    _, _, replayed, asked = suite(twice, "--trials=2", "--crashlab-replay=tapes")
    assert replayed.manifest.outcomes == {"replay_missing": 2}
    assert rows(replayed)[0]["message"].endswith("all answers to it were given already")
    assert asked == 0


JUDGED = """
@pytest.mark.crashlab(judge=f"openai-compatible:j base_url={URL}/ok/v1")
def test_judged(judge):
    with pytest.raises(Exception):  # "Paris" is no vote
        judge("Is it polite?", votes=VOTES, answer="Thanks")
"""


def test_a_vote_that_is_missing_is_not_left_to_the_others(suite):
    record(suite, "VOTES = 1" + JUDGED)
    _, said, replayed, _ = suite("VOTES = 1" + JUDGED, "--trials=2", "--crashlab-replay=tapes")
    assert replayed.manifest.outcomes == {"passed": 2}, said
    assert [(row["judge_calls"], row["judge_s"]) for row in rows(replayed)] == [(1, None)] * 2
    _, said, replayed, asked = suite("VOTES = 2" + JUDGED, "--trials=2", "--crashlab-replay=tapes")
    assert (replayed.manifest.outcomes, asked) == ({"replay_missing": 2}, 0), said


def test_the_same_request_gets_its_answers_in_order_and_is_not_waited_for(suite, pytester, monkeypatch):
    flaky = """
@openai("flaky-2", retries=2)
def test_flaky(provider):
    assert provider.ask("The capital of France?").text == "Paris"
    print([(call.http_status, call.waited > 0, call.latency is None) for call in provider.calls])
    assert False
"""
    _, said, _, asked = suite(flaky, "--trials=1", "--crashlab-record=tapes")
    assert asked == 3
    assert "[(500, False, False), (500, True, False), (200, True, False)]" in said
    (path,) = tapes(pytester)
    assert [json.loads(line)["status"] for line in path.read_text().splitlines()[1:]] == [500, 500, 200]
    _, said, _, asked = suite(flaky, "--trials=1", "--crashlab-replay=tapes")
    assert asked == 0
    assert "[(500, False, True), (500, False, True), (200, False, True)]" in said


FAULTS = """
FAULTS = ["rate_limit", "quota", "unauthorised", "broken", "page", "reset", "truncated", "hang", "bad_json",
          "empty", "error_in_200", "too_long", "cut", "quiet", "inside", "garbled"]

def bound(fault):  # each to a provider of its own: one that is down is not asked again
    model = pytest.mark.crashlab(provider=f"of-{fault}:model-x", retries=0, timeout=1)
    return pytest.param(fault, marks=model)

@pytest.mark.parametrize("fault", [bound(fault) for fault in FAULTS])
def test_fault(provider, fault):
    client = provider.client(sdk="openai", base_url=f"{URL}/{fault}/v1")
    streams = fault in {"cut", "quiet", "inside", "garbled"}
    answer = chat(client, stream=streams)
    list(answer) if streams else None
"""


def test_what_went_wrong_goes_wrong_in_the_same_way(suite):
    _, said, live, asked = suite(FAULTS, "--trials=1", "--crashlab-record=tapes")
    assert asked == 16
    _, _, replayed, asked = suite(FAULTS, "--trials=1", "--crashlab-replay=tapes")
    assert asked == 0
    ends = [[(r["case"], r["outcome"], r["message"]) for r in rows(run)] for run in (live, replayed)]
    assert ends[0] == ends[1]
    assert len({row["outcome"] for row in rows(live)}) >= 7, said


SECRETS = """
@openai()
def test_secrets(provider):
    tool = {"type": "mcp", "headers": {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
            "password": os.environ["SHOP_SECRET"]}
    client = provider.client(default_headers={"Cookie": "session=cookie-of-mine-000007"})
    client.responses.create(
        model="model-x", input="with sk-proj-abcdefghij0123456789, cookie-of-mine-000007", tools=[tool],
        extra_query={"key": "query-key-00000001", "page": "7"}, stream=STREAM,
    )
    client.post("/chat/completions", body={"messages": [], "token": "shop-secret-000002"}, cast_to=object)
"""


@pytest.mark.parametrize("stream", [False, True])
def test_no_secret_is_in_a_recording_and_none_is_needed_to_replay_it(suite, pytester, monkeypatch, stream):
    monkeypatch.setenv("SHOP_SECRET", "shop-secret-000002")
    source = f"STREAM = {stream}" + SECRETS
    record(suite, source)
    (first, _) = tapes(pytester)
    kept = first.read_text()
    for secret in (
        "sk-loopback",
        "sk-proj-",
        "cookie-of",
        "query-key",
        "shop-secret",
        "Bearer",
        "uthorization:",
    ):
        assert secret not in kept.replace("Authorization\\", ""), secret
    line = json.loads(kept.splitlines()[1])
    assert line["url"].endswith("/responses?key=[redacted]&page=7")
    assert line["request"].count("[redacted]") == 4
    monkeypatch.setenv("SHOP_SECRET", "another-secret-00003")
    replaced = source.replace('"shop-secret-000002"', 'os.environ["SHOP_SECRET"]').replace(
        "cookie-of-mine-000007", "[redacted]"
    )
    _, said, replayed, _ = suite(
        replaced, "--trials=2", "--crashlab-replay=tapes", key="sk-other-0000000000001"
    )
    assert replayed.manifest.outcomes == {"passed": 2}, said


def test_a_comparison_with_a_replay_has_no_verdict_on_either_side(suite, pytester):
    record(suite, ONE, "--trials=5", "--save-baseline=main")
    _, said, replayed, asked = suite(ONE, "--trials=5", "--crashlab-replay=tapes", "--baseline=main")
    assert asked == 0
    assert "This run holds replayed trials: they repeat an earlier run and measure nothing." in said
    assert "No verdict" in said
    assert replayed.manifest.gate["exit_code"] == 10
    _, said, _, _ = suite(ONE, "--trials=5", f"--baseline={replayed.manifest.id}")
    assert "The baseline holds replayed trials" in said


def test_a_replay_is_said_and_becomes_no_baseline(suite, pytester):
    record(suite)
    _, said, _, _ = suite(ONE, "--trials=2", "--crashlab-replay=tapes", "--save-baseline=main")
    assert "models are not asked, answers are replayed from" in said
    assert "The provider's answers were replayed from a recording: trials repeat each other." in said
    assert "its provider calls were replayed" in said
    assert Store.open(pytester.path / ".crashlab").refs.read("main") is None


def test_a_live_run_that_is_gone_on_with_from_a_recording_is_a_replay(suite):
    _, _, live, _ = suite(ONE, "--trials=2", "--crashlab-record=tapes")
    broken = ONE.replace("openai()", 'openai("broken", retries=0)')
    _, _, begun, _ = suite(broken, "--trials=2", f"--crashlab-seed={live.manifest.seed}")
    assert begun.manifest.outcomes == {"provider_error": 2}
    broken_tape = "--crashlab-replay=tapes"
    _, said, resumed, asked = suite(broken, broken_tape, f"--crashlab-resume={begun.manifest.id}")
    assert asked == 0, said
    assert resumed.manifest.id == begun.manifest.id
    assert resumed.manifest.replayed


SEEDED = """
@openai()
def test_seeded(provider, trial):
    with trial.run():
        chat(provider.client(), seed=trial.seed)
"""


def test_requests_that_follow_from_the_seed_are_found_again(suite):
    _, live, _ = record(suite, SEEDED)
    _, said, replayed, _ = suite(SEEDED, "--trials=2", "--crashlab-replay=tapes")
    assert replayed.manifest.outcomes == {"passed": 2}, said
    assert replayed.manifest.seed == live.manifest.seed
    _, _, other, _ = suite(SEEDED, "--trials=2", "--crashlab-replay=tapes", "--crashlab-seed=7")
    assert other.manifest.outcomes == {"replay_missing": 2}
    _, again, _ = record(suite, SEEDED)
    assert again.manifest.seed == live.manifest.seed
    result, said, _, asked = suite(SEEDED, "--trials=2", "--crashlab-record=tapes", "--crashlab-seed=7")
    assert (result.ret, asked) == (4, 0)
    assert f"was recorded with another seed ({live.manifest.seed})" in said


def test_scripted_models_need_no_recording_and_are_not_marked(suite, pytester):
    scripted = """
from pytest_crashlab.provider.scripted import Scripted

@pytest.mark.crashlab(provider=Scripted("Paris"))
def test_scripted(provider):
    assert provider.ask("The capital of France?").text == "Paris"
"""
    record(suite, scripted)
    assert [len(path.read_text().splitlines()) for path in tapes(pytester)] == [1, 1]
    shutil.rmtree(pytester.path / "tapes")
    record(suite)
    _, said, run, _ = suite(scripted, "--trials=2", "--crashlab-replay=tapes")
    assert run.manifest.outcomes == {"passed": 2}, said
    assert not run.manifest.replayed
    assert {row["replayed"] for row in rows(run)} == {None}


DETOURS = """
@openai()
def test_by_hand(provider):
    with provider.call() as call:
        pytest.exit("this was reached")

@openai()
@pytest.mark.parametrize("way", ["transport", "mounts", "proxy"])
def test_detour(provider, way):
    import httpx
    given = {"transport": httpx.HTTPTransport(), "mounts": {"http://": httpx.HTTPTransport()}, "proxy": URL}
    with provider.http_client(library="httpx", **{way: given[way]}) as client:
        client.post("chat/completions", json={})

@openai()
def test_own_client(provider):
    import httpx
    chat(provider.client(http_client=httpx.Client()))
"""


def test_no_way_leads_around_the_recording(suite):
    record(suite)
    _, said, replayed, asked = suite(DETOURS, "--trials=1", "--crashlab-replay=tapes")
    assert asked == 0
    assert replayed.manifest.outcomes == {"misdeclared": 4, "replay_missing": 1}, said
    messages = " ".join(row["message"] for row in rows(replayed))
    assert "a call by hand in test_it.py::test_by_hand, trial 1 cannot be replayed" in messages
    assert "a client with proxy= of its own cannot be replayed" in messages


def test_a_proxy_of_the_environment_is_not_asked(suite, pytester, monkeypatch):
    proxied = """
os.environ["HTTP_PROXY"] = os.environ["HTTPS_PROXY"] = os.environ["ALL_PROXY"] = URL

@pytest.mark.crashlab(provider="openai:model-x", retries=0)
def test_sdk(provider):
    chat(provider.client())

@pytest.mark.crashlab(provider="anthropic:model-x", retries=0)
def test_plain(provider):
    provider.ask("The capital of France?")
"""
    record(suite)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "")
    _, said, replayed, asked = suite(proxied, "--trials=1", "--crashlab-replay=tapes", key=None)
    assert asked == 0
    assert replayed.manifest.outcomes == {"replay_missing": 2}, said


def test_more_is_not_read_of_a_stream_than_was_recorded(suite):
    leaves = """
@openai()
def test_leaves(provider):
    with provider.http_client() as client:
        asked = {"model": "model-x", "messages": ASKED, "stream": True}
        with client.stream("POST", "chat/completions", json=asked) as answer:
            lines = answer.iter_lines()
            assert next(lines).startswith("data: ")
            READ
"""
    record(suite, leaves.replace("READ", "pass"))
    same, more = leaves.replace("READ", "pass"), leaves.replace("READ", "list(lines)")
    _, said, replayed, _ = suite(same, "--trials=2", "--crashlab-replay=tapes")
    assert replayed.manifest.outcomes == {"passed": 2}, said
    _, said, replayed, _ = suite(more, "--trials=2", "--crashlab-replay=tapes")
    assert replayed.manifest.outcomes == {"replay_missing": 2}, said
    assert "was not read to its end when it was recorded" in rows(replayed)[0]["message"]


def test_sixty_four_calls_at_once_get_their_own_answers(suite):
    many = """
@openai()
def test_many(provider):
    async def ask():
        async with provider.async_client() as client:
            asked = [chat(client, seed=n % 32, stream=n % 2 == 1) for n in range(64)]
            return [[e async for e in a] if n % 2 else a for n, a in enumerate(await asyncio.gather(*asked))]
    assert [bool(answer) for answer in asyncio.run(ask())] == [True] * 64
    assert len(provider.calls) == 64
"""
    _, _, asked = record(suite, many)
    assert asked == 128
    _, said, replayed, asked = suite(many, "--trials=2", "--crashlab-replay=tapes")
    assert (replayed.manifest.outcomes, asked) == ({"passed": 2}, 0), said


def test_a_folder_is_meant_from_where_the_command_was_typed(suite, pytester, monkeypatch):
    below = pytester.mkdir("below")
    monkeypatch.chdir(below)
    _, said, _, _ = suite(ONE, "--trials=2", "-n2", "--crashlab-record=tapes", "--rootdir=..", "..")
    assert len(tapes(pytester, "below/tapes")) == 2, said
    _, said, replayed, asked = suite(
        ONE, "--trials=2", "-n2", "--crashlab-replay=tapes", "--rootdir=..", ".."
    )
    assert (replayed.manifest.outcomes, asked) == ({"passed": 2}, 0), said


def test_without_trials_answers_are_replayed_as_well(suite):
    record(suite)
    result, _, _, asked = suite(ONE, "--trials=off", "--crashlab-replay=tapes")
    assert (result.ret, asked) == (0, 0)
    result, said, _, asked = suite(ONE.replace("France", "Spain"), "--trials=off", "--crashlab-replay=tapes")
    assert (result.ret, asked) == (1, 0)
    assert "there is no recorded answer to request 1" in said


def damaged(folder, how):
    (path, *_) = sorted(folder.glob("*.jsonl"))
    lines = path.read_text().splitlines(keepends=True)
    contents = {
        "later": '{"format": 2}',
        "other": '{"version": 1}',
        "list": "[]",
        "seed": '{"format": 1, "seed": "x"}',
        "cut": "".join(lines)[:-20],
        "short": lines[0],
        "empty": "",
        "binary": "\0",
        "field": lines[0] + lines[1].replace('"number": 1', '"number": "1"'),
    }
    if how in {"gone", "file"}:
        shutil.rmtree(folder)
        if how == "file":
            folder.write_text("x")
    elif how == "no head":
        (folder / "recording.json").unlink()
    elif how in {"later", "other", "list", "seed"}:
        (folder / "recording.json").write_text(contents[how])
    else:
        path.write_text(contents[how])


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("gone", "is not there; make a recording with --crashlab-record="),
        ("file", "is no folder"),
        ("no head", "is no recording (it has no recording.json)"),
        ("later", "has format 2 and this version reads format 1; upgrade pytest-crashlab"),
        ("other", "does not say which format the recording has"),
        ("list", "does not say which format the recording has"),
        ("seed", "is not of format 1"),
        ("cut", "is no recording of a trial (line 2)"),
        ("short", "has 0 of 1 exchanges"),
        ("empty", "is no recording of a trial (line 1)"),
        ("binary", "is no recording of a trial (line 1)"),
        ("field", "is no recording of a trial (line 2)"),
    ],
)
def test_a_recording_that_cannot_be_read_ends_the_session_at_once(suite, pytester, how, sentence):
    record(suite)
    damaged(pytester.path / "tapes", how)
    result, said, _, asked = suite(ONE, "--trials=2", "--crashlab-replay=tapes")
    assert (result.ret, asked) == (4, 0)
    assert sentence in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--crashlab-record=tapes", "--crashlab-replay=tapes"), "exclude each other"),
        (("--crashlab-record=tapes", "--trials=off"), "records trials, and trials are off"),
        (("--crashlab-record=notes",), "holds other things and is no recording"),
        (("--crashlab-record=notes/a.txt",), "is a file or lies below one"),
        (("--crashlab-record=notes/a.txt/deeper",), "is a file or lies below one"),
        (("--crashlab-record=",), "--crashlab-record is empty"),
    ],
)
def test_options_that_cannot_be_followed(suite, pytester, arguments, sentence):
    pytester.mkdir("notes").joinpath("a.txt").write_text("x")
    result, said, _, asked = suite(ONE, *arguments)
    assert (result.ret, asked) == (4, 0)
    assert sentence in said


def test_collecting_alone_makes_no_folder(suite, pytester):
    suite(ONE, "--trials=2", "--crashlab-record=tapes", "--collect-only")
    assert not (pytester.path / "tapes").exists()
