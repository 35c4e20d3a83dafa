"""FindCoordinator (key 10): find the coordinator of a group or a transactional id: this broker, there is no other.

Versions 0-4; from version 1 the key says what it is of (0 a group, 1 a transactional id), from version 4 several keys
come at once. Source: KIP-699.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error
from tagwire.rpc.version_gates import FIND_COORDINATOR_KEYS

Request = messages.FindCoordinatorRequest
Response = messages.FindCoordinatorResponse

GROUP, TRANSACTION = 0, 1


@handles(Request, versions="0-4")
async def find_coordinator(call: Call[Request]) -> Response:
    request = call.request
    error = Error.NONE if request.key_type in (GROUP, TRANSACTION) else Error.INVALID_REQUEST
    problem = f"key type {request.key_type} is neither {GROUP} nor {TRANSACTION}" if error else None
    node_id, host, port = (-1, "", -1) if error else (call.broker.node_id, call.session.host, call.session.port)
    if call.version < FIND_COORDINATOR_KEYS:
        return Response(error_code=error, error_message=problem, node_id=node_id, host=host, port=port)
    return Response(
        coordinators=[
            Response.Coordinator(
                key=key, error_code=error, error_message=problem, node_id=node_id, host=host, port=port
            )
            for key in request.coordinator_keys
        ]
    )
