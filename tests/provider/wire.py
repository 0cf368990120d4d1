"""A loopback server that speaks the wire formats of OpenAI and Anthropic, with every fault by name.

The first part of a path names the fault: ``/rate_limit/v1/chat/completions``. ``/flaky-2/...`` fails twice,
then answers as ``/ok/...`` does. ``/fresh/...`` answers so each time with other ids and the present time, and
``/shaky-2/...`` does that when it has failed twice.
"""

from __future__ import annotations

import gzip
import json
import re
import socket
import struct
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1796000000,
    "model": "gpt-x-2026-11-01",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Paris"}, "finish_reason": "stop"}],
    "usage": {
        "prompt_tokens": 120,
        "completion_tokens": 30,
        "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 100},
        "completion_tokens_details": {"reasoning_tokens": 20},
    },
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1796000000,
    "status": "completed",
    "model": "gpt-x-2026-11-01",
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Paris", "annotations": []}],
        }
    ],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 120,
        "input_tokens_details": {"cached_tokens": 100},
        "output_tokens": 30,
        "output_tokens_details": {"reasoning_tokens": 20},
        "total_tokens": 150,
    },
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x-20261101",
    "content": [{"type": "text", "text": "Paris"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 10,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "output_tokens": 30,
    },
}
ANSWERS = {"chat/completions": CHAT, "responses": RESPONSE, "messages": MESSAGE}


def fresh(body):
    """The body of an answer with ids and a time that no other has."""
    for kind in (b"chatcmpl-", b"resp_", b"msg_"):
        body = body.replace(b'"%s1"' % kind, b'"%s%s"' % (kind, uuid4().hex.encode()))
    return re.sub(rb'"(created(?:_at)?)": [0-9]+', rb'"\1": %d' % time.time(), body)


def _chat_events():
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": CHAT["model"]}
    for text in ("Pa", "ris"):
        delta = {"index": 0, "delta": {"content": text}, "finish_reason": None}
        yield "", {**base, "choices": [delta], "usage": None}
    yield "", {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": None}
    yield "", {**base, "choices": [], "usage": CHAT["usage"]}
    yield "", "[DONE]"


def _response_events():
    yield "response.created", {"type": "response.created", "sequence_number": 0, "response": RESPONSE}
    for number, text in enumerate(("Pa", "ris"), start=1):
        yield (
            "response.output_text.delta",
            {
                "type": "response.output_text.delta",
                "sequence_number": number,
                "item_id": "msg_1",
                "output_index": 0,
                "content_index": 0,
                "delta": text,
                "logprobs": [],
            },
        )
    yield "response.completed", {"type": "response.completed", "sequence_number": 3, "response": RESPONSE}


def _message_events():
    start = {**MESSAGE, "content": [], "stop_reason": None, "usage": {**MESSAGE["usage"], "output_tokens": 1}}
    yield "message_start", {"type": "message_start", "message": start}
    block = {"type": "text", "text": ""}
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
    for text in ("Pa", "ris"):
        delta = {"type": "text_delta", "text": text}
        yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 30}}
    yield "message_stop", {"type": "message_stop"}


EVENTS = {"chat/completions": _chat_events, "responses": _response_events, "messages": _message_events}
EMPTY = {"chat/completions": {"choices": []}, "responses": {"output": []}}
EMPTY_MESSAGE = {"content": [], "usage": {"input_tokens": 10, "output_tokens": 0}}


def _error(api, *, kind, message, code=None):
    if api == "messages":
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_7"}
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


