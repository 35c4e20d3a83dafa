"""Records to a record batch (magic 2), or to a message set.

Layouts: docs/record-formats.md#message-sets, docs/record-formats.md#record-batches.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TypedDict, Unpack

from tagwire.errors import ConfigError, EncodeError
from tagwire.kernel import record_writing as kernel
from tagwire.kernel.checksum import checksum
from tagwire.records.batch import (
    APPEND_TIME,
    CODEC_MASK,
    CONTROL,
    CRC_AT,
    CRC_FROM,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    PREFIX_SIZE,
    TRANSACTIONAL,
    RecordBatch,
)
from tagwire.records.compression import CODECS, codec_id, compress
from tagwire.records.memory_records import INT_HEADERS, check_dialect
from tagwire.records.message_set import MAX_OFFSET, MessageEntry
from tagwire.records.message_set_writer import SetFormat, write_message_set
from tagwire.records.record import Record
from tagwire.records.register import HeaderRegister
from tagwire.suggestions import did_you_mean

TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
_MAX_SIZE = (1 << 31) - 1
_FIELDS = (
    "base_offset",
    "partition_leader_epoch",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "count",
)
_OF_BATCHES = ("partition_leader_epoch", "producer_id", "producer_epoch", "base_sequence", "transactional", "control")


class BatchOptions(TypedDict, total=False):
    """What a batch says about itself, for `write` and `from_arrow`.

    compression: none (the default), gzip, snappy, lz4 or zstd; level: its level, None for the codec's default.
    base_offset: offset of the first record (0); the others follow without gaps.
    timestamp_type: "CreateTime" (the default), or "LogAppendTime", whose readers take the greatest timestamp for all.
    partition_leader_epoch, producer_id, producer_epoch, base_sequence: -1, for none, by default.
    transactional: the batch belongs to a transaction of its producer. control: its records are control records.
    magic: 2, a record batch, by default; 0 or 1 for a message set, which has nothing of the two lines above, no headers
    and no zstd. Messages of magic 0 have no timestamps either: they are left out.
    dialect: None, or "int-headers" for a message set of that format. register: of that dialect, what knows int header
    keys by name: then keys may be those names, or ints, or their decimal numbers.
    """

    compression: str
    level: int | None
    base_offset: int
    timestamp_type: str
    partition_leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool
    control: bool
    magic: int
    dialect: str | None
    register: HeaderRegister | None


_OPTIONS = frozenset(BatchOptions.__annotations__)


def write(records: Iterable[Record], **options: Unpack[BatchOptions]) -> bytes:
    """One record batch of `records`, in order; b"" for no records. `options` are `BatchOptions`.

    Of magic 0, 1 and the int-headers format: a message set, whose messages are wrapped in one if compressed, and each
    an entry of its own if not.

    The records' own offsets are not looked at. Raises EncodeError naming the record that cannot be written, where an
    offset would be none, or when the batch passes 2 GiB; ConfigError for an unknown option, compression, level,
    timestamp type or dialect, and for options that the format has no room for or that contradict each other.
    """
    attributes = check(options)
    rows = list(records)
    if not rows:
        return b""
    if is_message_set(options):
        base = options.get("base_offset", 0)
        offsets = range(base, base + len(rows))
        return write_message_set(rows, offsets, set_format(options))
    payload, base_timestamp, max_timestamp = kernel.encode(rows)
    made = _sealed(payload, attributes, (len(rows), base_timestamp, max_timestamp), options)
    kernel.spare(payload)
    return made


def rewrite(
    batch: RecordBatch,
    records: Iterable[Record],
    *,
    delete_horizon: int | None = None,
    compression: str | None = None,
    level: int | None = None,
) -> bytes:
    """`batch` with those of its records that compaction keeps, at their own offsets, or in another compression.

    Offset range, producer, sequence, leader epoch and attributes stay. `delete_horizon`: when its tombstones may go
    (ms); timestamps stay what they are, below -1 too. `compression`: None for the batch's own. Without records a record
    batch remains as an emptied one, and of a message set nothing.

    Raises EncodeError for a record that cannot be written or whose offset is not of the batch or not above the one
    before; ConfigError for a wrong compression or level, and for a delete horizon that is no time, or of a message set.
    """
    codec = codec_id(batch.compression if compression is None else compression, level)
    rows = list(records)
    offsets = [row.offset for row in rows]
    for before, offset in zip([batch.base_offset - 1, *offsets], [*offsets, batch.last_offset + 1]):
        if offset <= before:
            raise EncodeError(f"offset {before} is not of the batch, or not above the one before")
    attributes = batch.attributes & ~CODEC_MASK | codec
    if isinstance(batch, MessageEntry):
        if delete_horizon is not None:
            raise ConfigError("a message set has no delete horizon")
        _check_zstd(codec, batch.magic)
        form = SetFormat(batch.magic, attributes, level, batch.register)
        return write_message_set(rows, offsets, form, as_read=True) if rows else b""
    if delete_horizon is not None and not 0 <= delete_horizon < 1 << 63:
        raise ConfigError(f"delete_horizon={delete_horizon}: allowed is 0..2^63-1 ms")
    payload, base_timestamp, greatest = bytearray(), -1, batch.max_timestamp
    if not rows:
        attributes &= ~(CODEC_MASK | DELETE_HORIZON)
    else:
        base_timestamp = batch.base_timestamp if delete_horizon is None else delete_horizon
        attributes |= 0 if delete_horizon is None else DELETE_HORIZON
        if attributes & APPEND_TIME:
            times = {row.offset: row.timestamp for row in batch.decompress().records(created=True)}
            rows = [row.replace(timestamp=times.get(row.offset, row.timestamp)) for row in rows]
        deltas = [offset - batch.base_offset for offset in offsets]
        payload, _, latest = kernel.encode(rows, deltas, base_timestamp, as_read=True)
        greatest = greatest if attributes & APPEND_TIME else latest
    stored = _stored(payload, attributes, level)
    header = _head(
        stored,
        attributes,
        (batch.base_offset, batch.partition_leader_epoch),
        (batch.last_offset_delta, base_timestamp, greatest),
        (batch.producer_id, batch.producer_epoch, batch.base_sequence, len(rows)),
    )
    made = b"".join((header, stored))
    kernel.spare(payload)
    return made


def is_message_set(options: BatchOptions) -> bool:
    """Whether `options` ask for a message set, not a record batch."""
    return options.get("magic", 2) < 2 or options.get("dialect") is not None


def set_format(options: BatchOptions) -> SetFormat:
    """The message set that `options` ask for. Raises ConfigError as `write` does."""
    return SetFormat(options.get("magic", 2), check(options), options.get("level"), options.get("register"))


def check(options: BatchOptions) -> int:
    """The attributes that `options` make. Raises ConfigError as `write` does."""
    if not options.keys() <= _OPTIONS:
        unknown = min(options.keys() - _OPTIONS)
        raise ConfigError(f"a batch has no option {unknown!r}{did_you_mean(unknown, _OPTIONS)}")
    timestamp_type = options.get("timestamp_type", "CreateTime")
    if timestamp_type not in TIMESTAMP_TYPES:
        raise ConfigError(f"timestamp type {timestamp_type!r} is unknown; allowed: {', '.join(TIMESTAMP_TYPES)}")
    codec = codec_id(options.get("compression", "none"), options.get("level"))
    magic, dialect = options.get("magic", 2), options.get("dialect")
    check_dialect(dialect, options.get("register"))
    if magic not in (0, 1, 2) or (dialect and magic != 2):
        raise ConfigError(f"magic {magic!r} is unknown; allowed: 0, 1, 2, and only 2 with dialect {INT_HEADERS!r}")
    attributes = codec | (APPEND_TIME if timestamp_type == "LogAppendTime" else 0)
    if is_message_set(options):
        for name in _OF_BATCHES:
            none = False if name in ("transactional", "control") else -1  # producer 0 is one
            if options.get(name, none) != none:
                raise ConfigError(f"a message set has no {name}")
        if not dialect:
            _check_zstd(codec, magic)
        if magic == 0 and attributes & APPEND_TIME:
            raise ConfigError("messages of magic 0 have no timestamps, so none of type LogAppendTime")
        return attributes
    transactional, control = options.get("transactional", False), options.get("control", False)
    if transactional and options.get("producer_id", -1) < 0:
        raise ConfigError("a transactional batch needs a producer_id")
    if options.get("producer_id", -1) >= 0:
        if options.get("producer_epoch", -1) < 0:
            raise ConfigError("a batch with a producer_id needs a producer_epoch")
        if options.get("base_sequence", -1) < 0 and not control:
            raise ConfigError("a batch with a producer_id needs a base_sequence")
    return attributes | (TRANSACTIONAL if transactional else 0) | (CONTROL if control else 0)


def _check_zstd(codec: int, magic: int) -> None:
    if codec == CODECS.index("zstd") and magic < 2:
        raise ConfigError(f"message format {magic} has no compression zstd")


def seal(
    payload: bytearray | memoryview, count: int, base_timestamp: int, max_timestamp: int, options: BatchOptions
) -> bytes:
    """The record batch of `count` encoded records. Raises ConfigError as `write` does."""
    return _sealed(payload, check(options), (count, base_timestamp, max_timestamp), options)


def head(
    stored: bytes | bytearray | memoryview, count: int, base_timestamp: int, max_timestamp: int, options: BatchOptions
) -> bytes:
    """The header of the record batch whose `count` records are `stored`, compressed already. Raises as `seal` does."""
    return _headed(stored, check(options), (count, base_timestamp, max_timestamp), options)


def _sealed(
    payload: bytearray | memoryview, attributes: int, extent: tuple[int, int, int], options: BatchOptions
) -> bytes:
    """`seal` with the attributes that `check` made; `extent`: count, base timestamp, greatest timestamp."""
    stored = _stored(payload, attributes, options.get("level"))
    return b"".join((_headed(stored, attributes, extent, options), stored))


def _headed(
    stored: bytes | bytearray | memoryview, attributes: int, extent: tuple[int, int, int], options: BatchOptions
) -> bytes:
    count, base_timestamp, max_timestamp = extent
    return _head(
        stored,
        attributes,
        (options.get("base_offset", 0), options.get("partition_leader_epoch", -1)),
        (count - 1, base_timestamp, max_timestamp),
        (options.get("producer_id", -1), options.get("producer_epoch", -1), options.get("base_sequence", -1), count),
    )


def _stored(
    payload: bytes | bytearray | memoryview, attributes: int, level: int | None
) -> bytes | bytearray | memoryview:
    """`payload` in the compression that `attributes` say."""
    codec = CODECS[attributes & CODEC_MASK]
    return payload if codec == "none" else compress(codec, payload, level)


def _head(
    stored: bytes | bytearray | memoryview,
    attributes: int,
    position: tuple[int, int],
    extent: tuple[int, int, int],
    rest: tuple[int, int, int, int],
) -> bytes:
    """The header of `stored`, with the checksum over both.

    The fields in the header's order: `position` is base offset and leader epoch; `extent` last offset delta, base
    timestamp and greatest timestamp; `rest` producer id, epoch, base sequence and count.
    """
    size = HEADER_SIZE + len(stored)
    if size > _MAX_SIZE:
        raise EncodeError(f"a batch of {size} bytes passes the format's {_MAX_SIZE}")
    header = bytearray(HEADER_SIZE)
    base_offset, leader_epoch = position
    try:
        HEADER.pack_into(header, 0, base_offset, size - PREFIX_SIZE, leader_epoch, 2, 0, attributes, *extent, *rest)
    except struct.error as error:
        raise EncodeError(f"a batch header cannot hold {_named(position, extent, rest)}: {error}") from None
    if not 0 <= base_offset < MAX_OFFSET - extent[0]:
        raise EncodeError(f"{extent[0] + 1} offsets from {base_offset} on are out of range")
    crc = checksum(stored, checksum(header[CRC_FROM:]))
    header[CRC_AT:CRC_FROM] = int(crc).to_bytes(4, "big")
    return bytes(header)


def _named(position: tuple[int, ...], extent: tuple[int, ...], rest: tuple[int, ...]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(_FIELDS, (*position, *extent, *rest)))
