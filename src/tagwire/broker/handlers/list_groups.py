"""ListGroups (key 16): list the groups that this broker coordinates.

Versions 0-5; from version 4 only those in some states, from version 5 only those of some types,
"classic" and "consumer", which is KIP-848's. States and types are compared without regard to case.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.cluster_image import GROUP
from tagwire.broker.groups import embedded_protocol
from tagwire.broker.groups.consumer_group import ConsumerGroup
from tagwire.broker.groups.group_table import AnyGroup
from tagwire.broker.registry import Call, handles

Request = messages.ListGroupsRequest
Response = messages.ListGroupsResponse

CLASSIC, CONSUMER = "classic", "consumer"


@handles(Request, versions="0-5")
async def list_groups(call: Call[Request]) -> Response:
    states = {state.lower() for state in call.request.states_filter}
    types = {kind.lower() for kind in call.request.types_filter}
    listed = [_listed(group) for group in call.broker.groups if call.broker.coordinates(GROUP, group.group_id)]
    return Response(
        groups=[
            group
            for group in listed
            if (not states or group.group_state.lower() in states) and (not types or group.group_type in types)
        ]
    )


def _listed(group: AnyGroup) -> Response.ListedGroup:
    if isinstance(group, ConsumerGroup):
        protocol_type, group_type = embedded_protocol.TYPE, CONSUMER
    else:
        protocol_type, group_type = group.protocol_type or "", CLASSIC
    return Response.ListedGroup(
        group_id=group.group_id, protocol_type=protocol_type, group_state=group.state.value, group_type=group_type
    )
