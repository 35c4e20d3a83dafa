"""Snappy as Kafka has it: written in xerial's framing; read in it, or as one raw block.

Source: docs/record-formats.md#codecs.
"""

from __future__ import annotations

import cramjam

from tagwire.errors import CorruptRecordError
from tagwire.kernel.raw_bytes import uncleared

MAGIC = b"\x82SNAPPY\x00"
HEADER = MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
BLOCK_SIZE = 32768


def compress(data: bytes | bytearray | memoryview) -> bytes:
    """The header, then each 32768 bytes as an int32 length and a raw block."""
    view = memoryview(data)
    parts = [HEADER]
    for at in range(0, len(view), BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[at : at + BLOCK_SIZE]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def decompress(data: memoryview, limit: int) -> bytearray:
    """The content. Raises CorruptRecordError: broken, cut short, or more than `limit` bytes."""
    blocks = _xerial_blocks(data) if data[:8] == MAGIC else [data]
    sizes = [_size(block) for block in blocks]
    if sum(sizes) > limit:
        raise CorruptRecordError(f"snappy data holds {sum(sizes)} bytes, more than {limit}")
    out = uncleared(sum(sizes))
    view, at = memoryview(out), 0
    for block, size in zip(blocks, sizes):
        try:
            written = cramjam.snappy.decompress_raw_into(block, view[at : at + size])
        except cramjam.DecompressionError as error:
            raise CorruptRecordError(f"snappy data is broken: {error}") from None
        if written != size:
            raise CorruptRecordError(f"snappy block holds {written} bytes, not the {size} it states")
        at += size
    return out


def _size(block: memoryview) -> int:
    try:
        return int(cramjam.snappy.decompress_raw_len(block))
    except cramjam.DecompressionError as error:
        raise CorruptRecordError(f"snappy data is broken: {error}") from None


def _xerial_blocks(data: memoryview) -> list[memoryview]:
    """The raw blocks; a header may stand again between them, where streams were concatenated."""
    blocks, at = [], 0
    while at < len(data):
        if data[at : at + 8] == MAGIC:
            at += len(HEADER)
            if at > len(data):
                raise CorruptRecordError("snappy data is cut short in its header")
            continue
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        at += 4
        if size < 1 or size > len(data) - at:
            raise CorruptRecordError(f"snappy block of {size} bytes does not fit into the {len(data) - at} left")
        blocks.append(data[at : at + size])
        at += size
    return blocks
