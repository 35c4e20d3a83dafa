"""Records to one record batch (magic 2). Layout: facts 5.3."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TypedDict, Unpack

from crc32c import crc32c

from tagwire.errors import ConfigError, EncodeError
from tagwire.kernel import record_writing as kernel
from tagwire.records.batch import APPEND_TIME, CRC_AT, CRC_FROM, HEADER, HEADER_SIZE, PREFIX_SIZE
from tagwire.records.compression import codec_id, compress
from tagwire.records.record import Record

TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
_MAX_SIZE = (1 << 31) - 1


class BatchOptions(TypedDict, total=False):
    """What a batch says about itself, for `write` and `from_arrow`.

    compression: none (the default), gzip, snappy, lz4 or zstd; level: its level, None for the codec's default.
    base_offset: offset of the first record (0); the others follow without gaps.
    timestamp_type: "CreateTime" (the default), or "LogAppendTime", whose readers take the greatest timestamp for all.
    partition_leader_epoch, producer_id, producer_epoch, base_sequence: -1, for none, by default.
    """

    compression: str
    level: int | None
    base_offset: int
    timestamp_type: str
    partition_leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int


def write(records: Iterable[Record], **options: Unpack[BatchOptions]) -> bytes:
    """One record batch of `records`, in order; b"" for no records. `options` are `BatchOptions`.

    The records' own offsets are not looked at. Raises EncodeError naming the record that cannot be written, or when the
    batch passes 2 GiB; ConfigError for an unknown compression, level or timestamp type.
    """
    check(options)
    rows = list(records)
    if not rows:
        return b""
    payload, base_timestamp, max_timestamp = kernel.encode(rows)
    return seal(payload, len(rows), base_timestamp, max_timestamp, options)


def check(options: BatchOptions) -> int:
    """The attributes that `options` make. Raises ConfigError for an unknown compression, level or timestamp type."""
    timestamp_type = options.get("timestamp_type", "CreateTime")
    if timestamp_type not in TIMESTAMP_TYPES:
        raise ConfigError(f"timestamp type {timestamp_type!r} is unknown; allowed: {', '.join(TIMESTAMP_TYPES)}")
    codec = codec_id(options.get("compression", "none"), options.get("level"))
    return codec | (APPEND_TIME if timestamp_type == "LogAppendTime" else 0)


def seal(
    payload: bytearray | memoryview, count: int, base_timestamp: int, max_timestamp: int, options: BatchOptions
) -> bytes:
    """The batch of `count` encoded records: payload compressed, header before it, checksum over both."""
    attributes = check(options)
    codec = options.get("compression", "none")
    stored = payload if codec == "none" else compress(codec, payload, options.get("level"))
    size = HEADER_SIZE + len(stored)
    if size > _MAX_SIZE:
        raise EncodeError(f"a batch of {size} bytes passes the format's {_MAX_SIZE}")
    header = bytearray(HEADER_SIZE)
    try:
        HEADER.pack_into(
            header,
            0,
            options.get("base_offset", 0),
            size - PREFIX_SIZE,
            options.get("partition_leader_epoch", -1),
            2,
            0,
            attributes,
            count - 1,
            base_timestamp,
            max_timestamp,
            options.get("producer_id", -1),
            options.get("producer_epoch", -1),
            options.get("base_sequence", -1),
            count,
        )
    except struct.error as error:
        raise EncodeError(f"a batch header cannot hold {options}: {error}") from None
    crc = crc32c(stored, crc32c(header[CRC_FROM:]))
    header[CRC_AT:CRC_FROM] = int(crc).to_bytes(4, "big")
    return b"".join((header, stored))
