"""DescribeAcls (key 29): list the ACLs that a filter means, by what they are about.

Versions 1-3. Without an authorizer whoever is let in may do everything, which Kafka calls SECURITY_DISABLED. A filter
that names a type that there is not is refused (INVALID_REQUEST). Source: KIP-140, KIP-290.
"""

from __future__ import annotations

from collections.abc import Iterable

from tagwire import messages
from tagwire.broker.authorization.acls import Acl, PatternType, ResourceType, filter_of
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError

Request = messages.DescribeAclsRequest
Response = messages.DescribeAclsResponse

NO_AUTHORIZER = "there are no ACLs on this broker: whoever is let in may do everything"


@handles(Request, versions="1-3")
async def describe_acls(call: Call[Request]) -> Response:
    authorizer = call.broker.authorizer
    if authorizer is None:
        return Response(error_code=Error.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    try:
        found = authorizer.matching(filter_of(call.request))
    except KafkaError as error:
        return Response(error_code=error.code, error_message=error.message)
    return Response(error_message=None, resources=_resources(found))


def _resources(acls: Iterable[Acl]) -> list[Response.DescribeAclsResource]:
    described: dict[tuple[ResourceType, str, PatternType], list[Response.AclDescription]] = {}
    for acl in acls:
        described.setdefault((acl.kind, acl.name, acl.pattern), []).append(
            Response.AclDescription(
                principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission
            )
        )
    return [
        Response.DescribeAclsResource(resource_type=kind, resource_name=name, pattern_type=pattern, acls=listed)
        for (kind, name, pattern), listed in described.items()
    ]
