"""The producer: records are gathered into batches for each partition, and sent by a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Unpack

from tagwire.client import arguments
from tagwire.client.admin.group_offsets import OffsetAndMetadata
from tagwire.client.blocking_driver import BlockingDriver
from tagwire.client.client import Client
from tagwire.client.client_core import security_apart
from tagwire.client.config import Bootstrap, seconds
from tagwire.client.core_owner import CoreOwner
from tagwire.client.core_thread import CoreThread
from tagwire.client.metadata import PartitionMetadata
from tagwire.client.metrics import MetricValues
from tagwire.client.producing.blocking_completion import BatchCompletion
from tagwire.client.producing.delivery import Delivery, RowsDelivery
from tagwire.client.producing.producer_core import GivenHeaders, GivenValue, ProducerCore
from tagwire.client.producing.producer_id import ProducerIdentity
from tagwire.client.producing.record_accumulator import RecordAccumulator
from tagwire.client.producing.settings import ProducerOptions, settings_of
from tagwire.client.producing.transaction_manager import GroupMetadata
from tagwire.client.scheduling import completed

if TYPE_CHECKING:
    import pyarrow as pa


class Producer(CoreOwner):
    """Sends records, in batches, from a thread of its own; it may be used by many threads of the process that made it.

    A record is sent when its batch is full, `linger` after the batch was begun, or on `flush` and `close`. The order of
    a partition is the order of the calls, whatever has to be sent again. A record with a key goes to the partition
    that Java's producer gives the key; records without one fill a batch of one partition, then of another (KIP-794).

    The producer is idempotent (`idempotence`, KIP-98): a batch whose response was lost is appended once, not twice.

        with Producer("kafka-1:9092", compression="zstd") as producer:
            delivery = producer.send("flights", b"value", key=b"UA-1545", headers=[("origin", b"EWR")])
            delivery.result().offset

    With a transactional id, records count for readers of committed records when their transaction is committed, all of
    them or none:

        with Producer("kafka-1:9092", transactional_id="mover") as producer:
            producer.init_transactions()
            with producer.transaction():
                producer.send("flights", b"value")
                producer.send_offsets({("arrivals", 0): 42}, "group")

    Args:
        client: a client, which stays open and is not used itself, or what one is made of, as `Client` takes it:
            "HOST:PORT,HOST:PORT", or a dict of Kafka's properties.
        acks: who must have a batch before it counts as sent: "all" in-sync replicas, 1 the leader, 0 nobody.
        idempotence: whether batches have sequence numbers; None is where `acks` is "all", which that needs.
        compression: none, gzip, snappy, lz4 or zstd. topic_compression: {topic: compression} of topics that differ.
        batch_bytes: bytes of records, before compression, that are sent together.
        linger: seconds that a record waits for others.
        compression_level: of `compression`; None is the codec's default.
        buffer_memory, buffer_records: bytes of records, and records, that may wait to be delivered; `send` waits for
            room. block_on_buffer_full: False raises BufferFullError at once instead.
        partitioner: where records go that name no partition: "murmur2_random" as Java's producers, "consistent_random"
            as librdkafka's, or another name of `tagwire.client.producing.partitioners`; or a function of the topic, the
            record and how many partitions there are, which gives a partition's number, or None for any.
        ignore_keys: whether records go anywhere, as if they had no key.
        adaptive_partitioning: whether partitions whose leaders do not keep up get fewer of the records that may go
            anywhere. availability_timeout: seconds after which they get none while a leader takes nothing; 0 is never
            (KIP-794).
        metadata_max_age: seconds after which the partitions of its topics are requested again: there may be more.
            metadata_max_idle: seconds after which a topic that nothing was sent to is requested no longer, until
            something is again.
        max_block: seconds that `send` waits for the partitions of a topic and for room, together, though for a topic
            that no broker knows no more than two; and that a call about transactions takes.
        retries: how often a batch is sent again; a leader that cannot be reached, or is being elected, counts for
            nothing. timeout: seconds from its first record until it is failed, `linger` among them, which is therefore
            less.
        transactional_id: the name under which transactions are made; whoever uses it later fences who used it before.
        transaction_timeout: seconds after which the coordinator aborts a transaction that nobody ends.
        dialect: None for record batches, "int-headers" for topics of that format, whose header keys are ints, and which
            has no room for sequence numbers.
            What is left out or None, up to here, is as the client is set up.
        interceptors: each sees every record of `send` before it is encoded, and may set its headers or give another
            record. One that raises is logged, and the record goes on as it was before it.
        header_serdes: what makes header values, also those of interceptors, bytes.
        register: with that dialect, what knows header keys by name: then they may be names too, of interceptors also.
        security_protocol, ssl_cafile, sasl_mechanism, ...: the attributes of `tagwire.client.Security`, for the client
            that is made of addresses.
        value_format, key_format, schema_registry: as of a `Reader`: `send` takes what Python has for the schema's type,
            such as a dict for a record, and `send_arrow` columns of its type, instead of bytes. They are written by the
            newest schema of the topic's subject, or by one that is given.

    Raises:
        ConfigError: an option is wrong, or two contradict each other.
    """

    def __init__(
        self,
        client: Client | Bootstrap,
        **options: Unpack[ProducerOptions],
    ) -> None:
        security, own = security_apart(options)
        super().__init__(client, security)
        settings, encoding = settings_of(self._client.produce_settings, own)
        driver = BlockingDriver()
        accumulator = RecordAccumulator(
            settings,
            BatchCompletion(lambda: thread.require_waitable()),
            driver.now,
            lambda: thread.wakeup(),
            Delivery,
        )
        network = self._network.core.sibling(driver)
        self._core = ProducerCore(network, settings, encoding, accumulator, threading.RLock())
        thread = CoreThread(self._core.sender, self._core.tasks, driver, "producer")
        self._core.start(thread)
        self._run_in(thread)

    def send(
        self,
        topic: str,
        value: GivenValue,
        key: GivenValue = None,
        headers: GivenHeaders = (),
        timestamp: int | None = None,
        partition: int | None = None,
        on_delivery: Callable[[Delivery], object] | None = None,
    ) -> Delivery:
        """Appends a record to a batch. What becomes of it shows in the `Delivery`, a failure also in the next `flush`.

        Args:
            value, key: bytes, or with `value_format` or `key_format` what Python has for the schema's type: a dict for
                a record, in which what the schema gives a default or null for may be missing; None is null.
            headers: (key, value) pairs, in order; keys may repeat; or a dict. Values are bytes or None, or what
                `header_serdes` takes.
            timestamp: milliseconds since 1970 UTC, -1 for none; None is now.
            partition: where it goes; None as `partitioner` says.
            on_delivery: called with the delivery when it is delivered, or failed, by the producer's thread, which waits
                meanwhile: it must be quick, and may send, but not wait. What it raises is logged. It is not called
                where this raises.

        Raises:
            EncodeError: the record cannot be written, or a value is not what its schema says.
            ValueSchemaError, SchemaRegistryError: the topic's subject has no schema to write by.
            KafkaError: the topic or the partition does not exist. A missing topic is created where brokers do that.
            ConnectError, ...: no broker tells the topic's partitions.
            BufferFullError: there was no room, within `max_block` seconds or at all.
            TransactionStateError: no transaction is open. Why the transaction has failed, once it has.
        """
        if timestamp is None:
            timestamp = time.time_ns() // 1_000_000
        delivery = self._core.append(topic, value, key, headers, timestamp, partition, on_delivery)
        return delivery if isinstance(delivery, Delivery) else completed(delivery)

    def send_batch(self, topic: str, partition: int, data: bytes) -> Delivery:
        """Sends a record batch that is encoded already, such as `tagwire.records.from_arrow` makes; its records are
        sent as they are. Where it was another producer's, or of a transaction, it is not any more.

        Raises:
            EncodeError: `data` is not exactly one record batch, or `partition` no number. Else as `send`.
        """
        return completed(self._core.send_batch(topic, partition, data))

    def send_arrow(
        self,
        topic: str,
        rows: pa.RecordBatch | pa.Table,
        partition: int | None = None,
        on_delivery: Callable[[RowsDelivery], object] | None = None,
    ) -> RowsDelivery:
        """Sends rows with columns key, value, headers, timestamp and partition, as `tagwire.records.from_arrow` does;
        any may be missing, and others are not looked at. A row without a timestamp gets the time of the call. With
        `value_format` or `key_format` these columns have the schema's types; all rows are encoded before one is sent.

        Rows keep their order within a partition. They are sent at once, in batches of at most `batch_bytes`, or of a
        megabyte where that is more. Interceptors and `header_serdes` see the records of `send` alone.

        Args:
            partition: where all rows go. None: as the column `partition` says (integers), where it is null or missing
                as the key says, and without a key to one partition after another. A `partitioner` that is a function
                is not asked.
            on_delivery: called with the delivery when all rows are done, as of `send`; before this returns, where they
                are by then.

        Raises:
            EncodeError: `rows` are no Arrow rows, or have neither keys nor values, or a column whose name is misspelt;
                a column is of another type, or a row cannot be written: rows before it may be sent.
            ValueSchemaError: columns do not fit the schema.
            KafkaError: the topic or a partition does not exist. Else as `send`.
        """
        now = time.time_ns() // 1_000_000
        batches = completed(self._core.send_arrow(topic, rows, partition, now))
        delivery = RowsDelivery(rows.num_rows, batches)
        if on_delivery is not None:
            delivery.add_done_callback(on_delivery)
        return delivery

    def partitions_for(self, topic: str, timeout: float | None = None) -> dict[int, PartitionMetadata]:
        """The partitions of a topic, by number, each with its leader and replicas. A missing topic is created where
        brokers do that.

        Args:
            timeout: seconds to try; None is `max_block`.

        Raises:
            KafkaError: the topic does not exist. ConnectError, ...: no broker tells.
        """
        return completed(self._core.partitions_for(topic, timeout))

    def __len__(self) -> int:
        """How many records are neither delivered nor failed."""
        return self._core.pending

    def __bool__(self) -> bool:
        """A producer without records is one, too."""
        return True

    def metrics(self) -> MetricValues:
        """What the producer measures, plain values by the names of Kafka's own metrics: {group: {name: value}}, such as
        {"producer-metrics": {"record-send-rate": 12.5, ...}, "producer-topic-metrics.flights": {...}}; None where
        nothing is to be averaged."""
        return self._core.metrics()

    def flush(self, timeout: float | None = None) -> None:
        """Sends everything and waits until all of it is delivered, or failed.

        Args:
            timeout: seconds to wait at most; None for as long as the producer tries.

        Raises:
            TagwireError: the first failure since the last flush, or of what this one has waited for: KafkaError as a
                broker refused, or what kept a batch from being delivered within its time. Each `Delivery` has its own.
            RequestTimeoutError: not all of it was within `timeout`; it is tried further.
        """
        completed(self._core.flush(timeout))

    def close(self, timeout: float | None = None, *, abort: bool = True) -> None:
        """Flushes, ends the thread and closes its connections.

        Args:
            timeout: seconds that flushing may take; what is not delivered by then is failed.
            abort: whether an open transaction is aborted, and a commit that was begun and whose outcome nobody has
                heard goes on, as in Kafka's Sender. Otherwise it stays open, with what was flushed before, until
                somebody ends it (`end_transaction`) or its time is up: nothing is sent, nobody is told. A producer that
                is not closed, but collected or left behind by its process, ends nothing either.

        Raises:
            As `flush`, `abort_transaction` and `commit_transaction`.
        """
        seconds("timeout", timeout)
        self._end(lambda: self._core.close(timeout, abort=abort))

    # Transactions --------------------------------------------------------------------------------------------------

    @property
    def identity(self) -> ProducerIdentity:
        """Who this producer is to brokers now; -1 before they have told.

        Of a transactional producer it changes when a transaction ends, and while one is open it is what
        `end_transaction` needs to end it from another process. It can be pickled.
        """
        return completed(self._core.identity())

    def init_transactions(
        self, timeout: float | None = None, *, resume: ProducerIdentity | None = None, once: bool = False
    ) -> None:
        """Takes the transactional id over. Whoever had it is fenced, and a transaction of theirs that is open aborted.

        Args:
            timeout: seconds to try; None is `max_block`.
            resume: goes on as this producer, of another process that does not use it any more, instead: no
                request is sent, nobody is fenced, nothing is aborted. With transaction version 1 it needs `sequences`.
            once: a request that is not answered is not sent again, and its error is raised. Else it may come to the
                coordinator late, after the second, and fence this producer. For ids that can be given up for new ones.

        Raises:
            ProducerFencedError, KafkaError: refused. TransactionStateError: a transaction is open.
            RequestTimeoutError, ConnectionLostError: no answer.
            UnsupportedVersionError: the broker has no transactions.
        """
        completed(self._core.init_transactions(timeout, resume=resume, once=once))

    def begin_transaction(self) -> None:
        """Opens a transaction: what is sent from now on belongs to it. Raises TransactionStateError while one is open,
        and the fatal error, once there is one."""
        self._core.begin_transaction()

    def send_offsets(
        self, offsets: Mapping[arguments.PartitionT, int | OffsetAndMetadata], group: str | GroupMetadata
    ) -> None:
        """Makes offsets of a group part of the transaction: they are committed with it, or not at all.

        Args:
            offsets: what the group reads next, in each partition.
            group: its name, or the member on whose behalf this is.

        Raises:
            KafkaError: refused; the transaction has failed. TransactionStateError: no transaction is open.
            ConfigError: `offsets` or `group` mean nothing.
        """
        completed(self._core.send_offsets(offsets, group))

    def commit_transaction(self, timeout: float | None = None) -> None:
        """Delivers everything and commits. After a RequestTimeoutError or a lost connection nobody knows whether it is
        committed; calling it again goes on.

        Args:
            timeout: seconds to try to commit, once everything is delivered; None is `max_block`.

        Raises:
            TagwireError: what kept a record from being delivered: the transaction has failed, and is to be aborted.
            ProducerFencedError: somebody else has the transactional id. TransactionStateError: no transaction is open.
        """
        completed(self._core.commit_transaction(timeout))

    def abort_transaction(self, timeout: float | None = None) -> None:
        """Gives up what is not delivered yet, and aborts.

        Args:
            timeout: seconds to wait for what is in flight, and to try to abort; None waits until all of it
                is delivered or failed, and then tries for `max_block`.

        Raises:
            As `commit_transaction`; calling it again goes on.
        """
        completed(self._core.abort_transaction(timeout))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction that is committed at the end of the block, and aborted when the block raises.

        Raises:
            As `begin_transaction` and `commit_transaction`; where a record could not be delivered, the transaction is
            aborted before that is raised.
        """
        self.begin_transaction()
        try:
            yield
            self.commit_transaction()
        except BaseException as error:
            completed(self._core.abort_after_error(error))
            raise
