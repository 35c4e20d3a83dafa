"""Message sets: what logs held before record batches (magic 0 and 1), and the int-headers format (magic 2).

A message set is entry after entry: a message, or a wrapper whose value is a compressed message set. Each entry is read
as a batch: of one record, or of as many as are wrapped.
Layouts: docs/record-formats.md#message-sets, docs/dialects.md#int-header-keys.

    entry   = int64 offset, int32 size, message
    message = uint32 CRC-32 of the rest, int8 magic, int8 attributes, [int64 timestamp], int32 key length, key,
              [int-headers: integer length, headers], int32 value length, value

A wrapper's offset is its last message's. The offsets inside are absolute in magic 0, and relative since: the first
message's is the wrapper's less the last inner one. Old librdkafka leaves 0 in the wrapper: then they count from 0. In
magic 0 it leaves 0 in all messages too, for the broker to number.
"""

from __future__ import annotations

import zlib
from struct import Struct

from tagwire.errors import CorruptRecordError
from tagwire.kernel.message_sets import HAS_HEADERS, PREFIX_SIZE, records_of, run_of
from tagwire.records.batch import APPEND_TIME, CODEC_MASK, DecompressedBatch, RecordBatch
from tagwire.records.compression import CODECS, decompress
from tagwire.records.register import HeaderRegister

ENTRY = Struct(">qiIbb")
TIMESTAMP = Struct(">q")
TIMESTAMP_AT = 18
CHECKED_FROM = 16
"""Where an entry's checksum begins to count: its magic."""

MAX_RUN = 1 << 18
"""Most bytes of messages that are read as one batch."""

MAX_OFFSET = (1 << 63) - 1
"""The offset that no record has: the one after it would not fit."""

_LENGTH = Struct(">i")
_ZSTD = CODECS.index("zstd")
_WITHOUT_TIMESTAMP, _WITH_TIMESTAMP = 14, 22
_OF_MESSAGES = ("base_offset", "base_timestamp", "count", "last_offset_delta")


