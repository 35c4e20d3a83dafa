"""How far groups are behind: what they have committed beside where partitions end, for all groups at once.

One request to a coordinator is about many groups, one to a leader about many partitions, and those to all brokers are
in flight at once. What cannot be told of one group or partition is said in its row and keeps nothing else from being
told.
Sources: OffsetFetch from version 8 on (KIP-709), DescribeShareGroupOffsets (KIP-932), ListOffsets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.group_offsets import OffsetsOfGroup, check_told
from tagwire.client.admin.groups import GroupDescription, GroupListing, GroupMember, Groups
from tagwire.client.config import ISOLATIONS
from tagwire.client.coordinators import GROUP, coordinators, parts
from tagwire.client.metadata import NO_NODE, ClusterMetadata
from tagwire.client.offsets import NO_OFFSET, leader_epochs, list_offsets_request
from tagwire.client.retry import is_retriable
from tagwire.client.scheduling import Work, gather, sleep
from tagwire.errors import Error, KafkaError, RemoteProtocolError, TagwireError
from tagwire.partitions import LATEST, TopicPartition
from tagwire.rpc.version_gates import OFFSET_FETCH_GROUPS

SHARE: Final = "share"
_SHARE_OFFSETS: Final = messages.DescribeShareGroupOffsetsRequest.api_key

# The types of groups that `describe_groups` knows; brokers before Kafka 3.8 tell none.
_DESCRIBED: Final = ("", "classic", "consumer", SHARE, "streams")

# Seconds in which a partition that has just lost its leader may get another; one without a leader for longer is told
# as such.
_LEADER_PATIENCE: Final = 2.0


class PartitionEnd(NamedTuple):
    """Where a partition ends: the offset that its next record gets, or None and a `note` why nobody can tell."""

    offset: int | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far a group is behind in one partition.

    Attributes:
        offset: the one it reads next; None where it has committed none.
        end: the one that the partition's next record gets; None where that cannot be told.
        lag: records between the two, by their offsets; None where one of them is.
        leader_epoch: -1 where it is not known.
        note: why something is None; "" where nothing is.
        member: who has the partition now, where members were wanted.
    """

    topic: str
    partition: int
    offset: int | None
    end: int | None
    lag: int | None
    leader_epoch: int = -1
    metadata: str = ""
    note: str = ""
    member: GroupMember | None = None


@dataclass(frozen=True, slots=True)
class GroupLag:
    """How far a group is behind.

    Attributes:
        state: such as "Stable"; "" where the broker is too old to tell. `type` likewise.
        partitions: those it has committed in, and those that its members have, in order.
        members: empty where they were not wanted.
        note: why nothing of the group could be told; "" where something could.
    """

    group: str
    state: str
    type: str
    partitions: tuple[PartitionLag, ...] = ()
    members: tuple[GroupMember, ...] = ()
    note: str = ""

    @property
    def lag(self) -> int:
        """Records behind in all partitions, those left out whose lag is not known."""
        return sum(each.lag or 0 for each in self.partitions)

    @property
    def longest(self) -> int:
        """Records behind in the partition where they are most."""
        return max((each.lag or 0 for each in self.partitions), default=0)


_OfShareGroup = messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
_OfGroup = OffsetsOfGroup | _OfShareGroup


@dataclass(slots=True)
class _Committed:
    """What is known of a group's offsets: the broker's rows, each with what it refuses, or why there are none."""

    rows: dict[TopicPartition, PartitionLag] = field(default_factory=dict)
    note: str = ""


