"""Heartbeat (key 12): a member of a group says that it is there, and hears whether it has to join again.

Versions 0-4; static members from version 3.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.registry import Call, handles

Request = messages.HeartbeatRequest
Response = messages.HeartbeatResponse


@handles(Request, versions="0-4")
async def heartbeat(call: Call[Request]) -> Response:
    request = call.request
    error = call.broker.groups.heartbeat(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return Response(error_code=error)
