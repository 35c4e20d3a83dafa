"""DescribeGroups (key 15): describe groups: state and members.

Versions 0-5. A group that does not exist is "Dead", without an error. Who may do what is not kept track of, so
authorized operations are never told. Metadata and assignments are told only while they hold, in a stable group.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.groups.group import Group
from tagwire.broker.groups.membership import State
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error

Request = messages.DescribeGroupsRequest
Response = messages.DescribeGroupsResponse


@handles(Request, versions="0-5")
async def describe_groups(call: Call[Request]) -> Response:
    return Response(
        groups=[
            _describe(group_id, call.broker.groups.get(group_id)) for group_id in dict.fromkeys(call.request.groups)
        ]
    )


def _describe(group_id: str, group: Group | None) -> Response.DescribedGroup:
    if group is None:
        error = Error.NONE if group_id else Error.INVALID_GROUP_ID
        return Response.DescribedGroup(group_id=group_id, group_state=State.DEAD.value, error_code=error)
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
