"""The offsets that groups have committed: read, written and deleted without being a member."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.api_driver import AdminApi, ApiResult, ApiResults, by_topic
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.coordinators import GROUP
from tagwire.client.offset_spec import AtTimestamp, OffsetSpec
from tagwire.client.offsets import NO_EPOCH, NO_OFFSET, list_offsets_or_end
from tagwire.client.topic_expansion import by_partition
from tagwire.errors import Error, KafkaError, RemoteProtocolError
from tagwire.partitions import EARLIEST, LATEST, TopicPartition
from tagwire.rpc.version_gates import OFFSET_FETCH_GROUPS, OFFSET_FETCH_REQUIRE_STABLE

# What a response says of a group and of a topic, before and since it may be about several groups (KIP-709).
OffsetsOfGroup = messages.OffsetFetchResponse | messages.OffsetFetchResponse.OffsetFetchResponseGroup
OffsetsOfTopic = (
    messages.OffsetFetchResponse.OffsetFetchResponseTopic | messages.OffsetFetchResponse.OffsetFetchResponseTopics
)


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """Where a group stands in a partition: the offset it reads next. `leader_epoch` is -1 where it is not known."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class GroupOffsets(AdminApi):
    """Committed offsets of a cluster's groups."""

    async def group_offsets(
        self, group: str, partitions: arguments.TopicsOrPartitions | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """As `Admin.group_offsets`."""
        arguments.name("group", group)
        assigned = None if partitions is None else set(await self._partitions("partitions", partitions))
        wanted = None if assigned is None else by_topic(assigned)
        found: dict[TopicPartition, OffsetAndMetadata] = {}

        async def send(left: list[str], deadline: float) -> ApiResults[str, None]:
            found.clear()  # of a round before, since when offsets may have been deleted
            for node, _ in await self._by_coordinator(left, GROUP, deadline):
                connection = await self._network.connection(node, deadline)
                request = _fetch_request(connection, group, wanted)
                response = await self._network.request(connection, request, deadline)
                # From that version on the response names its groups, and the outer fields mean nothing.
                several = connection.version(request.api_key) >= OFFSET_FETCH_GROUPS
                named: list[tuple[str, OffsetsOfGroup]] = [(each.group_id, each) for each in response.groups]
                for name, each in named if several else [(group, response)]:
                    error = each.error_code
                    if error in (Error.NONE, Error.GROUP_ID_NOT_FOUND):
                        if not error:
                            check_told(each.topics, assigned, group)
                        error = _take(each.topics, found)
                    yield ApiResult(name, error)

        await self._drive([group], send, "offsets of group")
        return dict(sorted(found.items()))

    async def alter_group_offsets(
        self, group: str, offsets: arguments.ByTopicOrPartition[OffsetSpec | OffsetAndMetadata]
    ) -> None:
        """As `Admin.alter_group_offsets`."""
        arguments.name("group", group)
        committed = await self._committable(offsets)

        async def send(left: list[TopicPartition], deadline: float) -> ApiResults[TopicPartition, None]:
            for node, _ in await self._by_coordinator([group], GROUP, deadline):
                topics = topics_to_commit({partition: committed[partition] for partition in left})
                request = messages.OffsetCommitRequest(group_id=group, topics=topics)
                response = await self._request(node, request, deadline)
                for told in response.topics:
                    for each in told.partitions:
                        yield ApiResult(TopicPartition(told.name, each.partition_index), each.error_code)

        await self._drive(list(committed), send, f"commit offset of group {group!r} in partition")

    async def delete_group_offsets(self, group: str, partitions: arguments.TopicsOrPartitions) -> None:
        """As `Admin.delete_group_offsets`."""
        kind = messages.OffsetDeleteRequest

        async def send(left: list[TopicPartition], deadline: float) -> ApiResults[TopicPartition, None]:
            for node, _ in await self._by_coordinator([group], GROUP, deadline):
                topics = [
                    kind.OffsetDeleteRequestTopic(
                        name=topic,
                        partitions=[kind.OffsetDeleteRequestPartition(partition_index=index) for index in indexes],
                    )
                    for topic, indexes in by_topic(left).items()
                ]
                request = kind(group_id=group, topics=topics)
                response = await self._request(node, request, deadline)
                if response.error_code:
                    for partition in left:
                        yield ApiResult(partition, response.error_code)
                    return
                for told in response.topics:
                    for each in told.partitions:
                        yield ApiResult(TopicPartition(told.name, each.partition_index), each.error_code)

        arguments.name("group", group)
        await self._drive(
            await self._partitions("partitions", partitions),
            send,
            f"delete offset of group {group!r} in partition",
            changes=True,
        )

    async def _committable(self, given: object) -> dict[TopicPartition, OffsetAndMetadata]:
        """Offsets to commit, words and times for them resolved. Raises ConfigError, and as `Client.list_offsets`."""
        deadline = self._network.deadline()
        entries = arguments.by_topic_or_partition("offsets", given, '"earliest"')
        by_at = await by_partition(self._network, entries, deadline)
        found = {partition: _offset(partition, offset) for partition, offset in by_at.items()}
        times = {
            partition: arguments.timestamp(f"offsets: {partition}", offset)
            for partition, offset in found.items()
            if not isinstance(offset, OffsetAndMetadata)
        }
        listed = await list_offsets_or_end(self._network, times, deadline, self._isolation)
        return {
            partition: offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(listed[partition])
            for partition, offset in found.items()
        }


def _offset(partition: TopicPartition, given: object) -> OffsetAndMetadata | int | AtTimestamp:
    if isinstance(given, OffsetAndMetadata):
        committable(partition, given.offset)
        return given
    number = arguments.whole(given)
    if number is not None and number not in (EARLIEST, LATEST):
        return committable(partition, number)
    return arguments.offset_spec(f"offsets: {partition}", given, "an OffsetAndMetadata")


def committable(partition: TopicPartition, offset: int) -> OffsetAndMetadata:
    """An offset to commit. Raises ConfigError for one below 0: brokers keep it, and no client can go on there."""
    return OffsetAndMetadata(arguments.offset(f"offsets: {partition}", offset))


def _fetch_request(
    connection: BrokerConnection, group: str, wanted: Mapping[str, list[int]] | None
) -> messages.OffsetFetchRequest:
    kind = messages.OffsetFetchRequest
    version = connection.version(kind.api_key)
    if version >= OFFSET_FETCH_GROUPS:
        topics = [
            kind.OffsetFetchRequestTopics(name=name, partition_indexes=own) for name, own in (wanted or {}).items()
        ]
        entry = kind.OffsetFetchRequestGroup(group_id=group, topics=None if wanted is None else topics)
        return kind(groups=[entry], require_stable=True)
    older = [kind.OffsetFetchRequestTopic(name=name, partition_indexes=own) for name, own in (wanted or {}).items()]
    return kind(
        group_id=group, topics=None if wanted is None else older, require_stable=version >= OFFSET_FETCH_REQUIRE_STABLE
    )


def check_told(topics: Iterable[OffsetsOfTopic], assigned: set[TopicPartition] | None, group: str) -> None:
    """Raises RemoteProtocolError where a response leaves out a partition that was requested, tells of another or of one
    twice, or tells an offset that none can be."""
    told: set[TopicPartition] = set()
    for topic in topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if partition in told or partition.partition < 0 or (assigned is not None and partition not in assigned):
                raise RemoteProtocolError(
                    f"offsets of group {group!r}: {partition} is told twice, or was not requested"
                )
            if each.committed_offset < NO_OFFSET or each.committed_leader_epoch < NO_EPOCH:
                told_of = f"offset {each.committed_offset} of leader epoch {each.committed_leader_epoch}"
                raise RemoteProtocolError(f"offsets of group {group!r}: {partition} is told to stand at {told_of}")
            told.add(partition)
    if silent := (assigned or set()) - told:
        missing = ", ".join(map(str, sorted(silent)))
        raise RemoteProtocolError(f"offsets of group {group!r}: {missing} is missing in the response")


def topics_to_commit(
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
) -> list[messages.OffsetCommitRequest.OffsetCommitRequestTopic]:
    """What a request says of offsets that are to be committed."""
    kind = messages.OffsetCommitRequest
    return [
        kind.OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                kind.OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=offsets[TopicPartition(topic, index)].offset,
                    committed_leader_epoch=offsets[TopicPartition(topic, index)].leader_epoch,
                    committed_metadata=offsets[TopicPartition(topic, index)].metadata,
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(offsets).items()
    ]


def _take(topics: Iterable[OffsetsOfTopic], found: dict[TopicPartition, OffsetAndMetadata]) -> int:
    """Fills `found`; returns a code that is worth another attempt, or 0."""
    later = 0
    for topic in topics:
        for partition in topic.partitions:
            topic_partition = TopicPartition(topic.name, partition.partition_index)
            if partition.error_code:
                refusal = KafkaError(partition.error_code, f"offset of partition {topic_partition}")
                if not refusal.retriable:
                    raise refusal
                later = partition.error_code
            elif partition.committed_offset != NO_OFFSET:
                found[topic_partition] = OffsetAndMetadata(
                    partition.committed_offset, partition.committed_leader_epoch, partition.metadata or ""
                )
    return later
