"""Heartbeat (key 12): a member of a group says that it is there, and hears whether it has to join again.

Versions 0-4; static members from version 3.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.cluster_image import GROUP
from tagwire.broker.coordinated import OneKey
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error

Request = messages.HeartbeatRequest
Response = messages.HeartbeatResponse


def _refused(call: Call[Request], error: Error) -> Response:
    return Response(error_code=error)


@handles(Request, versions="0-4", coordinated=OneKey(GROUP, "group_id", _refused))
async def heartbeat(call: Call[Request]) -> Response:
    request = call.request
    error = call.broker.groups.heartbeat(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return Response(error_code=error)
