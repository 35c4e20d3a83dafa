"""Reading assigned partitions, as Arrow or as records, one blocking call after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, Self, Unpack

from tagwire.client import arguments
from tagwire.client.admin.group_offsets import OffsetAndMetadata
from tagwire.client.client import Client
from tagwire.client.client_core import security_apart
from tagwire.client.config import Bootstrap
from tagwire.client.decoded_values import Undecoded
from tagwire.client.metrics import MetricValues
from tagwire.client.offset_ranges import EndOffsets, Lag, Position, StartOffsets
from tagwire.client.option_types import of_type
from tagwire.client.owning import ClientOwner
from tagwire.client.reader_core import ReaderCore
from tagwire.client.reader_settings import ReaderOptions, settings_of
from tagwire.client.reading import BatchReading, RecordReading
from tagwire.errors import TagwireError
from tagwire.partitions import TopicPartition
from tagwire.records import HeaderSerdes, Record
from tagwire.records.interceptors import ConsumerInterceptor

if TYPE_CHECKING:
    import pyarrow as pa

_OWN: Final = ("end_offsets", "stop_at_end")


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
        max_wait_ms, min_bytes: how long a broker waits with its response, at most half of request.timeout.ms, and for
            how many bytes; None as the client is set up.
        max_bytes, max_partition_bytes: bounds of one response, in bytes; None as the client is set up.
        batch_rows: how many rows a batch has, about.
        batch_bytes: bytes of records after which a batch ends though it has fewer rows.
        max_decompressed: bytes that one compressed record batch may become.
        isolation: "read_committed" leaves out records of aborted transactions, and waits at those of open ones;
            "read_uncommitted" gives them; None as the client is set up.
        offset_reset: what to do when a partition does not hold the offset to go on from: "none" raises, "earliest" and
            "latest" go on there and log a warning, and so does "by_duration:PT1H" an hour before now (KIP-1106); None
            as the client is set up.
        rack: where the reader is: brokers may name a replica near it to fetch from (KIP-392); None as the client is set
            up.
        metadata_max_age: seconds after which a leader is asked again for that replica; None as the client is set up.
        dialect: None for Kafka's formats, "int-headers" for topics of that one, whose header keys are ints.
        register: with that dialect, by which header keys are read as names.
        group: whose committed offsets `Committed`, `committed` and `commit` mean; None as the client is set up. The
            reader does not become a member.
        value_format, key_format: what values and keys are: "avro", "protobuf" or "json-schema"; or a dict of the
            options of docs/values.md without `value.`, such as {"format": "avro", "schema": "order.avsc"}. Batches have
            columns of the schema's types then, and records Python's objects. None is bytes.
        schema_registry: where schemas are: "http://registry:8081", or a dict of its properties.
        bad_values: what becomes of a record whose value or key cannot be decoded: "raise", "null" in its place, or
            "drop" it.
        security_protocol, ssl_cafile, sasl_mechanism, ...: the attributes of `tagwire.client.Security`, for the client
            that is made of addresses.

    Raises:
        ConfigError: an option is wrong. KafkaError: a topic or a partition does not exist.
        While iterating, after the records that came before:
        KafkaError: naming the partition; OFFSET_OUT_OF_RANGE also names the offsets it holds.
        LogTruncationError: what was read was cut off the log by a change of leader, and `offset_reset` is "none"
            (KIP-320); otherwise it goes on where the logs diverge, and logs a warning.
        CorruptRecordError: a record batch that is broken, named `topic-partition@offset`.
        DecodeError: a value or key is not what its schema says, named so too; `seek` goes beyond it.
        ValueSchemaError, SchemaRegistryError: the topic's schema cannot be read by, or the registry does not answer.
        RequestTimeoutError, ConnectError, ConnectionLostError: a leader stayed away for the client's timeout.
    """

    def __init__(
        self,
        client: Client | Bootstrap,
        starts: StartOffsets,
        *,
        end_offsets: EndOffsets | None = None,
        stop_at_end: bool = False,
        **options: Unpack[ReaderOptions],
    ) -> None:
        of_type("stop_at_end", stop_at_end, bool, "True or False")
        security, own = security_apart(options)
        super().__init__(client, security)
        try:
            fetch, decoding = settings_of(self._client.fetch_settings, own, _OWN)
            self._core = ReaderCore(self._network.core, fetch, decoding)
            self._network.run(self._core.open(starts, end_offsets, stop_at_end))
        except BaseException:
            super().close()
            raise
        self._batches = BatchReading(self._core)

    def position(self, partition: tuple[str, int]) -> int:
        """The offset after the last record given out of a partition. Raises KeyError for one that is not
        assigned."""
        return self._core.position(arguments.topic_partition("partition", partition))

    def seek(self, partition: tuple[str, int], position: Position) -> None:
        """Reads a partition on from another position; what is fetched of it already is not given any more. A reader
        that has raised goes on, in every other partition after what was given out of it.

        Raises:
            KeyError: the partition is not assigned. ConfigError, KafkaError: as for `starts`.
        """
        self._network.run(self._core.seek(arguments.topic_partition("partition", partition), position))
        self._batches.sought()

    def lag(self) -> dict[TopicPartition, Lag]:
        """How far each partition is read, as the last responses told of its end; where none did, by ListOffsets.

        Raises as `Client.list_offsets`.
        """
        return self._network.run(self._core.lag())

    def committed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the reader's group has committed in the assigned partitions; those without an offset are left out.

        Raises:
            ConfigError: the reader has no group. KafkaError: naming the group or the partition.
        """
        return self._network.run(self._core.committed())

    def commit(self, offsets: arguments.ByTopicOrPartition[int | OffsetAndMetadata] | None = None) -> None:
        """Commits for the reader's group: `offsets`, or the position in every assigned partition, so that a reader
        which starts at `Committed` goes on after the last record that was given out.

        Raises:
            ConfigError: the reader has no group.
            KafkaError: UNKNOWN_MEMBER_ID while the group has members; otherwise naming the partition.
        """
        self._network.run(self._core.commit(offsets))

    def metrics(self) -> MetricValues:
        """What the reader and its client measure, by the names of Kafka's consumers: see `Client.metrics`."""
        return self._network.core.metrics.values("consumer", self._core.metrics)

    def close(self) -> None:
        """Ends the fetch sessions, and the connections where this object opened them."""
        self._core.close()
        super().close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            while True:
                try:
                    batch = self._network.run(self._batches.next())
                    break
                except Undecoded as due:
                    due.call()
        except TagwireError:
            raise
        except BaseException:  # such as Ctrl-C
            self._batches.interrupted()
            raise
        if batch is None:
            raise StopIteration
        return batch

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
        reading = RecordReading(self._core, interceptors, header_serdes)
        while (found := self._network.run(reading.next())) is not None:
            while True:
                try:
                    yield from found
                    break
                except Undecoded as due:
                    due.call()
                    found = reading.there()
