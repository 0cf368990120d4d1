"""Secrets do not reach the store: what looks like one is replaced before anything is written."""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"""
    \b(?:sk|pk|rk)-[A-Za-z0-9_\-]{16,}            # model provider keys
  | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_[A-Za-z0-9_]{20,}
  | \bglpat-[A-Za-z0-9_\-]{16,}
  | \bxox[abprs]-[A-Za-z0-9\-]{10,}
  | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
  | \bAIza[A-Za-z0-9_\-]{30,}
  | \beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*   # JSON web tokens
  | (?<=://)[^/\s:@]+:[^/\s@]+(?=@)               # user:password in an address
    """,
    re.VERBOSE,
)
_NAMED = re.compile(
    r"(?i)\b((?:proxy-)?authorization|x-api-key|api[_-]?key|access[_-]?token|secret[_-]?key|password|passwd)"
    r"(['\"]?\s*[:=]\s*['\"]?)((?:bearer|basic|token)\s+)?[^\s'\",;)}\]]+"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/\-]{12,}=*")


def redact(text: str) -> str:
    """``text`` with keys, tokens, passwords and Authorization values replaced by ``[redacted]``."""
    text = _NAMED.sub(r"\1\2[redacted]", text)
    text = _BEARER.sub(r"\1 [redacted]", text)
    return _SECRET.sub("[redacted]", text)
