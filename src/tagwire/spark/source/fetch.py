"""Reading one range of one partition in a Spark worker, as Arrow batches of the columns that are needed."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from tagwire.errors import Error, KafkaError, RequestTimeoutError
from tagwire.partitions import EARLIEST, LATEST, TopicPartition
from tagwire.spark.source.offsets import OffsetRange, made_anew

if TYPE_CHECKING:
    import pyarrow as pa

    from tagwire.client import Client
    from tagwire.records import HeaderRegister

log = logging.getLogger(__name__)

_clients: dict[tuple[int, frozenset[tuple[str, str]]], Client] = {}


def read_range(
    offset_range: OffsetRange,
    properties: dict[str, str],
    columns: tuple[str, ...],
    *,
    fail_on_data_loss: bool,
    dialect: str | None = None,
    register: HeaderRegister | None = None,
) -> Iterator[pa.RecordBatch]:
    """The records of `offset_range`, in order.

    Args:
        properties: of `Client.from_properties`; a worker keeps one connection for each set of them.
        columns: of `tagwire.records.to_arrow`.
        dialect, register: of `tagwire.client.Reader`.
        fail_on_data_loss: whether offsets the broker no longer holds are an error; otherwise they are left out.

    Raises:
        KafkaError, CorruptRecordError, ConnectError, ...: as `tagwire.client.Reader` says them.
    """
    from tagwire.client import Reader

    at = TopicPartition(offset_range.topic, offset_range.partition)
    start, lost_at = offset_range.start, -1
    while start < offset_range.end:
        client = _connected(properties)
        reader = Reader(
            client,
            {at: start},
            end_offsets={at: offset_range.end},
            columns=columns,
            timestamp_unit="us",
            stop_at_end=True,
            dialect=dialect,
            register=register,
        )
        try:
            yield from reader
            return
        except (KafkaError, RequestTimeoutError) as error:
            if fail_on_data_loss or reader.position(at) == lost_at:  # twice at one place, it is no loss
                raise
            lost_at = reader.position(at)
            start = _next_held(error, client, at, lost_at, offset_range.end)
            log.warning("%s-%d: %s; going on at %d", at.topic, at.partition, error, start)
        finally:
            # A read that was cut short leaves requests in flight on its connection.
            if reader.position(at) < offset_range.end:
                _disconnect(properties)


def refuse_made_anew(topic_ids: Mapping[str, UUID], properties: dict[str, str], *, fail_on_data_loss: bool) -> None:
    """After a read: refuses topics that were deleted and made anew since it was planned. What was read may be of other
    records that have the same offsets; where a topic still has its id (KIP-516), it is not.

    Args:
        topic_ids: as they were when the read was planned.
        properties: as of `read_range`, before this.
        fail_on_data_loss: whether that is an error, or a warning.

    Raises:
        KafkaError: INCONSISTENT_TOPIC_ID, naming a topic. ConnectError, ...: as `tagwire.client.Client.metadata`.
    """
    client = _connected(properties)
    for topic, planned in topic_ids.items():
        if _known_id(client, topic) == planned:  # records are fetched by that id, so they were the topic's (Fetch 13)
            continue
        found = client.metadata([topic]).topics.get(topic)
        if found is None or not found.topic_id.int or found.topic_id == planned:
            continue
        said = f"records may have been missed: {made_anew(topic, planned, found.topic_id)}"
        if fail_on_data_loss:
            raise KafkaError(Error.INCONSISTENT_TOPIC_ID, f"{said} (failOnDataLoss=false goes on)")
        log.warning("%s", said)


def _known_id(client: Client, topic: str) -> UUID | None:
    known = client.network.core.known_topic(topic)
    return None if known is None else known.topic_id


def _next_held(
    error: KafkaError | RequestTimeoutError, client: Client, at: TopicPartition, position: int, end: int
) -> int:
    """Where a read that lost its offsets can go on: at `end` where the partition is gone, or ends before.

    Raises `error` where it is about something else.
    """
    try:
        return _asked(error, client, at, position, end)
    except KafkaError as told:  # `error` itself, or what is told of a partition that went since then
        if told.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
            return end
        raise


def _asked(error: KafkaError | RequestTimeoutError, client: Client, at: TopicPartition, position: int, end: int) -> int:
    if isinstance(error, RequestTimeoutError):  # brokers say nothing of what was to come, and is no longer there
        if client.list_offsets({at: LATEST})[at] <= position:
            return end
        raise error
    if error.error is Error.OFFSET_OUT_OF_RANGE:
        earliest = client.list_offsets({at: EARLIEST})[at]
        if earliest <= position and client.list_offsets({at: LATEST})[at] <= position:
            return end
        return max(earliest, position)  # a partition that was cut may have grown past the position since
    raise error


def _connected(properties: dict[str, str]) -> Client:
    from tagwire.client import Client

    key = os.getpid(), frozenset(properties.items())
    if key not in _clients:
        _clients[key] = Client.from_properties(properties)
    return _clients[key]


def _disconnect(properties: dict[str, str]) -> None:
    client = _clients.pop((os.getpid(), frozenset(properties.items())), None)
    if client is not None:
        client.close()
