"""What an author hands over to be kept beside a trial: attachments, and what failed checks saw."""

from __future__ import annotations

import io
import json
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_crashlab.errors import InstrumentFailure
from pytest_crashlab.plugin.evidence_values import SLACK, in_base64, is_json, plain, text_of

DEFAULT_LIMIT = 2**20
_OF_A_TRIAL = 10  # attachments of one trial may be ten times as large as one of them
_LONGEST_NAME = 100
_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """One thing that was attached.

    ``kind`` text, json or binary; ``size`` characters of a text, bytes of a file; ``data`` the text (of a
    large file the beginning), the JSON value, base64, or None where it is not kept: ``note`` says why.
    """

    name: str
    kind: str
    media_type: str
    size: int
    data: Any
    note: str | None = None


@dataclass(slots=True)
class Kept:
    """What is to be kept of one trial.

    ``limit`` characters of a text, and bytes of anything else, that one attachment may have; all of a
    trial ten times that. ``seen`` the check's name -> what it expected, observed and rests on.
    """

    limit: int = DEFAULT_LIMIT
    attachments: dict[str, Attachment] = field(default_factory=dict)
    seen: dict[str, dict[str, Any]] = field(default_factory=dict)
    _used: int = 0

    def attach(self, name: str, data: object, *, media_type: str | None = None) -> None:
        """Take ``data`` as it is now. Raises :class:`InstrumentFailure` for what cannot be kept."""
        self._check_name(name)
        made = self._made(name, data, media_type)
        room = self.limit * _OF_A_TRIAL - self._used
        if made.data is not None and min(made.size, self.limit) > room:
            note = f"not kept: the attachments of this trial have reached {self.limit * _OF_A_TRIAL:,}"
            made = Attachment(
                name=name, kind=made.kind, media_type=made.media_type, size=made.size, data=None, note=note
            )
        elif made.data is not None:
            self._used += min(made.size, self.limit)
        self.attachments[name] = made

    def saw(self, check: str, **values: object) -> None:
        """Keep what a check that does not hold expected and observed, and what one rests on."""
        known = {name: plain(value) for name, value in values.items() if value is not None}
        if known:
            self.seen[check] = known

    def _check_name(self, name: object) -> None:
        if not isinstance(name, str):
            raise _refused(f"trial.attach() got the name {name!r}; give it a text")
        if not name.strip() or name != name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
            raise _refused(
                f"trial.attach() got the name {name[:_LONGEST_NAME]!r}; give it one printable line of at "
                f"most {_LONGEST_NAME} characters without blanks around it"
            )
        if name in self.attachments:
            raise _refused(f"trial.attach() got the name {name!r} a second time; a name is attached once")

    def _made(self, name: str, data: Any, media_type: str | None) -> Attachment:
        if isinstance(data, str):
            return self._text(name, data, media_type or "text/plain")
        if isinstance(data, bytes | bytearray | memoryview):
            content = bytes(data)
            return self._content(name, content[: self.limit + SLACK], len(content), media_type)
        if isinstance(data, Path):
            return self._file(name, data, media_type)
        if is_json(data):
            return self._json(name, data, media_type or "application/json")
        if type(data).__module__.partition(".")[0] == "PIL" and hasattr(data, "save"):
            buffer = io.BytesIO()
            data.save(buffer, format="PNG")
            return self._content(name, buffer.getvalue(), buffer.tell(), media_type or "image/png")
        raise _refused(
            f"trial.attach({name!r}) got {type(data).__qualname__}; give it text, bytes, a pathlib.Path, an "
            "image, or what JSON can hold"
        )

    def _text(self, name: str, text: str, media_type: str, size: int | None = None) -> Attachment:
        whole = len(text) if size is None else size
        return Attachment(name=name, kind="text", media_type=media_type, size=whole, data=text)

    def _json(self, name: str, data: object, media_type: str) -> Attachment:
        value = plain(data)
        text = json.dumps(value)
        if len(text) > self.limit:
            return self._text(name, text, media_type)
        return Attachment(name=name, kind="json", media_type=media_type, size=len(text), data=value)

    def _file(self, name: str, path: Path, media_type: str | None) -> Attachment:
        try:
            # not waiting, where it is a pipe that nobody writes to
            handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            with os.fdopen(handle, "rb") as file:
                told = os.fstat(handle)
                if not stat.S_ISREG(told.st_mode):
                    raise _refused(f"trial.attach({name!r}): {path} is no ordinary file")
                content = file.read(self.limit + SLACK)
        except OSError as error:
            raise _refused(
                f"trial.attach({name!r}): {path} cannot be read ({error.strerror or error})"
            ) from None
        return self._content(name, content, max(told.st_size, len(content)), media_type)

    def _content(self, name: str, content: bytes, size: int, media_type: str | None) -> Attachment:
        """Bytes, of which ``size`` there were: as text where they are that."""
        sniffed = next((kind for start, kind in _IMAGES if content.startswith(start)), None)
        if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
            sniffed = "image/webp"
        text = None if sniffed else text_of(content)
        if text is not None:
            return self._text(name, text, media_type or "text/plain", None if len(content) == size else size)
        kind = media_type or sniffed or "application/octet-stream"
        if size > self.limit:  # a part of an image or an archive is of no use
            note = f"not kept: {size:,} bytes are more than crashlab_attachment_limit, {self.limit:,}"
            return Attachment(name=name, kind="binary", media_type=kind, size=size, data=None, note=note)
        return Attachment(name=name, kind="binary", media_type=kind, size=size, data=in_base64(content))


def _refused(sentence: str) -> InstrumentFailure:
    return InstrumentFailure("misdeclared", sentence)
