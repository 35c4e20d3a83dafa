"""Groups: list, describe, delete."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.asking import Asker, Outcome
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.coordinators import GROUP
from tagwire.errors import DecodeError, Error
from tagwire.partitions import TopicPartition

# The APIs that describe the groups of newer protocols, and how brokers list the type of those.
_CONSUMER: Final = 69
_SHARE: Final = 77
_TYPES: Final = {_CONSUMER: "consumer", _SHARE: "share"}

# What is said of a group of another protocol. Kafka 3.9 lists ConsumerGroupDescribe, and refuses it as long as the
# protocol of KIP-848 is not switched on.
_OF_ANOTHER: Final = (Error.GROUP_ID_NOT_FOUND, Error.UNSUPPORTED_VERSION)

# From these versions on ListGroups can be asked for some groups alone.
_STATES_FROM: Final = 4
_TYPES_FROM: Final = 5


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
    """A member of a group and the partitions it has. `instance_id` is None for a dynamic member."""

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
        type: "classic", "consumer" for the protocol of KIP-848, or "share".
        assignor: who spreads the partitions, "" without members.
        coordinator: node id.
    """

    group: str
    state: str
    type: str
    protocol_type: str
    assignor: str
    coordinator: int
    members: tuple[GroupMember, ...] = ()


class Groups(Asker):
    """Groups of a cluster."""

    def list_groups(self, *, states: arguments.Names = (), types: arguments.Names = ()) -> list[GroupListing]:
        """Every group, by name.

        Args:
            states: only groups in these states, such as "Empty"; needs Kafka 2.6.
            types: only groups of these types, "classic", "consumer", "share"; needs Kafka 3.8.

        Raises:
            KafkaError: a broker refuses. UnsupportedVersionError: a broker is too old for what is asked.
        """
        request = messages.ListGroupsRequest(
            states_filter=arguments.names("states", states), types_filter=arguments.names("types", types)
        )
        found: dict[str, GroupListing] = {}

        def ask(left: list[str], deadline: float) -> Iterator[Outcome]:
            async def listed(node: int) -> tuple[int, Any]:
                connection = await self._network.core.connection(node, deadline)
                if states or types:
                    self._require(connection, request.api_key, _TYPES_FROM if types else _STATES_FROM)
                return node, await self._network.core.request(connection, request, deadline)

            for told in self._network.gather(map(listed, self._network.refresh([], deadline).brokers)):
                if isinstance(told, Exception):
                    raise told
                node, answer = told
                if answer.error_code:
                    yield Outcome("groups", answer.error_code)
                    return
                for group in answer.groups:
                    found[group.group_id] = GroupListing(
                        group.group_id, group.protocol_type, group.group_state, group.group_type, node
                    )
            yield Outcome("groups", 0)

        self._settle(["groups"], ask, "list")
        return [found[name] for name in sorted(found)]

    def describe_groups(self, groups: arguments.Names) -> dict[str, GroupDescription]:
        """Groups and their members: classic ones, those of KIP-848, share groups (KIP-932).

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND naming a group that does not exist, or another refusal.
        """

        def ask(left: list[str], deadline: float) -> Iterator[Outcome]:
            for connection, unknown in self._by_coordinator(left, GROUP, deadline):
                for describe in self._describers(connection, deadline):
                    if unknown:
                        outcomes = list(describe(unknown))
                        unknown = [found.key for found in outcomes if found.error in _OF_ANOTHER]
                        yield from (found for found in outcomes if found.error not in _OF_ANOTHER)
                yield from (Outcome(group, Error.GROUP_ID_NOT_FOUND) for group in unknown)

        return self._settle(arguments.names("groups", groups), ask, "describe group")

    def delete_groups(self, groups: arguments.Names) -> None:
        """Deletes groups and the offsets they committed.

        Raises:
            KafkaError: NON_EMPTY_GROUP for one that has members, GROUP_ID_NOT_FOUND for one that does not exist; the
            text tells all refusals. The others are gone.
        """

        def ask(left: list[str], deadline: float) -> Iterator[Outcome]:
            for connection, own in self._by_coordinator(left, GROUP, deadline):
                request = messages.DeleteGroupsRequest(groups_names=own)
                for result in self._exchange(connection, request, deadline).results:
                    yield Outcome(result.group_id, result.error_code, result.error_message)

        self._settle(arguments.names("groups", groups), ask, "delete group", changes=True)

    def _describers(
        self, connection: BrokerConnection, deadline: float
    ) -> list[Callable[[list[str]], Iterator[Outcome]]]:
        """What can be asked about groups on this connection: of a group of another protocol each says that it is not
        there."""
        found: list[Callable[[list[str]], Iterator[Outcome]]] = [
            lambda groups: self._describe_classic(connection, groups, deadline)
        ]
        if _CONSUMER in connection.ranges:
            found.insert(0, lambda groups: self._describe_newer(connection, _CONSUMER, groups, deadline))
        if _SHARE in connection.ranges:
            found.append(lambda groups: self._describe_newer(connection, _SHARE, groups, deadline))
        return found

    def _describe_newer(
        self, connection: BrokerConnection, api: int, groups: list[str], deadline: float
    ) -> Iterator[Outcome]:
        kind: Any = messages.request(api)
        type_ = _TYPES[api]
        for group in self._exchange(connection, kind(group_ids=groups), deadline).groups:
            members = tuple(
                GroupMember(
                    member.member_id,
                    member.client_id,
                    member.client_host,
                    member.instance_id if api == _CONSUMER else None,
                    tuple(
                        TopicPartition(topic.topic_name, index)
                        for topic in member.assignment.topic_partitions
                        for index in topic.partitions
                    ),
                )
                for member in group.members
            )
            found = GroupDescription(
                group.group_id, group.group_state, type_, type_, group.assignor_name, connection.node, members
            )
            yield Outcome(group.group_id, group.error_code, group.error_message, found)

    def _describe_classic(self, connection: BrokerConnection, groups: list[str], deadline: float) -> Iterator[Outcome]:
        for group in self._exchange(connection, messages.DescribeGroupsRequest(groups=groups), deadline).groups:
            # Before version 6 a group that does not exist is "Dead", and no error.
            error = group.error_code or (Error.GROUP_ID_NOT_FOUND if group.group_state == "Dead" else 0)
            if error:
                yield Outcome(group.group_id, error, group.error_message)
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
            yield Outcome(group.group_id, 0, value=found)


def _assigned(data: bytes) -> tuple[TopicPartition, ...]:
    """The partitions in a member's assignment; none where another software wrote something else there."""
    kind = messages.ConsumerProtocolAssignment
    if len(data) < 2:
        return ()
    version = min(int.from_bytes(data[:2], "big", signed=True), kind.valid_versions.highest)
    try:
        assignment: Any = kind.decode(data[2:], max(version, 0), lenient=True)
    except DecodeError:
        return ()
    return tuple(
        TopicPartition(topic.topic, index) for topic in assignment.assigned_partitions for index in topic.partitions
    )