# fault -> status, then (type, code, message) as OpenAI says it, then type and message as Anthropic does
STATUSES = {
    "rate_limit": (429, ("requests", "rate_limit_exceeded", "Slow down"), ("rate_limit_error", "Slow down")),
    "forbidden": (403, ("invalid_request_error", None, "No"), ("permission_error", "No")),
    "unauthorised": (401, ("invalid_request_error", "invalid_api_key", "No"), ("authentication_error", "No")),
    "payment": (402, ("billing", None, "Pay"), ("billing_error", "Pay")),
    "no_model": (404, ("invalid_request_error", "model_not_found", "None"), ("not_found_error", "None")),
    "too_long": (
        400,
        ("invalid_request_error", "context_length_exceeded", "This model's maximum context length is 8"),
        ("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
    ),
    "malformed": (400, ("invalid_request_error", None, "tools: no"), ("invalid_request_error", "tools: no")),
    "slow": (408, ("timeout", None, "Too slow"), ("timeout_error", "Too slow")),
    "too_large": (413, ("invalid_request_error", None, "Big"), ("request_too_large", "Big")),
    "unprocessable": (422, ("invalid_request_error", None, "No"), ("invalid_request_error", "No")),
    "broken": (500, ("server_error", None, "Oops"), ("api_error", "Oops")),
    "unavailable": (503, ("server_error", None, "Oops"), ("api_error", "Oops")),
    "overloaded": (529, ("server_error", None, "Full"), ("overloaded_error", "Overloaded")),
    "quota": (
        429,
        ("insufficient_quota", "insufficient_quota", "You exceeded your current quota"),
        None,
    ),
    "balance": (400, None, ("invalid_request_error", "Your credit balance is too low to access the API")),
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self._send(200, {"object": "list", "data": []})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        fault, _, path = self.path.partition("?")[0].removeprefix("/").partition("/")
        api = path.removeprefix("v1/")
        self.server.seen[fault] += 1
        name, _, times = fault.partition("-")
        if name in {"flaky", "shaky"}:
            later = "ok" if name == "flaky" else "fresh"
            fault = "broken" if self.server.seen[fault] <= int(times) else later
        request = json.loads(body)
        if fault == "each":
            self._each(api, request)
        elif fault in STATUSES:
            self._refuse(fault, api)
        elif request.get("stream") and fault in {
            "ok",
            "cut",
            "quiet",
            "inside",
            "garbled",
            "whole",
            "no_usage",
            "fresh",
        }:
            self._stream(api, fault)
        else:
            getattr(self, f"_{fault}")(api)

    def _refuse(self, fault, api):
        status, theirs, ours = STATUSES[fault]
        if api == "messages":
            self._send(status, _error(api, kind=ours[0], message=ours[1]))
        else:
            self._send(status, _error(api, kind=theirs[0], code=theirs[1], message=theirs[2]))

    def _send(self, status, body, **headers):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        given = {"content-type": "application/json", "x-request-id": "req_7", "request-id": "req_7"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        given.setdefault("content-length", str(len(content)))
        for name, value in given.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _ok(self, api):
        self._send(200, ANSWERS[api])

    def _each(self, api, request):
        """An answer of the request's own: its content is a number, and maybe how it is to fail."""
        number, _, fault = request["messages"][0]["content"].partition(" ")
        time.sleep(int(number) % 8 / 40)
        if fault == "reset":
            self._reset(api)
            return
        if fault:
            status, _, said = STATUSES[fault]
            body = _error(api, kind=said[0], message=said[1])
            self._send(status, body, x_request_id=f"req_{number}", request_id=f"req_{number}")
            return
        names = (
            ("input_tokens", "output_tokens") if api == "messages" else ("prompt_tokens", "completion_tokens")
        )
        usage = dict(zip(names, (1000 + int(number), 1 + int(number)), strict=True))
        answer = {**ANSWERS[api], "model": request["model"] + "-answered", "usage": usage}
        self._send(200, answer, x_request_id=f"req_{number}", request_id=f"req_{number}")

    def _fresh(self, api):
        name = f"req_{uuid4().hex}"
        self._send(200, fresh(json.dumps(ANSWERS[api]).encode()), x_request_id=name, request_id=name)

    def _own(self, api):
        """The same under another name, to tell its requests apart."""
        self._ok(api)

    def _packed(self, api):
        self._send(200, gzip.compress(json.dumps(ANSWERS[api]).encode()), content_encoding="gzip")

    def _billed(self, api):
        self._send(200, {**ANSWERS[api], "usage": {**ANSWERS[api]["usage"], "cost": 0.0125}})

    def _free(self, api):
        self._send(200, {**ANSWERS[api], "usage": {**ANSWERS[api]["usage"], "cost": 0}})

    def _no_usage(self, api):
        self._send(200, {key: value for key, value in ANSWERS[api].items() if key != "usage"})

    def _empty(self, api):
        self._send(200, {**ANSWERS[api], **EMPTY.get(api, EMPTY_MESSAGE)})

    def _bad_json(self, api):
        self._send(200, b'{"id": "chatcmpl-1", "choi')

    def _page(self, api):
        self._send(502, b"<html><body>Bad gateway</body></html>", content_type="text/html")

    def _truncated(self, api):
        content = json.dumps(ANSWERS[api]).encode()
        self._send(200, content[:40], content_length=str(len(content)))
        self.close_connection = True

    def _reset(self, api):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def _hang(self, api):
        self.server.released.wait(20)
        self.close_connection = True

    def _error_in_200(self, api):
        self._send(200, _error(api, kind="server_error", message="upstream failed"))

    def _stream(self, api, fault):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("x-request-id", f"req_{uuid4().hex}" if fault == "fresh" else "req_7")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        events = list(EVENTS[api]())
        if fault == "no_usage":
            events = [(name, data) for name, data in events if isinstance(data, str) or not data.get("usage")]
        if fault == "inside":
            kind = "overloaded_error" if api == "messages" else "server_error"
            events[2:] = [("error", _error(api, kind=kind, message="Overloaded"))]
        elif fault in {"cut", "quiet"}:
            events = events[:2]
        if fault == "fresh":
            events = json.loads(fresh(json.dumps(events).encode()))
        for number, (name, data) in enumerate(events):
            text = data if isinstance(data, str) else json.dumps(data)
            if fault == "garbled" and number == 1:
                text = text[: len(text) // 2]
            self._chunk((f"event: {name}\n" if name else "") + f"data: {text}\n\n")
        if fault != "cut":
            self._chunk("")
        self.close_connection = True

    def _chunk(self, text):
        content = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    """Counts requests by fault; ``released`` lets those that hang go."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen = Counter()
        self.released = threading.Event()
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.released.set()
        self.shutdown()
        self.server_close()
        self.thread.join()

    def handle_error(self, request, client_address):
        """A client that hung up is part of the tests."""

    def url(self, fault="ok"):
        return f"http://127.0.0.1:{self.server_address[1]}/{fault}"
