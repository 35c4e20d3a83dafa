"""Reading assigned partitions as Arrow: the next Fetch travels while the last answer is decoded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

from tagwire.client.client import Client
from tagwire.client.config import at_least
from tagwire.client.fetching import Chunk, Fetcher, Span, broken
from tagwire.client.metadata import TopicPartition
from tagwire.client.offsets import EARLIEST, LATEST
from tagwire.client.owning import ClientOwner
from tagwire.errors import ConfigError, DecodeError, TagwireError, UnsupportedVersionError
from tagwire.kernel.record_objects import placed
from tagwire.records import HeaderSerdes, Record, batch_headers, read
from tagwire.records.compression import MAX_DECOMPRESSED
from tagwire.records.interceptors import ConsumerInterceptor, after_decoding

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")

# Rows of a batch: enough that its fixed costs do not show, few enough that it stays in the caches (facts, peers B.1).
BATCH_ROWS: Final = 32_768


class Reader(ClientOwner):
    """Iterates over Arrow record batches of assigned partitions.

    Every batch holds records of one partition in order, or, where partitions have little to give, of several one
    after the other; of each partition the records come in order of their offsets, once. Batches have about
    `batch_rows` rows as long as the broker holds more; at the end of a log what is there is given at once. Control
    records are left out.

        with Reader("kafka-1:9092", {TopicPartition("flights", 0): EARLIEST}, stop_at_end=True) as reader:
            for batch in reader: ...

    Args:
        client: a client, which stays open, or bootstrap addresses, "HOST:PORT,HOST:PORT".
        starts: {(topic, partition): offset} of the first record wanted, or `EARLIEST` or `LATEST`.
        end_offsets: {(topic, partition): offset} to stop before, or `LATEST`, the end of the log as it is now. A
            partition without an entry is read for ever, waiting for new records, or up to `LATEST` with
            `stop_at_end`.
        columns: which columns of `tagwire.records.to_arrow`, in which order.
        timestamp_unit: "ms" or "us".
        max_wait_ms, min_bytes: how long a broker waits with its answer, and for how much; None as the client is set up.
        max_bytes, max_partition_bytes: bounds of one answer, in bytes; None as the client is set up.
        batch_rows: how many rows a batch has, about.
        max_decompressed: bytes that one compressed record batch may become.

    Raises:
        ConfigError: an option is wrong. KafkaError: a partition does not exist.
        While iterating, after the records that came before:
        KafkaError: naming the partition; OFFSET_OUT_OF_RANGE also names the offsets it holds.
        CorruptRecordError: a record batch that is broken, named `topic-partition@offset`.
        RequestTimeoutError, ConnectError, ConnectionLostError: a leader stayed away for the client's timeout.
    """

    def __init__(
        self,
        client: Client | str,
        starts: Mapping[tuple[str, int], int],
        *,
        end_offsets: Mapping[tuple[str, int], int] | None = None,
        columns: Sequence[str] = COLUMNS,
        timestamp_unit: str = "ms",
        max_wait_ms: int | None = None,
        min_bytes: int | None = None,
        max_bytes: int | None = None,
        max_partition_bytes: int | None = None,
        batch_rows: int = BATCH_ROWS,
        stop_at_end: bool = False,
        max_decompressed: int = MAX_DECOMPRESSED,
    ) -> None:
        from tagwire.records.arrow import arrow_schema

        arrow_schema(columns, timestamp_unit=timestamp_unit)
        at_least("batch_rows", batch_rows, 1)
        super().__init__(client)
        self._options: dict[str, Any] = {
            "columns": tuple(columns),
            "timestamp_unit": timestamp_unit,
            "max_decompressed": max_decompressed,
        }
        self._batch_rows = batch_rows
        given: dict[str, Any] = {
            "max_wait_ms": at_least("max_wait_ms", max_wait_ms, 0),
            "min_bytes": at_least("min_bytes", min_bytes, 0),
            "max_bytes": at_least("max_bytes", max_bytes, 1),
            "max_partition_bytes": at_least("max_partition_bytes", max_partition_bytes, 1),
        }
        settings = replace(
            self._client.fetch_settings, **{name: value for name, value in given.items() if value is not None}
        )
        try:
            spans = _spans(self._client, starts, end_offsets or {}, stop_at_end)
        except BaseException:
            self.close()
            raise
        self._positions = {span.at: span.start for span in spans}
        self._held: dict[TopicPartition, list[Chunk]] = {}
        self._decoded_to = dict(self._positions)
        self._small: list[tuple[pa.RecordBatch, Span, int]] = []
        self._small_rows = 0
        self._fetcher = Fetcher(self._client, spans, settings)
        self._batches = self._read()
        self._failure: TagwireError | None = None

    def position(self, at: tuple[str, int]) -> int:
        """The offset after the last record given out of this partition. Raises KeyError for one that is not
        assigned."""
        return self._positions[TopicPartition(*at)]

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._failure is not None:
            raise self._failure
        try:
            return next(self._batches)
        except TagwireError as error:
            self._failure = error
            raise

    def records(
        self, *, interceptors: Sequence[ConsumerInterceptor] = (), header_serdes: HeaderSerdes | None = None
    ) -> Iterator[Record]:
        """The same records one by one, as objects that know topic and partition. A reader is read in one way: as
        batches or as records.

        Args:
            interceptors: each sees every record after it is decoded, and may give another. One that raises is logged,
                and the record goes on as it was.
            header_serdes: what makes header values objects, before interceptors see them.

        Raises:
            DecodeError: a header's deserializer raised; the text names record and header.
            ConfigError: batches were read already. Else as when batches are read.
        """
        if self._held or self._small:
            raise ConfigError("records() of a reader that is read as batches: make another reader")
        while not self._fetcher.finished:
            chunks = self._fetcher.next()
            failure = None
            try:
                self._fetcher.start()  # the next answer is on its way while this one is decoded
            except TagwireError as error:
                failure = error
            for chunk in chunks:
                for record in self._records_of(chunk):
                    if header_serdes is not None:
                        record = header_serdes.deserialized(record)
                    given = after_decoding(record, interceptors)
                    self._positions[chunk.span.at] = record.offset + 1
                    yield given
                end = chunk.span.end
                self._positions[chunk.span.at] = chunk.span.next if end is None else min(chunk.span.next, end)
            if failure is not None:
                raise failure

    def _records_of(self, chunk: Chunk) -> Iterator[Record]:
        span = chunk.span
        for batch in read(chunk.data, verify=False):
            try:
                batch.verify()
                found = batch.records(max_decompressed=self._options["max_decompressed"])
            except (DecodeError, UnsupportedVersionError) as error:
                raise broken(span.at, self._positions[span.at], error) from error
            for record in () if batch.is_control else found:
                if record.offset >= span.start and (span.end is None or record.offset < span.end):
                    yield placed(record, span.at)

    def _read(self) -> Iterator[pa.RecordBatch]:
        while not self._fetcher.finished:
            try:
                for chunk in self._fetcher.next():
                    self._held.setdefault(chunk.span.at, []).append(chunk)
                self._fetcher.start()  # the next answer is on its way while this one is decoded
            except TagwireError:
                for at in list(self._held):
                    yield from self._decode(self._held.pop(at))
                yield from self._give_small()
                raise
            for at in [at for at, chunks in self._held.items() if self._is_due(chunks)]:
                yield from self._decode(self._held.pop(at))
            if not self._fetcher.more_is_there:
                yield from self._give_small()
        yield from self._give_small()

    def _is_due(self, chunks: list[Chunk]) -> bool:
        return not chunks[0].span.more_is_there or sum(chunk.rows for chunk in chunks) >= self._batch_rows

    def _decode(self, chunks: list[Chunk]) -> Iterator[pa.RecordBatch]:
        span, data = chunks[0].span, [chunk.data for chunk in chunks]
        rows = sum(chunk.rows for chunk in chunks)
        pieces = max(1, round(rows / self._batch_rows))
        try:
            yield from self._decoded(span, data, -(-rows // pieces))
        except (DecodeError, UnsupportedVersionError):
            yield from self._decode_one_by_one(span, data)

    def _decoded(self, span: Span, data: list[memoryview], max_rows: int) -> Iterator[pa.RecordBatch]:
        from tagwire.records.arrow import arrow_chunks

        chunks = arrow_chunks(
            data,
            start_offset=span.start,
            end_offset=span.end,
            topic=span.at.topic,
            partition=span.at.partition,
            max_rows=max(1, max_rows),
            **self._options,
        )
        for batch, after in chunks:
            self._decoded_to[span.at] = after
            yield from self._offer(batch, span, after)

    def _decode_one_by_one(self, span: Span, data: list[memoryview]) -> Iterator[pa.RecordBatch]:
        """What stands before the first broken batch; then the error, naming that batch."""
        for part in data:
            for header in batch_headers(part, max_decompressed=self._options["max_decompressed"]):
                at = max(header.base_offset, self._decoded_to[span.at])
                if header.next_offset <= at:
                    continue
                try:
                    batch = part[header.position : header.position + header.size]
                    yield from self._decoded(span, [batch], header.count)
                except (DecodeError, UnsupportedVersionError) as error:
                    yield from self._give_small()
                    raise broken(span.at, at, error) from error

    def _offer(self, batch: pa.RecordBatch, span: Span, after: int) -> Iterator[pa.RecordBatch]:
        """Gives a batch of a fair size at once; keeps smaller ones until they are one together."""
        if self._small and batch.num_rows >= self._batch_rows // 2:
            yield from self._give_small()
        self._small.append((batch, span, after))
        self._small_rows += batch.num_rows
        if self._small_rows >= self._batch_rows // 2:
            yield from self._give_small()

    def _give_small(self) -> Iterator[pa.RecordBatch]:
        pieces, self._small, self._small_rows = self._small, [], 0
        for _, span, after in pieces:
            self._positions[span.at] = after if span.end is None else min(after, span.end)
        batches = [batch for batch, _, _ in pieces if batch.num_rows]
        if batches:
            yield batches[0] if len(batches) == 1 else _joined(batches)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _spans(
    client: Client, starts: Mapping[tuple[str, int], int], ends: Mapping[tuple[str, int], int], stop_at_end: bool
) -> list[Span]:
    """The partitions with their bounds, words for offsets resolved."""
    lowest = {at: offset for at, offset in starts.items() if offset < 0}
    highest = {at: offset for at, offset in ends.items() if offset < 0}
    if stop_at_end:
        highest = {**dict.fromkeys(starts.keys() - ends.keys(), LATEST), **highest}
    for at, offset in (*lowest.items(), *highest.items()):
        if offset not in (EARLIEST, LATEST):
            raise ConfigError(f"offset {offset} of {TopicPartition(*at)}: needs an offset, EARLIEST or LATEST")
    for at in ends.keys() - starts.keys():
        raise ConfigError(f"end offset of {TopicPartition(*at)}: the partition is not assigned")
    first, last = client.list_offsets(lowest), client.list_offsets(highest)
    return [
        Span(TopicPartition(*at), first.get(TopicPartition(*at), offset), last.get(TopicPartition(*at), ends.get(at)))
        for at, offset in starts.items()
    ]
