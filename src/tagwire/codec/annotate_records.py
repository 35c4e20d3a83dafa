"""An annotated dump of record batches and message sets: which bytes mean what, and by which rule of the format.

Walks the format as its page has it, not the kernels, so that the two can be held against each other. What is compressed
is one run of bytes: what is inside has no place among them.
Source: docs/record-formats.md.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from typing import Final

from tagwire.codec.annotate import MAX_SHOWN, Span
from tagwire.codec.program import Buffer
from tagwire.errors import DecodeError
from tagwire.kernel.checksum import checksum

_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_CONTROLS: Final = (
    "ABORT",
    "COMMIT",
    "LEADER_CHANGE",
    "SNAPSHOT_HEADER",
    "SNAPSHOT_FOOTER",
    "KRAFT_VERSION",
    "KRAFT_VOTERS",
)
_HEADER_END: Final = 61
_FRAMING: Final = 12
_MESSAGE_SIZES: Final = {0: 14, 1: 22}
"""The least that follows the framing of a message, by magic."""


def annotate_records(data: Buffer) -> Iterator[Span]:
    """The spans of batches that follow each other, in order and without gaps, as far as they can be read.

    Paths begin with `batch[0].`, and those of records with `batch[0].records[0].`; those of messages of magic 0 and 1
    with `message[0].`.

    Raises:
        DecodeError: after the last span that makes sense: the bytes that follow do not. Of a checksum that is wrong
            only the rule says so.
    """
    walk = _Walk(bytes(data))
    number = 0
    while walk.at < len(walk.data):
        yield from walk.batch(number)
        number += 1


class _Walk:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    # -- batches

    def batch(self, number: int) -> Iterator[Span]:
        start = self.at
        left = len(self.data) - start
        if left <= _FRAMING + 4:
            raise DecodeError(f"{left} bytes are no batch", path=f"batch[{number}]", offset=start)
        size = int.from_bytes(self.data[start + 8 : start + 12], "big", signed=True)
        magic = self.data[start + 16]
        if magic not in (0, 1, 2):
            raise DecodeError(f"magic {magic} is none", path=f"batch[{number}]", offset=start + 16)
        least = _HEADER_END - _FRAMING if magic == 2 else _MESSAGE_SIZES[magic]
        if not least <= size <= left - _FRAMING:
            text = f"size {size:,}, where {left - _FRAMING:,} bytes are left and {least} are the least"
            raise DecodeError(text, path=f"batch[{number}]", offset=start + 8)
        end = start + _FRAMING + size
        if magic == 2:
            yield from self.record_batch(f"batch[{number}].", end)
        else:
            yield from self.message(f"message[{number}].", end, magic)

    def record_batch(self, path: str, end: int) -> Iterator[Span]:
        start = self.at
        yield self.number(path + "baseOffset", "int64", 8, "big-endian; outside the checksum")
        yield self.number(path + "batchLength", "int32", 4, "bytes that follow")
        yield self.number(path + "partitionLeaderEpoch", "int32", 4, "-1 from a producer; outside the checksum")
        yield self.number(path + "magic", "int8", 1, "the format: 2")
        stated = int.from_bytes(self.data[self.at : self.at + 4], "big")
        found = checksum(self.data[start + 21 : end])
        rule = "CRC-32C from attributes to the end" + ("" if found == stated else f": WRONG, it is {found}")
        yield self.number(path + "crc", "uint32", 4, rule, signed=False)
        attributes = int.from_bytes(self.data[self.at : self.at + 2], "big")
        codec = attributes & 7
        if codec >= len(_CODECS):
            raise DecodeError(f"codec {codec} is none", path=path + "attributes", offset=self.at)
        yield self.taken(path + "attributes", "int16", 2, _attributes(attributes), "flags: docs/record-formats.md")
        yield self.number(path + "lastOffsetDelta", "int32", 4, "last offset less the base offset")
        horizon = bool(attributes & 64)
        yield self.number(
            path + "baseTimestamp", "int64", 8, "ms; of a delete horizon" if horizon else "ms since 1970, -1 for none"
        )
        yield self.number(path + "maxTimestamp", "int64", 8, "the append time" if attributes & 8 else "the latest")
        yield self.number(path + "producerId", "int64", 8, "-1 for none")
        yield self.number(path + "producerEpoch", "int16", 2, "-1 for none")
        yield self.number(path + "baseSequence", "int32", 4, "-1 for none")
        count = int.from_bytes(self.data[self.at : self.at + 4], "big", signed=True)
        yield self.number(path + "recordsCount", "int32", 4, "records that follow")
        if codec:
            size = end - self.at
            rule = f"the records, compressed with {_CODECS[codec]}"
            yield self.taken(path + "records", _CODECS[codec], size, f"{size} bytes", rule)
            return
        for number in range(count):
            yield from self.record(f"{path}records[{number}].", end, control=bool(attributes & 32))
        if self.at != end:
            raise DecodeError(f"{end - self.at} bytes follow the last record", path=path + "records", offset=self.at)

    def record(self, path: str, end: int, *, control: bool) -> Iterator[Span]:
        yield self.varint(path + "length", "varint", "zigzag: bytes of the record that follow", end)
        length = self.read
        last = self.at + length
        if not 0 <= length <= end - self.at:
            raise DecodeError(f"a record of {length} bytes", path=path + "length", offset=self.at)
        yield self.number(path + "attributes", "int8", 1, "0")
        yield self.varint(path + "timestampDelta", "varlong", "zigzag: less the base timestamp", last, bits=64)
        yield self.varint(path + "offsetDelta", "varint", "zigzag: less the base offset", last)
        yield from self.counted(path + "key", last, control=control)
        yield from self.counted(path + "value", last)
        at = self.at
        yield self.varint(path + "headers[]", "varint", "zigzag: number of headers", last)
        if self.read < 0:
            raise DecodeError(f"{self.read} headers", path=path + "headers[]", offset=at)
        for number in range(self.read):
            yield from self.counted(f"{path}headers[{number}].key", last, text=True)
            yield from self.counted(f"{path}headers[{number}].value", last)
        if self.at != last:
            raise DecodeError(f"{last - self.at} bytes of the record are left", path=path, offset=self.at)

    def message(self, path: str, end: int, magic: int) -> Iterator[Span]:
        yield self.number(path + "offset", "int64", 8, "of a compressed set: that of its last message")
        yield self.number(path + "size", "int32", 4, "bytes that follow")
        stated = int.from_bytes(self.data[self.at : self.at + 4], "big")
        found = binascii.crc32(self.data[self.at + 4 : end])
        rule = "CRC-32 from magic to the end" + ("" if found == stated else f": WRONG, it is {found}")
        yield self.number(path + "crc", "uint32", 4, rule, signed=False)
        yield self.number(path + "magic", "int8", 1, f"the format: {magic}")
        attributes = self.data[self.at]
        codec = attributes & 7
        if codec >= len(_CODECS):
            raise DecodeError(f"codec {codec} is none", path=path + "attributes", offset=self.at)
        yield self.taken(path + "attributes", "int8", 1, _attributes(attributes & 15), "flags: docs/record-formats.md")
        if magic:
            yield self.number(path + "timestamp", "int64", 8, "ms since 1970, -1 for none")
        for name in ("key", "value"):
            start = self.at
            size = int.from_bytes(self.taken_bytes(4, path + name, end), "big", signed=True)
            data = self.taken_bytes(max(size, 0), path + name, end)
            shown = "null" if size < 0 else _hex(data)
            rule = "length as int32, -1 is null"
            if codec and name == "value":
                rule += f"; a message set, compressed with {_CODECS[codec]}"
            yield self.span(start, path + name, "bytes", shown, rule)
        if self.at != end:
            raise DecodeError(f"{end - self.at} bytes of the message are left", path=path, offset=self.at)

    # -- parts

    read = 0
    """What the varint that was read last says."""

    def counted(self, path: str, last: int, *, text: bool = False, control: bool = False) -> Iterator[Span]:
        """Bytes after their length."""
        start = self.at
        size = self.read_varint(path, last)
        if size < 0 and text:
            raise DecodeError(f"a header's key of {size} bytes", path=path, offset=start)
        if size < 0:
            yield self.span(start, path, "bytes", "null", "varint length, zigzag; negative is null")
            return
        data = self.taken_bytes(size, path, last)
        shown = repr(data.decode("utf-8", "replace")) if text else _hex(data)
        rule = "varint length, zigzag, and UTF-8" if text else "varint length, zigzag; negative is null"
        if control and len(data) >= 4:
            kind = int.from_bytes(data[2:4], "big")
            shown = f"version {int.from_bytes(data[:2], 'big')}, type {kind}"
            shown += f" ({_CONTROLS[kind]})" if kind < len(_CONTROLS) else ""
            rule += "; of a control record: int16 version and type"
        yield self.span(start, path, "string" if text else "bytes", shown, rule)

    def number(self, path: str, kind: str, size: int, rule: str, *, signed: bool = True) -> Span:
        value = int.from_bytes(self.data[self.at : self.at + size], "big", signed=signed)
        return self.taken(path, kind, size, str(value), rule)

    def varint(self, path: str, kind: str, rule: str, last: int, bits: int = 32) -> Span:
        start = self.at
        self.read = self.read_varint(path, last, bits)
        return self.span(start, path, kind, str(self.read), rule)

    def read_varint(self, path: str, last: int, bits: int = 32) -> int:
        value = 0
        for shift in range(0, bits + 3, 7):
            byte = self.taken_bytes(1, path, last)[0]
            value |= (byte & 127) << shift
            if byte < 128 and value < 1 << bits:
                return (value >> 1) ^ -(value & 1)
        raise DecodeError(f"a varint of more than {bits} bits", path=path, offset=self.at)

    def taken(self, path: str, kind: str, size: int, value: str, rule: str) -> Span:
        start = self.at
        self.at += size
        return self.span(start, path, kind, value, rule)

    def taken_bytes(self, size: int, path: str, last: int) -> bytes:
        if size > last - self.at:
            raise DecodeError(f"needs {size} bytes, {last - self.at} are left", path=path, offset=self.at)
        self.at += size
        return self.data[self.at - size : self.at]

    def span(self, start: int, path: str, kind: str, value: str, rule: str) -> Span:
        shown = value if len(value) <= MAX_SHOWN else f"{value[:MAX_SHOWN]}…"
        return Span(start, self.at, path, kind, shown, rule)


def _attributes(value: int) -> str:
    said = [_CODECS[value & 7], "LogAppendTime" if value & 8 else "CreateTime"]
    said += [name for bit, name in ((16, "transactional"), (32, "control"), (64, "delete horizon")) if value & bit]
    return f"{value}: {', '.join(said)}"


def _hex(data: bytes) -> str:
    return data.hex() if len(data) <= MAX_SHOWN // 2 else f"{data[: MAX_SHOWN // 2].hex()}… ({len(data)} bytes)"