class Lags(Groups):
    """The lag of a cluster's groups."""

    async def group_lags(
        self, groups: arguments.Names | None = None, *, topics: arguments.Names = (), members: bool = False
    ) -> list[GroupLag]:
        """As `Admin.group_lags`."""
        known: Sequence[GroupListing | GroupDescription]
        topics = arguments.names("topics", topics)
        if groups is not None:
            known = list((await self.describe_groups(groups)).values())
        else:
            known = await self.list_groups()
            known = await self._described(known) if members else known
        committed = await self._committed(known)
        found: dict[str, dict[TopicPartition, PartitionLag]] = {}
        for group in known:
            rows = {
                partition: row
                for partition, row in committed[group.group].rows.items()
                if not topics or partition.topic in topics
            }
            if members and isinstance(group, GroupDescription):
                for partition, member in _holders(group).items():
                    if not topics or partition.topic in topics:
                        rows[partition] = _held(rows.get(partition), partition, member)
            found[group.group] = rows
        ends = await self.partition_ends({partition for rows in found.values() for partition in rows})
        return [
            GroupLag(
                group.group,
                group.state,
                group.type,
                tuple(_compared(rows[partition], ends[partition]) for partition in sorted(rows)),
                group.members if members and isinstance(group, GroupDescription) else (),
                committed[group.group].note,
            )
            for group in sorted(known, key=lambda each: each.group)
            for rows in [found[group.group]]
        ]

    async def partition_ends(self, partitions: arguments.TopicsOrPartitions) -> dict[TopicPartition, PartitionEnd]:
        """As `Admin.partition_ends`."""
        left = set(await self._partitions("partitions", partitions))
        if not left:
            return {}
        deadline = self._network.deadline()
        retry = self._network.retry(min(deadline, self._network.now() + _LEADER_PATIENCE))
        found: dict[TopicPartition, PartitionEnd] = {}
        known = await self._network.refresh({partition.topic for partition in left}, deadline)
        while True:
            failed = await self._request_ends(known, left, found, deadline)
            if not failed:
                return found
            left = set(failed)
            try:
                await sleep(retry.pause_until(next(iter(failed.values()))))
                known = await self._network.refresh({partition.topic for partition in left}, deadline)
            except TagwireError:
                return found | {partition: PartitionEnd(None, _said(error)) for partition, error in failed.items()}

    # What groups have committed ------------------------------------------------------------------------------------

    async def _described(self, listed: Sequence[GroupListing]) -> list[GroupListing | GroupDescription]:
        """The groups with their members, where there is an API for those of their type. Those that are gone since
        they were listed are left out."""
        while True:
            known = [group.group for group in listed if group.type.lower() in _DESCRIBED]
            others = [group for group in listed if group.type.lower() not in _DESCRIBED]
            try:
                return [*(await self.describe_groups(known)).values(), *others]
            except KafkaError as error:
                if error.error is not Error.GROUP_ID_NOT_FOUND:
                    raise
                still = await self.list_groups()
                if {group.group for group in still} >= {*known}:
                    raise
                listed = still

    async def _committed(self, groups: Sequence[GroupListing | GroupDescription]) -> dict[str, _Committed]:
        """What each group has committed; coordinators that have moved are looked for until the deadline."""
        deadline = self._network.deadline()
        retry = self._network.retry(deadline)
        found: dict[str, _Committed] = {}
        types = {group.group: group.type for group in groups}
        homes = {group.group: group.coordinator for group in groups}
        while homes:
            later: dict[str, TagwireError] = {}
            works = [
                self._request_offsets(node, is_share, some, found, later, deadline)
                for (node, is_share), own in _by_coordinator(homes, types).items()
                for some in parts(own)
            ]
            await self._all(works)
            if not later:
                break
            try:
                await sleep(retry.pause_until(next(iter(later.values()))))
                homes = await coordinators(self._network, later, GROUP, deadline)
            except TagwireError as error:
                found |= {group: _Committed(note=_said(later[group], error)) for group in later}
                break
        return found

    async def _all(self, works: Iterable[Work[None]]) -> None:
        """Runs them beside each other. Raises the first error among theirs."""
        for error in await gather(works, self._network.now):
            if isinstance(error, Exception):
                raise error

    async def _request_offsets(
        self,
        node: int,
        is_share: bool,
        groups: list[str],
        found: dict[str, _Committed],
        later: dict[str, TagwireError],
        deadline: float,
    ) -> None:
        """Fills `found`, and `later` with what is worth another attempt."""
        network = self._network
        try:
            connection = await network.connection(node, deadline)
            told: Mapping[str, _OfGroup]
            if is_share:
                told = _told(groups, await network.request(connection, _share_request(groups), deadline))
            elif connection.version(messages.OffsetFetchRequest.api_key) >= OFFSET_FETCH_GROUPS:
                told = _told(groups, await network.request(connection, _several_request(groups), deadline))
            else:  # a response is about one group, and does not name it
                older: dict[str, _OfGroup] = {}
                for group in groups:
                    request = messages.OffsetFetchRequest(group_id=group, topics=None)
                    older[group] = await network.request(connection, request, deadline)
                told = older
        except RemoteProtocolError:
            raise
        except TagwireError as error:
            for group in groups:
                if is_retriable(error):
                    later[group] = error
                else:
                    found[group] = _Committed(note=_said(error))
            return
        for group in groups:
            of_group = told[group]
            refusal = KafkaError(of_group.error_code, f"offsets of group {group!r}")
            if not of_group.error_code or refusal.error is Error.GROUP_ID_NOT_FOUND:
                rows = _share_rows(of_group) if isinstance(of_group, _OfShareGroup) else _rows(group, of_group)
                found[group] = _Committed(dict(rows))
            elif refusal.retriable:
                later[group] = refusal
            else:
                found[group] = _Committed(note=_said(refusal))

    # Where partitions end ------------------------------------------------------------------------------------------

    async def _request_ends(
        self,
        known: ClusterMetadata,
        wanted: Iterable[TopicPartition],
        found: dict[TopicPartition, PartitionEnd],
        deadline: float,
    ) -> dict[TopicPartition, TagwireError]:
        """One request to each leader. Fills `found`; returns what is worth another attempt, with the error."""
        failed: dict[TopicPartition, TagwireError] = {}
        leaders: dict[int, list[TopicPartition]] = defaultdict(list)
        for partition in sorted(wanted):
            leader = _leader_of(known, partition)
            if isinstance(leader, int):
                leaders[leader].append(partition)
            elif isinstance(leader, KafkaError):
                failed[partition] = leader
            else:
                found[partition] = leader
        await self._all([self._request_ends_of(node, own, found, failed, deadline) for node, own in leaders.items()])
        return failed

    async def _request_ends_of(
        self,
        node: int,
        partitions: list[TopicPartition],
        found: dict[TopicPartition, PartitionEnd],
        failed: dict[TopicPartition, TagwireError],
        deadline: float,
    ) -> None:
        epochs = leader_epochs(self._network, node, partitions)
        request = list_offsets_request(dict.fromkeys(partitions, LATEST), ISOLATIONS[self._isolation], epochs)
        try:
            connection = await self._network.connection(node, deadline)
            response = await self._network.request(connection, request, deadline)
        except RemoteProtocolError:
            raise
        except TagwireError as error:
            for partition in partitions:
                if is_retriable(error):
                    failed[partition] = error
                else:
                    found[partition] = PartitionEnd(None, _said(error))
            return
        left = set(partitions)
        for topic in response.topics:
            for told in topic.partitions:
                partition = TopicPartition(topic.name, told.partition_index)
                if partition not in left:
                    raise RemoteProtocolError(
                        f"{connection.broker} told an offset of {partition} twice, or not requested"
                    )
                left.remove(partition)
                refusal = KafkaError(told.error_code, f"end of partition {partition}")
                if told.error_code and refusal.retriable:
                    failed[partition] = refusal
                elif told.error_code:
                    found[partition] = PartitionEnd(None, _said(refusal))
                elif told.offset < 0:
                    raise RemoteProtocolError(
                        f"{connection.broker} told offset {told.offset} of {partition}, which none can be"
                    )
                else:
                    found[partition] = PartitionEnd(told.offset)
        for partition in left:
            failed[partition] = KafkaError(
                Error.UNKNOWN_SERVER_ERROR, f"no end of {partition} in the response of {connection.broker}"
            )


