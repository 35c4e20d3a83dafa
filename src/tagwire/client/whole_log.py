"""A partition as it stands in its log: every batch, of transactions that are open or aborted too, and their markers.

Coordinators read their topics so when they load them, and so does whoever wants to know what they know; a `Reader`
gives records alone, and of readers' transactions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tagwire.client.client import Client
from tagwire.client.config import READ_UNCOMMITTED
from tagwire.client.fetch_positions import CompletedFetch, FetchBuffer, FetchPosition, at_offset
from tagwire.client.fetching import Fetcher
from tagwire.client.offset_reset import NO_RESET
from tagwire.errors import DecodeError, UnsupportedVersionError
from tagwire.partitions import EARLIEST, LATEST, TopicPartition
from tagwire.records import Record, read
from tagwire.records.compression import MAX_DECOMPRESSED

LoggedRecord = tuple[int, bool, Record]
"""The producer id where it is of a transaction, else -1; whether it is of a control batch; the record."""


def whole_log(client: Client, partition: TopicPartition) -> Iterator[LoggedRecord]:
    """All records from the first that is kept up to where the partition ends now, in order, whatever isolation level
    the client is set up with.

    Raises:
        KafkaError, ConnectError, ...: as `Reader`. CorruptRecordError, UnsupportedVersionError: naming the partition
            and the offset of a batch.
    """
    start, end = (
        client.list_offsets({partition: at}, isolation=READ_UNCOMMITTED)[partition] for at in (EARLIEST, LATEST)
    )
    settings = replace(client.fetch_settings, isolation=READ_UNCOMMITTED, offset_reset=NO_RESET)
    buffer = FetchBuffer()
    fetcher = Fetcher(client.network.core, buffer, settings)
    fetcher.add([FetchPosition(partition, start, end)])
    try:
        while not fetcher.finished:
            client.network.run(fetcher.next())
            while (fetched := buffer.take()) is not None:
                if not isinstance(fetched, CompletedFetch):
                    raise fetched.error
                yield from _records(fetched)
    finally:
        if not fetcher.finished:  # a response may be due
            fetcher.abandon()
        fetcher.close()


def _records(fetched: CompletedFetch) -> Iterator[LoggedRecord]:
    partition = fetched.position.partition
    for batch in read(fetched.records, verify=False):
        try:
            batch.verify()
            found = list(batch.records(max_decompressed=MAX_DECOMPRESSED))
        except (DecodeError, UnsupportedVersionError) as error:
            raise at_offset(partition, batch.base_offset, error) from error
        producer = batch.producer_id if batch.is_transactional else -1
        yield from ((producer, batch.is_control, record) for record in found)
