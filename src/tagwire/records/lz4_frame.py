"""LZ4 frames as Kafka has them: the first frame counts, later ones and garbage after it are ignored.

Written with independent blocks, which is all that Kafka's Java reader takes. Read with linked blocks too: other clients
write them. A content size and a content checksum in the frame are ignored, as the Java reader does.

In messages of magic 0 the checksum of the frame's header covers the frame's magic too, a mistake that became the
format: so it is written, and never verified there, for not every writer made it (KAFKA-3160).

Source: docs/record-formats.md#codecs.
"""

from __future__ import annotations

from typing import Final

import cramjam
import xxhash

from tagwire.errors import CorruptRecordError
from tagwire.kernel.raw_bytes import uncleared

MAGIC = b"\x04\x22\x4d\x18"
_PLAIN_HEADER = 6
"""Bytes of a frame's magic and descriptor without content size, before the checksum."""
_HEADER = MAGIC + bytes.fromhex("60 40 82")
"""Of a frame of independent blocks of at most 64 KiB, without checksums but its own."""
_HEADER_BYTES: Final = 7
_SIZE_BYTES: Final = 4
"""Before each block; without one behind it, the end of the frame."""
_BLOCK: Final = 1 << 16
_BLOCK_ROOM: Final = _BLOCK + _BLOCK // 255 + 16
"""What a block may take while it is made, if nothing in it comes twice. Source: LZ4_compressBound."""
_IS_STORED: Final = 1 << 31
_FASTEST: Final = 2
"""The highest level of the fast compressor."""
_BLOCK_SIZES = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}


def compress(data: bytes | bytearray | memoryview, level: int | None, *, magic: int) -> bytes:
    """One frame of independent blocks. Levels 0-2 are the fast compressor (the default), 3-12 the slow ones."""
    if not level or level <= _FASTEST:
        frame = _fast_frame(memoryview(data).cast("B"))
    else:
        compressor = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
        compressor.compress(bytes(data))
        frame = bytes(compressor.finish())
    if magic:
        return frame
    return b"".join(
        (frame[:_PLAIN_HEADER], bytes((_header_checksum(frame[:_PLAIN_HEADER]),)), frame[_PLAIN_HEADER + 1 :])
    )


def _fast_frame(data: memoryview) -> bytes:
    """What Kafka's own writer makes, without a checksum of each block. Put together here: cramjam's writer of frames
    copies, and makes those checksums."""
    blocks = -(-len(data) // _BLOCK)
    out = uncleared(_HEADER_BYTES + blocks * (_SIZE_BYTES + _BLOCK_ROOM) + _SIZE_BYTES)
    with memoryview(out) as frame:
        frame[:_HEADER_BYTES] = _HEADER
        at = _HEADER_BYTES
        for start in range(0, len(data), _BLOCK):
            block = data[start : start + _BLOCK]
            begin = at + _SIZE_BYTES
            size = cramjam.lz4.compress_block_into(block, frame[begin : begin + _BLOCK_ROOM], store_size=False)
            stored = 0
            if size >= len(block):
                size, stored = len(block), _IS_STORED
                frame[begin : begin + size] = block
            frame[at:begin] = (size | stored).to_bytes(_SIZE_BYTES, "little")
            at = begin + size
        frame[at : at + _SIZE_BYTES] = bytes(_SIZE_BYTES)
        return bytes(frame[: at + _SIZE_BYTES])


def decompress(data: memoryview, limit: int, *, magic: int) -> bytearray:
    """The content of the first frame. Raises CorruptRecordError: not a frame, broken, or more than `limit` bytes."""
    frame, size = _first_frame(data, checked=magic > 0)
    out = uncleared(min(size, limit))
    try:
        del out[cramjam.lz4.decompress_into(frame, out) :]
    except cramjam.DecompressionError as error:
        if size > limit:
            raise CorruptRecordError(f"lz4 data is broken or holds more than {limit} bytes: {error}") from None
        raise CorruptRecordError(f"lz4 data is broken: {error}") from None
    return out


def _first_frame(data: memoryview, checked: bool) -> tuple[memoryview | bytes, int]:
    """The first frame without content size and checksum, and the most bytes that its blocks can hold.

    `checked`: its header has to have its checksum; the frame given has it in any case.
    """
    if len(data) < 7 or data[:4] != MAGIC:
        raise CorruptRecordError("lz4 data does not start with a frame header")
    flags, block = data[4], data[5]
    version, reserved = flags >> 6, flags & 0b11
    block_checksum, content_size, content_checksum = flags & 0x10, flags & 0x08, flags & 0x04
    if version != 1 or reserved or block & 0b10001111 or block >> 4 not in _BLOCK_SIZES:
        raise CorruptRecordError(f"lz4 frame descriptor {flags:02x} {block:02x} is not valid")
    blocks = 7 + (8 if content_size else 0)
    descriptor = data[4 : blocks - 1]
    if len(data) < blocks or (checked and data[blocks - 1] != _header_checksum(descriptor)):
        raise CorruptRecordError("lz4 frame header fails its checksum")
    block_size = _BLOCK_SIZES[block >> 4]
    at, size = blocks, 0
    while True:
        length = int.from_bytes(data[at : at + 4], "little") & 0x7FFFFFFF
        stored = len(data) > at + 3 and data[at + 3] & 0x80
        at += 4
        if at > len(data) or length > len(data) - at:
            raise CorruptRecordError("lz4 frame is cut short")
        if length == 0:
            break
        size += length if stored else block_size
        at += length + (4 if block_checksum else 0)
    if checked and not content_size and not content_checksum:
        return data[:at], size
    plain = bytes((flags & ~0x0C, block))
    return b"".join((MAGIC, plain, bytes((_header_checksum(plain),)), data[blocks:at])), size


def _header_checksum(descriptor: bytes | memoryview) -> int:
    """Second byte of xxHash32 (seed 0) of a descriptor."""
    return int(xxhash.xxh32_intdigest(descriptor)) >> 8 & 0xFF
