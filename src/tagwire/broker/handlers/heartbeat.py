"""Heartbeat (key 12): a member of a group says that it is there, and hears whether it has to join again.

Versions 0-4; static members from version 3.
"""

from __future__ import annotations

from typing import Any

from tagwire import messages
from tagwire.broker.served import Call, handles


@handles(messages.HeartbeatRequest, versions="0-4")
async def heartbeat(call: Call) -> Any:
    request = call.request
    error = call.broker.groups.heartbeat(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return messages.HeartbeatResponse(error_code=error)
