"""Fetched batches of a partition to Arrow batches and to records: what is committed and within bounds, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypedDict, Unpack

from tagwire.client.fetch_positions import CompletedFetch, at_offset
from tagwire.client.reader_settings import DecodingSettings
from tagwire.errors import DecodeError, UnsupportedVersionError
from tagwire.kernel.record_objects import placed
from tagwire.records import AbortedTransactions, Record, batch_headers, read_coalesced

if TYPE_CHECKING:
    import pyarrow as pa


class _Sizes(TypedDict, total=False):
    max_rows: int
    max_bytes: int


def arrow_batches(
    fetches: Sequence[CompletedFetch], settings: DecodingSettings
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Batches of about `batch_rows` rows, each with the offset to go on from after it. A batch may have no rows.

    Args:
        fetches: of one partition, each going on where the one before it ends.

    Raises:
        CorruptRecordError, UnsupportedVersionError: naming the partition and the offset, after all that stands before.
    """
    transactions = {one for fetch in fetches for one in fetch.aborted_transactions}
    rows = sum(fetch.record_count for fetch in fetches)
    pieces = max(1, round(rows / settings.batch_rows))
    given_to = fetches[0].start_offset
    try:
        for batch, after in _decoded(
            fetches[0],
            [fetch.records for fetch in fetches],
            given_to,
            AbortedTransactions(transactions) if transactions else None,
            settings,
            max_rows=max(1, -(-rows // pieces)),
            max_bytes=settings.batch_bytes,
        ):
            given_to = after
            yield batch, after
    except (DecodeError, UnsupportedVersionError):
        yield from _one_by_one(fetches, given_to, AbortedTransactions(transactions), settings)


def _one_by_one(
    fetches: Sequence[CompletedFetch], given_to: int, aborted: AbortedTransactions, settings: DecodingSettings
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """What stands before the first broken batch; then the error, naming that batch."""
    for fetch in fetches:
        for header in batch_headers(fetch.records, settings.dialect, max_decompressed=settings.max_decompressed):
            if header.next_offset <= given_to:
                aborted.hides(header, fetch.records)
                continue
            try:
                yield from _decoded(fetch, [header.bytes_in(fetch.records)], given_to, aborted, settings)
            except (DecodeError, UnsupportedVersionError) as error:
                raise at_offset(fetch.position.partition, max(header.base_offset, given_to), error) from error


def _decoded(
    fetch: CompletedFetch,
    data: list[memoryview],
    start: int,
    aborted: AbortedTransactions | None,
    settings: DecodingSettings,
    **sizes: Unpack[_Sizes],
) -> Iterator[tuple[pa.RecordBatch, int]]:
    from tagwire.records.arrow import arrow_chunks

    topic, partition = fetch.position.partition
    return arrow_chunks(
        data,
        start_offset=start,
        end_offset=fetch.position.end_offset,
        topic=topic,
        partition=partition,
        aborted=aborted,
        columns=settings.columns,
        timestamp_unit=settings.timestamp_unit,
        max_decompressed=settings.max_decompressed,
        dialect=settings.dialect,
        register=settings.register,
        **sizes,
    )


def record_batches(fetch: CompletedFetch, settings: DecodingSettings) -> Iterator[tuple[Iterator[Record], int, int]]:
    """The records of each batch, which know their topic and partition, with the offset to go on from after it, and its
    leader epoch.

    Raises:
        CorruptRecordError, UnsupportedVersionError: naming the partition and the offset, when the broken batch is due.
    """
    partition, end = fetch.position.partition, fetch.position.end_offset
    aborted, given_to = AbortedTransactions(fetch.aborted_transactions), fetch.start_offset
    dialect, most = settings.dialect, settings.max_decompressed
    for batch in read_coalesced(
        fetch.records, dialect, verify=False, register=settings.register, max_decompressed=most
    ):
        try:
            batch.verify()
            is_hidden = aborted.hides(batch, fetch.records) or batch.is_control
            found = iter(()) if is_hidden else batch.records(max_decompressed=most)
        except (DecodeError, UnsupportedVersionError) as error:
            raise at_offset(partition, max(batch.base_offset, given_to), error) from error
        after = batch.next_offset
        if batch.base_offset < fetch.start_offset or (end is not None and after > end):
            found = _within(found, fetch)
        first = next(found, None)  # all of a batch know where they were read as soon as one is told
        placed_records = found if first is None else chain((placed(first, partition),), found)
        yield placed_records, after, batch.partition_leader_epoch
        given_to = after


def _within(found: Iterator[Record], fetch: CompletedFetch) -> Iterator[Record]:
    end = fetch.position.end_offset
    return (record for record in found if fetch.start_offset <= record.offset and (end is None or record.offset < end))
