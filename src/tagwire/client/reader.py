"""Reading assigned partitions as Arrow: the next Fetch travels while the last answer is decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final, Self

from tagwire.client import arguments
from tagwire.client.admin.group_offsets import GroupOffsets, OffsetAndMetadata
from tagwire.client.client import Client
from tagwire.client.config import Bootstrap, FetchSettings, at_least, isolation_of, of_type, offset_reset_of
from tagwire.client.decoding import arrow_batches, record_batches
from tagwire.client.fetching import Fetcher
from tagwire.client.offset_spec import AtTimestamp
from tagwire.client.owning import ClientOwner
from tagwire.client.positions import Committed, Ends, Lag, Position, Starts, ends_of, positions, resolved, starts_of
from tagwire.client.spans import UNKNOWN, Chunk, Span
from tagwire.errors import ConfigError, RemoteProtocolError, TagwireError
from tagwire.partitions import EARLIEST, LATEST, TopicPartition
from tagwire.records import HeaderRegister, HeaderSerdes, Record
from tagwire.records.columns import check_columns
from tagwire.records.compression import MAX_DECOMPRESSED
from tagwire.records.interceptors import ConsumerInterceptor, after_decoding
from tagwire.records.memory_records import check_dialect

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")

# Rows of a batch: enough that its fixed costs do not show, few enough that it stays in the caches.
BATCH_ROWS: Final = 32_768
BATCH_BYTES: Final = 16 * 1024 * 1024


class Reader(ClientOwner):
    """Iterates over Arrow record batches of assigned partitions.

    Every batch holds records of one partition in order, or, where partitions have little to give, of several one
    after the other; of each partition the records come in order of their offsets, once. Batches have about
    `batch_rows` rows as long as the broker holds more; at the end of a log what is there is given at once. Control
    records are left out.

        with Reader("kafka-1:9092", "flights", stop_at_end=True) as reader:
            for batch in reader: ...

        with Reader("kafka-1:9092", {("flights", 0): Committed()}, group="landing") as reader:
            for batch in reader:
                ...
                reader.commit()

    Args:
        client: a client, which stays open, or what one is made of, as `Client` takes it: "HOST:PORT,HOST:PORT".
        starts: what to read. {(topic, partition): offset} of the first record wanted, or "earliest", "latest", a time
            (`AtTimestamp`, or a datetime with a time zone), or `Committed` for where `group` stands; a topic's name
            stands for all the partitions that it has now. Topics or partitions alone, "flights" or ["flights",
            ("delays", 0)], are read from where `group` stands and otherwise, or without one, from their beginning.
        end_offsets: {(topic, partition): offset} to stop before, or as in `starts`; "latest" is the end of the log as
            it is now, for readers of committed records where its oldest open transaction begins; one such word or
            time alone is for all partitions. A partition without an entry is read for ever, waiting for new records,
            or up to "latest" with `stop_at_end`.
        columns: which columns of `tagwire.records.to_arrow`, in which order.
        timestamp_unit: "ms" or "us".
        max_wait_ms, min_bytes: how long a broker waits with its answer, and for how much; None as the client is set up.
        max_bytes, max_partition_bytes: bounds of one answer, in bytes; None as the client is set up.
        batch_rows: how many rows a batch has, about.
        batch_bytes: bytes of records after which a batch ends though it has fewer rows.
        max_decompressed: bytes that one compressed record batch may become.
        isolation: "read_committed" leaves out records of aborted transactions, and waits at those of open ones;
            "read_uncommitted" gives them; None as the client is set up.
        offset_reset: what to do when a partition does not hold the offset to go on from: "none" raises, "earliest" and
            "latest" go on there and log a warning; None as the client is set up.
        dialect: None for Kafka's formats, "int-headers" for topics of that one, whose header keys are ints.
        register: with that dialect, by which header keys are read as names.
        group: whose committed offsets `Committed`, `committed` and `commit` mean; None as the client is set up. The
            reader does not become a member.

    Raises:
        ConfigError: an option is wrong. KafkaError: a topic or a partition does not exist.
        While iterating, after the records that came before:
        KafkaError: naming the partition; OFFSET_OUT_OF_RANGE also names the offsets it holds.
        CorruptRecordError: a record batch that is broken, named `topic-partition@offset`.
        RequestTimeoutError, ConnectError, ConnectionLostError: a leader stayed away for the client's timeout.
    """

    def __init__(
        self,
        client: Client | Bootstrap,
        starts: Starts,
        *,
        end_offsets: Ends | None = None,
        columns: Sequence[str] = COLUMNS,
        timestamp_unit: str = "ms",
        max_wait_ms: int | None = None,
        min_bytes: int | None = None,
        max_bytes: int | None = None,
        max_partition_bytes: int | None = None,
        batch_rows: int = BATCH_ROWS,
        batch_bytes: int = BATCH_BYTES,
        stop_at_end: bool = False,
        max_decompressed: int = MAX_DECOMPRESSED,
        isolation: str | None = None,
        offset_reset: str | None = None,
        dialect: str | None = None,
        register: HeaderRegister | None = None,
        group: str | None = None,
    ) -> None:
        check_dialect(dialect, register)
        of_type("register", register, HeaderRegister, 'a HeaderRegister, such as HeaderRegister.load("headers.toml")')
        of_type("stop_at_end", stop_at_end, bool, "True or False")
        of_type("max_decompressed", max_decompressed, Integral, "a number of bytes")
        columns = arguments.names("columns", columns)
        check_columns(columns, timestamp_unit)
        super().__init__(client)
        self._options: dict[str, Any] = {
            "columns": tuple(columns),
            "timestamp_unit": timestamp_unit,
            "max_decompressed": int(max_decompressed),
            "dialect": dialect,
            "register": register,
        }
        self._batch_rows: int = at_least("batch_rows", batch_rows, 1)
        self._batch_bytes: int = at_least("batch_bytes", batch_bytes, 1)
        given: dict[str, Any] = {
            "max_wait_ms": at_least("max_wait_ms", max_wait_ms, 0),
            "min_bytes": at_least("min_bytes", min_bytes, 0),
            "max_bytes": at_least("max_bytes", max_bytes, 1),
            "max_partition_bytes": at_least("max_partition_bytes", max_partition_bytes, 1),
            "isolation": None if isolation is None else isolation_of(isolation),
            "offset_reset": None if offset_reset is None else offset_reset_of(offset_reset),
        }
        self._settings: FetchSettings = replace(
            self._client.fetch_settings, **{name: value for name, value in given.items() if value is not None}
        )
        self._group = self._settings.group if group is None else arguments.name("group", group)
        try:
            spans = self._bounded(starts, end_offsets, stop_at_end)
        except BaseException:
            super().close()
            raise
        self._spans = {span.at: span for span in spans}
        self._positions = {span.at: span.next for span in spans}
        self._held: dict[TopicPartition, list[Chunk]] = {}
        self._keep([])
        self._fetcher = Fetcher(self._network, spans, self._settings, dialect)
        self._given: Record | None = None  # the record given out last, as long as its batch goes on
        self._batches = self._read()
        self._ended = False
        self._failure: TagwireError | None = None

    def position(self, at: tuple[str, int]) -> int:
        """The offset after the last record given out of this partition. Raises KeyError for one that is not
        assigned."""
        self._note_given()
        return self._positions[arguments.topic_partition("at", at)]

    def seek(self, at: tuple[str, int], position: Position) -> None:
        """Reads this partition on from another position; what is fetched of it already is not given any more.

        Raises:
            KeyError: the partition is not assigned. ConfigError, KafkaError: as for `starts`.
        """
        span = self._spans[arguments.topic_partition("at", at)]
        place = positions("position", {span.at: position})
        offset = resolved(self._client, place, self._settings.isolation, self._group)[span.at]
        span.move(offset)
        self._held.pop(span.at, None)
        self._keep([entry for entry in self._small if entry[1] is not span])
        self._note_given()
        self._positions[span.at] = offset
        if self._ended:
            self._batches, self._ended = self._read(), False

    def lag(self) -> dict[TopicPartition, Lag]:
        """How far each partition is read, as the last answers told of its end; where none did, brokers are asked.

        Raises as `Client.list_offsets`.
        """
        self._note_given()
        unknown = [at for at, span in self._spans.items() if span.log_end == UNKNOWN]
        asked = self._client.list_offsets(dict.fromkeys(unknown, LATEST), isolation=self._settings.isolation)
        ends = {at: asked.get(at, span.log_end) for at, span in self._spans.items()}
        return {
            at: Lag(end, self._positions[at], max(0, end - self._positions[at])) for at, end in sorted(ends.items())
        }

    def committed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the reader's group has committed in the assigned partitions; those without an offset are left out.

        Raises:
            ConfigError: the reader has no group. KafkaError: naming the group or the partition.
        """
        return GroupOffsets(self._client).group_offsets(self._named_group(), self._spans)

    def commit(self, offsets: arguments.ByTopicOrPartition[int | OffsetAndMetadata] | None = None) -> None:
        """Commits for the reader's group: `offsets`, or the position in every assigned partition, so that a reader
        which starts at `Committed` goes on after the last record that was given out.

        Raises:
            ConfigError: the reader has no group.
            KafkaError: UNKNOWN_MEMBER_ID while the group has members; otherwise naming the partition.
        """
        self._note_given()
        places = dict(self._positions) if offsets is None else offsets
        GroupOffsets(self._client).alter_group_offsets(self._named_group(), places)

    def close(self) -> None:
        """Ends the fetch sessions, and the connections where this object opened them."""
        self._fetcher.close()
        super().close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._failure is not None:
            raise self._failure
        try:
            return next(self._batches)
        except StopIteration:
            raise
        except TagwireError as error:
            self._failure = error
            raise
        except BaseException:  # such as Ctrl-C: what was fetched and not given out is to be fetched again
            self._rewind()
            self._batches = self._read()
            raise

    def records(
        self, *, interceptors: Iterable[ConsumerInterceptor] = (), header_serdes: HeaderSerdes | None = None
    ) -> Iterator[Record]:
        """The same records one by one, as objects that know topic and partition. A reader is read in one way: as
        batches or as records. Called again, it goes on after the last record given out.

        Args:
            interceptors: each sees every record after it is decoded, and may give another. One that raises is logged,
                and the record goes on as it was.
            header_serdes: what makes header values objects, before interceptors see them.

        Raises:
            DecodeError: a header's deserializer raised; the text names record and header.
            ConfigError: batches were read already. Else as when batches are read.
        """
        of_type("header_serdes", header_serdes, HeaderSerdes, "HeaderSerdes({...})")
        of_type("interceptors", interceptors, Iterable, "a list of functions of a record")
        if self._held or self._small:
            raise ConfigError("records() of a reader that is read as batches: make another reader")
        passes = tuple(interceptors)
        self._rewind()
        while not self._fetcher.finished:
            chunks = self._fetcher.next()
            failure = None
            try:
                self._fetcher.start()  # the next answer is on its way while this one is decoded
            except TagwireError as error:
                failure = error
            for chunk in chunks:
                yield from self._records_of(chunk, passes, header_serdes)
            if failure is not None:
                raise failure

    def _records_of(
        self, chunk: Chunk, interceptors: Sequence[ConsumerInterceptor], header_serdes: HeaderSerdes | None
    ) -> Iterator[Record]:
        span, moves = chunk.span, chunk.span.moves
        if not chunk.is_wanted:
            return
        as_read = not interceptors and header_serdes is None
        for found, after in record_batches(chunk, self._options):
            for record in found:
                if as_read:
                    self._given = record
                    yield record
                else:
                    known = record if header_serdes is None else header_serdes.deserialized(record)
                    self._given = record
                    yield after_decoding(known, interceptors)
                if span.moves != moves:
                    return
            self._passed(span, after)
        self._passed(span, chunk.next)

    def _read(self) -> Iterator[pa.RecordBatch]:
        while not self._fetcher.finished:
            try:
                for chunk in self._fetcher.next():
                    if not chunk.is_wanted:
                        continue
                    held = self._held.setdefault(chunk.span.at, [])
                    if held and held[-1].next != chunk.start:
                        yield from self._decode(chunk.span.at)
                        held = self._held.setdefault(chunk.span.at, [])
                    held.append(chunk)
                self._fetcher.start()  # the next answer is on its way while this one is decoded
            except TagwireError:
                for at in list(self._held):
                    yield from self._decode(at)
                yield from self._give_small()
                raise
            for at in [at for at, chunks in self._held.items() if self._is_due(chunks)]:
                yield from self._decode(at)
            if not self._fetcher.more_is_there:
                yield from self._give_small()
        self._fetcher.close()
        yield from self._give_small()
        self._ended = True

    def _is_due(self, chunks: list[Chunk]) -> bool:
        return (
            not chunks[0].span.more_is_there
            or sum(chunk.rows for chunk in chunks) >= self._batch_rows
            or sum(len(chunk.data) for chunk in chunks) >= self._batch_bytes
        )

    def _decode(self, at: TopicPartition) -> Iterator[pa.RecordBatch]:
        chunks = self._held.pop(at, None)
        if chunks is None:
            return  # its position was set by hand meanwhile
        span, moves = chunks[0].span, chunks[0].span.moves
        batches = arrow_batches(chunks, self._batch_rows, self._batch_bytes, self._options)
        while span.moves == moves:
            try:
                batch, after = next(batches, (None, chunks[-1].next))
            except TagwireError:
                yield from self._give_small()
                raise
            if batch is None:
                self._small.append((None, span, after))
                return
            yield from self._offer(batch, span, after)

    def _bounded(
        self,
        starts: Starts,
        ends: Ends | None,
        stop_at_end: bool,
    ) -> list[Span]:
        """The partitions with their bounds, words for offsets resolved."""
        begin = starts_of(self._client, starts, EARLIEST if self._group is None else Committed())
        until: dict[TopicPartition, int | AtTimestamp | Committed] = {}
        if stop_at_end:
            until.update(dict.fromkeys(begin, LATEST))
        if ends is not None:
            until.update(ends_of(ends, begin))
        first, last = (
            resolved(self._client, bounds, self._settings.isolation, self._group) for bounds in (begin, until)
        )
        for at, end in last.items():
            if end < first[at] and begin[at] in (EARLIEST, LATEST) and until[at] == LATEST:
                raise RemoteProtocolError(f"{at} is told to begin at offset {first[at]} and to end at {end}")
        return [Span(at, start, last.get(at)) for at, start in first.items()]

    def _named_group(self) -> str:
        if self._group is None:
            raise ConfigError("the reader has no group whose offsets it could read or commit: give it group=")
        return self._group

    def _offer(self, batch: pa.RecordBatch, span: Span, after: int) -> Iterator[pa.RecordBatch]:
        """Gives a batch of a fair size at once; keeps smaller ones until they are one together."""
        if self._small and self._is_fair(batch.num_rows, batch.nbytes):
            yield from self._give_small()
        self._small.append((batch, span, after))
        self._small_rows += batch.num_rows
        self._small_bytes += batch.nbytes
        if self._is_fair(self._small_rows, self._small_bytes):
            yield from self._give_small()

    def _is_fair(self, rows: int, size: int) -> bool:
        return rows >= self._batch_rows // 2 or size >= self._batch_bytes // 2

    def _give_small(self) -> Iterator[pa.RecordBatch]:
        pieces = self._small
        self._keep([])
        for _, span, after in pieces:
            self._passed(span, after)
        batches = [batch for batch, _, _ in pieces if batch is not None and batch.num_rows]
        if batches:
            yield batches[0] if len(batches) == 1 else _joined(batches)

    def _keep(self, small: list[tuple[pa.RecordBatch | None, Span, int]]) -> None:
        self._small = small
        self._small_rows = sum(batch.num_rows for batch, _, _ in small if batch is not None)
        self._small_bytes = sum(batch.nbytes for batch, _, _ in small if batch is not None)

    def _rewind(self) -> None:
        """Goes back to what was given out last, and asks anew for all that was fetched beyond."""
        self._note_given()
        self._held.clear()
        self._keep([])
        moved = [span for at, span in self._spans.items() if span.next != self._positions[at]]
        for span in moved:
            span.move(self._positions[span.at])
        if moved:
            self._fetcher.abandon()

    def _note_given(self) -> None:
        record, self._given = self._given, None
        if record is not None:
            self._positions[TopicPartition(record.topic or "", record.partition or 0)] = record.offset + 1

    def _passed(self, span: Span, after: int) -> None:
        self._given = None
        self._positions[span.at] = after if span.end is None else min(after, span.end)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
