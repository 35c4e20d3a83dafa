"""LeaveGroup (key 13): members leave a group, or are made to.

Versions 0-5; from version 3 several at once, each with its own outcome, a static one by its instance id alone if need
be.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.cluster_image import GROUP
from tagwire.broker.coordinated import OneKey
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error
from tagwire.rpc.version_gates import LEAVE_GROUP_MEMBERS

Request = messages.LeaveGroupRequest
Response = messages.LeaveGroupResponse


def _refused(call: Call[Request], error: Error) -> Response:
    return Response(error_code=error)


@handles(Request, versions="0-5", coordinated=OneKey(GROUP, "group_id", _refused))
async def leave_group(call: Call[Request]) -> Response:
    request, groups = call.request, call.broker.groups
    if call.version < LEAVE_GROUP_MEMBERS:
        return Response(error_code=await groups.leave(request.group_id, request.member_id, None))
    if not request.group_id:
        return Response(error_code=Error.INVALID_GROUP_ID)
    named = [(member.member_id, member.group_instance_id) for member in request.members]
    return Response(
        members=[
            Response.MemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=error)
            for (member_id, instance_id), error in zip(named, await groups.leave_all(request.group_id, named))
        ]
    )
