"""What of an exchange is written into a recording, and by what a request is known again."""

from __future__ import annotations

import json

import pytest

from pytest_crashlab.errors import UsageError
from pytest_crashlab.provider.cleaning import Cleaner, body_digest, request_digest, secret_values
from pytest_crashlab.provider.tapes import Exchange, file_name, read_tape, tape_bytes
from pytest_crashlab.records.redaction import UNREDACTABLE, Redactor

KEY = "sk-proj-abcdefghij0123456789"
clean = Cleaner(Redactor(), ["own-key-0001", "short"])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"a":  1.50, "b": [null]}', '{"a":  1.50, "b": [null]}'),  # as it came, to the space
        ('{"token": "Paris", "logprob": -0.1}', '{"token": "Paris", "logprob": -0.1}'),
        ('{"api_key": "Paris"}', '{"api_key": "[redacted]"}'),
        ('{"Password": ""}', '{"Password": ""}'),
        (f'[{{"say": "it is {KEY}!"}}]', '[{"say": "it is [redacted]!"}]'),
        ('{"say": "own-key-0001, short"}', '{"say": "[redacted], short"}'),
        (f"no json {KEY}", "no json [redacted]"),
    ],
)
def test_json_stays_json_and_loses_what_is_secret_alone(body, expected):
    assert clean.body(body) == expected


def test_events_keep_their_form():
    event = f'event: x\r\ndata: {{"delta": "{KEY}"}}\r\n\r\n'
    assert clean.event(event) == 'event: x\r\ndata: {"delta": "[redacted]"}\r\n\r\n'
    for other in ('data: {"delta":"Pa"}\n\n', "data: [DONE]\n\n", ": ping\n\n", 'data: {"del'):
        assert clean.event(other) == other
    assert clean.event(f"data: {{{KEY}") == "data: {[redacted]"


def test_addresses_lose_user_password_fragment_and_secret_parameters():
    url = f"https://me:pass@host:8/v1/x?key=1&page=2&api_key=3&q={KEY}&sig=4&empty=#frag"
    assert clean.url(url) == (
        "https://host:8/v1/x?key=[redacted]&page=2&api_key=[redacted]&q=%5Bredacted%5D&sig=[redacted]&empty="
    )


def test_keys_and_cookies_of_a_request_are_known():
    headers = {"authorization": "Bearer abc", "x-api-key": "def", "cookie": "a=one; b=t=wo"}
    assert set(secret_values(headers)) == {"Bearer abc", "abc", "def", "one", "t=wo"}


def test_a_request_is_known_by_what_it_asks_and_not_by_where_or_in_which_order():
    def digest(body, url="http://a/v1/chat", method="POST"):
        return request_digest(method, url, body_digest(body, b"", "application/json"))

    same = {
        digest('{"a": 1, "b": 2}'),
        digest('{"b":2,"a":1}'),
        digest('{"a":1,"b":2}', "https://b:9/v1/chat"),
    }
    assert len(same) == 1
    others = {
        digest('{"a": 1, "b": 3}'),
        digest('{"a": [1, 2]}'),
        digest('{"a": [2, 1]}'),
        digest('{"a": 1, "b": 2}', "http://a/v1/other"),
        digest('{"a": 1, "b": 2}', "http://a/v1/chat?x=1"),
        digest('{"a": 1, "b": 2}', method="GET"),
    }
    assert len(others | same) == 7


def test_several_parts_are_known_whatever_boundary_is_drawn():
    def digest(boundary, sound):
        content = b"--" + boundary + b"\r\n\r\n" + sound + b"\r\n--" + boundary + b"--"
        return body_digest(None, content, f"multipart/form-data; boundary={boundary.decode()}")

    assert digest(b"one", b"\xff") == digest(b"two", b"\xff") != digest(b"one", b"\xfe")


def test_what_the_project_s_hook_could_not_clean_is_never_known_again():
    def broken(text):
        raise ValueError(text)

    cleaned = Cleaner(Redactor([broken])).body('{"a": "b"}')
    assert UNREDACTABLE in cleaned
    assert body_digest(cleaned, b"", "") is None
    assert request_digest("POST", "http://a/", None) is None


def exchange(number, **given):
    known = {"role": "target", "provider": "p", "method": "POST", "url": "http://a/", "status": 200}
    digests = {"digest": "d", "body_digest": "b", "request": "{}"}
    return Exchange(number=number, **{**known, **digests, "whole": True, **given})


def test_a_tape_is_read_as_it_was_written_in_the_order_of_its_requests():
    sound = exchange(2, chunks=["/wA="], base64=True, request=None)
    text = exchange(1, chunks=["d\u00e4", "\U0001f600"], headers={"content-type": "text/plain"})
    written = tape_bytes("t.py::t[\ud800]", 3, [sound, text])
    assert written.isascii()
    assert read_tape(written, "x") == ("t.py::t[\ud800]", 3, [text, sound])
    assert sound.content() == [b"\xff\x00"]
    assert text.content() == ["d\u00e4".encode(), "\U0001f600".encode()]


@pytest.mark.parametrize(
    "change", [{"status": "200"}, {"chunks": [1]}, {"headers": {"a": 1}}, {"base64": True, "chunks": ["/"]}]
)
def test_a_damaged_line_is_named(change):
    first, second = tape_bytes("c", 1, [exchange(1)]).splitlines()
    damaged = json.dumps({**json.loads(second), **change}).encode()
    with pytest.raises(UsageError, match=r"tape is no recording of a trial \(line 2\)"):
        read_tape(first + b"\n" + damaged, "tape")


def test_names_of_files_tell_cases_and_trials_apart():
    cases = ["a.py::t[x/y]", "a.py::t[x y]", "b" * 300, "b" * 301, "\ud800"]
    names = {file_name(case, trial) for case in cases for trial in (1, 2)}
    assert len(names) == 10
    assert all(name.isascii() and "/" not in name and len(name) < 120 for name in names)
