"""A Fetcher and a FetchCollector over a network in memory, by a clock that is made up, run as a consumer runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tagwire import messages
from tagwire.client.config import FetchSettings
from tagwire.client.connection_settings import ConnectionSettings
from tagwire.client.fetch_collector import FetchCollector
from tagwire.client.fetch_positions import FetchBuffer, FetchPosition
from tagwire.client.fetching import Fetcher
from tagwire.client.network_client import NetworkClient
from tagwire.client.reader_settings import DecodingSettings
from tagwire.client.scheduling import NEVER, Wait
from tagwire.errors import Error, TagwireError
from tagwire.partitions import TopicPartition
from tagwire.records import Record

from .fake_broker import SERVED, FakeCluster, FakePartition
from .memory_network import MemoryDriver

TIMEOUT = 30.0
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Brokers(FakeCluster):
    """Each broker at a host of its own, "kafka-0" and so on; all can tell where a leader epoch ends.

    Attributes:
        epoch_ends: what OffsetForLeaderEpoch tells of a partition, (epoch, end offset) or an error.
        replicas: what each leader names as the replica to read a partition from, where the client tells its rack.
    """

    def __init__(self, nodes: int = 2, **options: Any) -> None:
        super().__init__(nodes, served={**SERVED, 23: (0, 4)}, **options)
        self.epoch_ends: dict[int, tuple[int, int] | Error] = {}
        self.replicas: dict[int, int] = {}
        self.diverging: dict[int, tuple[int, int]] = {}
        self.followed: set[int] = set()  # partitions that any broker gives

    def _Metadata(self, message: Any, node: int) -> Any:  # noqa: N802
        response = super()._Metadata(message, node)
        for broker in response.brokers:
            broker.host = f"kafka-{broker.node_id}"
        return response

    def _OffsetForLeaderEpoch(self, message: Any, node: int) -> Any:  # noqa: N802
        kind = messages.OffsetForLeaderEpochResponse
        topics = []
        for topic in message.topics:
            found = []
            for asked in topic.partitions:
                _, error = self._find(topic.topic, asked.partition, node)
                told = self.epoch_ends.get(asked.partition, (asked.leader_epoch, 1 << 40))
                if isinstance(told, Error) or error:
                    refusal = error or told
                    found.append(kind.EpochEndOffset(partition=asked.partition, error_code=refusal))
                else:
                    found.append(
                        kind.EpochEndOffset(partition=asked.partition, leader_epoch=told[0], end_offset=told[1])
                    )
            topics.append(kind.OffsetForLeaderTopicResult(topic=topic.topic, partitions=found))
        return kind(topics=topics)

    def _Fetch(self, message: Any, node: int) -> Any:  # noqa: N802
        response = super()._Fetch(message, node)
        for topic in response.responses:
            for entry in topic.partitions:
                self._turn(entry, message, node)
        return response

    def _turn(self, entry: Any, message: Any, node: int) -> None:
        index, leader = entry.partition_index, self.topics["t"][entry.partition_index].leader
        if index in self.diverging and node == leader:
            epoch, end = self.diverging.pop(index)
            entry.diverging_epoch.epoch, entry.diverging_epoch.end_offset, entry.records = epoch, end, b""
        elif index in self.replicas and node == leader and message.rack_id:
            entry.preferred_read_replica, entry.records = self.replicas[index], b""

    def _find(self, name: str, index: int, node: int) -> tuple[FakePartition | None, Error]:
        if index in self.followed and name in self.topics:
            return self.topics[name][index], Error.NONE
        return super()._find(name, index, node)

    def sources(self, partition: int) -> list[int]:
        """Which brokers were requested to give a partition, in order."""
        return [
            node
            for node, api, _, message in self.seen
            if api == "Fetch"
            and any(one.partition == partition for topic in message.topics for one in topic.partitions)
        ]


class Fetching:
    """What a consumer does with partitions of topic "t": fetches them all the time, and gives out what is there."""

    def __init__(
        self,
        cluster: FakeCluster,
        positions: Iterable[FetchPosition] = (),
        *,
        seed: int = 1,
        patience: float = NEVER,
        max_buffered: float = NEVER,
        decoding: DecodingSettings | None = None,
        **settings: Any,
    ) -> None:
        self.cluster = cluster
        self.driver = MemoryDriver(cluster, seed)
        self.network = NetworkClient(
            [("kafka-0", cluster.brokers[0].port)], ConnectionSettings("core"), TIMEOUT, self.driver
        )
        self.buffer = FetchBuffer()
        self.fetcher = Fetcher(
            self.network,
            self.buffer,
            FetchSettings(**{"max_wait_ms": 100, **settings}),
            patience=patience,
            max_buffered=max_buffered,
        )
        self.collector = FetchCollector(self.buffer, decoding or DecodingSettings())
        self.errors: list[TagwireError] = []
        self.fetcher.add(positions)

    def run(self, until: Callable[[], bool] = lambda: False, seconds: float = 5.0) -> None:
        """Lets time pass, until something is so."""
        end = self.driver.now() + seconds

        async def work() -> None:
            while not until() and self.driver.now() < end:
                self.fetcher.step()
                await Wait(lambda: self.fetcher.is_due or until(), min(self.fetcher.until(), end))

        self.driver.run(work())

    def records(self, count: int, seconds: float = 5.0) -> list[Record]:
        """Records as they come, so many unless time is up; what is raised meanwhile is in `errors`."""
        found: list[Record] = []
        end = self.driver.now() + seconds
        while len(found) < count and self.driver.now() < end:
            try:
                found += self.collector.records(count - len(found))
            except TagwireError as error:
                self.errors.append(error)
            if len(found) < count:
                self.run(lambda: self.buffer.has_any, end - self.driver.now())
        return found

    def offsets(self, count: int, partition: int = 0, seconds: float = 5.0) -> list[int]:
        """The offsets of a partition among so many records."""
        return [record.offset for record in self.records(count, seconds) if record.partition == partition]

    def error(self, seconds: float = 5.0) -> TagwireError:
        """What is raised in place of records."""
        end = self.driver.now() + seconds
        while self.driver.now() < end:
            try:
                self.collector.records(1000)
            except TagwireError as error:
                return error
            self.run(lambda: self.buffer.has_any, end - self.driver.now())
        raise AssertionError("nothing was raised")

    def position(self, partition: TopicPartition = T0) -> FetchPosition:
        return self.fetcher.positions[partition]
