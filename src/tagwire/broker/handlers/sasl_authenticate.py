"""SaslAuthenticate (key 36): exchange the tokens of the mechanism that was agreed on.

Versions 0-2. A refusal is held back for a moment, so that guessing a password takes time, and closes the connection.
From version 1 on the client is told how long its session lasts. Source: docs/wire-format.md#sasl; KIP-368.
"""

from __future__ import annotations

import asyncio

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.broker.session import HangUp
from tagwire.errors import AuthenticationError, Error

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
    try:
        response = gate.authenticate(call.request)
    except AuthenticationError as error:
        await asyncio.sleep(REFUSED_AFTER_S)
        raise HangUp(str(error)) from None
    if gate.failed:
        await asyncio.sleep(REFUSED_AFTER_S)
    elif gate.username is not None:  # SCRAM has rounds that answer without an error and without a user yet
        call.session.principal = f"User:{gate.username}"
    return response
