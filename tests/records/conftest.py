"""What several tests of records need: batches sealed by hand, and both ways of reading them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from crc32c import crc32c

from tagwire import records

HEADER = struct.Struct(">qiibIhiqqqhii")


def seal_batch(
    payload: bytes,
    count: int,
    *,
    base_offset: int = 0,
    attributes: int = 0,
    last_offset_delta: int | None = None,
    base_timestamp: int = 1000,
    max_timestamp: int = 1000,
    magic: int = 2,
    length: int | None = None,
) -> bytes:
    """A batch with a right checksum over whatever it is given, written independently of the code under test."""
    delta = max(count - 1, 0) if last_offset_delta is None else last_offset_delta
    size = 49 + len(payload) if length is None else length
    header = [base_offset, size, -1, magic, 0, attributes, delta, base_timestamp, max_timestamp, -1, -1, -1, count]
    header[4] = crc32c(HEADER.pack(*header)[21:] + payload)
    return HEADER.pack(*header) + payload


def read_objects(data: bytes, **options: Any) -> list[tuple[Any, ...]]:
    """(offset, timestamp, key, value, headers) of every record, through `Record`."""
    return [
        (record.offset, record.timestamp, record.key, record.value, list(record.headers))
        for batch in records.read(data)
        for record in batch.records(**options)
    ]


def read_arrow(data: bytes, **options: Any) -> list[tuple[Any, ...]]:
    """The same through Arrow, where no headers and null headers are one."""
    table = records.to_arrow(data, columns=("offset", "timestamp", "key", "value", "headers"), control=True, **options)
    table.validate(full=True)
    columns = [table.column(name) for name in ("offset", "timestamp", "key", "value", "headers")]
    offsets, timestamps, keys, values, headers = (
        (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist() for column in columns
    )
    pairs = [[(pair["key"], pair["value"]) for pair in found or ()] for found in headers]
    return list(zip(offsets, timestamps, keys, values, pairs))


@pytest.fixture
def seal() -> Callable[..., bytes]:
    return seal_batch


@pytest.fixture(params=[read_objects, read_arrow], ids=["objects", "arrow"])
def read_rows(request: pytest.FixtureRequest) -> Callable[..., list[tuple[Any, ...]]]:
    """Reads records as objects in one run of the test, as Arrow in another: both keep the same rules."""
    reader: Callable[..., list[tuple[Any, ...]]] = request.param
    return reader


@pytest.fixture
def readers() -> list[Callable[..., list[tuple[Any, ...]]]]:
    return [read_objects, read_arrow]
