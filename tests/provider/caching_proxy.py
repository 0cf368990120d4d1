"""A proxy that keeps the answers of the loopback server and gives them again to the same request.

The first part of a path says how it goes about it: ``/silent/...`` says nothing of it, ``/named/...`` says it
in ``x-cache``, ``/renewed/...`` too and gives each answer new ids, ``/dated/...`` gives each another time,
and ``/open/...`` keeps nothing.
"""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_HOP = frozenset({"connection", "transfer-encoding", "content-length", "server", "date"})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self.send_error(404)

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["content-length"]))
        manner, _, path = self.path.removeprefix("/").partition("/")
        with self.server.lock:
            kept = None if manner == "open" else self.server.kept.get((path, asked))
            self.server.seen["miss" if kept is None else "hit"] += 1
            if kept is None:
                kept = self._forwarded(path, asked)
                if kept[0] == 200:
                    self.server.kept[path, asked] = kept
                said = "MISS"
            else:
                said = "HIT"
        status, headers, body = kept
        if manner == "renewed":
            body = body.replace(b'"id": "chatcmpl-', b'"id": "chatcmpl-%d' % sum(self.server.seen.values()))
        if manner == "dated":
            body = re.sub(
                rb'"created": [0-9]+', b'"created": %d' % (time.time() + self.server.seen["hit"]), body
            )
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if manner in {"named", "renewed"}:
            self.send_header("X-Cache", said)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _forwarded(self, path, body):
        line = http.client.HTTPConnection("127.0.0.1", self.server.origin, timeout=20)
        try:
            line.request("POST", f"/{path}", body, {"content-type": "application/json"})
            answer = line.getresponse()
            headers = [(n, v) for n, v in answer.getheaders() if n.lower() not in _HOP]
            return answer.status, headers, answer.read()
        finally:
            line.close()


class CachingProxy(ThreadingHTTPServer):
    """In front of the server at port ``origin``; ``seen`` counts hits and misses."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, origin):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.origin = origin
        self.kept = {}
        self.seen = Counter()
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.shutdown()
        self.server_close()
        self.thread.join()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"
