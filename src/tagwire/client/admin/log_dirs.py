"""Log directories: where brokers keep their replicas, how much room those take, and moving them (KIP-113)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.api_driver import AdminApi, ApiResult, ApiResults, by_topic
from tagwire.client.network_client import UnknownBrokerError
from tagwire.client.property_values import wrong
from tagwire.client.retry import LONGEST_PAUSE
from tagwire.client.scheduling import gather
from tagwire.errors import UNREACHABLE, Error, RequestTimeoutError, TagwireError
from tagwire.partitions import TopicPartition

ReplicaT = TypeVar("ReplicaT", bound=tuple[str, int, int])

# Seconds that a broker may be away when all that there are are described: those that have responded wait with what is
# told of them.
_BROKER_PATIENCE: Final = 2.0

_THREE: Final = '("orders", 0, 1), a topic, a partition and a node id'


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica on a disk.

    Attributes:
        size: bytes of its segments.
        offset_lag: how many records it is behind the high watermark, or, for one that moves in from another directory
            (`is_future`), behind the replica that it will replace.
    """

    size: int
    offset_lag: int = 0
    is_future: bool = False


@dataclass(frozen=True, slots=True)
class LogDir:
    """A log directory of a broker.

    Attributes:
        path: "" where it is not known.
        error: `Error.NONE`, or why the directory cannot be used.
        total_bytes, usable_bytes: of its volume; -1 where a broker does not tell (before Kafka 3.3).
    """

    path: str
    error: Error = Error.NONE
    total_bytes: int = -1
    usable_bytes: int = -1
    replicas: dict[TopicPartition, Replica] = field(default_factory=dict)


class TopicPartitionReplica(NamedTuple):
    """A partition's replica on a broker, by its node id."""

    topic: str
    partition: int
    broker: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} on broker {self.broker}"


@dataclass(frozen=True, slots=True)
class ReplicaLogDirInfo:
    """Where a replica is, and where it moves to.

    Attributes:
        path: of its directory; None where the broker has no such replica.
        offset_lag: how many records it is behind the high watermark; -1 without one.
        future_path: of the directory that it is being copied to; None while it is not.
        future_offset_lag: how many records the copy is behind it; -1 without one.
    """

    path: str | None = None
    offset_lag: int = -1
    future_path: str | None = None
    future_offset_lag: int = -1


