"""CreatePartitions (key 37): give topics more partitions, each topic with its own outcome.

Versions 0-3. The count is of all partitions, old and new. Where replicas are assigned, they are of the new ones. With
validate_only everything is checked and nothing created. Partitions are on the disk before the response; those of a
topic for which the time that the client gives is too short are not created (REQUEST_TIMED_OUT). Source: KIP-195.
"""

from __future__ import annotations

from functools import partial

from tagwire import messages
from tagwire.broker.deadlines import TIMED_OUT, deadline, is_over
from tagwire.broker.handlers.create_topics import assigned_replicas, check_named_once, named
from tagwire.broker.quotas.throttles import Mutations
from tagwire.broker.registry import Call, handles
from tagwire.broker.topic import Replicas, Topic
from tagwire.errors import Error, KafkaError
from tagwire.rpc.version_gates import CREATE_PARTITIONS_THROTTLED

Request = messages.CreatePartitionsRequest
Response = messages.CreatePartitionsResponse


@handles(Request, versions="0-3")
async def create_partitions(call: Call[Request]) -> Response:
    until = deadline(call.request)
    mutations = call.broker.throttles.mutations(call, CREATE_PARTITIONS_THROTTLED)
    results = [
        await call.broker.creations.run_concurrently(_result(call, wanted, times, until, mutations))
        for wanted, times in named(call.request.topics)
    ]
    return Response(results=results, throttle_time_ms=mutations.throttle_time_ms)


async def _result(
    call: Call[Request], wanted: Request.CreatePartitionsTopic, times_named: int, until: float, mutations: Mutations
) -> Response.CreatePartitionsTopicResult:
    topics = call.broker.topics
    if is_over(until):
        return _refusal(wanted.name, TIMED_OUT)
    try:
        check_named_once(wanted, times_named)
        topic = topics.check_more_partitions(wanted.name, wanted.count)
        more = wanted.count - len(topic.partitions)
        placed = partial(_replicas, call, wanted)
        placed(topic)  # refused at once; once more in its turn, since others give it partitions meanwhile
        with call.broker.room_for(partitions=more):
            mutations.count(more)
            if not call.request.validate_only:
                await topics.add_partitions(wanted.name, wanted.count, until, placed)
    except KafkaError as error:
        return _refusal(wanted.name, error)
    return Response.CreatePartitionsTopicResult(name=wanted.name)


def _refusal(name: str, error: KafkaError) -> Response.CreatePartitionsTopicResult:
    return Response.CreatePartitionsTopicResult(name=name, error_code=error.code, error_message=error.message)


def _replicas(call: Call[Request], wanted: Request.CreatePartitionsTopic, topic: Topic) -> Replicas:
    """Who is to hold each new partition: as many brokers as hold the topic's first."""
    assigned, before = wanted.assignments, len(topic.partitions)
    factor = len(topic.partitions[0].leadership.replicas)
    if assigned is None:
        return partial(call.broker.image.spread, wanted.name, factor=factor)
    if len(assigned) != wanted.count - before:
        problem = f"{len(assigned)} partitions are assigned, and {wanted.count - before} are new"
        raise KafkaError(Error.INVALID_REPLICA_ASSIGNMENT, problem)
    replicas = assigned_replicas(call.broker, assigned)
    if len(replicas[0]) != factor:
        problem = f"the partitions are assigned to {len(replicas[0])} brokers each, those before to {factor}"
        raise KafkaError(Error.INVALID_REPLICA_ASSIGNMENT, problem)
    return lambda index: replicas[index - before]
