"""ListConfigResources (key 74): list the resources that have configurations: topics, and the brokers that run.

Versions 0-1; before version 1, as ListClientMetricsResources, client metrics alone, of which there are none. From then
on some kinds of resources can be requested; none means all. Source: KIP-1000, KIP-1142; Kafka's KafkaApis.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.handlers.describe_configs import BROKER, CLIENT_METRICS, GROUP, TOPIC
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error
from tagwire.rpc.version_gates import LIST_CONFIG_RESOURCES_TYPES

Request = messages.ListConfigResourcesRequest
Response = messages.ListConfigResourcesResponse

BROKER_LOGGER = 8
KNOWN = frozenset({TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP})


@handles(Request, versions="0-1")
async def list_config_resources(call: Call[Request]) -> Response:
    if call.version < LIST_CONFIG_RESOURCES_TYPES:
        return Response()
    requested = set(call.request.resource_types) or KNOWN
    if requested - KNOWN:
        return Response(error_code=Error.UNSUPPORTED_VERSION)
    found = [(str(node_id), BROKER) for node_id in call.broker.image.live] if BROKER in requested else []
    if TOPIC in requested:
        found += [(topic.name, TOPIC) for topic in call.broker.topics]
    return Response(
        config_resources=[Response.ConfigResource(resource_name=name, resource_type=kind) for name, kind in found]
    )
