"""DescribeCluster (key 60): describe the cluster: its brokers, as Metadata tells them.

Versions 0-1. From version 1 a client says what kind of nodes it means; there are brokers only. What the client
may do to the cluster is told by broker/authorization. Source: KIP-700.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error

Request = messages.DescribeClusterRequest
Response = messages.DescribeClusterResponse

BROKERS, CONTROLLERS = 1, 2


@handles(Request, versions="0-1")
async def describe_cluster(call: Call[Request]) -> Response:
    kind = call.request.endpoint_type
    if kind != BROKERS:
        error = Error.MISMATCHED_ENDPOINT_TYPE if kind == CONTROLLERS else Error.UNSUPPORTED_ENDPOINT_TYPE
        return Response(error_code=error, error_message=f"this is a broker, and endpoint type {kind} is none")
    node = call.broker
    return Response(
        cluster_id=node.cluster_id,
        controller_id=node.image.controller_id,
        brokers=[
            Response.DescribeClusterBroker(broker_id=each.node_id, host=each.host, port=each.port, rack=each.rack)
            for each in node.image.endpoints(call.session.listener, call.session.host)
        ],
    )
