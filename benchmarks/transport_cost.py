"""What the recording of a model call costs: plain clients beside those of the fixture ``provider``.

Both ask the same loopback server, which is a process of its own, over connections that are kept. They take
turns call by call, the first of a pair in every second one; the median of each counts.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_crashlab.plugin.breaker import Breaker
from pytest_crashlab.provider.base import Binding
from pytest_crashlab.provider.bound import Bound
from pytest_crashlab.provider.calls import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_WARM_UP = 20
_CALLS = 200  # a round
_SERVER = """
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CHAT = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
    {"index": 0, "message": {"role": "assistant", "content": "Paris " * 50}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 120, "completion_tokens": 50, "total_tokens": 170}}
MESSAGE = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
    "stop_sequence": None, "content": [{"type": "text", "text": "Paris " * 50}],
    "usage": {"input_tokens": 120, "output_tokens": 50}}

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        content = json.dumps(MESSAGE if self.path.endswith("/messages") else CHAT).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
_QUESTION = [{"role": "user", "content": "The capital of France? " * 20}]


@contextmanager
def _served() -> Iterator[str]:
    """The address of a server that runs as long as the block."""
    process = subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.communicate()


def _openai(client: Any) -> None:
    client.chat.completions.create(model="m", messages=_QUESTION)


def _anthropic(client: Any) -> None:
    client.messages.create(model="m", messages=_QUESTION, max_tokens=50)


def _posted(client: Any) -> None:
    answer = client.post("/chat/completions", json={"model": "m", "messages": _QUESTION})
    json.loads(answer.content)


def _clients(name: str, address: str, folder: Path) -> tuple[Any, Any, Callable[[Any], None]]:
    """A plain client, one that records as in a session, and how either is called."""
    module = importlib.import_module(name)
    root = address if name == "anthropic" else f"{address}/v1"
    provider = name if name == "anthropic" else "openai"
    refuse = partial(Breaker(folder, "main").refuse, provider)
    bound = Bound(Binding(provider=provider, model="m", base_url=root, retries=2), Ledger(), gate=refuse)
    if name in {"httpx", "httpx2"}:
        return module.Client(base_url=root), bound.http_client(library=name), _posted
    plain, call = (module.Anthropic, _anthropic) if name == "anthropic" else (module.OpenAI, _openai)
    return plain(base_url=root, api_key="k", max_retries=0), bound.client(api_key="k"), call


def _in_turns(pair: tuple[Any, Any], call: Callable[[Any], None], calls: int) -> tuple[float, float]:
    """The median of each client's calls, in milliseconds."""
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(calls + _WARM_UP):
        for which in (0, 1) if number % 2 else (1, 0):
            start = time.perf_counter()
            call(pair[which])
            if number >= _WARM_UP:
                taken[which].append(1000 * (time.perf_counter() - start))
    return statistics.median(taken[0]), statistics.median(taken[1])


def transport(rounds: int) -> None:
    """A model call over loopback, recorded and not."""
    print("\n### A model call over loopback: recorded beside plain\n")
    print("| client | plain ms | recorded ms | ratio | ms more |\n|---|---|---|---|---|")
    for name in ("openai", "anthropic", "httpx2", "httpx"):
        if importlib.util.find_spec(name) is None:
            print(f"| {name} is not installed | - | - | - | - |")
            continue
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            *pair, call = _clients(name, stack.enter_context(_served()), folder)
            for client in pair:
                stack.enter_context(client)
            plain, recorded = _in_turns((pair[0], pair[1]), call, rounds * _CALLS)
        print(f"| {name} | {plain:.2f} | {recorded:.2f} | {recorded / plain:.2f} | {recorded - plain:+.2f} |")
