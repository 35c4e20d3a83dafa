"""Logs whose values are their offsets, and what a reader makes of them."""

from __future__ import annotations

from typing import Any

from tagwire import records
from tagwire.client import Reader, TopicPartition
from tagwire.records import Record

from .fake_broker import FakePartition


def batch_of(first: int, count: int, **options: Any) -> bytes:
    """A batch whose values are their offsets."""
    rows = [Record(b"k", b"%d" % offset, timestamp=offset) for offset in range(first, first + count)]
    return records.write(rows, base_offset=first, **options)


def fill(log: FakePartition, batches: int, size: int = 10, **options: Any) -> None:
    for _ in range(batches):
        log.put(batch_of(log.end, size, **options))


def offsets(reader: Reader) -> dict[TopicPartition, list[int]]:
    """Every offset read, per partition, in the order read; checks that the values are those of the offsets."""
    found: dict[TopicPartition, list[int]] = {}
    for batch in reader:
        assert batch.num_rows
        columns = [batch.column(name).to_pylist() for name in ("topic", "partition", "offset", "value")]
        for topic, partition, offset, value in zip(*columns):
            assert value == b"%d" % offset
            found.setdefault(TopicPartition(topic, partition), []).append(offset)
    return found
