"""Messages between a test's process and the keeper of its commands: JSON and raw bytes, with lengths."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket

_LENGTH = struct.Struct("!I")


def send(sock: socket.socket, message: dict[str, Any], *blobs: bytes) -> None:
    """Write one message; raises ``OSError`` when the other side is gone."""
    header = json.dumps({"message": message, "blobs": [len(blob) for blob in blobs]}).encode()
    sock.sendall(b"".join((_LENGTH.pack(len(header)), header, *blobs)))


def receive(sock: socket.socket) -> tuple[dict[str, Any], list[bytes]] | None:
    """The next message, or None when the other side is gone; ``TimeoutError`` before its first byte."""
    start = _exactly(sock, _LENGTH.size)
    if start is None:
        return None
    header = _exactly(sock, _LENGTH.unpack(start)[0])
    if header is None:
        return None
    decoded = json.loads(header)
    blobs = []
    for length in decoded["blobs"]:
        blob = _exactly(sock, length)
        if blob is None:
            return None
        blobs.append(blob)
    return decoded["message"], blobs


def _exactly(sock: socket.socket, length: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < length:
        try:
            part = sock.recv(min(length - len(parts), 1 << 20))
        except ConnectionResetError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)
