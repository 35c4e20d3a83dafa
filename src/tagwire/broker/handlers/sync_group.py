"""SyncGroup (key 14): the leader of a group brings every member's assignment, and every member gets its own.

Versions 0-5; static members from version 3; from version 5 a member says which protocol it takes to be chosen, and has
to. The assignments are stored before the response. Source: KIP-559.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.cluster_image import GROUP
from tagwire.broker.coordinated import OneKey
from tagwire.broker.registry import MOST_BYTES_OF_GROUPS, Call, handles
from tagwire.errors import Error
from tagwire.rpc.version_gates import SYNC_GROUP_PROTOCOL

Request = messages.SyncGroupRequest
Response = messages.SyncGroupResponse


def _refused(call: Call[Request], error: Error) -> Response:
    return Response(error_code=error)


ROUTED = OneKey(GROUP, "group_id", _refused)


@handles(
    Request,
    versions="0-5",
    coordinated=OneKey(GROUP, "group_id", _refused),
    waits=True,
    most_bytes=MOST_BYTES_OF_GROUPS,
)
async def sync_group(call: Call[Request]) -> Response:
    request = call.request
    if call.version >= SYNC_GROUP_PROTOCOL and None in (request.protocol_type, request.protocol_name):
        return _refused(call, Error.INCONSISTENT_GROUP_PROTOCOL)
    result = await call.broker.groups.sync(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        request.protocol_type,
        request.protocol_name,
        {assigned.member_id: bytes(assigned.assignment) for assigned in request.assignments},
    )
    return Response(
        error_code=result.error,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol,
        assignment=result.assignment,
    )
