"""JoinGroup (key 11): become a member of a group; the response waits until every member has joined.

Versions 0-9. Before version 1 the rebalance timeout is the session timeout. From version 4 a client without a member
id is told one (MEMBER_ID_REQUIRED) and joins with it; a static member, from version 5, needs none. From version 9 a
static leader that comes back is told to skip the assignment. Source: KIP-345, KIP-394, KIP-814.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.cluster_image import GROUP
from tagwire.broker.coordinated import OneKey
from tagwire.broker.groups.membership import Joining
from tagwire.broker.registry import MOST_BYTES_OF_GROUPS, Call, handles
from tagwire.errors import Error
from tagwire.rpc.version_gates import (
    JOIN_GROUP_MEMBER_ID_REQUIRED,
    JOIN_GROUP_NULLABLE_PROTOCOL,
    JOIN_GROUP_REBALANCE_TIMEOUT,
    JOIN_GROUP_SKIP_ASSIGNMENT,
)

Request = messages.JoinGroupRequest
Response = messages.JoinGroupResponse


def _refused(call: Call[Request], error: Error) -> Response:
    return Response(error_code=error, generation_id=-1, member_id=call.request.member_id)


ROUTED = OneKey(GROUP, "group_id", _refused)


@handles(
    Request,
    versions="0-9",
    coordinated=OneKey(GROUP, "group_id", _refused),
    waits=True,
    most_bytes=MOST_BYTES_OF_GROUPS,
)
async def join_group(call: Call[Request]) -> Response:
    request, version = call.request, call.version
    has_rebalance_timeout = version >= JOIN_GROUP_REBALANCE_TIMEOUT
    joining = Joining(
        request.member_id,
        request.group_instance_id,
        call.client_id,
        f"/{call.session.client_host}",
        request.session_timeout_ms,
        max(request.rebalance_timeout_ms if has_rebalance_timeout else request.session_timeout_ms, 0),
        request.protocol_type,
        tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols),
        takes_id=version >= JOIN_GROUP_MEMBER_ID_REQUIRED,
        takes_skip=version >= JOIN_GROUP_SKIP_ASSIGNMENT,
    )
    result = await call.broker.groups.join(request.group_id, joining)
    return Response(
        error_code=result.error,
        generation_id=result.generation,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol if version >= JOIN_GROUP_NULLABLE_PROTOCOL else result.protocol or "",
        leader=result.leader,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=[
            Response.JoinGroupResponseMember(member_id=member_id, group_instance_id=instance_id, metadata=metadata)
            for member_id, instance_id, metadata in result.members
        ],
    )
