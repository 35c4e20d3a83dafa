"""Consuming topics as a member of a group: what users call, each call to its end."""

from __future__ import annotations

import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from tagwire.client import arguments
from tagwire.client.admin.group_offsets import OffsetAndMetadata
from tagwire.client.blocking_driver import BlockingDriver
from tagwire.client.client import Client
from tagwire.client.client_core import security_apart
from tagwire.client.config import Bootstrap
from tagwire.client.consuming.consumer_commits import CommitCallback
from tagwire.client.consuming.consumer_core import ConsumerCore
from tagwire.client.consuming.consumer_settings import ConsumerOptions, settings_of
from tagwire.client.consuming.listener import RebalanceListener
from tagwire.client.core_owner import CoreOwner
from tagwire.client.core_thread import CoreThread
from tagwire.client.metadata import PartitionMetadata
from tagwire.client.metrics import MetricValues
from tagwire.client.offset_ranges import Lag, Position
from tagwire.client.offset_spec import OffsetSpec
from tagwire.client.producing.transaction_manager import GroupMetadata
from tagwire.client.scheduling import completed
from tagwire.errors import TagwireError
from tagwire.partitions import EARLIEST, LATEST, TopicPartition
from tagwire.records import Record

if TYPE_CHECKING:
    import pyarrow as pa

Result = TypeVar("Result")


