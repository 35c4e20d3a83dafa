"""Record batches (magic 2): their 61-byte header, their checksum, their records. Layout: facts 5.3.

Batches stand one after another, in a partition's log and in a fetch response; the last one may be cut short, which is
normal there: what is incomplete is left for the next read.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from crc32c import crc32c

from tagwire.errors import CorruptRecordError, UnsupportedVersionError
from tagwire.kernel.record_objects import objects
from tagwire.kernel.records import MIN_RECORD_SIZE
from tagwire.records.compression import CODECS, decompress
from tagwire.records.record import Record

Data = bytes | bytearray | memoryview

HEADER = Struct(">qiibIhiqqqhii")
HEADER_SIZE = 61
PREFIX_SIZE = 12
"""Base offset and length: what every format starts with. The length counts the bytes after them."""

CODEC_MASK, APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40
CRC_AT, CRC_FROM = 17, 21
_SMALLEST_LENGTH = 14
_MAGIC_AT = 16
_OFFSET, _EPOCH, _EPOCH_AT = Struct(">q"), Struct(">i"), 12
_MAX_OFFSET = (1 << 63) - 1


class BatchHeader:
    """The header of the batch at `position` of some bytes. Offsets are of the partition, timestamps milliseconds.

    Attributes:
        position, size: where the batch stands in the bytes it was read from, and its length there.
        last_offset_delta: last offset of the batch's range less its base; compaction may have removed that record.
        base_timestamp: what timestamp deltas are relative to; the delete horizon where `has_delete_horizon`.
        count: records the batch claims to hold; 0 for one that compaction emptied.
        crc: CRC-32C as stated. crc_ok: whether it holds; None where it was not computed.
        producer_id, producer_epoch, base_sequence: -1 where there is none.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "count",
        "crc",
        "crc_ok",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "position",
        "producer_epoch",
        "producer_id",
        "size",
    )

    def __init__(self, data: memoryview, position: int) -> None:
        """Reads the header at `position`. Raises CorruptRecordError when it contradicts itself."""
        (
            self.base_offset,
            length,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            count,
        ) = HEADER.unpack_from(data, position)
        self.position = position
        self.size = PREFIX_SIZE + length
        self.count = count
        self.crc_ok: bool | None = None
        if (
            self.base_offset < 0
            or self.last_offset_delta < 0
            or self.base_offset > _MAX_OFFSET - self.last_offset_delta
        ):
            raise self.corrupt(f"offsets {self.base_offset} + {self.last_offset_delta} are out of range")
        if count < 0 or count > self.last_offset_delta + 1:
            raise self.corrupt(f"{count} records do not fit into {self.last_offset_delta + 1} offsets")
        if self.attributes & CODEC_MASK >= len(CODECS):
            raise self.corrupt(f"compression id {self.attributes & CODEC_MASK} is unknown")

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Where reading goes on after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> str:
        return CODECS[self.attributes & CODEC_MASK]

    @property
    def timestamp_type(self) -> str:
        return "LogAppendTime" if self.attributes & APPEND_TIME else "CreateTime"

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def has_delete_horizon(self) -> bool:
        return bool(self.attributes & DELETE_HORIZON)

    def corrupt(self, message: str) -> CorruptRecordError:
        """An error about this batch, naming its base offset and position."""
        return CorruptRecordError(message, path=f"batch at offset {self.base_offset}", offset=self.position)

    def checksum(self, data: memoryview) -> int:
        """CRC-32C of the batch in `data`, the bytes that this header was read from."""
        return int(crc32c(data[self.position + CRC_FROM : self.position + self.size]))

    def verify(self, data: memoryview) -> None:
        """Raises CorruptRecordError unless the batch in `data` has the checksum that its header states."""
        actual = self.checksum(data)
        if actual != self.crc:
            raise self.corrupt(f"checksum is {actual:08x}, its header says {self.crc:08x}")

    def payload(self, data: memoryview, limit: int | None = None) -> memoryview:
        """The records of the batch in `data`, decompressed to at most `limit` bytes (None: `default_limit`).

        Raises CorruptRecordError: a broken stream, more than `limit` bytes, or fewer than `count` records need.
        """
        stored = data[self.position + HEADER_SIZE : self.position + self.size]
        if self.attributes & CODEC_MASK:
            stored = decompress(self.compression, stored, limit, path=f"batch at offset {self.base_offset}")
        if self.count * MIN_RECORD_SIZE > len(stored):
            raise self.corrupt(f"{self.count} records do not fit into {len(stored)} bytes")
        return stored

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} offsets {self.base_offset}-{self.last_offset}, {self.count} records, "
            f"{self.compression}, {self.size} bytes>"
        )


