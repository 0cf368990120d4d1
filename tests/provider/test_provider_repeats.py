"""By what an answer is known again, and what a header has to say to name a cache."""

from __future__ import annotations

import json

import pytest

from pytest_crashlab.provider import repeats
from pytest_crashlab.provider.answers import read_answer, read_stream
from pytest_crashlab.provider.base import Call, Role, Status
from pytest_crashlab.provider.genai import Told, read_call

NOW = 1_796_630_400.0  # 2026-12-07T08:00:00Z
OWN = "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT"
CHAT = {
    "id": OWN,
    "created": int(NOW),
    "model": "m",
    "choices": [{"message": {"role": "assistant", "content": "Paris"}, "finish_reason": "stop"}],
}
ASKED = (b"/v1/chat/completions", b'{"messages": []}')


def key(body, headers=None, *, header_id=None, asked=ASKED, start=NOW):
    return repeats.key_of_answer(
        read_answer(body),
        headers or {},
        header_id=header_id,
        asked=asked,
        received=json.dumps(body).encode(),
        start=start,
    )


def chat(**changed):
    return {**CHAT, **changed}


@pytest.mark.parametrize(
    "headers",
    [
        {"Age": "12"},
        {"X-Cache": "HIT"},
        {"x-cache": "Hit from cloudfront"},
        {"x-cache": "MISS, HIT"},
        {"x-cache": "TCP_MEM_HIT from a1.example"},
        {"x-cache": "RefreshHit"},
        {"x-cache-hits": "0, 3"},
        {"cf-cache-status": "HIT"},
        {"cf-cache-status": "REVALIDATED"},
        {"x-cache-status": "STALE"},
        {"cf-aig-cache-status": "HIT"},
        {"helicone-cache": "HIT"},
        {"x-portkey-cache-status": "SEMANTIC HIT"},
        {"x-openrouter-cache-status": "hit"},
        {"cache-status": "ExampleCache; hit; ttl=1100"},
        {"x-from-cache": "1"},
        {"x-cache-hit": "true"},
        {"x-litellm-cache-key": "586bf3f3c1"},
    ],
)
def test_a_header_names_a_hit(headers):
    assert repeats.says_hit({"content-type": "application/json", **headers})


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"age": "0"},
        {"age": "-1"},
        {"age": "soon"},
        {"x-cache": "MISS"},
        {"x-cache": "Miss from cloudfront"},
        {"x-cache": "NO HIT"},
        {"x-cache-hits": "0, 0"},
        {"cf-cache-status": "DYNAMIC"},
        {"cf-cache-status": "EXPIRED"},
        {"cache-status": "ExampleCache; fwd=stale"},
        {"cache-status": "ExampleCache; hit=?0"},
        {"cache-control": "no-cache, max-age=0"},
        {"x-cache": "whitelisted"},
        {"x-cache-hit": "false"},
        {"x-litellm-cache-key": ""},
        {"x-prompt-cache": "HIT"},
        {"fireworks-cached-prompt-tokens": "1"},
        {"x-kv-cache-hit": "1"},
        {"x-prefix-cache-hit": "true"},
        {"x-message": "a hit"},
    ],
)
def test_other_headers_name_none(headers):
    assert not repeats.says_hit(headers)


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (OWN, True),
        ("msg_013Zva2CMHLNnjNJJKqJ2EF", True),
        ("3fa85f64-5717-4562-b3fc-2c963f66afa6", True),
        ("mAitaLmkHPPlz7IPvtfUqQ4", True),
        ("chatcmpl-417", False),
        ("chatcmpl-1", False),
        ("", False),
        ("00000000-0000-0000-0000-000000000000", False),
        ("chatcmpl-------------", False),
    ],
)
def test_an_id_is_the_providers_own_where_it_is_long_enough(own, expected):
    assert repeats.is_own(own) is expected


def test_the_same_answer_is_known_by_its_id():
    known = key(CHAT)
    assert known == key(dict(CHAT))
    assert known == key(chat(created=int(NOW) + 40)), "a cache may give it a new time"
    assert known == key(CHAT, asked=(b"/v1/chat/completions", b"another")), "or answer what is like it"
    assert len({known, key(chat(id=OWN[:-1] + "U")), key(chat(model="n"))}) == 3
    assert not known.startswith(("~", "="))


def test_without_an_id_in_the_body_that_of_the_header_counts():
    bare = chat(id="chatcmpl-417")
    one, other = (key(bare, header_id=f"req_{n}b6a0cbd43eb") for n in "12")
    assert one != other
    assert not one.startswith("~")
    assert key(bare, header_id="req_7").startswith("~")


@pytest.mark.parametrize("where", [0, 1])
def test_an_id_that_the_request_brought_is_not_the_providers(where):
    asked = list(ASKED)
    asked[where] += f" {OWN}".encode()
    assert key(CHAT, asked=asked).startswith("~")
    assert key(CHAT, asked=asked, header_id="req_1b6a0cbd43eb") != key(CHAT, asked=asked)


