"""Groups: list, describe, delete."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.api_driver import AdminApi, ApiResult, ApiResults
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.consuming.consumer_protocol import decode_assignment
from tagwire.client.coordinators import GROUP
from tagwire.client.metadata import TopicMetadata
from tagwire.errors import DecodeError, Error
from tagwire.partitions import TopicPartition
from tagwire.rpc.version_gates import LIST_GROUPS_STATES, LIST_GROUPS_TYPES
from tagwire.spec.api_keys import ApiKey

# What is said of a group of another protocol. Kafka 3.9 lists ConsumerGroupDescribe, and refuses it as long as the
# protocol of KIP-848 is not switched on.
_OF_ANOTHER: Final = (Error.GROUP_ID_NOT_FOUND, Error.UNSUPPORTED_VERSION)


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group as its coordinator lists it. `state` and `type` are "" where that is too old to tell.

    Attributes:
        coordinator: node id.
    """

    group: str
    protocol_type: str
    state: str
    type: str
    coordinator: int = -1


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group and the partitions it has: of a streams group, those that its active tasks read.
    `instance_id` is None for a dynamic member."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None = None
    assignment: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group.

    Attributes:
        state: such as "Stable" or "Empty".
        type: "classic", "consumer" for the protocol of KIP-848, "share" (KIP-932), or "streams" (KIP-1071).
        assignor: who spreads the partitions, "" without members, and where a broker does not tell.
        coordinator: node id.
    """

    group: str
    state: str
    type: str
    protocol_type: str
    assignor: str
    coordinator: int
    members: tuple[GroupMember, ...] = ()


_Describe = Callable[[BrokerConnection, list[str], float], Awaitable[list[ApiResult[str, GroupDescription]]]]


class Groups(AdminApi):
    """Groups of a cluster."""

    async def list_groups(self, *, states: arguments.Names = (), types: arguments.Names = ()) -> list[GroupListing]:
        """As `Admin.list_groups`."""
        request = messages.ListGroupsRequest(
            states_filter=arguments.names("states", states), types_filter=arguments.names("types", types)
        )

        async def ask(node: int, deadline: float) -> tuple[int, list[GroupListing]]:
            connection = await self._network.connection(node, deadline)
            if states or types:
                self._require(connection, request.api_key, LIST_GROUPS_TYPES if types else LIST_GROUPS_STATES)
            response = await self._network.request(connection, request, deadline)
            return response.error_code, [
                GroupListing(group.group_id, group.protocol_type, group.group_state, group.group_type, node)
                for group in response.groups
            ]

        told = await self._of_every_broker("groups", ask)
        found = {group.group: group for listed in told.values() for group in listed}
        return [found[name] for name in sorted(found)]

    async def describe_groups(self, groups: arguments.Names) -> dict[str, GroupDescription]:
        """As `Admin.describe_groups`."""

        async def send(left: list[str], deadline: float) -> ApiResults[str, GroupDescription]:
            homes = await self._by_coordinator(left, GROUP, deadline)
            works = [self._describe(node, own, deadline) for node, own in homes]
            async for result in self._beside(works):
                yield result

        return await self._drive(arguments.names("groups", groups), send, "describe group")

    async def delete_groups(self, groups: arguments.Names) -> None:
        """As `Admin.delete_groups`."""

        async def delete(node: int, own: list[str], deadline: float) -> list[ApiResult[str, None]]:
            response = await self._request(node, messages.DeleteGroupsRequest(groups_names=own), deadline)
            return [ApiResult(result.group_id, result.error_code, result.error_message) for result in response.results]

        async def send(left: list[str], deadline: float) -> ApiResults[str, None]:
            homes = await self._by_coordinator(left, GROUP, deadline)
            async for result in self._beside([delete(node, own, deadline) for node, own in homes]):
                yield result

        await self._drive(arguments.names("groups", groups), send, "delete group", changes=True)

    async def _describe(self, node: int, groups: list[str], deadline: float) -> list[ApiResult[str, GroupDescription]]:
        """What a coordinator says of its groups, of whatever protocol they are."""
        connection = await self._network.connection(node, deadline)
        found: list[ApiResult[str, GroupDescription]] = []
        unknown = groups
        for describe in self._describers(connection):
            if unknown:
                results = await describe(connection, unknown, deadline)
                unknown = [result.key for result in results if result.error in _OF_ANOTHER]
                found += [result for result in results if result.error not in _OF_ANOTHER]
        return [*found, *(ApiResult(group, int(Error.GROUP_ID_NOT_FOUND)) for group in unknown)]

    def _describers(self, connection: BrokerConnection) -> list[_Describe]:
        """The requests about groups that can be sent on this connection: each response says of a group of another
        protocol that it does not exist."""
        found: list[_Describe] = [self._describe_classic]
        if ApiKey.CONSUMER_GROUP_DESCRIBE in connection.ranges:
            found.insert(0, self._describe_consumer)
        if ApiKey.SHARE_GROUP_DESCRIBE in connection.ranges:
            found.append(self._describe_share)
        if ApiKey.STREAMS_GROUP_DESCRIBE in connection.ranges:
            found.append(self._describe_streams)
        return found

    async def _describe_consumer(
        self, connection: BrokerConnection, groups: list[str], deadline: float
    ) -> list[ApiResult[str, GroupDescription]]:
        request = messages.ConsumerGroupDescribeRequest(group_ids=groups)
        response = await self._network.request(connection, request, deadline)
        return [
            _described(group, "consumer", connection.node, (_member(each, each.instance_id) for each in group.members))
            for group in response.groups
        ]

    async def _describe_share(
        self, connection: BrokerConnection, groups: list[str], deadline: float
    ) -> list[ApiResult[str, GroupDescription]]:
        request = messages.ShareGroupDescribeRequest(group_ids=groups)
        response = await self._network.request(connection, request, deadline)
        return [
            _described(group, "share", connection.node, (_member(each, None) for each in group.members))
            for group in response.groups
        ]

    async def _describe_streams(
        self, connection: BrokerConnection, groups: list[str], deadline: float
    ) -> list[ApiResult[str, GroupDescription]]:
        request = messages.StreamsGroupDescribeRequest(group_ids=groups)
        response = await self._network.request(connection, request, deadline)
        topics = {topic for group in response.groups for own in _sources(group).values() for topic in own}
        known = (await self._network.refresh(sorted(topics), deadline)).topics if topics else {}
        return [
            _described(
                group, "streams", connection.node, (_of_tasks(each, _sources(group), known) for each in group.members)
            )
            for group in response.groups
        ]

    async def _describe_classic(
        self, connection: BrokerConnection, groups: list[str], deadline: float
    ) -> list[ApiResult[str, GroupDescription]]:
        request = messages.DescribeGroupsRequest(groups=groups)
        response = await self._network.request(connection, request, deadline)
        results: list[ApiResult[str, GroupDescription]] = []
        for group in response.groups:
            # Before version 6 a group that does not exist is "Dead", and no error.
            error = group.error_code or (Error.GROUP_ID_NOT_FOUND if group.group_state == "Dead" else 0)
            if error:
                results.append(ApiResult(group.group_id, error, group.error_message))
                continue
            members = tuple(
                GroupMember(
                    member.member_id,
                    member.client_id,
                    member.client_host,
                    member.group_instance_id,
                    _assigned(member.member_assignment) if group.protocol_type == "consumer" else (),
                )
                for member in group.members
            )
            found = GroupDescription(
                group.group_id,
                group.group_state,
                "classic",
                group.protocol_type,
                group.protocol_data,
                connection.node,
                members,
            )
            results.append(ApiResult(group.group_id, 0, value=found))
        return results


def _described(
    group: messages.ConsumerGroupDescribeResponse.DescribedGroup
    | messages.ShareGroupDescribeResponse.DescribedGroup
    | messages.StreamsGroupDescribeResponse.DescribedGroup,
    kind: str,
    node: int,
    members: Iterable[GroupMember],
) -> ApiResult[str, GroupDescription]:
    """A group in which the broker assigns, of type and protocol `kind`."""
    state, assignor = group.group_state, group.assignor_name or ""
    found = GroupDescription(group.group_id, state, kind, kind, assignor, node, tuple(members))
    return ApiResult(group.group_id, group.error_code, group.error_message, found)


def _member(
    member: messages.ConsumerGroupDescribeResponse.Member | messages.ShareGroupDescribeResponse.Member,
    instance_id: str | None,
) -> GroupMember:
    assigned = _partitions_of(member.assignment)
    return GroupMember(member.member_id, member.client_id, member.client_host, instance_id, assigned)


def _sources(group: messages.StreamsGroupDescribeResponse.DescribedGroup) -> dict[str, list[str]]:
    """The topics that each part of a streams group's topology reads, by the part's id."""
    parts = group.topology.subtopologies if group.topology is not None else None
    return {
        part.subtopology_id: [*part.source_topics, *(topic.name for topic in part.repartition_source_topics)]
        for part in parts or ()
    }


def _of_tasks(
    member: messages.StreamsGroupDescribeResponse.Member,
    sources: Mapping[str, list[str]],
    known: Mapping[str, TopicMetadata],
) -> GroupMember:
    """A member of a streams group. A task reads the partition of its number in every topic that has as many."""
    assigned = sorted(
        TopicPartition(topic, index)
        for task in member.assignment.active_tasks
        for topic in sources.get(task.subtopology_id, ())
        for index in task.partitions
        if topic in known and index in known[topic].partitions
    )
    return GroupMember(member.member_id, member.client_id, member.client_host, member.instance_id, tuple(assigned))


def _partitions_of(
    assignment: messages.ConsumerGroupDescribeResponse.Assignment | messages.ShareGroupDescribeResponse.Assignment,
) -> tuple[TopicPartition, ...]:
    """What a member of a consumer or share group has."""
    return tuple(
        TopicPartition(topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions
    )


def _assigned(data: bytes) -> tuple[TopicPartition, ...]:
    """The partitions in a member's assignment; none where another software wrote something else there."""
    try:
        return decode_assignment(data).partitions
    except DecodeError:
        return ()
