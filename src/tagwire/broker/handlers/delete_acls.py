"""DeleteAcls (key 31): delete ACLs, each filter with its own outcome. All are refused, as in
`describe_acls`.

Versions 1-3. Source: KIP-140, KIP-290.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.handlers.describe_acls import NO_AUTHORIZER
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error

Request = messages.DeleteAclsRequest
Response = messages.DeleteAclsResponse


@handles(Request, versions="1-3")
async def delete_acls(call: Call[Request]) -> Response:
    refused = Response.DeleteAclsFilterResult(error_code=Error.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return Response(filter_results=[refused] * len(call.request.filters))
