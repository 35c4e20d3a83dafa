"""What a partition of a fake cluster holds."""

from __future__ import annotations

from tagwire import records
from tagwire.records import BatchHeader, Record

from .fake_broker import FakePartition


def headers_in(partition: FakePartition) -> list[BatchHeader]:
    """The headers of its batches."""
    return [header for _, _, data in partition.batches for header in records.batch_headers(data)]


def stored_in(partition: FakePartition) -> list[Record]:
    logs = (data for _, _, data in partition.batches)
    return [record for data in logs for found in records.read(data) for record in found.records()]


def values_in(partition: FakePartition) -> list[bytes | None]:
    return [record.value for record in stored_in(partition)]
