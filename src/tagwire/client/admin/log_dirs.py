"""Log directories: where brokers keep their replicas, and how much room those take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.api_driver import AdminApi, ApiResult, ApiResults, by_topic
from tagwire.errors import Error
from tagwire.partitions import TopicPartition


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
        error: `Error.NONE`, or why the directory cannot be used.
        total_bytes, usable_bytes: of its volume; -1 where a broker does not tell (before Kafka 3.3).
    """

    path: str
    error: Error = Error.NONE
    total_bytes: int = -1
    usable_bytes: int = -1
    replicas: dict[TopicPartition, Replica] = field(default_factory=dict)


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

        async def send(left: list[int], deadline: float) -> ApiResults[int, list[LogDir]]:
            for node in left:
                request = kind(topics=wanted)
                response = await self._request(node, request, deadline)
                yield ApiResult(node, response.error_code, value=[_log_dir(found) for found in response.results])

        return await self._drive(nodes, send, "describe log directories of broker", has_named_brokers=has_named_brokers)


def _log_dir(found: messages.DescribeLogDirsResponse.DescribeLogDirsResult) -> LogDir:
    replicas = {
        TopicPartition(topic.name, each.partition_index): Replica(
            each.partition_size, each.offset_lag, each.is_future_key
        )
        for topic in found.topics
        for each in topic.partitions
    }
    return LogDir(found.log_dir, Error.of(found.error_code), found.total_bytes, found.usable_bytes, replicas)
