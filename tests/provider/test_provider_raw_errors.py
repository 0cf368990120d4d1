"""Errors of plain HTTP libraries that end a test, with the provider fixture and without."""

from __future__ import annotations

import http.server
import importlib.util
import threading

import pytest

from pytest_crashlab.store import Store

CLIENTS = """
import pytest

def asked(library, url):
    if library.startswith("httpx"):
        with pytest.importorskip(library).Client(timeout=0.3, trust_env=False) as client:
            client.post(url, json={})
    else:
        core = pytest.importorskip(library)
        timeout = {name: 0.3 for name in ("connect", "read", "write", "pool")}
        with core.ConnectionPool() as pool:
            pool.request("POST", url, content=b"{}", headers={"content-length": "2"},
                         extensions={"timeout": timeout})
"""
TESTS = """
import pytest
from asking import asked

FAULTS = %r

@pytest.mark.parametrize("name", FAULTS)
def test_without(name):
    asked(%r, FAULTS[name])

@pytest.mark.crashlab(provider="openai:gpt-x", retries=0)
@pytest.mark.parametrize("name", FAULTS)
def test_beside(provider, name):
    asked(%r, FAULTS[name])
"""
THROUGH = """

@pytest.mark.crashlab(provider="openai:gpt-x", retries=0)
@pytest.mark.parametrize("name", FAULTS)
def test_through(provider, name):
    with provider.http_client(library=%r, timeout=0.3) as client:
        client.post(FAULTS[name], json={"model": "m", "messages": []})
"""


@pytest.mark.parametrize("library", ["httpx", "httpx2", "httpcore", "httpcore2"])
def test_an_error_of_a_plain_library_gives_no_decision(library, server, pytester, monkeypatch):
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("PYTEST_ADDOPTS", "CI", "GITHUB_ACTIONS", "CRASHLAB_STORE", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    urls = {name: f"{server.url(name)}/v1/chat/completions" for name in ("hang", "reset", "truncated")}
    urls["refused"] = "http://127.0.0.1:9/v1/chat/completions"
    through = THROUGH % library if library.startswith("httpx") else ""
    pytester.makepyfile(asking=CLIENTS, test_raw=TESTS % (urls, library, library) + through)
    pytester.runpytest_inprocess("-p", "pytest_crashlab.plugin", "--trials=1", "--crashlab-run-name=x")
    store = Store.open(pytester.path / ".crashlab")
    rows = store.load(store.manifests()[0].id).trials.to_dicts()
    found = {row["case"].rpartition("::")[2]: (row["outcome"], row["kind"]) for row in rows}
    tests = ("without", "beside", "through") if through else ("without", "beside")
    assert found == {
        f"test_{test}[{name}]": (
            "provider_timeout" if (test, name) == ("through", "hang") else "network_error",
            "instrument",
        )
        for test in tests
        for name in urls
    }


MADE = """
import pytest

SCHEME, HEADER = ("htp://127.0.0.1:9/", {}), ("http://127.0.0.1:%(port)d/", {"x": "a\\nb"})

def asked(library, url, headers, proxy=None):
    module = pytest.importorskip(library)
    if library == "urllib3":
        made = module.PoolManager if proxy is None else lambda **given: module.ProxyManager(proxy, **given)
        made(retries=False).request("GET", url, headers=headers)
    elif library.startswith("httpx"):
        with module.Client(trust_env=False, proxy=proxy) as client:
            client.get(url, headers=headers)
    else:
        with module.ConnectionPool(proxy=None if proxy is None else module.Proxy(proxy)) as pool:
            pool.request("GET", url, headers={"host": "x", **headers})

def test_scheme():
    asked(%(library)r, *SCHEME)

def test_header():
    asked(%(library)r, *HEADER)

def test_proxy():
    asked(%(library)r, "https://127.0.0.1:9/", {}, proxy="http://127.0.0.1:%(port)d")
"""


class Refuses(http.server.BaseHTTPRequestHandler):
    """A proxy that lets nobody through."""

    def do_CONNECT(self):
        self.send_error(403)

    def log_message(self, *args):
        pass


@pytest.fixture
def proxy():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuses) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made.server_address[1]
        made.shutdown()
        thread.join()


@pytest.mark.parametrize("library", ["httpx", "httpx2", "httpcore", "httpcore2", "urllib3"])
def test_a_request_that_cannot_be_made_is_the_targets_and_a_proxys_refusal_is_not(
    library, proxy, pytester, monkeypatch
):
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("PYTEST_ADDOPTS", "CI", "GITHUB_ACTIONS", "CRASHLAB_STORE", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    pytester.makepyfile(test_made=MADE % {"library": library, "port": proxy})
    pytester.runpytest_inprocess("-p", "pytest_crashlab.plugin", "--trials=1", "--crashlab-run-name=x")
    store = Store.open(pytester.path / ".crashlab")
    rows = store.load(store.manifests()[0].id).trials.to_dicts()
    assert {row["case"].rpartition("::")[2]: row["outcome"] for row in rows} == {
        "test_scheme": "crashed",
        "test_header": "crashed",
        "test_proxy": "network_error",
    }, [row["message"] for row in rows]