class RecordBatch(BatchHeader):
    """A batch and its bytes: the attributes of its header, `data` (the whole batch) and its records."""

    __slots__ = ("data",)

    def __init__(self, data: memoryview, position: int) -> None:
        super().__init__(data, position)
        self.data = data[position : position + self.size]
        self.position = 0

    @property
    def size_in_bytes(self) -> int:
        return self.size

    def verify(self, data: memoryview | None = None) -> None:
        """Raises CorruptRecordError unless the checksum in the header is that of the bytes."""
        super().verify(self.data if data is None else data)

    def records(self, *, max_decompressed: int | None = None) -> Iterator[Record]:
        """The records, control records too; every one is checked before the first is given.

        With LogAppendTime each has the batch's max_timestamp. `max_decompressed` bounds the decompressed bytes (None:
        64 times the compressed and 1 MiB). Raises CorruptRecordError naming batch, record and byte.
        """
        compressed = self.attributes & CODEC_MASK
        return iter(
            objects(
                self.payload(self.data, max_decompressed),
                self.count,
                0 if compressed else HEADER_SIZE,
                self.base_offset,
                self.last_offset_delta,
                self.base_timestamp,
                self.max_timestamp,
                bool(self.attributes & APPEND_TIME),
                Record,
            )
        )


def batch_headers(data: Data, *, verify: bool = False) -> Iterator[BatchHeader]:
    """The headers of the complete batches in `data`, one after another; stops silently at a partial last one.

    `verify` computes each checksum into `crc_ok`. Raises CorruptRecordError for a header that contradicts itself,
    UnsupportedVersionError for magic 0 and 1 (message sets).
    """
    view = memoryview(data).cast("B")
    for position in _positions(view):
        header = BatchHeader(view, position)
        if verify:
            header.crc_ok = header.checksum(view) == header.crc
        yield header


def read(data: Data, *, verify: bool = True) -> Iterator[RecordBatch]:
    """The complete batches in `data`; a partial last one is left out. `verify` checks each checksum first.

    Raises CorruptRecordError for a broken batch, UnsupportedVersionError for magic 0 and 1 (message sets).
    """
    view = memoryview(data).cast("B")
    for position in _positions(view):
        batch = RecordBatch(view, position)
        if verify:
            batch.verify()
        yield batch


def next_offset(data: Data) -> int | None:
    """The offset after the last complete batch in `data`: where a consumer goes on. None when there is no such batch.

    Raises as `batch_headers` does.
    """
    after = None
    for header in batch_headers(data):
        after = header.next_offset
    return after


def place(batch: bytearray | memoryview, base_offset: int, leader_epoch: int) -> None:
    """Rewrites base offset and partition leader epoch of the batch at the start of `batch`, which must be writable.

    Both stand outside the checksum, so nothing else changes.
    """
    _OFFSET.pack_into(batch, 0, base_offset)
    _EPOCH.pack_into(batch, _EPOCH_AT, leader_epoch)


def _positions(view: memoryview) -> Iterator[int]:
    """Where each complete batch starts (facts 5.1)."""
    at, end = 0, len(view)
    while end - at > _MAGIC_AT:
        length = int.from_bytes(view[at + 8 : at + PREFIX_SIZE], "big", signed=True)
        if length < _SMALLEST_LENGTH:
            raise CorruptRecordError(f"batch length {length} is below {_SMALLEST_LENGTH}", offset=at + 8)
        magic = view[at + _MAGIC_AT]
        if magic > 2:
            raise CorruptRecordError(f"magic {magic} is not 0, 1 or 2", offset=at + _MAGIC_AT)
        if length > end - at - PREFIX_SIZE:
            return
        if magic < 2:
            raise UnsupportedVersionError(f"message format magic {magic} at byte {at + _MAGIC_AT} is not read, only 2")
        if length < HEADER_SIZE - PREFIX_SIZE:
            raise CorruptRecordError(f"batch length {length} leaves no room for a header", offset=at + 8)
        yield at
        at += PREFIX_SIZE + length
