"""DeleteGroups (key 42): delete groups that have no members, with their offsets; each with its own outcome.

Versions 0-2.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.cluster_image import GROUP
from tagwire.broker.coordinated import ManyKeys
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError

Request = messages.DeleteGroupsRequest
Response = messages.DeleteGroupsResponse


def _refused(group_id: str, error: Error) -> Response.DeletableGroupResult:
    return Response.DeletableGroupResult(group_id=group_id, error_code=error)


@handles(Request, versions="0-2", coordinated=ManyKeys(GROUP, "groups_names", str, "results", _refused))
async def delete_groups(call: Call[Request]) -> Response:
    names = dict.fromkeys(call.request.groups_names)
    return Response(
        results=[Response.DeletableGroupResult(group_id=name, error_code=await _delete(call, name)) for name in names]
    )


async def _delete(call: Call[Request], group_id: str) -> Error:
    try:
        await call.broker.groups.delete(group_id)
    except KafkaError as error:
        return error.error
    return Error.NONE
