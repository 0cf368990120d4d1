"""What of a request and its answer may be written into a recording, and how a request is known again."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

from pytest_crashlab.records.redaction import REDACTED, UNREDACTABLE, redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_SHORTEST = 8
_LONGEST_URL = 100
_BOUNDARY = re.compile(rb"boundary=\"?([^\";,\s]+)")
# What a query calls a key: "key" is Google's, "sig" a signed address's.
_SECRET_PARAMETERS = frozenset(
    {"key", "sig", "signature", "token", "code", "x-amz-signature", "x-goog-signature"}
)
_KEY_HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")


class Cleaner:
    """Takes secrets out of addresses and bodies: what the session's redactor knows, and ``values``."""

    def __init__(self, redactor: Callable[[str], str], values: Iterable[str] = ()) -> None:
        self._redactor = redactor
        self._values = tuple(sorted({v for v in values if len(v) >= _SHORTEST}, key=len, reverse=True))

    def text(self, text: str) -> str:
        """``text`` without secrets."""
        for value in self._values:
            text = text.replace(value, REDACTED)
        return self._redactor(text)

    def url(self, url: str) -> str:
        """An address without user, password, fragment and secret parameters."""
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        query = "&".join(
            f"{quote(name)}={REDACTED if self._is_secret(name) else quote(self.text(value))}"
            for name, value in parse_qsl(parts.query, keep_blank_values=True)
        )
        return urlunsplit((parts.scheme, host, self.text(parts.path), query, ""))

    def _is_secret(self, name: str) -> bool:
        return name.lower() in _SECRET_PARAMETERS or _names_a_secret(name)

    def body(self, content: str) -> str:
        """A body of text: JSON stays JSON, since its values are cleaned one by one."""
        try:
            said = json.loads(content)
            cleaned = self._value(said)
            return content if cleaned == said else json.dumps(cleaned)
        except (ValueError, RecursionError):
            return self.text(content)

    def event(self, event: str) -> str:
        """One event of a stream, or what there is of one."""
        return "".join(self._line(line) for line in event.splitlines(keepends=True))

    def _line(self, line: str) -> str:
        name, colon, rest = line.partition(":")
        said = rest.strip()
        if name != "data" or not said.startswith(("{", "[")) or said == "[DONE]":
            return self.text(line)
        cleaned = self.body(said)
        return line if cleaned == said else f"{name}{colon} {cleaned}{line[len(line.rstrip()) :]}"

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self._under(key, item) for key, item in value.items()}
        return value

    def _under(self, key: str, value: Any) -> Any:
        return REDACTED if isinstance(value, str) and value and _names_a_secret(key) else self._value(value)


def _names_a_secret(key: str) -> bool:
    """Whether a value under ``key`` is secret by its name: "password", and not the "token" of a logprob."""
    said = f'"{key}": "x"'
    return redact(said) != said


def secret_values(headers: Any) -> list[str]:
    """The keys and cookies that a request is sent with."""
    found = []
    for name in _KEY_HEADERS:
        given = headers.get(name)
        if given:
            found += [given, given.rpartition(" ")[2]]
    cookies = headers.get("cookie") or ""
    return found + [cookie.partition("=")[2].strip() for cookie in cookies.split(";")]


def as_text(content: bytes) -> str | None:
    """A body as text; None for one that is none, such as sound or a picture."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def body_digest(cleaned: str | None, content: bytes, content_type: str) -> str | None:
    """The digest of a request's body without secrets; None where the redactor failed on it.

    Of JSON the order of keys counts for nothing. ``cleaned`` None: a body that is no text, whose own bytes
    count, without the boundary that is drawn anew for each request of several parts.
    """
    if cleaned is None:
        drawn = _BOUNDARY.search(content_type.encode())
        same = content if drawn is None else content.replace(drawn[1], b"boundary")
        return hashlib.sha256(same).hexdigest()
    if UNREDACTABLE in cleaned:
        return None
    try:
        cleaned = json.dumps(json.loads(cleaned), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        drawn = _BOUNDARY.search(content_type.encode())
        if drawn is not None:
            cleaned = cleaned.replace(drawn[1].decode(), "boundary")
    return hashlib.sha256(cleaned.encode("utf-8", "surrogatepass")).hexdigest()


def request_digest(method: str, url: str, body: str | None) -> str | None:
    """By what a request is known again: method, path, query and body, and not where it is served."""
    if body is None:
        return None
    parts = urlsplit(url)
    said = f"{method}\n{parts.path}\n{parts.query}\n{body}"
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


class Asked:
    """A request as it is written down: without secrets, and with the digest that it is known by."""

    def __init__(self, request: Any, content: bytes, role: str, provider: str, cleaner: Cleaner) -> None:
        self.role = role
        self.provider = provider
        self.method = str(request.method)
        self.url = cleaner.url(str(request.url))
        text = as_text(content)
        self.body = None if text is None else cleaner.body(text)
        kind = request.headers.get("content-type", "")
        self.body_digest = body_digest(self.body, content, kind)
        self.digest = request_digest(self.method, self.url, self.body_digest)

    @property
    def shown(self) -> str:
        """Method, address and the beginning of the digest."""
        digest = "" if self.digest is None else f", digest {self.digest[:12]}"
        return f"{self.method} {self.url[:_LONGEST_URL]}{digest}"
