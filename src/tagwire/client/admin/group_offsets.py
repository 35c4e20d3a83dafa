"""The offsets that groups have committed: read, written and deleted without being a member."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.asking import Asker, Outcome, by_topic
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.config import wrong
from tagwire.client.coordinators import GROUP
from tagwire.client.offset_spec import AtTimestamp, OffsetSpec
from tagwire.errors import Error, KafkaError, RemoteProtocolError
from tagwire.partitions import EARLIEST, LATEST, TopicPartition
from tagwire.rpc.version_gates import OFFSET_FETCH_GROUPS

NO_OFFSET: Final = -1
NO_EPOCH: Final = -1


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """Where a group stands in a partition: the offset it reads next. `leader_epoch` is -1 where it is not known."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class GroupOffsets(Asker):
    """Committed offsets of a cluster's groups."""

    def group_offsets(
        self, group: str, partitions: arguments.TopicsOrPartitions | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group has committed. Partitions without an offset are left out; so is a group that does not exist.

        Args:
            partitions: a topic's name stands for all of its partitions; None asks for all that there are.

        Raises:
            KafkaError: naming the group or the partition. ConfigError: `group` or `partitions` mean nothing.
        """
        arguments.name("group", group)
        places = None if partitions is None else set(self._places("partitions", partitions))
        wanted = None if places is None else by_topic(places)
        found: dict[TopicPartition, OffsetAndMetadata] = {}

        def ask(left: list[str], deadline: float) -> Iterator[Outcome]:
            for connection, _ in self._by_coordinator(left, GROUP, deadline):
                answer = self._exchange(connection, _fetch_request(connection, group, wanted), deadline)
                # From that version on the answer names its groups, and the outer fields mean nothing.
                several = connection.version(messages.OffsetFetchRequest.api_key) >= OFFSET_FETCH_GROUPS
                for each in answer.groups if several else [answer]:
                    error = each.error_code
                    if error in (Error.NONE, Error.GROUP_ID_NOT_FOUND):
                        if not error:
                            check_told(each.topics, places, group)
                        error = _take(each.topics, found)
                    yield Outcome(each.group_id if several else group, error)

        self._settle([group], ask, "offsets of group")
        return dict(sorted(found.items()))

    def alter_group_offsets(
        self, group: str, offsets: arguments.ByTopicOrPartition[OffsetSpec | OffsetAndMetadata]
    ) -> None:
        """Commits offsets for a group that has no members now; a group that does not exist begins with them.

        Args:
            offsets: {(topic, partition): the offset to read next}, or "earliest", "latest" or a time; a topic's name
                stands for all of its partitions.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID while the group has members; otherwise naming the partition.
            ConfigError: `group` or `offsets` mean nothing.
        """
        kind = messages.OffsetCommitRequest
        arguments.name("group", group)
        placed = self._committable(offsets)

        def ask(left: list[TopicPartition], deadline: float) -> Iterator[Outcome]:
            for connection, _ in self._by_coordinator([group], GROUP, deadline):
                topics = [
                    kind.OffsetCommitRequestTopic(
                        name=topic,
                        partitions=[
                            kind.OffsetCommitRequestPartition(
                                partition_index=index,
                                committed_offset=placed[TopicPartition(topic, index)].offset,
                                committed_leader_epoch=placed[TopicPartition(topic, index)].leader_epoch,
                                committed_metadata=placed[TopicPartition(topic, index)].metadata,
                            )
                            for index in indexes
                        ],
                    )
                    for topic, indexes in by_topic(left).items()
                ]
                answer = self._exchange(connection, kind(group_id=group, topics=topics), deadline)
                yield from _outcomes(answer.topics)

        self._settle(list(placed), ask, f"commit offset of group {group!r} in partition")

    def delete_group_offsets(self, group: str, partitions: arguments.TopicsOrPartitions) -> None:
        """Forgets what a group has committed in partitions. A topic's name stands for all of its own.

        Raises:
            KafkaError: GROUP_SUBSCRIBED_TO_TOPIC while a member reads the topic; otherwise naming the partition.
        """
        kind = messages.OffsetDeleteRequest

        def ask(left: list[TopicPartition], deadline: float) -> Iterator[Outcome]:
            for connection, _ in self._by_coordinator([group], GROUP, deadline):
                topics = [
                    kind.OffsetDeleteRequestTopic(
                        name=topic,
                        partitions=[kind.OffsetDeleteRequestPartition(partition_index=index) for index in indexes],
                    )
                    for topic, indexes in by_topic(left).items()
                ]
                answer = self._exchange(connection, kind(group_id=group, topics=topics), deadline)
                if answer.error_code:
                    yield from (Outcome(at, answer.error_code) for at in left)
                else:
                    yield from _outcomes(answer.topics)

        arguments.name("group", group)
        self._settle(
            self._places("partitions", partitions), ask, f"delete offset of group {group!r} in partition", changes=True
        )

    def _committable(self, given: object) -> dict[TopicPartition, OffsetAndMetadata]:
        """Offsets to commit, words and times for them resolved. Raises ConfigError, and as `Client.list_offsets`."""
        deadline = self._network.deadline()
        places = arguments.by_topic_or_partition(
            "offsets", given, lambda topic: self._network.topic(topic, deadline).partitions, '"earliest"'
        )
        found = {at: _offset(at, offset) for at, offset in places.items()}
        times = {at: offset for at, offset in found.items() if not isinstance(offset, OffsetAndMetadata)}
        told = self._client.list_offsets(times)
        told.update(self._client.list_offsets({at: LATEST for at, offset in told.items() if offset < 0}))
        return {
            at: offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(told[at])
            for at, offset in found.items()
        }


def _offset(at: TopicPartition, given: object) -> OffsetAndMetadata | int | AtTimestamp:
    if isinstance(given, OffsetAndMetadata):
        return given if given.offset >= 0 else committable(at, given.offset)
    number = arguments.whole(given)
    if number is not None and number not in (EARLIEST, LATEST):
        return committable(at, number)
    return arguments.offset_spec(f"offsets: {at}", given, "a OffsetAndMetadata")


def committable(at: TopicPartition, offset: int) -> OffsetAndMetadata:
    """An offset to commit. Raises ConfigError for one below 0: brokers keep it, and no client can go on there."""
    if offset < 0:
        raise wrong(f"offsets: {at}", offset, "an offset from 0 on")
    return OffsetAndMetadata(offset)


def _fetch_request(connection: BrokerConnection, group: str, wanted: dict[str, list[int]] | None) -> Any:
    kind = messages.OffsetFetchRequest
    several = connection.version(kind.api_key) >= OFFSET_FETCH_GROUPS
    entry: Any = kind.OffsetFetchRequestTopics if several else kind.OffsetFetchRequestTopic
    topics: Any = None
    if wanted is not None:
        topics = [entry(name=name, partition_indexes=indexes) for name, indexes in wanted.items()]
    if several:
        return kind(groups=[kind.OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=True)
    return kind(group_id=group, topics=topics)


def check_told(topics: list[Any], places: set[TopicPartition] | None, group: str) -> None:
    """Raises RemoteProtocolError where an answer leaves out a partition that was asked for, tells of another or of one
    twice, or tells an offset that none can be."""
    told: set[TopicPartition] = set()
    for topic in topics:
        for each in topic.partitions:
            at = TopicPartition(topic.name, each.partition_index)
            if at in told or at.partition < 0 or (places is not None and at not in places):
                raise RemoteProtocolError(f"offsets of group {group!r}: {at} is told, and not asked for, or twice")
            if each.committed_offset < NO_OFFSET or each.committed_leader_epoch < NO_EPOCH:
                told_of = f"offset {each.committed_offset} of leader epoch {each.committed_leader_epoch}"
                raise RemoteProtocolError(f"offsets of group {group!r}: {at} is told to stand at {told_of}")
            told.add(at)
    if silent := (places or set()) - told:
        missing = ", ".join(map(str, sorted(silent)))
        raise RemoteProtocolError(f"offsets of group {group!r}: no word of {missing} in the answer")


def _take(topics: list[Any], found: dict[TopicPartition, OffsetAndMetadata]) -> int:
    """Fills `found`; returns a code that is worth another attempt, or 0."""
    later = 0
    for topic in topics:
        for partition in topic.partitions:
            at = TopicPartition(topic.name, partition.partition_index)
            if partition.error_code:
                refusal = KafkaError(partition.error_code, f"offset of partition {at}")
                if not refusal.retriable:
                    raise refusal
                later = partition.error_code
            elif partition.committed_offset != NO_OFFSET:
                found[at] = OffsetAndMetadata(
                    partition.committed_offset, partition.committed_leader_epoch, partition.metadata or ""
                )
    return later


def _outcomes(topics: list[Any]) -> Iterator[Outcome]:
    for topic in topics:
        for partition in topic.partitions:
            yield Outcome(TopicPartition(topic.name, partition.partition_index), partition.error_code)
