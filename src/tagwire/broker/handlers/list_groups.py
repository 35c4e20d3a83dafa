"""ListGroups (key 16): list groups.

Versions 0-5; from version 4 only those in some states, from version 5 only those of some types, of which there is one,
"classic". States and types are compared without regard to case.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.registry import Call, handles

Request = messages.ListGroupsRequest
Response = messages.ListGroupsResponse

CLASSIC = "classic"


@handles(Request, versions="0-5")
async def list_groups(call: Call[Request]) -> Response:
    states = {state.lower() for state in call.request.states_filter}
    types = {kind.lower() for kind in call.request.types_filter}
    if types and CLASSIC not in types:
        return Response()
    return Response(
        groups=[
            Response.ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type=CLASSIC,
            )
            for group in call.broker.groups
            if not states or group.state.value.lower() in states
        ]
    )