class Consumer(CoreOwner):
    """Reads topics as a member of a group, or partitions that are assigned by hand. For one thread, which may change.

    Members of a group share the partitions of their topics. A thread of the consumer's own fetches ahead, keeps the
    membership with heartbeats and commits; records are decoded, and listeners called, in the thread that polls. Who
    does not poll for `max_poll_interval` seconds loses its partitions, and joins again with the next poll.

        with Consumer("kafka-1:9092", group="billing", offset_reset="earliest") as consumer:
            consumer.subscribe("flights")
            for record in consumer: ...

        with Consumer("kafka-1:9092", group="billing", auto_commit=False) as consumer:
            consumer.subscribe(["flights", "delays"])
            for batch in consumer.batches():  # of Arrow
                ...
                consumer.commit()

    No record is given twice by a consumer that keeps its partition, and none is left out. What was given counts as
    done with when the consumer is polled again: automatic commits commit that and nothing beyond.

    Args:
        client: a client, which stays open and is not used itself, or what one is made of, as `Client` takes it:
            "HOST:PORT,HOST:PORT", or a dict of Kafka's properties.
        group: the group's name; None is a consumer that is assigned partitions by hand and commits nothing.
        protocol: "classic", or "consumer" for KIP-848's, in which the broker assigns.
        instance_id: makes it a static member, which may be restarted without a rebalance (KIP-345).
        session_timeout, heartbeat_interval: seconds; of the classic protocol.
        assignors: of the classic protocol, the best first: "range", "roundrobin", "sticky", "cooperative-sticky".
        remote_assignor: with KIP-848's protocol, the broker's assignor: "uniform", "range".
        max_poll_interval: seconds that may pass between two polls.
        max_poll_records: how many records `poll` gives at most.
        auto_commit: whether it commits by itself; by default where it has a group. auto_commit_interval: seconds.
            auto_offset_store: False commits what `store_offsets` was told, and not what was given.
        offset_reset: where to begin without a committed offset: "latest", "earliest", "none" raises, "by_duration:PT1H"
            an hour ago (KIP-1106).
        exclude_internal_topics: whether a pattern matches none of the cluster's own, with the classic protocol: with
            KIP-848's the broker matches, and those too. allow_auto_create: whether brokers may create a topic that is
            missing, of those that are subscribed to by name and of partitions that are assigned.
        max_wait_ms, min_bytes, max_bytes, max_partition_bytes, isolation, dialect, register, columns, timestamp_unit,
            batch_rows, batch_bytes, max_decompressed, rack, metadata_max_age, value_format, key_format,
            schema_registry, bad_values: as of a `Reader`.
            What is left out or None, up to here, is as the client is set up.
        interceptors: each sees every record after it is decoded, and may give another. One that raises is logged, and
            the record goes on as it was. One with a method `on_commit` is told offsets that were committed.
        header_serdes: what makes header values objects, before interceptors see them.
        security_protocol, ssl_cafile, sasl_mechanism, ...: the attributes of `tagwire.client.Security`, for the client
            that is made of addresses.

    Raises:
        ConfigError: an option is wrong, or two contradict each other.
    """

    def __init__(self, client: Client | Bootstrap, **options: Unpack[ConsumerOptions]) -> None:
        security, own = security_apart(options)
        super().__init__(client, security)
        settings = settings_of(self._client.fetch_settings, self._client.consume_settings, own)
        driver = BlockingDriver()
        self._core = ConsumerCore(self._network.core.sibling(driver), settings)
        thread = CoreThread(self._core.work, self._core.tasks, driver, "consumer")
        self._core.start(thread)
        self._core.work.on_news = thread.notify
        self._run_in(thread)

    # Subscription --------------------------------------------------------------------------------------------------

    def subscribe(
        self,
        topics: arguments.Names | None = None,
        listener: RebalanceListener | None = None,
        *,
        pattern: str | None = None,
    ) -> None:
        """Shares topics, or those whose whole names match a pattern, with the other members of the group, in the place
        of what was subscribed to before. Partitions come while the consumer is polled.

        Args:
            listener: hears of partitions that come and go.
            pattern: a regular expression. With the classic protocol it is Python's, and topics are looked at again
                every `metadata_max_age` seconds; with KIP-848's the broker matches it, as RE2 does.

        Raises:
            ConfigError: neither topics nor a pattern, or both. ConsumerStateError: there is no group, or partitions are
                assigned by hand.
        """
        self._run(self._core.subscribe(topics, pattern, listener))

    def assign(self, partitions: arguments.TopicsOrPartitions | arguments.ByTopicOrPartition[Position]) -> None:
        """Takes partitions, in the place of those that were assigned before, without asking anybody: no other member is
        kept from them.

        Args:
            partitions: topics and partitions, which go on where the group stands, or as `offset_reset` says; or
                {(topic, partition): position} of where each goes on.

        Raises:
            ConsumerStateError: topics are subscribed to. KafkaError: a topic does not exist. ConfigError: it means
                nothing.
        """
        self._run(self._core.assign(partitions))

    def unsubscribe(self) -> None:
        """Commits, where that is automatic, tells the listener, leaves the group and forgets the subscription, or the
        assignment."""
        self._run(self._core.unsubscribe())

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that the consumer has."""
        return self._core.assignment

    def subscription(self) -> frozenset[str]:
        """The topics that are subscribed to by name."""
        return self._core.work.subscription.topics

    def group_metadata(self) -> GroupMetadata:
        """The member, for `Producer.send_offsets`. Raises ConsumerStateError without a group."""
        return self._core.group_metadata()

    def metrics(self) -> MetricValues:
        """What the consumer measures, plain values by the names of Kafka's own metrics: {group: {name: value}}, such as
        {"consumer-fetch-manager-metrics": {"records-lag-max": 3.0, ...}, ...}; None where there is nothing yet. See
        docs/metrics.md."""
        return self._core.metrics()

    def enforce_rebalance(self, reason: str = "the consumer asked for it") -> None:
        """Has the group rebalance as soon as the consumer is polled. Raises ConsumerStateError where it is no
        member."""
        self._run(self._core.rejoin(arguments.name("reason", reason)))

    # Records -------------------------------------------------------------------------------------------------------

    def poll(self, timeout: float | None = 0.0) -> list[Record]:
        """The next records, at most `max_poll_records`, as soon as there are any; none where there are none within
        `timeout` seconds (None waits for ever). Of each partition they come in order; each knows its topic and
        partition. Listeners and callbacks of commits are called here.

        Raises:
            ConsumerStateError: nothing is subscribed to or assigned. WakeupError: `wakeup` was called.
            NoOffsetError: nothing says where to begin. KafkaError: what the group or a partition is refused for.
            CorruptRecordError: a batch is broken; `seek` goes beyond it. DecodeError: a header's deserializer raised.
            DecodeError: a value or key is not what its schema says; the text names it. SchemaRegistryError.
            What a listener or a callback raises, after all of them were called.
        """
        return self._giving(self._core.poll(timeout))

    def consume(self, count: int, timeout: float | None = None) -> list[Record]:
        """The next `count` records, or those that come within `timeout` seconds. Raises as `poll`."""
        return self._giving(self._core.consume(count, timeout))

    def poll_batch(self, timeout: float | None = 0.0) -> pa.RecordBatch | None:
        """The next Arrow batch, with the columns and the sizes that a `Reader` gives; None where nothing has come
        within `timeout` seconds. Who changes between batches and records goes on where the other way ended; what was
        fetched ahead is fetched anew then. Raises as `poll`."""
        return self._giving(self._core.poll_batch(timeout))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Arrow batches for ever, each as soon as it has come. Raises as `poll`."""
        while True:
            batch = self.poll_batch(None)
            if batch is not None:
                yield batch

    def __iter__(self) -> Iterator[Record]:
        """Records for ever, one after the other. Each is given out when it is asked for: `commit` in the loop commits
        up to the record that the loop is at. Raises as `poll`."""
        while True:
            yield from self._giving(self._core.read())

    def wakeup(self) -> None:
        """Has the call that waits for records raise WakeupError, or the next one if none does. From any thread."""
        self._core.wakeup(self._thread.wakeup)

    # Positions -----------------------------------------------------------------------------------------------------

    def position(self, partition: tuple[str, int], timeout: float | None = None) -> int:
        """The offset after the last record given out of a partition; waits until it is known where to begin.

        Raises:
            KeyError: it is not assigned. RequestTimeoutError: not within `timeout` seconds; None is the client's.
                NoOffsetError, KafkaError: as `poll`.
        """
        return self._run(self._core.position(partition, timeout))

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The position in every partition in which it is known, for `commit` and `Producer.send_offsets`."""
        return self._run(self._core.positions())

    def seek(self, partition: tuple[str, int], position: Position | OffsetAndMetadata) -> None:
        """Goes on at another position; what was fetched of the partition before is not given any more.

        Raises:
            KeyError: the partition is not assigned. ConfigError, KafkaError: as for `Reader.seek`.
        """
        self._run(self._core.seek(partition, position))

    def seek_to_beginning(self, partitions: arguments.TopicsOrPartitions | None = None) -> None:
        """Goes on at the first record kept, in these partitions or in all. Raises as `seek`."""
        self._run(self._core.seek_to(partitions, EARLIEST))

    def seek_to_end(self, partitions: arguments.TopicsOrPartitions | None = None) -> None:
        """Goes on after the last record, in these partitions or in all. Raises as `seek`."""
        self._run(self._core.seek_to(partitions, LATEST))

    def pause(self, partitions: arguments.TopicsOrPartitions | None = None) -> None:
        """Gives nothing of these partitions, or of all, until `resume`. Raises KeyError for one that is not
        assigned. A rebalance that takes a partition away, and gives it back, ends that."""
        self._run(self._core.pause(partitions, is_paused=True))

    def resume(self, partitions: arguments.TopicsOrPartitions | None = None) -> None:
        """Gives of these partitions, or of all, again. Raises KeyError for one that is not assigned."""
        self._run(self._core.pause(partitions, is_paused=False))

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return self._core.paused

    def lag(self) -> dict[TopicPartition, Lag]:
        """How far each partition is read, as the last responses told of its end; where none did, by ListOffsets. Raises
        as `Client.list_offsets`."""
        return self._run(self._core.lag())

    def offsets_for_times(
        self, times: arguments.ByTopicOrPartition[OffsetSpec], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset at or after a time in each partition, -1 where no record is as late. As
        `Client.list_offsets`."""
        return self._run(self._core.list_offsets(times, timeout))

    def partitions_for(self, topic: str, timeout: float | None = None) -> dict[int, PartitionMetadata]:
        """The partitions of a topic, by number, whether they are assigned or not. Raises as `Client.topic`."""
        return self._run(self._core.partitions_for(topic, timeout))

    def beginning_offsets(
        self, partitions: arguments.TopicsOrPartitions, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset kept of each partition. Raises as `Client.list_offsets`."""
        named = arguments.topics_or_partitions("partitions", partitions)
        return self._run(self._core.list_offsets(dict.fromkeys(named, EARLIEST), timeout))

    def end_offsets(
        self, partitions: arguments.TopicsOrPartitions, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The next offset of each partition; for readers of committed records where its oldest open transaction begins.
        Raises as `Client.list_offsets`."""
        named = arguments.topics_or_partitions("partitions", partitions)
        return self._run(self._core.list_offsets(dict.fromkeys(named, LATEST), timeout))

    # Commits -------------------------------------------------------------------------------------------------------

    def commit(
        self,
        offsets: Mapping[arguments.PartitionT, int | OffsetAndMetadata] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commits offsets, or the position in every partition, and waits for it. What may succeed later is tried again
        for `timeout` seconds; None is the client's.

        Raises:
            CommitFailedError: the consumer is no member of its group any more, or the group rebalances; the text says
                what to do. KafkaError: naming the partition. ConsumerStateError: there is no group.
        """
        self._run(self._core.commit(offsets, timeout))

    def commit_async(
        self,
        offsets: Mapping[arguments.PartitionT, int | OffsetAndMetadata] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commits beside, after what was to be committed before.

        Args:
            callback: called by a later `poll`, `commit` or `close` with the offsets, and None or what `commit` would
                raise. Without one, a failure is logged.
        """
        self._run(self._core.commit_async(offsets, callback))

    def store_offsets(
        self, done: Record | Iterable[Record] | Mapping[arguments.PartitionT, int | OffsetAndMetadata]
    ) -> None:
        """Says what the application is done with, where `auto_offset_store` is False: automatic commits, and `commit`
        and `commit_async` without offsets, commit that and nothing else. From any thread, also beside `poll`.

        Args:
            done: a record that was given, or records, of which the last of each partition counts; or {(topic,
                partition): the offset that is to be read next}.

        Raises:
            KeyError: a partition is not assigned, or not any more: its offset is another's to commit. ConfigError: it
                means nothing. ConsumerStateError: `auto_offset_store` is True, or there is no group. Nothing is stored
                then.
        """
        self._core.store_offsets(done)

    def committed(
        self, partitions: arguments.TopicsOrPartitions | None = None, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group has committed in these partitions, or in those that are assigned; those without an offset are
        left out.

        Raises:
            ConsumerStateError: there is no group. KafkaError: naming the group. RequestTimeoutError: not within
                `timeout` seconds; None is the client's.
        """
        return self._run(self._core.committed(partitions, timeout))

    # The end -------------------------------------------------------------------------------------------------------

    def close(self, timeout: float = 30.0, *, leave: bool | None = None) -> None:
        """Commits, where that is automatic, tells the listener, leaves the group, ends the thread and its connections.

        Args:
            timeout: seconds that this may take; leaving has half a second in any case.
            leave: whether the group is told, so that others get the partitions now, or after the session's time; None
                is True but for static members of classic groups (KIP-1092).

        Raises:
            What the listener raises. ConsumerStateError: another thread or task is closing it, or its call is not over:
                then nothing has ended, and `wakeup` has that call end.
        """
        # In a process that was forked off no call is under way, whatever its parent's threads do.
        is_own = self._thread.is_of_this_process
        with self._core.closing(threading.get_ident(), timeout) if is_own else nullcontext():
            self._end(lambda: self._exclusively(self._core.close(timeout, leaves=leave)))

    # Parts ---------------------------------------------------------------------------------------------------------

    def _run(self, call: Coroutine[Any, Any, Result]) -> Result:
        try:
            self._thread.require_process()
        except TagwireError:
            call.close()
            raise
        return completed(self._exclusively(call))

    def _exclusively(self, call: Coroutine[Any, Any, Result]) -> Coroutine[Any, Any, Result]:
        return self._core.exclusively(threading.get_ident(), call)

    def _giving(self, call: Coroutine[Any, Any, Result]) -> Result:
        """A call that gives records; where it is interrupted, as by Ctrl-C, what it took is given by the next one."""
        try:
            return self._run(call)
        except Exception:
            raise
        except BaseException:
            self._run(self._core.rewind())
            raise
