"""IncrementalAlterConfigs (key 44): change configurations of topics, each resource with its own outcome.

Versions 0-1. A configuration is set, taken back to its default, or, where it is a list, added to and taken from. All
changes of one topic are made, or none; they are on the disk before the response. With validate_only they are checked
and not made. The broker's own configurations are said when it is started, and cannot be changed; to set one to what it
is changes nothing, and is no error. Source: KIP-339.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, NoReturn
from uuid import UUID

from tagwire import messages
from tagwire.broker.config_entries import TOPIC_CONFIGS, Type, broker_entries
from tagwire.broker.handlers.describe_configs import TOPIC, check_resource
from tagwire.broker.node import Node
from tagwire.broker.registry import Call, handles
from tagwire.broker.topic import Topic, check_topic_name
from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import ConfigError, Error, KafkaError

Request = messages.IncrementalAlterConfigsRequest
Response = messages.IncrementalAlterConfigsResponse

SET, DELETE, APPEND, SUBTRACT = range(4)


class Change(NamedTuple):
    """What a request does to one configuration."""

    name: str
    operation: int
    value: str | None


class Alteration(NamedTuple):
    """What a request does to one resource."""

    resource_type: int
    resource_name: str
    changes: Sequence[Change]


Outcomes = dict[tuple[int, str], KafkaError | None]
"""{(resource type, resource name): why it was refused}."""

Values = Callable[[Topic, Sequence[Change]], Mapping[str, str | None]]
"""The values that changes give a topic's configurations; None is the default."""


@handles(Request, versions="0-1")
async def incremental_alter_configs(call: Call[Request]) -> Response:
    alterations = [
        Alteration(
            resource.resource_type,
            resource.resource_name,
            [Change(config.name, config.config_operation, config.value) for config in resource.configs],
        )
        for resource in call.request.resources
    ]
    outcomes = await alter_all(call.broker, alterations, _values, validate_only=call.request.validate_only)
    return Response(
        responses=[
            Response.AlterConfigsResourceResponse(
                error_code=refusal.code if refusal else Error.NONE,
                error_message=refusal.message if refusal else None,
                resource_type=resource_type,
                resource_name=name,
            )
            for (resource_type, name), refusal in outcomes.items()
        ]
    )


async def alter_all(
    broker: Node, alterations: Sequence[Alteration], values: Values, *, validate_only: bool
) -> Outcomes:
    """Alter every resource, or only check it; `values` reads the changes of a topic."""
    times = Counter((one.resource_type, one.resource_name) for one in alterations)
    outcomes: Outcomes = {}
    for one in alterations:
        which = one.resource_type, one.resource_name
        try:
            if times[which] > 1:
                raise KafkaError(Error.INVALID_REQUEST, f"{one.resource_name} is named {times[which]} times")
            await _alter(broker, one, values, validate_only)
            outcomes[which] = None
        except KafkaError as error:
            outcomes[which] = error
    return outcomes


async def _alter(broker: Node, one: Alteration, values: Values, validate_only: bool) -> None:
    name, topics = one.resource_name, broker.topics
    if one.resource_type != TOPIC:
        check_resource(broker, one.resource_type, name)
        _check_unchanged(broker, once(one.changes))
        return
    if topics.get(name) is None:
        _refuse_missing(name, values, one.changes)

    def wanted(topic: Topic) -> Mapping[str, str | None]:
        return values(topic, one.changes)

    if validate_only:
        topics.check_alteration(name, wanted)
    else:
        await topics.alter(name, wanted)


def _refuse_missing(name: str, values: Values, changes: Sequence[Change]) -> NoReturn:
    """There is no such topic: what else is wrong is told first, as Kafka does."""
    given = values(Topic(name, UUID(int=0), {}, TopicConfig(), ()), changes)
    if not name:
        raise KafkaError(Error.INVALID_REQUEST, "topics have no default configurations that could be changed")
    check_topic_name(name)
    try:
        TopicConfig.check_names(given)
        TopicConfig.of({key: value for key, value in given.items() if value is not None})
    except ConfigError as error:
        raise KafkaError(Error.INVALID_CONFIG, str(error)) from None
    raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")


def _check_unchanged(broker: Node, changes: Sequence[Change]) -> None:
    """Refuse what would change the broker's own configurations, which are as the broker was started with."""
    held = {entry.name: entry.value for entry in broker_entries(broker)}
    for name, operation, value in changes:
        if name not in held:
            raise KafkaError(Error.INVALID_CONFIG, f"the broker has no configuration {name}")
        is_set = operation == SET and value is not None and value.strip() == held[name]
        if operation != DELETE and not is_set:
            problem = f"{name} is {held[name]}, as the broker was started, and cannot be changed"
            raise KafkaError(Error.INVALID_REQUEST, problem)


def once(changes: Sequence[Change]) -> Sequence[Change]:
    """`changes`, none of which may name a configuration twice. Raises KafkaError INVALID_REQUEST."""
    for name, times in Counter(change.name for change in changes).items():
        if times > 1:
            raise KafkaError(Error.INVALID_REQUEST, f"{name} is given {times} times")
    return changes


def _values(topic: Topic, changes: Sequence[Change]) -> Mapping[str, str | None]:
    return {change.name: _value(topic, change) for change in once(changes)}


def _value(topic: Topic, change: Change) -> str | None:
    name, operation, value = change
    if operation == DELETE:
        return None
    if value is None:
        raise KafkaError(Error.INVALID_REQUEST, f"{name} has no value")
    if operation == SET:
        return value
    if operation not in (APPEND, SUBTRACT):
        raise KafkaError(Error.INVALID_REQUEST, f"operation {operation} of {name} is not 0 to 3")
    if name not in TOPIC_CONFIGS or TOPIC_CONFIGS[name].type is not Type.LIST:
        raise KafkaError(Error.INVALID_CONFIG, f"{name} is no list that could be added to or taken from")
    told = topic.config.as_strings()[name]
    held = told.split(",") if told else []
    requested = [part.strip() for part in value.split(",")]
    if operation == APPEND:
        return ",".join([*held, *dict.fromkeys(part for part in requested if part not in held)])
    return ",".join(part for part in held if part not in requested)
