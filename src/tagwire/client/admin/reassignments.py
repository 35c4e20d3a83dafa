"""Reassignments: which brokers have replicas of a partition; alter, list. Source: KIP-455, KIP-860."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.api_driver import AdminApi, ApiResult, ApiResults, by_topic
from tagwire.client.property_values import wrong
from tagwire.errors import ConfigError
from tagwire.partitions import TopicPartition
from tagwire.rpc.version_gates import ALTER_PARTITION_REASSIGNMENTS_SAME_FACTOR


@dataclass(frozen=True, slots=True)
class PartitionReassignment:
    """A reassignment that is under way.

    Attributes:
        replicas: node ids of all that have the partition now, or are getting it.
        adding_replicas: those of them that are still catching up. removing_replicas: those that will lose it then.
    """

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


class Reassignments(AdminApi):
    """Reassignments of a cluster's partitions."""

    async def alter_partition_reassignments(
        self,
        reassignments: Mapping[arguments.PartitionT, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
    ) -> None:
        """As `Admin.alter_partition_reassignments`."""
        kind = messages.AlterPartitionReassignmentsRequest
        given = arguments.by_topic_partition("reassignments", reassignments, "[1, 2, 3]")
        targets = {at: _replicas(at, replicas) for at, replicas in given.items()}

        async def send(left: list[TopicPartition], deadline: float) -> ApiResults[TopicPartition, None]:
            request = kind(
                timeout_ms=self._timeout_ms,
                allow_replication_factor_change=allow_replication_factor_change,
                topics=[
                    kind.ReassignableTopic(
                        name=topic,
                        partitions=[
                            kind.ReassignablePartition(
                                partition_index=index, replicas=targets[TopicPartition(topic, index)]
                            )
                            for index in partitions
                        ],
                    )
                    for topic, partitions in by_topic(left).items()
                ],
            )
            controller = await self._network.controller(deadline)
            if not allow_replication_factor_change:
                self._require(controller, request.api_key, ALTER_PARTITION_REASSIGNMENTS_SAME_FACTOR)
            response = await self._network.request(controller, request, deadline)
            if response.error_code:
                for at in left:
                    yield ApiResult(at, response.error_code, response.error_message)
                return
            for topic in response.responses:
                for result in topic.partitions:
                    at = TopicPartition(topic.name, result.partition_index)
                    yield ApiResult(at, result.error_code, result.error_message)

        try:
            await self._drive(list(targets), send, "reassign partition", changes=True, moves=False)
        finally:
            self._network.forget({at.topic for at in targets})

    async def list_partition_reassignments(
        self, partitions: arguments.TopicsOrPartitions | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """As `Admin.list_partition_reassignments`."""
        kind = messages.ListPartitionReassignmentsRequest
        topics = None
        if partitions is not None:
            named = by_topic(await self._partitions("partitions", partitions))
            topics = [
                kind.ListPartitionReassignmentsTopics(name=name, partition_indexes=own) for name, own in named.items()
            ]
        request = kind(timeout_ms=self._timeout_ms, topics=topics)

        async def send(
            left: list[str], deadline: float
        ) -> ApiResults[str, dict[TopicPartition, PartitionReassignment]]:
            controller = await self._network.controller(deadline)
            response = await self._network.request(controller, request, deadline)
            found = {
                TopicPartition(topic.name, each.partition_index): PartitionReassignment(
                    tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
                )
                for topic in response.topics
                for each in topic.partitions
            }
            yield ApiResult("reassignments", response.error_code, response.error_message, found)

        found = (await self._drive(["reassignments"], send, "list"))["reassignments"]
        return {at: found[at] for at in sorted(found)}


def _replicas(partition: TopicPartition, given: object) -> list[int] | None:
    """Raises ConfigError for what is no list of brokers, each once."""
    if given is None:
        return None
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise wrong(f"replicas of {partition}", arguments.shown(given), "a list of node ids, [1, 2, 3], or None")
    found = arguments.numbers(f"replicas of {partition}", given)
    if not found or len(set(found)) < len(found):
        raise ConfigError(f"replicas of {partition}: {found}: needs one broker or more, each once")
    return found
