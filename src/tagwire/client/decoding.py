"""Chunks of a partition to Arrow batches and to records: what is committed and within bounds, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from tagwire.client.spans import Chunk, broken
from tagwire.errors import DecodeError, UnsupportedVersionError
from tagwire.kernel.record_objects import placed
from tagwire.records import AbortedTransactions, Record, batch_headers, read_coalesced

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_batches(
    chunks: Sequence[Chunk], batch_rows: int, batch_bytes: int, options: dict[str, Any]
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Batches of about `batch_rows` rows, each with the offset to go on from after it. A batch may have no rows.

    Args:
        chunks: of one partition, each going on where the one before it ends.
        options: of `tagwire.records.arrow_chunks`.

    Raises:
        CorruptRecordError, UnsupportedVersionError: naming the partition and the offset, after all that stands before.
    """
    transactions = {one for chunk in chunks for one in chunk.aborted}
    rows = sum(chunk.rows for chunk in chunks)
    pieces = max(1, round(rows / batch_rows))
    given_to = chunks[0].start
    try:
        for batch, after in _decoded(
            chunks[0],
            [chunk.data for chunk in chunks],
            given_to,
            AbortedTransactions(transactions) if transactions else None,
            max_rows=max(1, -(-rows // pieces)),
            max_bytes=batch_bytes,
            **options,
        ):
            given_to = after
            yield batch, after
    except (DecodeError, UnsupportedVersionError):
        yield from _one_by_one(chunks, given_to, AbortedTransactions(transactions), options)


def _one_by_one(
    chunks: Sequence[Chunk], given_to: int, aborted: AbortedTransactions, options: dict[str, Any]
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """What stands before the first broken batch; then the error, naming that batch."""
    for chunk in chunks:
        for header in batch_headers(chunk.data, options["dialect"], max_decompressed=options["max_decompressed"]):
            if header.next_offset <= given_to:
                aborted.hides(header, chunk.data)
                continue
            try:
                yield from _decoded(chunk, [header.bytes_in(chunk.data)], given_to, aborted, **options)
            except (DecodeError, UnsupportedVersionError) as error:
                raise broken(chunk.span.at, max(header.base_offset, given_to), error) from error


def _decoded(
    chunk: Chunk, data: list[memoryview], start: int, aborted: AbortedTransactions | None, **options: Any
) -> Iterator[tuple[pa.RecordBatch, int]]:
    from tagwire.records.arrow import arrow_chunks

    span = chunk.span
    return arrow_chunks(
        data,
        start_offset=start,
        end_offset=span.end,
        topic=span.at.topic,
        partition=span.at.partition,
        aborted=aborted,
        **options,
    )


def record_batches(chunk: Chunk, options: dict[str, Any]) -> Iterator[tuple[Iterator[Record], int]]:
    """The records of each batch, which know their topic and partition, with the offset to go on from after it.

    Args:
        options: dialect, register and max_decompressed, as for `arrow_batches`.

    Raises:
        CorruptRecordError, UnsupportedVersionError: naming the partition and the offset, when the broken batch is due.
    """
    span, aborted, given_to = chunk.span, AbortedTransactions(chunk.aborted), chunk.start
    dialect, most = options["dialect"], options["max_decompressed"]
    for batch in read_coalesced(chunk.data, dialect, verify=False, register=options["register"], max_decompressed=most):
        try:
            batch.verify()
            is_hidden = aborted.hides(batch, chunk.data) or batch.is_control
            found = iter(()) if is_hidden else batch.records(max_decompressed=most)
        except (DecodeError, UnsupportedVersionError) as error:
            raise broken(span.at, max(batch.base_offset, given_to), error) from error
        if batch.base_offset < chunk.start or (span.end is not None and batch.next_offset > span.end):
            found = _within(found, chunk)
        first = next(found, None)  # all of a batch know where they were read as soon as one is told
        yield (found if first is None else chain((placed(first, span.at),), found)), batch.next_offset
        given_to = batch.next_offset


def _within(found: Iterator[Record], chunk: Chunk) -> Iterator[Record]:
    end = chunk.span.end
    return (record for record in found if chunk.start <= record.offset and (end is None or record.offset < end))
