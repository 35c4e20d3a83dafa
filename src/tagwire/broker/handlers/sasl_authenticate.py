"""SaslAuthenticate (key 36): exchange the tokens of the mechanism that was agreed on.

Versions 0-2. A refusal is held back for a moment, so that guessing a password takes time, and closes the connection. A
session lasts as long as its connection. Source: docs/wire-format.md#sasl.
"""

from __future__ import annotations

import asyncio

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error

Request = messages.SaslAuthenticateRequest
Response = messages.SaslAuthenticateResponse

REFUSED_AFTER_S = 0.1
"""Kafka's default too."""


@handles(Request, versions="0-2")
async def sasl_authenticate(call: Call[Request]) -> Response:
    gate = call.session.gate
    if gate is None:
        problem = "nobody has to authenticate here"
        return Response(error_code=Error.ILLEGAL_SASL_STATE, error_message=problem)
    response = gate.authenticate(call.request)
    if response.error_code:
        await asyncio.sleep(REFUSED_AFTER_S)
    return response
