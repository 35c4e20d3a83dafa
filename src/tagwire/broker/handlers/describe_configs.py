"""DescribeConfigs (key 32): describe the configurations of topics and of the broker.

Versions 1-4. Every configuration is told, with its value, its default, and where its value comes from; from version 3
with its type and, on request, a sentence about it. The broker's own are read-only. Groups and client metrics can be
described, and have none; there are no other kinds of resources. Source: KIP-133, KIP-569.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.config_entries import Entry, broker_entries, topic_entries
from tagwire.broker.node import Node
from tagwire.broker.registry import Call, handles
from tagwire.broker.topic import check_topic_name
from tagwire.errors import Error, KafkaError

Request = messages.DescribeConfigsRequest
Response = messages.DescribeConfigsResponse

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32


@handles(Request, versions="1-4")
async def describe_configs(call: Call[Request]) -> Response:
    requested = {(resource.resource_type, resource.resource_name): resource for resource in call.request.resources}
    return Response(results=[_describe(call, resource) for resource in requested.values()])


def _describe(call: Call[Request], resource: Request.DescribeConfigsResource) -> Response.DescribeConfigsResult:
    result = Response.DescribeConfigsResult(
        error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    try:
        entries = _entries(call, resource)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message
        return result
    wanted = set(resource.configuration_keys or ())
    result.configs = [_told(call.request, entry) for entry in entries if not wanted or entry.name in wanted]
    return result


def _entries(call: Call[Request], resource: Request.DescribeConfigsResource) -> list[Entry]:
    name = resource.resource_name
    if resource.resource_type == TOPIC:
        check_topic_name(name)
        topic = call.broker.topics.get(name)
        if topic is None:
            raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
        return topic_entries(topic)
    if resource.resource_type in (CLIENT_METRICS, GROUP):
        if not name:
            raise KafkaError(Error.INVALID_REQUEST, f"a resource of type {resource.resource_type} has a name")
        return []
    check_resource(call.broker, resource.resource_type, name)
    return broker_entries(call.broker) if name else []  # "" is the default of all brokers: there is none


def check_resource(broker: Node, resource_type: int, resource_name: str) -> None:
    """Refuse a resource, not a topic, that does not exist: KafkaError INVALID_REQUEST."""
    if resource_type != BROKER:
        raise KafkaError(Error.INVALID_REQUEST, f"resources of type {resource_type} have no configurations")
    if resource_name not in ("", str(broker.node_id)):
        raise KafkaError(Error.INVALID_REQUEST, f"this is broker {broker.node_id}, and there is no other")


def _told(request: Request, entry: Entry) -> Response.DescribeConfigsResourceResult:
    return Response.DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        synonyms=[
            Response.DescribeConfigsSynonym(name=name, value=value, source=source)
            for name, value, source in (entry.synonyms if request.include_synonyms else ())
        ],
        config_type=entry.type,
        documentation=entry.documentation if request.include_documentation else None,
    )
