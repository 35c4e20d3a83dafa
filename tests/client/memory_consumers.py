"""Consumers over the network in memory, by the made-up clock: each with its work beside it, run by one loop."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tagwire import messages, records
from tagwire.client import RebalanceListener
from tagwire.client.config import FetchSettings
from tagwire.client.connection_settings import ConnectionSettings
from tagwire.client.consume_settings import ConsumeSettings
from tagwire.client.consuming.consumer_core import ConsumerCore
from tagwire.client.consuming.consumer_settings import settings_of
from tagwire.client.network_client import NetworkClient
from tagwire.client.scheduling import Work, completed
from tagwire.errors import Error, KafkaError
from tagwire.partitions import TopicPartition
from tagwire.records import Record
from tagwire.spec.api_keys import ApiKey

from .fake_broker import FakeCluster
from .fake_consumer_groups import FakeConsumerGroups
from .fake_groups import FakeGroups
from .memory_network import MemoryDriver

Result = TypeVar("Result")

TIMEOUT = 30.0


class FakeOffsets:
    """Serves OffsetCommit and OffsetFetch."""

    def __init__(self, cluster: FakeCluster, groups: FakeGroups) -> None:
        self.committed: dict[str, dict[TopicPartition, int]] = {}
        self._groups = groups
        cluster.serve(
            {ApiKey.OFFSET_COMMIT: (2, 9), ApiKey.OFFSET_FETCH: (1, 9)},
            {"OffsetCommit": self.commit, "OffsetFetch": self.fetch_offsets},
        )

    def commit(self, message: Any) -> Any:
        kind = messages.OffsetCommitResponse
        error: int = Error.NONE
        try:
            self._groups.check_commit(message)
        except KafkaError as refusal:
            error = refusal.code
        for topic in message.topics:
            for each in topic.partitions:
                if not error:
                    own = self.committed.setdefault(message.group_id, {})
                    own[TopicPartition(topic.name, each.partition_index)] = each.committed_offset
        return kind(
            topics=[
                kind.OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        kind.OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
                        for each in topic.partitions
                    ],
                )
                for topic in message.topics
            ]
        )

    def fetch_offsets(self, message: Any) -> Any:
        kind = messages.OffsetFetchResponse
        (group,) = message.groups
        own = self.committed.get(group.group_id, {})
        topics = [
            kind.OffsetFetchResponseTopics(
                name=topic.name,
                partitions=[
                    kind.OffsetFetchResponsePartitions(
                        partition_index=index, committed_offset=own.get(TopicPartition(topic.name, index), -1)
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in group.topics
        ]
        return kind(groups=[kind.OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)])


class Room:
    """A cluster with topic "t", and consumers of group "g" that are made as they are wanted."""

    def __init__(self, partitions: int = 1, seed: int = 1, cluster: FakeCluster | None = None) -> None:
        self.cluster = cluster or FakeCluster()
        self.driver = MemoryDriver(self.cluster, seed)
        self.log = self.cluster.topic("t", partitions)
        self.groups = FakeConsumerGroups(self.cluster, self.driver)
        self.offsets = FakeOffsets(self.cluster, self.groups)
        self.consumers: list[MemoryConsumer] = []

    @property
    def committed(self) -> dict[TopicPartition, int]:
        return self.offsets.committed.get("g", {})

    def fill(self, count: int, partition: int = 0) -> None:
        """Appends a batch of records whose values are their offsets."""
        log = self.log[partition]
        log.append(records.write([Record(None, b"%d" % (log.end + number)) for number in range(count)]))

    def consumer(self, **options: Any) -> MemoryConsumer:
        consumer = MemoryConsumer(self, {"group": "g", "offset_reset": "earliest", "auto_commit": False, **options})
        self.consumers.append(consumer)
        return consumer

    def step(self, until: float) -> None:
        for consumer in self.consumers:
            consumer.core.work.step()
        self.driver._step(min([until, *(consumer.core.work.until() for consumer in self.consumers)]))

    def pass_time(self, seconds: float) -> None:
        until = self.driver.now() + seconds
        while self.driver.now() < until:
            self.step(until)


class MemoryConsumer:
    """A consumer whose calls take no time but the made-up clock's; and the host of its work."""

    is_over = False

    def __init__(self, room: Room, options: dict[str, Any]) -> None:
        addresses = [("kafka-0", broker.port) for broker in room.cluster.brokers]
        network = NetworkClient(addresses, ConnectionSettings("core"), TIMEOUT, room.driver)
        self._room = room
        self.wakeups = 0
        self.core = ConsumerCore(network, settings_of(FetchSettings(), ConsumeSettings(), options))
        self.core.start(self)

    def call(self, call: Coroutine[Any, Any, Result]) -> Result:
        return completed(self.core.exclusively(0, call))

    def poll(self, timeout: float = 0.0, most: int | None = None) -> list[Record]:
        return self.call(self.core.poll(timeout, most))

    def drained(self, count: int) -> list[Record]:
        """The next so many records, within a minute."""
        found: list[Record] = []
        deadline = self._room.driver.now() + 60
        while len(found) < count:
            assert self._room.driver.now() < deadline, f"{len(found)} records of {count}"
            found += self.poll(1.0)
        return found

    def close(self, **options: Any) -> None:
        self.call(self.core.close(30.0, leaves=options.get("leaves")))
        self.kill()

    def kill(self) -> None:
        """Ends it where it is; it says nothing."""
        self._room.consumers.remove(self)
        self.core.work.close()

    # The host ------------------------------------------------------------------------------------------------------

    def require_waitable(self) -> None:
        return

    def wakeup(self) -> None:
        self.wakeups += 1

    async def wait_for(self, is_ready: Callable[[], bool], until: float) -> None:
        while not is_ready() and self._room.driver.now() < until:
            self._room.step(until)

    async def result(self, function: Callable[[], Work[Result]], deadline: float) -> Result:
        ended: list[tuple[Any, Exception | None]] = []
        self.core.tasks.start(object(), function(), lambda result, error: ended.append((result, error)))
        while not ended:
            self._room.step(float("inf"))
        result, error = ended[0]
        if error is not None:
            raise error
        found: Result = result
        return found


def subscribed(room: Room, listener: RebalanceListener | None = None, **options: Any) -> MemoryConsumer:
    """A consumer of the room's topic."""
    consumer = room.consumer(**options)
    consumer.call(consumer.core.subscribe("t", None, listener))
    return consumer
