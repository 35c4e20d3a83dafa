"""IncrementalAlterConfigs (key 44): change configurations of topics, each resource with its own outcome.

Versions 0-1. A configuration is set, taken back to its default, or, where it is a list, added to and taken from. All
changes of one topic are made, or none; they are on the disk when they are answered. With validate_only they are checked
and not made. The broker's own configurations are said when it is started, and cannot be changed; to set one to what it
is changes nothing, and is no error. Source: KIP-339.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from tagwire import messages
from tagwire.broker.config_entries import TOPIC_CONFIGS, Type, broker_entries
from tagwire.broker.handlers.describe_configs import TOPIC, check_resource
from tagwire.broker.served import Call, handles
from tagwire.broker.topics import Topic, check_topic_name
from tagwire.errors import Error, KafkaError

SET, DELETE, APPEND, SUBTRACT = range(4)

Changes = Callable[[Topic, list[Any]], Mapping[str, str | None]]


@handles(messages.IncrementalAlterConfigsRequest, versions="0-1")
async def incremental_alter_configs(call: Call) -> Any:
    return await alter_each(call, messages.IncrementalAlterConfigsResponse, _changes)


async def alter_each(call: Call, kind: Any, changes: Changes) -> Any:
    """The response, of class `kind`, to a request that alters resources; `changes` reads what one asks for."""
    resources = call.request.resources
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    answers = {}
    for resource in resources:
        which = resource.resource_type, resource.resource_name
        answer = answers[which] = kind.AlterConfigsResourceResponse(
            error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        try:
            if times[which] > 1:
                raise KafkaError(Error.INVALID_REQUEST, f"{resource.resource_name} is named {times[which]} times")
            await _alter(call, resource, changes)
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, error.message
    return kind(responses=list(answers.values()))


async def _alter(call: Call, resource: Any, changes: Changes) -> None:
    name, topics = resource.resource_name, call.broker.topics
    if resource.resource_type != TOPIC:
        check_resource(call, resource)
        _check_unchanged(call, once(resource.configs))
        return
    check_topic_name(name)
    topic = topics.get(name)
    if topic is None:
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    wanted = changes(topic, resource.configs)
    if call.request.validate_only:
        topics.check_alteration(name, wanted)
    else:
        await topics.alter(name, wanted)


def _check_unchanged(call: Call, configs: list[Any]) -> None:
    """Refuse what would change the broker's own configurations, which are as the broker was started with."""
    held = {entry.name: entry.value for entry in broker_entries(call.broker)}
    for config in configs:
        if config.name not in held:
            raise KafkaError(Error.INVALID_CONFIG, f"the broker has no configuration {config.name}")
        operation = getattr(config, "config_operation", SET)  # AlterConfigs can only set
        is_set = operation == SET and config.value is not None and config.value.strip() == held[config.name]
        if operation != DELETE and not is_set:
            problem = f"{config.name} is {held[config.name]}, as the broker was started, and cannot be changed"
            raise KafkaError(Error.INVALID_REQUEST, problem)


def once(configs: list[Any]) -> list[Any]:
    """`configs`, none of which may be named twice. Raises KafkaError INVALID_REQUEST."""
    for name, times in Counter(config.name for config in configs).items():
        if times > 1:
            raise KafkaError(Error.INVALID_REQUEST, f"{name} is given {times} times")
    return configs


def _changes(topic: Topic, configs: list[Any]) -> Mapping[str, str | None]:
    return {config.name: _value(topic, config) for config in once(configs)}


def _value(topic: Topic, config: Any) -> str | None:
    name, operation, value = config.name, config.config_operation, config.value
    if operation == DELETE:
        return None
    if value is None:
        raise KafkaError(Error.INVALID_REQUEST, f"{name} has no value")
    if operation == SET:
        return str(value)
    if operation not in (APPEND, SUBTRACT):
        raise KafkaError(Error.INVALID_REQUEST, f"operation {operation} of {name} is not 0 to 3")
    if name not in TOPIC_CONFIGS or TOPIC_CONFIGS[name].type is not Type.LIST:
        raise KafkaError(Error.INVALID_CONFIG, f"{name} is no list that could be added to or taken from")
    told = topic.config.as_strings()[name]
    held = told.split(",") if told else []
    asked = [part.strip() for part in value.split(",")]
    if operation == APPEND:
        return ",".join([*held, *(part for part in asked if part not in held)])
    return ",".join(part for part in held if part not in asked)
