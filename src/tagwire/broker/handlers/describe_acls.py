"""DescribeAcls (key 29): list ACLs.

Versions 1-3. There is no authorizer: whoever is let in may do everything, which Kafka calls SECURITY_DISABLED. Source:
KIP-140, KIP-290.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error

Request = messages.DescribeAclsRequest
Response = messages.DescribeAclsResponse

NO_AUTHORIZER = "there are no ACLs on this broker: whoever is let in may do everything"


@handles(Request, versions="1-3")
async def describe_acls(call: Call[Request]) -> Response:
    return Response(error_code=Error.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
