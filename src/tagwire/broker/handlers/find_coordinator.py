"""FindCoordinator (key 10): find the broker that coordinates a group or a transactional id.

Versions 0-4; from version 1 the key says what it is of (0 a group, 1 a transactional id), from version 4 several keys
come at once. Source: KIP-699.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.cluster_image import GROUP, TRANSACTION
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error
from tagwire.rpc.version_gates import FIND_COORDINATOR_KEYS

Request = messages.FindCoordinatorRequest
Response = messages.FindCoordinatorResponse


@handles(Request, versions="0-4")
async def find_coordinator(call: Call[Request]) -> Response:
    request = call.request
    if call.version < FIND_COORDINATOR_KEYS:
        found = _find(call, request.key)
        return Response(
            error_code=found.error_code,
            error_message=found.error_message,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    return Response(coordinators=[_find(call, key) for key in request.coordinator_keys])


def _find(call: Call[Request], key: str) -> Response.Coordinator:
    image, session, kind = call.broker.image, call.session, call.request.key_type
    if kind not in (GROUP, TRANSACTION):
        problem = f"key type {kind} is neither {GROUP} nor {TRANSACTION}"
        return _none(key, Error.INVALID_REQUEST, problem)
    node_id = image.coordinator_of(kind, key)
    if node_id not in image.live:
        return _none(key, Error.COORDINATOR_NOT_AVAILABLE, f"node {node_id} does not run")
    found = image.endpoint(node_id, session.listener, session.host)
    return Response.Coordinator(key=key, error_message=None, node_id=found.node_id, host=found.host, port=found.port)


def _none(key: str, error: Error, problem: str) -> Response.Coordinator:
    return Response.Coordinator(key=key, error_code=error, error_message=problem, node_id=-1, host="", port=-1)
