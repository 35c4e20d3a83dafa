"""Records to one record batch (magic 2). Layout: facts 5.3."""

from __future__ import annotations

from collections.abc import Iterable

from crc32c import crc32c

from tagwire.errors import ConfigError, EncodeError
from tagwire.kernel import record_writing as kernel
from tagwire.records.batch import APPEND_TIME, CRC_AT, CRC_FROM, HEADER, HEADER_SIZE, PREFIX_SIZE
from tagwire.records.compression import codec_id, compress
from tagwire.records.record import Record

TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
_MAX_SIZE = (1 << 31) - 1


def write(
    records: Iterable[Record],
    *,
    compression: str = "none",
    level: int | None = None,
    base_offset: int = 0,
    timestamp_type: str = "CreateTime",
    partition_leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """One record batch of `records`, in order, at offsets base_offset, base_offset + 1, ...; b"" for no records.

    The records' own offsets are not looked at. `level` is the codec's compression level (None: its default).
    Raises EncodeError naming the record that cannot be written, or when the batch passes 2 GiB; ConfigError for an
    unknown compression, level or timestamp type.
    """
    rows = list(records)
    codec_id(compression, level)
    _timestamp_type_id(timestamp_type)
    if not rows:
        return b""
    payload, base_timestamp, max_timestamp = kernel.encode(rows)
    return seal(
        payload,
        len(rows),
        base_timestamp,
        max_timestamp,
        compression=compression,
        level=level,
        base_offset=base_offset,
        timestamp_type=timestamp_type,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


def seal(
    payload: bytes | bytearray | memoryview,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    *,
    compression: str,
    level: int | None,
    base_offset: int,
    timestamp_type: str,
    partition_leader_epoch: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
) -> bytes:
    """The batch of `count` encoded records: payload compressed, header before it, checksum over both. See `write`."""
    attributes = codec_id(compression, level) | _timestamp_type_id(timestamp_type)
    stored = compress(compression, payload, level) if compression != "none" else payload
    size = HEADER_SIZE + len(stored)
    if size > _MAX_SIZE:
        raise EncodeError(f"a batch of {size} bytes passes the format's {_MAX_SIZE}")
    header = bytearray(HEADER_SIZE)
    HEADER.pack_into(
        header,
        0,
        base_offset,
        size - PREFIX_SIZE,
        partition_leader_epoch,
        2,
        0,
        attributes,
        count - 1,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    crc = crc32c(stored, crc32c(header[CRC_FROM:]))
    header[CRC_AT:CRC_FROM] = int(crc).to_bytes(4, "big")
    return b"".join((header, stored))


def _timestamp_type_id(timestamp_type: str) -> int:
    if timestamp_type not in TIMESTAMP_TYPES:
        raise ConfigError(f"timestamp type {timestamp_type!r} is unknown; allowed: {', '.join(TIMESTAMP_TYPES)}")
    return APPEND_TIME if timestamp_type == "LogAppendTime" else 0