def test_a_second_counts_for_the_same_request_and_text_only():
    bare = chat(id="chatcmpl-417")
    known = key(bare)
    assert known.startswith("~")
    assert known == key(bare, start=NOW + 60)
    assert known != key(bare, asked=(ASKED[0], b"another"))
    assert known != key(chat(id="chatcmpl-417", created=int(NOW) + 1))


def test_the_date_counts_where_the_body_has_no_time():
    bare = {name: value for name, value in CHAT.items() if name not in {"id", "created"}}
    dates = ("Mon, 07 Dec 2026 08:00:00 GMT", "Mon, 07 Dec 2026 08:00:01 GMT")
    one, other = (key(bare, {"date": date}) for date in dates)
    assert one.startswith("~")
    assert one != other
    assert [key(bare, {"date": date}) for date in ("", "yesterday", "Mon, 07 Dec 2020 08:00:00 GMT")] == [
        None
    ] * 3
    assert key(bare) is None


@pytest.mark.parametrize("created", [0, 1, 1_677_652_288, None, "now", "2026-12-07T08:00:00Z", True])
def test_a_time_that_is_a_constant_or_no_time_says_nothing(created):
    assert key(chat(id="", created=created)) is None


def test_nothing_that_an_answer_may_hold_is_too_odd():
    half = f"{OWN}\ud800"
    assert key(chat(id=half)) == key(chat(id=half)) != key(CHAT)
    for created in (10**400, float("inf"), float("nan"), -1, "\ud800", [], {}):
        assert key(chat(created=created)) is not None
        assert key(chat(id=7, created=created)) is None
    assert repeats.key_of_id(20_261_207_080_000_345) == repeats.key_of_id("20261207080000345")


def test_a_time_that_is_told_to_the_microsecond_is_as_good_as_an_id():
    gemini = {"candidates": [], "createTime": "2026-12-07T08:00:00.123456Z"}
    assert key(gemini) == key(gemini, start=NOW + 9_999_999)
    assert not key(gemini).startswith("~")


@pytest.mark.parametrize(
    ("body", "own"),
    [
        ({"object": "response", "id": "resp_1", "created_at": 1}, "resp_1"),
        ({"type": "message", "id": "msg_1"}, "msg_1"),
        ({"candidates": [], "responseId": "mAita"}, "mAita"),
    ],
)
def test_every_shape_says_its_id(body, own):
    assert read_answer(body).id == own


@pytest.mark.parametrize(
    ("event", "own"),
    [
        ({"id": "chatcmpl-1", "created": 7, "choices": []}, "chatcmpl-1"),
        ({"type": "response.completed", "response": {"id": "resp_1"}}, "resp_1"),
        ({"type": "message_start", "message": {"id": "msg_1"}}, "msg_1"),
    ],
)
def test_every_stream_says_its_id(event, own):
    assert read_stream(f"data: {json.dumps(event)}\n\n").id == own


def test_an_embedding_is_computed_and_no_draw():
    body = {"object": "list", "data": [{"embedding": [0.5]}], "usage": {"prompt_tokens": 3}}
    assert read_answer(body).computed
    assert not read_answer(CHAT).computed


def call(number=1, **fields):
    return Call(number=number, request=number, provider="p", model="m", start=NOW, status=Status.OK, **fields)


def test_the_first_answers_of_each_role_are_kept_each_once():
    calls = [call(n, answer=f"t{n}") for n in range(60)]
    calls += [call(90 + n, answer=f"j{n % 2}", role=Role.JUDGE) for n in range(4)]
    assert repeats.kept(calls) == [*(f"t{n}" for n in range(50)), "j0", "j1"]
    assert repeats.kept([call(answer=None)]) == []


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([call(answer="a"), call(2, answer="b")], False),
        ([call(answer="a"), call(2, answer="a")], True),
        ([call(answer="~a"), call(2, answer="~a")], False),
        ([call(answer="=a"), call(2, answer="=a")], False),
        ([call(answer="a", cached=True)], True),
        ([], False),
    ],
)
def test_one_trial_alone_may_show_a_cache(calls, expected):
    assert repeats.cached_within(calls) is expected


def test_a_call_in_a_span_is_known_by_its_id():
    def key_of(own, **given):
        said = {"gen_ai.operation.name": "chat", "gen_ai.response.id": own}
        told = Told(attributes=said, start=1, end=2, **given)
        return read_call(told, number=1, request=1, role=Role.TARGET, bound_to="openai").answer

    assert key_of(OWN) == repeats.key_of_id(OWN)
    assert key_of(OWN).startswith("=")
    assert key_of("chatcmpl-1") is None
    assert key_of(OWN, failed=True) is None


def test_what_is_known_of_an_answer_is_no_part_of_what_is_kept_of_the_call():
    assert "answer" not in call(answer="a").to_mapping()
    assert call(cached=True).to_mapping()["cached"] is True
    assert "cached" not in call().to_mapping()