def _by_coordinator(homes: Mapping[str, int], types: Mapping[str, str]) -> dict[tuple[int, bool], list[str]]:
    """The groups of each broker, share groups apart: their offsets have an API of their own."""
    found: dict[tuple[int, bool], list[str]] = defaultdict(list)
    for group, node in homes.items():
        found[node, types[group].lower() == SHARE].append(group)
    return found


def _several_request(groups: list[str]) -> messages.OffsetFetchRequest:
    kind = messages.OffsetFetchRequest
    return kind(groups=[kind.OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups])


def _share_request(groups: list[str]) -> messages.DescribeShareGroupOffsetsRequest:
    kind = messages.DescribeShareGroupOffsetsRequest
    return kind(groups=[kind.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None) for group in groups])


def _told(
    groups: list[str], response: messages.OffsetFetchResponse | messages.DescribeShareGroupOffsetsResponse
) -> dict[str, _OfGroup]:
    """{group: what the response says of it}. Raises RemoteProtocolError: not each of them is told of, once."""
    found: dict[str, _OfGroup] = {}
    for each in response.groups:
        if each.group_id in found:
            raise RemoteProtocolError(f"offsets of group {each.group_id!r}: told twice")
        found[each.group_id] = each
    for group in {*groups} ^ {*found}:
        raise RemoteProtocolError(f"offsets of group {group!r}: not requested, or missing in the response")
    return found