class LogDirs(AdminApi):
    """Log directories of a cluster."""

    async def describe_log_dirs(
        self, brokers: int | Iterable[int] | None = None, partitions: arguments.TopicsOrPartitions | None = None
    ) -> dict[int, list[LogDir]]:
        """As `Admin.describe_log_dirs`."""
        kind = messages.DescribeLogDirsRequest
        wanted = None
        if partitions is not None:
            topics = by_topic(await self._partitions("partitions", partitions))
            wanted = [kind.DescribableLogDirTopic(topic=name, partitions=own) for name, own in topics.items()]
        has_named_brokers = brokers is not None
        if brokers is None:
            brokers = list((await self._network.refresh([], self._network.deadline())).brokers)
        nodes = arguments.numbers("brokers", brokers)

        network = self._network
        patient_until = min(network.now() + _BROKER_PATIENCE, network.deadline() - 2 * LONGEST_PAUSE)

        async def send(left: list[int], deadline: float) -> ApiResults[int, list[LogDir] | None]:
            responses = [self._request(node, kind(topics=wanted), deadline) for node in left]
            away: dict[int, TagwireError] = {}
            for node, response in zip(left, await gather(responses, network.now)):
                if isinstance(response, UNREACHABLE):
                    away[node] = response
                elif isinstance(response, Exception):
                    raise response
                else:
                    yield ApiResult(node, response.error_code, value=[_log_dir(found) for found in response.results])
            is_late = network.now() >= patient_until
            for node, error in away.items():  # last: what the others have told need not be asked for again
                if has_named_brokers or not (is_late or isinstance(error, RequestTimeoutError)):
                    raise error
                is_gone = isinstance(error, UnknownBrokerError)  # of all there are
                yield ApiResult(node, 0, value=None if is_gone else [LogDir("", Error.BROKER_NOT_AVAILABLE)])

        found = await self._drive(
            nodes, send, "describe log directories of broker", has_named_brokers=has_named_brokers
        )
        return {node: directories for node, directories in found.items() if directories is not None}

    async def describe_replica_log_dirs(
        self, replicas: Iterable[tuple[str, int, int]]
    ) -> dict[TopicPartitionReplica, ReplicaLogDirInfo]:
        """As `Admin.describe_replica_log_dirs`."""
        if isinstance(replicas, (str, bytes, Mapping)) or not isinstance(replicas, Iterable):
            raise wrong("replicas", arguments.shown(replicas), f"a list of {_THREE}")
        wanted = [_replica("one of replicas", each) for each in replicas]
        if not wanted:
            return {}
        partitions = sorted({(each.topic, each.partition) for each in wanted})
        found: dict[TopicPartitionReplica, ReplicaLogDirInfo] = {}
        dirs_of = await self.describe_log_dirs({each.broker for each in wanted}, partitions)
        for each in wanted:
            here, future = None, None
            for directory in dirs_of[each.broker]:
                replica = directory.replicas.get(TopicPartition(each.topic, each.partition))
                if replica is not None and replica.is_future:
                    future = directory.path, replica.offset_lag
                elif replica is not None:
                    here = directory.path, replica.offset_lag
            found[each] = ReplicaLogDirInfo(*(here or (None, -1)), *(future or (None, -1)))
        return found

    async def alter_replica_log_dirs(self, paths: Mapping[ReplicaT, str]) -> None:
        """As `Admin.alter_replica_log_dirs`."""
        kind = messages.AlterReplicaLogDirsRequest
        if not isinstance(paths, Mapping):
            raise wrong("paths", arguments.shown(paths), f'a dict by replica, {{{_THREE}: "/data/2"}}')
        wanted = {_replica("a key of paths", key): arguments.name("a path", path) for key, path in paths.items()}

        async def move(
            broker: int, replicas: list[TopicPartitionReplica], deadline: float
        ) -> list[ApiResult[TopicPartitionReplica, None]]:
            by_path: dict[str, list[TopicPartition]] = defaultdict(list)
            for each in replicas:
                by_path[wanted[each]].append(TopicPartition(each.topic, each.partition))
            request = kind(
                dirs=[
                    kind.AlterReplicaLogDir(
                        path=path,
                        topics=[
                            kind.AlterReplicaLogDirTopic(name=topic, partitions=indexes)
                            for topic, indexes in by_topic(own).items()
                        ],
                    )
                    for path, own in by_path.items()
                ]
            )
            response = await self._request(broker, request, deadline)
            return [
                ApiResult(TopicPartitionReplica(topic.topic_name, result.partition_index, broker), result.error_code)
                for topic in response.results
                for result in topic.partitions
            ]

        async def send(left: list[TopicPartitionReplica], deadline: float) -> ApiResults[TopicPartitionReplica, None]:
            of_broker: dict[int, list[TopicPartitionReplica]] = defaultdict(list)
            for each in left:
                of_broker[each.broker].append(each)
            works = [move(broker, own, deadline) for broker, own in of_broker.items()]
            async for result in self._beside(works):
                yield result

        await self._drive(list(wanted), send, "move replica", changes=True, moves=False, has_named_brokers=True)


def _replica(option: str, given: object) -> TopicPartitionReplica:
    if isinstance(given, (tuple, list)) and len(given) == 3 and isinstance(given[0], str):
        partition, broker = arguments.whole(given[1]), arguments.whole(given[2])
        if partition is not None and broker is not None:
            return TopicPartitionReplica(given[0], partition, broker)
    raise wrong(option, arguments.shown(given), _THREE)


def _log_dir(found: messages.DescribeLogDirsResponse.DescribeLogDirsResult) -> LogDir:
    replicas = {
        TopicPartition(topic.name, each.partition_index): Replica(
            each.partition_size, each.offset_lag, each.is_future_key
        )
        for topic in found.topics
        for each in topic.partitions
    }
    return LogDir(found.log_dir, Error.of(found.error_code), found.total_bytes, found.usable_bytes, replicas)