class MessageEntry(RecordBatch):
    """An entry of a message set: a message as a batch of one record, or a wrapper of compressed ones.

    What stands only inside a wrapper (count, base_offset, last_offset_delta, base_timestamp) makes it decompress, once.
    What these formats do not have is -1 or false. `crc` is CRC-32 (IEEE). timestamp_type is "NoTimestampType" in magic
    0, whose records have the timestamp -1; what an entry says of LogAppendTime holds for the messages it wraps.

    Attributes:
        offset: as the entry states it: of the message, or of the last one it wraps.
        max_decompressed: most bytes that a wrapper may become when it is decompressed without another limit (None: 64
            times the compressed and 1 MiB).
        register: by which records name the int keys of their headers (None: they keep them).
    """

    __slots__ = ("max_decompressed", "offset", "register")

    def __init__(self, data: memoryview, position: int) -> None:
        """Reads the whole entry at `position`. Raises CorruptRecordError when it contradicts itself."""
        self.offset, length, self.crc, self.magic, attributes = ENTRY.unpack_from(data, position)
        self.position = position
        self.size = PREFIX_SIZE + length
        self.data = data[position : position + self.size]
        self.crc_ok = None
        self._payload = None
        self.max_decompressed: int | None = None
        self.register: HeaderRegister | None = None
        self.partition_leader_epoch = self.producer_id = self.producer_epoch = self.base_sequence = -1
        self.attributes = attributes & (CODEC_MASK | APPEND_TIME if self.magic else CODEC_MASK)
        codec = attributes & CODEC_MASK
        if len(self.data) != self.size:
            raise self.corrupt(f"{len(self.data)} bytes are not the {self.size} of the entry")
        if length < (_WITH_TIMESTAMP if self.magic else _WITHOUT_TIMESTAMP):
            raise self.corrupt(f"message size {length} leaves no room for the fields of magic {self.magic}")
        if self.offset < 0 or self.offset == MAX_OFFSET:
            raise self.corrupt(f"offset {self.offset} is out of range")
        if codec >= len(CODECS):
            raise self.corrupt(f"compression id {codec} is unknown")
        if codec == _ZSTD and self.magic < 2:
            raise self.corrupt(f"magic {self.magic} has no compression zstd")
        if codec and self.magic == 2 and attributes & HAS_HEADERS:
            raise self.corrupt("a message that wraps others has headers")
        self.max_timestamp = TIMESTAMP.unpack_from(self.data, TIMESTAMP_AT)[0] if self.magic else -1
        if not codec:
            self.base_offset, self.count, self.last_offset_delta = self.offset, 1, 0
            self.base_timestamp = self.max_timestamp

    def __getattr__(self, name: str) -> int:
        # A wrapper leaves the slots of what its messages say empty, until one of them is read.
        if name not in _OF_MESSAGES or self._payload is not None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.payload()
        value: int = getattr(self, name)
        return value

    @property
    def last_offset(self) -> int:
        if self.offset or not self.attributes & CODEC_MASK:
            return self.offset
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    @property
    def timestamp_type(self) -> str:
        return super().timestamp_type if self.magic else "NoTimestampType"

    @property
    def path(self) -> str:
        return f"message set entry at offset {self.offset}"

    def checksum(self, data: memoryview | None = None) -> int:
        return zlib.crc32(self.data[CHECKED_FROM:])

    def _read_payload(self, limit: int | None) -> memoryview:
        wraps = bool(self.attributes & CODEC_MASK)
        messages = self._wrapped(limit) if wraps else self.data
        unnumbered = self.magic == 0 and self.offset == 0
        payload, count, first, last, timestamp = records_of(messages, self.magic == 2, wraps, self.path, unnumbered)
        if wraps:
            if not count:
                raise self.corrupt("the compressed message set has no message")
            inner_base = self._inner_base(last)
            if last + inner_base >= MAX_OFFSET:
                raise self.corrupt(f"the last message inside has offset {last + inner_base}, which is out of range")
            self.base_offset = first + inner_base
            self.count, self.last_offset_delta, self.base_timestamp = count, last - first, timestamp
        return memoryview(payload)

    def _inner_base(self, last: int) -> int:
        """What is added to inner offsets, of which `last` is the last."""
        if self.offset == 0 or (self.magic == 0 and self.offset == last):
            return 0
        if last > self.offset or self.magic == 0:
            raise self.corrupt(f"the last message inside has offset {last}")
        return self.offset - last

    def _wrapped(self, limit: int | None) -> memoryview:
        at = TIMESTAMP_AT + (TIMESTAMP.size if self.magic else 0)
        for field in ("key", "value"):
            (size,) = _LENGTH.unpack_from(self.data, at)
            at += _LENGTH.size
            room = len(self.data) - at - (_LENGTH.size if field == "key" else 0)
            if size < -1 or size > room or (field == "value" and size != room):
                raise self.corrupt(f"{field} length {size} does not fit into the message")
            at += max(size, 0) if field == "key" else 0
        limit = self.max_decompressed if limit is None else limit
        return decompress(self.compression, self.data[at:], limit, path=self.path, magic=self.magic)

    def decompress(self, limit: int | None = None) -> DecompressedBatch:
        payload = self.payload(self.data, limit)
        if self.magic < 2:
            return DecompressedBatch(self, payload)
        return DecompressedBatch(self, payload, int if self.register is None else self.register.key_as_text)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} magic {self.magic}, offset {self.offset}, {self.compression}, {self.size} bytes>"
        )


class MessageRun(MessageEntry):
    """Uncompressed messages that follow one another, read as one batch: for those who look at records only.

    Its checksum is that of the first message; every message's own is verified with the reading of its records.
    """

    __slots__ = ()

    def __init__(self, data: memoryview, first: MessageEntry) -> None:
        super().__init__(data, first.position)
        end, self.count, last = run_of(data, first.position, MAX_RUN)
        self.last_offset_delta = last - first.offset
        self.size = end - first.position
        self.data = data[first.position : end]

    @property
    def last_offset(self) -> int:
        return self.offset + self.last_offset_delta

    @property
    def is_sound(self) -> bool:
        """Whether records can be made of all its messages."""
        try:
            self.payload()
        except CorruptRecordError:
            return False
        return True

    def verify(self, data: memoryview | None = None) -> None:
        self.payload()

    def _read_payload(self, limit: int | None) -> memoryview:
        return memoryview(records_of(self.data, self.magic == 2, True, self.path)[0])
