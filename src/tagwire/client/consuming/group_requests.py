"""The requests of a member of a classic group, and what of their responses may be believed.

Kafka's classes: AbstractCoordinator, JoinGroupRequest, LeaveGroupRequest; KIP-345, KIP-394, KIP-559, KIP-800.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tagwire import messages
from tagwire.client.consuming.consumer_protocol import NO_GENERATION, PROTOCOL_TYPE, Assignment, decode_assignment
from tagwire.client.consuming.group_settings import GroupSettings
from tagwire.errors import DecodeError, Error, KafkaError, RemoteProtocolError
from tagwire.partitions import TopicPartition

# JoinGroup and LeaveGroup carry no longer reasons (KIP-800).
REASON_LENGTH: Final = 255

# From this version on LeaveGroup names its members in a list (KIP-345).
LEAVE_GROUP_MEMBERS: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """What a member is in its group: told by JoinGroup, and forgotten where the coordinator says that it does not hold.
    Every one is equal to itself alone, so that a response is known for one of an earlier generation.

    Attributes:
        id: -1 while the member is in none.
        member_id: "" where the coordinator has given none.
        protocol: the name of the assignor that the group uses, "" for none.
    """

    id: int = NO_GENERATION
    member_id: str = ""
    protocol: str = ""


def join_request(
    settings: GroupSettings, member_id: str, protocols: Iterable[tuple[str, bytes]], reason: str
) -> messages.JoinGroupRequest:
    """Joining with the names of assignors and the subscription that each tells."""
    kind = messages.JoinGroupRequest
    return kind(
        group_id=settings.group,
        session_timeout_ms=round(settings.session_seconds * 1000),
        rebalance_timeout_ms=round(settings.max_poll_interval * 1000),
        member_id=member_id,
        group_instance_id=settings.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=[kind.JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols],
        reason=reason[:REASON_LENGTH],
    )


def sync_request(
    settings: GroupSettings, generation: Generation, assignments: Mapping[str, bytes]
) -> messages.SyncGroupRequest:
    """Asking for the assignment; the leader's has those of all, by member id."""
    kind = messages.SyncGroupRequest
    return kind(
        group_id=settings.group,
        generation_id=generation.id,
        member_id=generation.member_id,
        group_instance_id=settings.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=generation.protocol,
        assignments=[
            kind.SyncGroupRequestAssignment(member_id=member, assignment=data) for member, data in assignments.items()
        ],
    )


def heartbeat_request(settings: GroupSettings, generation: Generation) -> messages.HeartbeatRequest:
    """Telling the coordinator that the member is there."""
    return messages.HeartbeatRequest(
        group_id=settings.group,
        generation_id=generation.id,
        member_id=generation.member_id,
        group_instance_id=settings.instance_id,
    )


def leave_request(settings: GroupSettings, member_id: str, reason: str, version: int) -> messages.LeaveGroupRequest:
    """Leaving, in a version of LeaveGroup."""
    kind = messages.LeaveGroupRequest
    if version < LEAVE_GROUP_MEMBERS:
        return kind(group_id=settings.group, member_id=member_id)
    member = kind.MemberIdentity(member_id=member_id, reason=reason[:REASON_LENGTH])
    return kind(group_id=settings.group, members=[member])


def joined_generation(
    response: messages.JoinGroupResponse, before: Generation, assignors: Sequence[str], group: str
) -> Generation:
    """The generation that a JoinGroup response without an error has begun.

    Args:
        before: what the request was sent as. assignors: the names that were in the request.

    Raises:
        KafkaError: INCONSISTENT_GROUP_PROTOCOL: the group is not one of consumers (KIP-559).
        RemoteProtocolError: it is no response to this request.
    """
    what = f"JoinGroup of group {group!r}"
    check_protocol(response.protocol_type, PROTOCOL_TYPE, what)
    if not response.member_id or (before.member_id and response.member_id != before.member_id):
        raise RemoteProtocolError(
            f"{what}: the response is for member {response.member_id!r}, not for {before.member_id!r}"
        )
    if response.generation_id < max(before.id, 0):
        raise RemoteProtocolError(
            f"{what}: generation {response.generation_id} comes after generation {before.id}; they only go up"
        )
    protocol = response.protocol_name
    if protocol is None or protocol not in assignors:
        raise RemoteProtocolError(
            f"{what}: the group uses assignor {protocol!r}, and this member has {', '.join(assignors)}"
        )
    ids = [member.member_id for member in response.members]
    if len(set(ids)) < len(ids):
        raise RemoteProtocolError(f"{what}: a member is told of twice")
    if response.leader == response.member_id and response.member_id not in ids:
        raise RemoteProtocolError(f"{what}: member {response.member_id!r} is to lead a group that it is not listed in")
    return Generation(response.generation_id, response.member_id, protocol)


def check_protocol(told: str | None, expected: str, what: str) -> None:
    """Raises INCONSISTENT_GROUP_PROTOCOL where a response names another protocol than the member's; older ones name
    none (KIP-559)."""
    if told is not None and told != expected:
        raise KafkaError(Error.INCONSISTENT_GROUP_PROTOCOL, f"{what}: it is of {told!r}, not of {expected!r}")


def synced_assignment(response: messages.SyncGroupResponse, generation: Generation, group: str) -> Assignment:
    """The assignment in a SyncGroup response without an error.

    Raises:
        KafkaError: INCONSISTENT_GROUP_PROTOCOL: it is of another protocol (KIP-559).
        DecodeError: it holds no assignment. RemoteProtocolError: a partition is assigned twice, or can be none.
    """
    what = f"SyncGroup of group {group!r}"
    check_protocol(response.protocol_type, PROTOCOL_TYPE, what)
    check_protocol(response.protocol_name, generation.protocol, what)
    try:
        assignment = decode_assignment(response.assignment)
    except DecodeError as error:
        raise error.under(f"assignment of group {group!r}") from None
    check_partitions(assignment.partitions, f"assignment of group {group!r}")
    return assignment


def check_partitions(partitions: Iterable[TopicPartition], what: str) -> None:
    """Raises RemoteProtocolError where a partition is assigned twice, or under a number that none has."""
    seen: set[TopicPartition] = set()
    for partition in partitions:
        if partition.partition < 0 or not partition.topic:
            raise RemoteProtocolError(f"{what}: it names {partition}, which no partition is")
        if partition in seen:
            raise RemoteProtocolError(f"{what}: it names {partition} twice")
        seen.add(partition)
