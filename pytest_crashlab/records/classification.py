"""The built-in answer to what an exception says: the class, and the label of the trial it ended.

It takes the cautious side: what may have been the network's doing is undecided.
"""

from __future__ import annotations

# Qualified class names looked for along the exception's bases, so that no client is imported.
# The first name found along the method resolution order decides.
BUILTIN_EXCEPTIONS: dict[str, str] = {
    # A status is an answer of the service: the test decides what it means.
    "urllib.error.HTTPError": "",
    "requests.exceptions.HTTPError": "",
    # The request could not be made at all: whoever wrote it did, and no network was asked.
    "httpx.UnsupportedProtocol": "",
    "httpx.LocalProtocolError": "",
    "httpx2.UnsupportedProtocol": "",
    "httpx2.LocalProtocolError": "",
    "httpcore.LocalProtocolError": "",
    "httpcore2.LocalProtocolError": "",
    "urllib3.exceptions.LocationValueError": "",
    "builtins.ConnectionError": "network_error",
    "builtins.TimeoutError": "network_error",
    "socket.gaierror": "network_error",
    "socket.herror": "network_error",
    "ssl.SSLError": "network_error",
    "http.client.IncompleteRead": "network_error",
    "http.client.BadStatusLine": "network_error",
    "urllib.error.URLError": "network_error",
    "urllib.error.ContentTooShortError": "network_error",
    "urllib3.exceptions.HTTPError": "network_error",
    "requests.exceptions.ConnectionError": "network_error",
    "requests.exceptions.Timeout": "network_error",
    "requests.exceptions.ChunkedEncodingError": "network_error",
    "httpx.TransportError": "network_error",
    "httpx2.TransportError": "network_error",
    "httpcore.NetworkError": "network_error",
    "httpcore.TimeoutException": "network_error",
    "httpcore.ProtocolError": "network_error",
    "httpcore.ProxyError": "network_error",
    "httpcore2.NetworkError": "network_error",
    "httpcore2.TimeoutException": "network_error",
    "httpcore2.ProtocolError": "network_error",
    "httpcore2.ProxyError": "network_error",
    "aiohttp.client_exceptions.ClientConnectionError": "network_error",
    "aiohttp.client_exceptions.ClientPayloadError": "network_error",
    "botocore.exceptions.HTTPClientError": "network_error",
    "pytest_crashlab.plugin.running.WallClock": "wall_clock",
    # An argument that the test got wrong: nothing the target did.
    "pytest_crashlab.errors.UsageError": "misdeclared",
}

# What is no class by itself, in words for people, and its label.
OTHER_CAUSES: tuple[tuple[str, str], ...] = (
    ("a time-out of pytest-timeout", "wall_clock"),
    ("a time-out of trial.run(timeout=...)", "wall_clock"),
    ("a failed assertion or pytest.fail() of the test", "failed"),
    ("any exception of a fixture's set-up, else", "setup_error"),
    ("any exception after trial.run(), else", "verifier_error"),
    ("any other exception of the target", "crashed"),
)
