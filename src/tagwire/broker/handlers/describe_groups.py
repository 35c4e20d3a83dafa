"""DescribeGroups (key 15): describe groups: state and members.

Versions 0-6. A group that does not exist, or is one of KIP-848, is "Dead", without an error before version 6.
Metadata and assignments are told only while they hold, in a stable group. What the client may do to a group is told by
broker/authorization.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.cluster_image import GROUP
from tagwire.broker.coordinated import ManyKeys
from tagwire.broker.groups.classic_group import ClassicGroup
from tagwire.broker.groups.group_table import AnyGroup
from tagwire.broker.groups.membership import State
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error
from tagwire.rpc.version_gates import DESCRIBE_GROUPS_NOT_FOUND

Request = messages.DescribeGroupsRequest
Response = messages.DescribeGroupsResponse


def _refused(group_id: str, error: Error) -> Response.DescribedGroup:
    return Response.DescribedGroup(group_id=group_id, error_code=error)


@handles(Request, versions="0-6", coordinated=ManyKeys(GROUP, "groups", str, "groups", _refused))
async def describe_groups(call: Call[Request]) -> Response:
    return Response(
        groups=[
            _describe(group_id, call.broker.groups.get(group_id), call.version)
            for group_id in dict.fromkeys(call.request.groups)
        ]
    )


def _describe(group_id: str, group: AnyGroup | None, version: int) -> Response.DescribedGroup:
    if not isinstance(group, ClassicGroup):
        described = Response.DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
        if not group_id:
            described.error_code = Error.INVALID_GROUP_ID
        elif version >= DESCRIBE_GROUPS_NOT_FOUND:
            described.error_code = Error.GROUP_ID_NOT_FOUND
            described.error_message = (
                f"there is no group {group_id!r}" if group is None else f"group {group_id!r} is not a classic one"
            )
        return described
    stable = group.state is State.STABLE
    return Response.DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=[
            Response.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )
