"""SaslHandshake (key 17): agree on the mechanism by which a client says who it is.

Version 1. Version 0, after which tokens travel outside of any request, is not served: only clients of Kafka 0.10 need
it. Where nobody has to authenticate, nobody can (ILLEGAL_SASL_STATE). Source: docs/wire-format.md#sasl.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error

Request = messages.SaslHandshakeRequest
Response = messages.SaslHandshakeResponse


@handles(Request, versions="1-1")
async def sasl_handshake(call: Call[Request]) -> Response:
    gate = call.session.gate
    if gate is None:
        return Response(error_code=Error.ILLEGAL_SASL_STATE)
    return gate.handshake(call.request)