def _rows(group: str, told: OffsetsOfGroup) -> Iterator[tuple[TopicPartition, PartitionLag]]:
    if not told.error_code:
        check_told(told.topics, None, group)
    for topic in told.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if each.error_code:
                note = _said(KafkaError(each.error_code, "its offset"))
                yield partition, PartitionLag(*partition, None, None, None, note=note)
            elif each.committed_offset != NO_OFFSET:
                epoch, metadata = each.committed_leader_epoch, each.metadata or ""
                yield partition, PartitionLag(*partition, each.committed_offset, None, None, epoch, metadata)


def _share_rows(told: _OfShareGroup) -> Iterator[tuple[TopicPartition, PartitionLag]]:
    """Rows of a share group: where it starts in each partition, with the lag where its coordinator counts that."""
    for topic in told.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.topic_name, each.partition_index)
            if each.error_code:
                note = _said(KafkaError(each.error_code, each.error_message or "its offset"))
                yield partition, PartitionLag(*partition, None, None, None, note=note)
            elif each.start_offset >= 0:
                lag = each.lag if each.lag >= 0 else None
                yield partition, PartitionLag(*partition, each.start_offset, None, lag, each.leader_epoch)


def _holders(group: GroupDescription) -> dict[TopicPartition, GroupMember]:
    return {partition: member for member in group.members for partition in member.assignment}


def _held(row: PartitionLag | None, partition: TopicPartition, member: GroupMember) -> PartitionLag:
    if row is None:
        return PartitionLag(*partition, None, None, None, note="nothing committed", member=member)
    return PartitionLag(
        *partition, row.offset, row.end, row.lag, row.leader_epoch, row.metadata, note=row.note, member=member
    )


def _compared(row: PartitionLag, end: PartitionEnd) -> PartitionLag:
    """The row with the partition's end. A lag that the broker has counted stays: of share groups it knows more."""
    lag = row.lag
    if lag is None and row.offset is not None and end.offset is not None:
        lag = max(end.offset - row.offset, 0)
    note = "; ".join(said for said in (row.note, end.note) if said)
    return PartitionLag(
        row.topic, row.partition, row.offset, end.offset, lag, row.leader_epoch, row.metadata, note, row.member
    )


def _leader_of(known: ClusterMetadata, topic_partition: TopicPartition) -> int | PartitionEnd | KafkaError:
    """The node that leads a partition; or why there is none, which may last or not."""
    topic = known.topics.get(topic_partition.topic)
    if topic is None or topic.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
        return PartitionEnd(None, "the topic does not exist")
    if topic.error:
        error = KafkaError(topic.error, f"topic {topic_partition.topic!r}")
        return error if error.retriable else PartitionEnd(None, _said(error))
    partition = topic.partitions.get(topic_partition.partition)
    if partition is None:
        return PartitionEnd(None, f"the topic has {len(topic.partitions)} partitions")
    if partition.leader == NO_NODE:
        return KafkaError(Error.LEADER_NOT_AVAILABLE, f"partition {topic_partition} has no leader")
    return partition.leader


def _said(*errors: TagwireError) -> str:
    """One line."""
    return "; ".join(dict.fromkeys(" ".join(str(error).split()) for error in errors))
