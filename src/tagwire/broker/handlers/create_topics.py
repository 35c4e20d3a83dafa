"""CreateTopics (key 19): create topics, each with its own outcome.

Versions 2-7. -1 partitions or replicas mean the broker's default; clients say so from version 4 on. A configuration
that Kafka does not know is refused, not ignored. With validate_only everything is checked and nothing created. A topic
is on the disk before the response. What cannot be created in the time that the client gives is not (REQUEST_TIMED_OUT);
other clients have their turn between some topics and the next. Source: KIP-4, KIP-464, KIP-525.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Protocol, TypeVar
from uuid import UUID

from tagwire import messages
from tagwire.broker.config_entries import config_entries
from tagwire.broker.deadlines import TIMED_OUT, batches, deadline, is_over
from tagwire.broker.node import Node
from tagwire.broker.quotas.throttles import Mutations
from tagwire.broker.registry import Call, handles
from tagwire.broker.topic import NewTopic, Replicas, Topic
from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import Error, KafkaError
from tagwire.rpc.version_gates import CREATE_TOPICS_THROTTLED

Request = messages.CreateTopicsRequest
Response = messages.CreateTopicsResponse

DEFAULT = -1
NO_ID = UUID(int=0)


class NamesTopic(Protocol):
    """What a request wants of one topic."""

    name: str


class AssignsPartition(Protocol):
    """Which brokers are to hold one partition."""

    broker_ids: list[int]


Named = TypeVar("Named", bound=NamesTopic)


@handles(Request, versions="2-7")
async def create_topics(call: Call[Request]) -> Response:
    until = deadline(call.request)
    results: list[Response.CreatableTopicResult] = []
    mutations = call.broker.throttles.mutations(call, CREATE_TOPICS_THROTTLED)
    for some in batches(named(call.request.topics), _weight):
        if is_over(until):
            results += [_refusal(wanted.name, TIMED_OUT) for wanted, _ in some]
        else:
            results += await call.broker.creations.run_concurrently(_create(call, some, until, mutations))
    return Response(topics=results, throttle_time_ms=mutations.throttle_time_ms)


def named(topics: Sequence[Named]) -> Iterator[tuple[Named, int]]:
    """What a request wants of each topic it names, once, and how often it names the topic."""
    times = Counter(wanted.name for wanted in topics)
    for name, wanted in {wanted.name: wanted for wanted in topics}.items():
        yield wanted, times[name]


def check_named_once(wanted: NamesTopic, times: int) -> None:
    """Raises KafkaError INVALID_REQUEST."""
    if times > 1:
        raise KafkaError(Error.INVALID_REQUEST, f"topic {wanted.name} is named {times} times")


def _weight(requested: tuple[Request.CreatableTopic, int]) -> int:
    return max(requested[0].num_partitions, len(requested[0].assignments), 1)


async def _create(
    call: Call[Request], some: Sequence[tuple[Request.CreatableTopic, int]], until: float, mutations: Mutations
) -> list[Response.CreatableTopicResult]:
    """The outcomes for some topics, which are created together."""
    results: dict[str, Response.CreatableTopicResult] = {}
    accepted: dict[str, tuple[NewTopic, TopicConfig]] = {}
    with ExitStack() as room:
        for wanted, times_named in some:
            try:
                check_named_once(wanted, times_named)
                call.broker.topics.check_new_name(wanted.name)
                configs = _configs(wanted)
                call.broker.topics.check_new_configs(configs)  # before the numbers, as Kafka does
                new = NewTopic(wanted.name, _partitions(call, wanted), configs, _replicas(call, wanted))
                config = call.broker.topics.check_new(new.name, new.partitions, new.configs)
                room.enter_context(call.broker.room_for(topics=1, partitions=new.partitions))
                mutations.count(new.partitions)
                accepted[new.name] = new, config
            except KafkaError as error:
                results[wanted.name] = _refusal(wanted.name, error)
        if call.request.validate_only:
            created: Sequence[Topic | KafkaError | None] = [None] * len(accepted)
        else:
            created = await call.broker.topics.create_all([new for new, _ in accepted.values()], until)
    for (new, config), outcome in zip(accepted.values(), created):
        results[new.name] = (
            _refusal(new.name, outcome)
            if isinstance(outcome, KafkaError)
            else _result(call, new, config, NO_ID if outcome is None else outcome.topic_id)
        )
    return [results[wanted.name] for wanted, _ in some]


def _refusal(name: str, error: KafkaError) -> Response.CreatableTopicResult:
    return Response.CreatableTopicResult(
        name=name, error_code=error.code, error_message=error.message or None, configs=[]
    )


def _result(call: Call[Request], new: NewTopic, config: TopicConfig, topic_id: UUID) -> Response.CreatableTopicResult:
    return Response.CreatableTopicResult(
        name=new.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=new.partitions,
        replication_factor=call.broker.image.replication_factor if new.replicas is None else len(new.replicas(0)),
        configs=_described(config, new.configs),
    )


def _partitions(call: Call[Request], wanted: Request.CreatableTopic) -> int:
    """How many partitions are requested, by number or by naming who holds each."""
    if wanted.assignments:
        return _assigned(call, wanted)
    factor, count, most = wanted.replication_factor, wanted.num_partitions, len(call.broker.image.node_ids)
    if factor < DEFAULT or factor == 0 or (factor > most and _is_count(count)):
        problem = f"replication factor {factor} is not 1 to {most}, the number of brokers"
        raise KafkaError(Error.INVALID_REPLICATION_FACTOR, problem)
    return call.broker.settings.num_partitions if count == DEFAULT else count


def _is_count(partitions: int) -> bool:
    """Whether it asks for partitions, or leaves open how many; what does not is refused before there are too many
    replicas."""
    return partitions == DEFAULT or partitions > 0


def _assigned(call: Call[Request], wanted: Request.CreatableTopic) -> int:
    if (wanted.num_partitions, wanted.replication_factor) != (DEFAULT, DEFAULT):
        problem = "with assignments, the numbers of partitions and replicas must be -1"
        raise KafkaError(Error.INVALID_REQUEST, problem)
    indexes = sorted(assignment.partition_index for assignment in wanted.assignments)
    if indexes != list(range(len(indexes))):
        raise KafkaError(Error.INVALID_REPLICA_ASSIGNMENT, "the partitions assigned are not 0, 1, 2 and so on")
    assigned_replicas(call.broker, wanted.assignments)
    return len(indexes)


def _replicas(call: Call[Request], wanted: Request.CreatableTopic) -> Replicas | None:
    """Who is to hold each partition, where a request says so, or how many."""
    if wanted.assignments:
        in_order = sorted(wanted.assignments, key=lambda assignment: assignment.partition_index)
        return assigned_replicas(call.broker, in_order).__getitem__
    if wanted.replication_factor == DEFAULT:
        return None
    return partial(call.broker.image.spread, wanted.name, factor=wanted.replication_factor)


def assigned_replicas(broker: Node, assignments: Sequence[AssignsPartition]) -> Sequence[Sequence[int]]:
    """Who holds each partition.

    Raises:
        KafkaError: INVALID_REPLICA_ASSIGNMENT: as `Controller.check_replicas`, or some have more replicas than others.
    """
    for assignment in assignments:
        broker.controller.check_replicas(assignment.broker_ids)
    if len({len(assignment.broker_ids) for assignment in assignments}) > 1:
        problem = "the partitions are not all assigned to the same number of brokers"
        raise KafkaError(Error.INVALID_REPLICA_ASSIGNMENT, problem)
    return [assignment.broker_ids for assignment in assignments]


def _configs(wanted: Request.CreatableTopic) -> dict[str, str | None]:
    configs = {config.name: config.value for config in wanted.configs}
    if len(configs) < len(wanted.configs):
        raise KafkaError(Error.INVALID_CONFIG, "a configuration is given twice")
    return configs


def _described(config: TopicConfig, given: Mapping[str, str | None]) -> list[Response.CreatableTopicConfigs]:
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
