"""CreateTopics (key 19): create topics, each with its own outcome.

Versions 2-7. -1 partitions (from version 4) means the broker's default; there is one replica, on this broker. A
configuration that Kafka does not know is refused, not ignored. With validate_only everything is checked and nothing
created. A topic is on the disk when it is answered. Source: facts/kafka_protocol.md 4, facts/hostile_inputs.md E.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from tagwire import messages
from tagwire.broker.config_entries import config_entries
from tagwire.broker.served import Call, handles
from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import Error, KafkaError

Response = messages.CreateTopicsResponse

DEFAULT = -1
FIRST_VERSION_WITH_DEFAULTS = 4


@handles(messages.CreateTopicsRequest, versions="2-7")
async def create_topics(call: Call) -> Any:
    return Response(topics=[await _answer(call, wanted, times) for wanted, times in named(call.request.topics)])


def named(topics: Sequence[Any]) -> Iterator[tuple[Any, int]]:
    """What a request wants of each topic it names, once, and how often it names the topic."""
    times = Counter(wanted.name for wanted in topics)
    for name, wanted in {wanted.name: wanted for wanted in topics}.items():
        yield wanted, times[name]


def check_named_once(wanted: Any, times: int) -> None:
    """Raises KafkaError INVALID_REQUEST."""
    if times > 1:
        raise KafkaError(Error.INVALID_REQUEST, f"topic {wanted.name} is named {times} times")


async def _answer(call: Call, wanted: Any, times_named: int) -> Any:
    topics = call.broker.topics
    try:
        check_named_once(wanted, times_named)
        partitions = _partitions(call, wanted)
        configs = _configs(wanted)
        config = topics.check_new(wanted.name, partitions, configs)
        topic_id = UUID(int=0)
        with call.broker.room_for(topics=1, partitions=partitions):
            if not call.request.validate_only:
                topic_id = (await topics.create(wanted.name, partitions, configs)).topic_id
    except KafkaError as error:
        return Response.CreatableTopicResult(
            name=wanted.name, error_code=error.code, error_message=error.message, configs=None
        )
    return Response.CreatableTopicResult(
        name=wanted.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=partitions,
        replication_factor=1,
        configs=_described(config, configs),
    )


def _partitions(call: Call, wanted: Any) -> int:
    """How many partitions are asked for, by number or by naming who holds each."""
    takes_default = call.version >= FIRST_VERSION_WITH_DEFAULTS
    if wanted.assignments:
        return _assigned(call, wanted)
    if wanted.replication_factor != 1 and not (wanted.replication_factor == DEFAULT and takes_default):
        problem = f"replication factor {wanted.replication_factor} is not 1, and there is one broker"
        raise KafkaError(Error.INVALID_REPLICATION_FACTOR, problem)
    if wanted.num_partitions == DEFAULT and takes_default:
        return call.broker.settings.num_partitions
    return int(wanted.num_partitions)


def _assigned(call: Call, wanted: Any) -> int:
    if (wanted.num_partitions, wanted.replication_factor) != (DEFAULT, DEFAULT):
        problem = "with assignments, the numbers of partitions and replicas must be -1"
        raise KafkaError(Error.INVALID_REQUEST, problem)
    indexes = sorted(assignment.partition_index for assignment in wanted.assignments)
    if indexes != list(range(len(indexes))):
        raise KafkaError(Error.INVALID_REPLICA_ASSIGNMENT, "the partitions assigned are not 0, 1, 2 and so on")
    check_assigned(call, wanted.assignments)
    return len(indexes)


def check_assigned(call: Call, assignments: list[Any]) -> None:
    """Refuse partitions that are assigned to others than this broker: KafkaError INVALID_REPLICA_ASSIGNMENT."""
    if any(assignment.broker_ids != [call.broker.node_id] for assignment in assignments):
        problem = f"a partition is not assigned to broker {call.broker.node_id} alone, and there is no other"
        raise KafkaError(Error.INVALID_REPLICA_ASSIGNMENT, problem)


def _configs(wanted: Any) -> dict[str, str | None]:
    configs = {config.name: config.value for config in wanted.configs}
    if len(configs) < len(wanted.configs):
        raise KafkaError(Error.INVALID_CONFIG, "a configuration is given twice")
    return configs


def _described(config: TopicConfig, given: Mapping[str, str | None]) -> list[Any]:
    return [
        Response.CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=False,
        )
        for entry in config_entries(config, given)
    ]
