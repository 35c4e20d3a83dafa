"""Record batches (magic 2): their 61-byte header, their checksum, their records.

Layout: docs/record-formats.md#record-batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct

from tagwire.errors import CorruptRecordError
from tagwire.kernel.checksum import checksum
from tagwire.kernel.record_objects import objects
from tagwire.kernel.records import MIN_RECORD_SIZE
from tagwire.records.compression import CODECS, decompress, over_limit
from tagwire.records.record import HeaderKey, Record

Data = bytes | bytearray | memoryview

HEADER = Struct(">qiibIhiqqqhii")
HEADER_SIZE = 61
PREFIX_SIZE = 12
"""Base offset and length: what every format starts with. The length counts the bytes after them."""

CODEC_MASK, APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40
CRC_AT, CRC_FROM = 17, 21
MAX_SEQUENCE = (1 << 31) - 1
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
            or self.base_offset > _MAX_OFFSET - self.last_offset_delta - 1  # the offset after it is one, too
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
    def last_sequence(self) -> int:
        """The sequence of the batch's last record; -1 where there is none."""
        return next_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def delete_horizon(self) -> int | None:
        """When the batch's tombstones may go, in milliseconds; None where it does not say."""
        return self.base_timestamp if self.has_delete_horizon else None

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

    @property
    def path(self) -> str:
        """What errors call this batch."""
        return f"batch at offset {self.base_offset}"

    def corrupt(self, message: str) -> CorruptRecordError:
        """An error about this batch, naming its base offset and position."""
        return CorruptRecordError(message, path=self.path, offset=self.position)

    def bytes_in(self, data: memoryview) -> memoryview:
        """The batch in `data`, the bytes that this header was read from."""
        return data[self.position : self.position + self.size]

    def checksum(self, data: memoryview) -> int:
        """CRC-32C of the batch in `data`, the bytes that this header was read from."""
        return int(checksum(self.bytes_in(data)[CRC_FROM:]))

    def verify(self, data: memoryview) -> None:
        """Raises CorruptRecordError unless the batch in `data` has the checksum that its header states."""
        actual = self.checksum(data)
        if actual != self.crc:
            raise self.corrupt(f"checksum is {actual:08x}, its header says {self.crc:08x}")

    def payload(self, data: memoryview, limit: int | None = None) -> memoryview:
        """The records of the batch in `data`, decompressed to at most `limit` bytes (None: `default_limit`).

        Raises CorruptRecordError: a broken stream, more than `limit` bytes, or fewer than `count` records need.
        """
        stored = self.bytes_in(data)[HEADER_SIZE:]
        if self.attributes & CODEC_MASK and (self.count or stored):
            stored = decompress(self.compression, stored, limit, path=self.path)
        if self.count * MIN_RECORD_SIZE > len(stored):
            raise self.corrupt(f"{self.count} records do not fit into {len(stored)} bytes")
        return stored

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} offsets {self.base_offset}-{self.last_offset}, {self.count} records, "
            f"{self.compression}, {self.size} bytes>"
        )


class RecordBatch(BatchHeader):
    """A batch and its bytes: the attributes of its header, `data` (the whole batch) and its records.

    Its records may be compressed; `decompress` does that once, and `records` by way of it.
    """

    __slots__ = ("_payload", "data")

    def __init__(self, data: memoryview, position: int) -> None:
        super().__init__(data, position)
        self.data = data[position : position + self.size]
        self._payload: memoryview | None = None

    @property
    def size_in_bytes(self) -> int:
        return self.size

    def bytes_in(self, data: memoryview | None) -> memoryview:
        return self.data

    def verify(self, data: memoryview | None = None) -> None:
        """Raises CorruptRecordError unless the checksum in the header is that of the bytes."""
        super().verify(self.data)

    def decompress(self, limit: int | None = None) -> DecompressedBatch:
        """The batch with its records as plain bytes, at most `limit` (None: 64 times the compressed and 1 MiB).

        What was decompressed is kept with the batch: asking again costs nothing. Raises CorruptRecordError: a broken
        stream, or one of more than `limit` bytes.
        """
        return DecompressedBatch(self, self.payload(self.data, limit))

    def payload(self, data: memoryview | None = None, limit: int | None = None) -> memoryview:
        if self._payload is None:
            self._payload = self._read_payload(limit)
        elif self.attributes & CODEC_MASK and limit is not None and len(self._payload) > limit:
            raise over_limit(self.compression, limit, self.path)
        return self._payload

    def _read_payload(self, limit: int | None) -> memoryview:
        return super().payload(self.data, limit)

    def records(self, *, max_decompressed: int | None = None) -> Iterator[Record]:
        """The records, control records too; every one is checked before the first is given.

        With LogAppendTime each has the batch's max_timestamp. `max_decompressed` bounds the decompressed bytes (None:
        64 times the compressed and 1 MiB). Raises CorruptRecordError naming batch, record and byte.
        """
        return self.decompress(max_decompressed).records()


class DecompressedBatch:
    """A batch whose records are plain bytes: nothing about it needs decompression any more.

    Attributes:
        batch: the batch they came from; all that its header says is there.
        payload: the records one after another, as a magic-2 batch has them whatever the format of `batch`.
    """

    __slots__ = ("_key_of", "batch", "payload")

    def __init__(
        self, batch: RecordBatch, payload: memoryview, key_of: Callable[[bytes], HeaderKey] | None = None
    ) -> None:
        """`key_of`: what the bytes of a header's key mean; None where they are text."""
        self.batch = batch
        self.payload = payload
        self._key_of = key_of

    def records(self, *, created: bool = False) -> Iterator[Record]:
        """The records; every one is checked before the first is given. Raises CorruptRecordError.

        With LogAppendTime each has the batch's max_timestamp, unless `created` keeps each its own.
        """
        batch = self.batch
        return objects(
            self.payload,
            batch.count,
            0 if batch.attributes & CODEC_MASK else HEADER_SIZE,
            batch.base_offset,
            batch.last_offset_delta,
            batch.base_timestamp,
            batch.max_timestamp,
            bool(batch.attributes & APPEND_TIME) and not created,
            self._key_of,
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.batch!r}, {len(self.payload)} bytes of records>"


def next_sequence(sequence: int, count: int) -> int:
    """The sequence after `count` records from `sequence`; 0 follows 2147483647, and none (-1) stays none."""
    return sequence if sequence < 0 else (sequence + count) & MAX_SEQUENCE
