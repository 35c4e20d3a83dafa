"""Message sets written by hand, field by field and independently of the code under test."""

from __future__ import annotations

import struct
import zlib


def message(
    offset: int = 0,
    key: bytes | None = None,
    value: bytes | None = b"v",
    *,
    magic: int = 1,
    attributes: int = 0,
    timestamp: int = 1000,
    headers: bytes = b"",
    crc: int | None = None,
    size: int | None = None,
) -> bytes:
    """One entry. `headers` stand between key and value as they are; `crc` and `size` are right unless given."""
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    body += field(key) + headers + field(value)
    checksum = zlib.crc32(body) if crc is None else crc
    return struct.pack(">qiI", offset, 4 + len(body) if size is None else size, checksum) + body


def field(data: bytes | None) -> bytes:
    """Bytes with their int32 length."""
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def raw(offset: int, body: bytes) -> bytes:
    """An entry of any content after its checksum, which is right."""
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body
