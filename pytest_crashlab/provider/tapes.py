"""The tape of a trial: each HTTP exchange of its clients, as it is written down and read again."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FORMAT = 1
HEAD = "recording.json"
_LONGEST_NAME = 60
_OTHER = re.compile(r"[^A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request of a trial and what came back.

    ``number`` 1.. in the order in which requests were sent; ``digest`` by which the request is known again
    (None: never), ``body_digest`` of its body alone; ``request`` its body as text, None where it is no text;
    ``status`` None where nothing was answered; ``chunks`` the answer's body, an event each where it is a
    stream of events, and ``base64`` whether they are written so; ``broke`` the client's exception that ended
    it and ``detail`` its words; ``whole`` whether the answer was read to its end.
    """

    number: int
    role: str
    provider: str
    method: str
    url: str
    digest: str | None
    body_digest: str | None
    request: str | None
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: Sequence[str] = ()
    base64: bool = False
    broke: str | None = None
    detail: str | None = None
    whole: bool = False

    def content(self) -> list[bytes]:
        """The parts of the answer's body."""
        if self.base64:
            return [base64.b64decode(chunk) for chunk in self.chunks]
        return [chunk.encode("utf-8", "surrogatepass") for chunk in self.chunks]


def file_name(case: str, trial: int) -> str:
    """The name of a trial's file, which tells cases apart whatever is in their ids."""
    words = _OTHER.sub("-", case).strip("-")[-_LONGEST_NAME:]
    digest = hashlib.sha256(case.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{words}-{digest}.{trial}.jsonl"


def head(seed: int | None) -> bytes:
    """What says that a folder is a recording; ``seed`` of the run, from which requests may follow."""
    return json.dumps({"format": FORMAT, "written_by": "pytest-crashlab", "seed": seed}).encode() + b"\n"


def read_head(content: bytes, where: str) -> int | None:
    """The seed in a recording's head. Raises :class:`UsageError` for what is none, or of a later format."""
    try:
        said = json.loads(content)
        version, seed = said["format"], said.get("seed")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError(f"{where} does not say which format the recording has; record it again") from None
    if isinstance(version, int) and version > FORMAT:
        raise UsageError(
            f"{where} has format {version} and this version reads format {FORMAT}; upgrade pytest-crashlab"
        )
    if version != FORMAT or not isinstance(seed, int | None) or isinstance(version, bool):
        raise UsageError(f"{where} is not of format {FORMAT}; record it again")
    return seed


def tape_bytes(case: str, trial: int, exchanges: Sequence[Exchange]) -> bytes:
    """A trial's file: a line that says whose it is, then a line an exchange."""
    first = {"format": FORMAT, "case": case, "trial": trial, "exchanges": len(exchanges)}
    ordered = sorted(exchanges, key=lambda exchange: exchange.number)
    return b"".join(json.dumps(line).encode() + b"\n" for line in (first, *map(asdict, ordered)))


def read_tape(content: bytes, where: str) -> tuple[str, int, list[Exchange]]:
    """Case, trial and exchanges of a trial's file. Raises :class:`UsageError` that names the line."""
    lines = content.splitlines()
    number = 1
    try:
        first = json.loads(lines[0])
        case, trial, count = first["case"], first["trial"], first["exchanges"]
        if first["format"] != FORMAT or not isinstance(case, str) or not isinstance(trial, int):
            raise ValueError  # noqa: TRY301  told below, with its line
        found = []
        for number, line in enumerate(lines[1:], 2):  # noqa: B007  named where the line is damaged
            found.append(_exchange(json.loads(line)))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        raise UsageError(f"{where} is no recording of a trial (line {number}); record it again") from None
    if len(found) != count:
        raise UsageError(f"{where} has {len(found)} of {count} exchanges; record it again")
    return case, trial, found


_KINDS: dict[str, tuple[type, ...]] = {
    "number": (int,),
    "role": (str,),
    "provider": (str,),
    "method": (str,),
    "url": (str,),
    "digest": (str, type(None)),
    "body_digest": (str, type(None)),
    "request": (str, type(None)),
    "status": (int, type(None)),
    "headers": (dict,),
    "chunks": (list,),
    "base64": (bool,),
    "broke": (str, type(None)),
    "detail": (str, type(None)),
    "whole": (bool,),
}


def _exchange(said: dict[str, Any]) -> Exchange:
    known = {f.name: said[f.name] for f in fields(Exchange)}
    texts = (*known["chunks"], *known["headers"].values())
    if not all(isinstance(known[name], kinds) for name, kinds in _KINDS.items()):
        raise ValueError
    if not all(isinstance(text, str) for text in texts):
        raise ValueError
    found = Exchange(**known)
    try:
        found.content()
    except binascii.Error as error:
        raise ValueError from error
    return found
