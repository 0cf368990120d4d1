r"""Secrets do not reach the store: what looks like one is replaced before anything is written.

Three ways to know one: its form (:func:`redact`), the value of an environment variable whose name says
so, and what a project's own hook replaces (both :class:`Redactor`).
"""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

REDACTED = "[redacted]"
UNREDACTABLE = "[not kept: the project's pytest_crashlab_redact failed]"
_SHORTEST = 8

# What repr() cuts out of a long string leaves the end of a key behind it.
_REST = r"(?:\.{3}[A-Za-z0-9+/=_\-.]+)?"


def _token(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9])(?:{pattern}){_REST}")


# (texts one of which is in anything the pattern matches, the pattern): a pattern is tried only where
# it can match, since most of what is recorded holds no secret and all of it is looked through.
_FORMS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    # OpenAI, Anthropic, OpenRouter, Langfuse and others: a digit, so that a hyphenated word is none
    (("sk-", "pk-", "rk-"), _token(r"[spr]k-(?=[A-Za-z_\-]*[0-9])[A-Za-z0-9_\-]{16,}")),
    # Stripe
    (("sk_", "pk_", "rk_", "whsec_"), _token(r"(?:[spr]k_(?:live|test)|whsec)_[A-Za-z0-9+/=]{16,}")),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _token(r"gh[pousr]_[A-Za-z0-9]{20,}")),
    (("github_pat_",), _token(r"github_pat_[A-Za-z0-9_]{20,}")),
    (("glpat-",), _token(r"glpat-[A-Za-z0-9_\-]{16,}")),
    (("xox", "xapp-"), _token(r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9\-]{10,}")),  # Slack
    (("hooks.slack.com",), re.compile(r"(?<=hooks\.slack\.com/)(?:services|workflows)/[A-Za-z0-9/_\-]+")),
    (("AKIA", "ASIA", "ABIA", "ACCA"), _token(r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])")),  # AWS
    (("AIza",), _token(r"AIza[A-Za-z0-9_\-]{30,}")),  # Google API keys, access tokens, client secrets
    (("ya29.",), _token(r"ya29\.[A-Za-z0-9_\-]{20,}")),
    (("GOCSPX-",), _token(r"GOCSPX-[A-Za-z0-9_\-]{20,}")),
    (("hf_",), _token(r"hf_[A-Za-z0-9]{30,}")),  # Hugging Face
    (("gsk_",), _token(r"gsk_[A-Za-z0-9]{30,}")),  # Groq
    (("xai-",), _token(r"xai-[A-Za-z0-9]{30,}")),
    (("pplx-",), _token(r"pplx-[A-Za-z0-9]{30,}")),  # Perplexity
    (("nvapi-",), _token(r"nvapi-[A-Za-z0-9_\-]{30,}")),
    (("r8_",), _token(r"r8_[A-Za-z0-9]{30,}")),  # Replicate
    (("lsv2_",), _token(r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{20,}")),  # LangSmith
    (("tvly-",), _token(r"tvly-[A-Za-z0-9_\-]{20,}")),
    (("dapi",), _token(r"dapi[a-f0-9]{32}(?:-[0-9])?")),  # Databricks
    (("npm_", "pypi-"), _token(r"npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_\-]{30,}")),
    (("SG.",), _token(r"SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}")),  # SendGrid
    # JSON web tokens; what repr() cut out of one is at its dots too
    (("eyJ",), re.compile(r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_\-]{8,}(?:\.+[A-Za-z0-9_\-]+)+\.*")),
    # to the end of the block, or of the text where it was cut; repr() writes its line ends as \n
    (
        ("PRIVATE KEY",),
        re.compile(
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*-----|\Z)"
        ),
    ),
    (("://",), re.compile(r"(?<=://)[^/\s:@'\"]*:[^/\s@'\"]+(?=@)")),  # user:password in an address
)
_NAME = (
    r"(?:(?:proxy-)?authorization|(?:x-)?api[_-]?key|(?:aws_?)?secret[_-]?access[_-]?key|access[_-]?key"
    r"|(?:access|refresh|session|auth|bearer|id)[_-]?token|client[_-]?secret|secret[_-]?key|private[_-]?key"
    r"|account[_-]?key|shared[_-]?access[_-]?key|shared[_-]?access[_-]?signature|password|passwd|passphrase)"
)
# The ends of those names before a sign that gives them a value, in lower case: looked for first, as a
# pattern that minds no case takes ten times as long.
_NAME_ENDS = re.compile(
    r"(?:authorization|key|token|secret|password|passwd|passphrase|signature)\\?['\"]?\s*(?:[:=]|!=)"
)
_NAMED = re.compile(
    rf"(?i)(?<![A-Za-z0-9])({_NAME})(\\?['\"]?\s*(?:=>|[=!]=|[:=])\s*)((?:bearer|basic|token)\s+)?"
    r"(?:\\?\"[^\"\n]*\"|\\?'[^'\n]*'|[^\s'\",;)}\]&]+)"
)
_BEARER = re.compile(rf"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/\-]{{12,}}=*{_REST}")
_SECRET_KEY = re.compile(rf"(?i){_NAME}|(?:.*[_-])?(?:secret|token)")


def redact(text: str) -> str:
    """``text`` with keys, tokens, passwords and Authorization values replaced by ``[redacted]``."""
    lower = text.lower()
    if _NAME_ENDS.search(lower):
        text = _NAMED.sub(rf"\1\2{REDACTED}", text)
    if "bearer" in lower or "basic" in lower:
        text = _BEARER.sub(rf"\1 {REDACTED}", text)
    for needles, pattern in _FORMS:
        for needle in needles:
            if needle in text:
                text = pattern.sub(REDACTED, text)
                break
    return text


class Redactor:
    """:func:`redact`, and what a session knows besides.

    ``hooks`` the project's own functions, gone through anew for each text and before all else: each is
    given what the one before it returned; where one raises or returns no text, the text is not kept.
    Values of the environment that were secrets once stay so: a test may set a variable for its time.
    """

    def __init__(self, hooks: Iterable[Callable[[str], object]] = ()) -> None:
        self._hooks = hooks
        self._values: set[str] = set()
        self._ordered: tuple[str, ...] = ()

    def learn(self, environ: Mapping[str, str]) -> None:
        """Take the values of variables whose name says key, token, secret or password.

        Those shorter than 8 characters are words, not secrets.
        """
        found = {v for name, v in environ.items() if len(v) >= _SHORTEST and _names_a_secret(name)}
        if found <= self._values:
            return
        self._values |= found
        forms = {
            form for value in self._values for form in (value, repr(value)[1:-1], json.dumps(value)[1:-1])
        }
        # the longest first: one value may be the beginning of another
        self._ordered = tuple(sorted(forms, key=len, reverse=True))

    def __call__(self, text: str) -> str:
        """``text`` without what is known to be secret."""
        for hook in self._hooks:
            try:
                answer = hook(text)
            except Exception:  # noqa: BLE001 - whatever it is, the text must not be stored as it was
                return UNREDACTABLE
            if not isinstance(answer, str):
                return UNREDACTABLE
            text = answer
        for value in self._ordered:
            if value in text:
                text = text.replace(value, REDACTED)
        return redact(text)

    def within(self, value: Any, text: Callable[[str], str] | None = None) -> Any:
        """A JSON value with every text in it redacted, and the text under a key that names a secret.

        ``text`` does what the redactor itself does to one text, and more if it likes.
        """
        return self._within(value, text or self)

    def _within(self, value: Any, text: Callable[[str], str]) -> Any:
        if isinstance(value, str):
            return text(value)
        if isinstance(value, list):
            return [self._within(item, text) for item in value]
        if isinstance(value, dict):
            return {self(key): self._under(key, inner, text) for key, inner in value.items()}
        return value

    def _under(self, key: str, value: Any, text: Callable[[str], str]) -> Any:
        if isinstance(value, str) and value and _SECRET_KEY.fullmatch(key):
            return REDACTED
        return self._within(value, text)


@functools.cache
def _names_a_secret(variable: str) -> bool:
    name = variable.upper()
    if any(word in name for word in ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY")):
        return True
    return any(part in {"KEY", "KEYS", "ACCESSKEY", "PASS"} for part in name.split("_"))
