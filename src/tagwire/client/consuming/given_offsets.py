"""Offsets as the application gives them to a consumer, in the one form that is worked with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tagwire.client import arguments
from tagwire.client.admin.group_offsets import OffsetAndMetadata, committable
from tagwire.client.property_values import wrong
from tagwire.partitions import TopicPartition
from tagwire.records import Record


def to_commit(offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets to commit: {partition: offset}. Raises ConfigError."""
    given = arguments.by_topic_partition("offsets", offsets, "42")
    return {partition: _committable(partition, offset) for partition, offset in given.items()}


def to_store(done: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets that are done with: those after a record, or after the last of each partition of records; or as
    `to_commit`. Raises ConfigError."""
    if isinstance(done, Mapping):
        return to_commit(done)
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for record in _records(done):
        partition = TopicPartition(record.topic or "", record.partition)
        if partition not in found or found[partition].offset <= record.offset:
            found[partition] = committable(partition, record.offset + 1)
    return found


def _records(given: object) -> list[Record]:
    found: list[Record] = []
    for record in [given] if isinstance(given, Record) or not isinstance(given, Iterable) else given:
        if not isinstance(record, Record) or record.topic is None or record.offset < 0:
            raise wrong("done", arguments.shown(record), 'records that a consumer has given, or {("orders", 0): 42}')
        found.append(record)
    return found


def _committable(partition: TopicPartition, given: object) -> OffsetAndMetadata:
    if isinstance(given, OffsetAndMetadata):
        committable(partition, given.offset)
        return given
    offset = arguments.whole(given)
    if offset is None:
        raise wrong(f"offsets: {partition}", arguments.shown(given), "an offset, or an OffsetAndMetadata")
    return committable(partition, offset)
