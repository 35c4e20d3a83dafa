"""DescribeClientQuotas (key 48): list the quotas of users, clients and addresses. There are none.

Versions 0-1. Source: KIP-546.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error

Request = messages.DescribeClientQuotasRequest
Response = messages.DescribeClientQuotasResponse

ENTITY_TYPES = ("user", "client-id", "ip")
MATCH_TYPES = range(3)


@handles(Request, versions="0-1")
async def describe_client_quotas(call: Call[Request]) -> Response:
    for component in call.request.components:
        if component.entity_type not in ENTITY_TYPES:
            problem = f"entity type {component.entity_type[:60]!r} is not {', '.join(ENTITY_TYPES)}"
            return Response(error_code=Error.UNSUPPORTED_VERSION, error_message=problem, entries=None)
        if component.match_type not in MATCH_TYPES:
            problem = f"match type {component.match_type} is not 0 to 2"
            return Response(error_code=Error.INVALID_REQUEST, error_message=problem, entries=None)
    return Response(error_message=None, entries=[])
