"""CreateAcls (key 30): create ACLs, each with its own outcome. All are refused, as in `describe_acls`.

Versions 1-3. Source: KIP-140, KIP-290.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.handlers.describe_acls import NO_AUTHORIZER
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error

Request = messages.CreateAclsRequest
Response = messages.CreateAclsResponse


@handles(Request, versions="1-3")
async def create_acls(call: Call[Request]) -> Response:
    refused = Response.AclCreationResult(error_code=Error.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return Response(results=[refused] * len(call.request.creations))
